//! Checks of a change of rooms of the API, by the rules of the file and beside all others.

use std::collections::BTreeSet;

use anteroom_config::api_rooms::{
    API_PAGES_BYTES_MAX, API_ROOMS_BYTES_MAX, API_ROOMS_MAX, ApiRooms, Pages, PlacedRooms,
};
use anteroom_config::overrides::Record as _;
use anteroom_config::{Checks, Config, Owner, Problem, RoomId, RoomOrigins};
use anteroom_room::time::Timestamp;

use super::RoomRefusal;

/// Surroundings of a change, against which it is checked.
pub(super) struct Surroundings<'a> {
    pub(super) file: &'a Config,
    /// Pages that are known, those of the change among them.
    pub(super) pages: &'a Pages,
    pub(super) checks: Checks,
    /// Time of the change.
    pub(super) at: u64,
}

/// Checks rooms that were changed at the same time.
///
/// # Errors
///
/// [`RoomRefusal`]: why the change is not allowed.
pub(super) fn check(
    ids: &[RoomId],
    (before, next): (&ApiRooms, &ApiRooms),
    around: &Surroundings<'_>,
) -> Result<(), RoomRefusal> {
    let written: BTreeSet<RoomId> = ids
        .iter()
        .filter(|id| next.room(id).is_some())
        .cloned()
        .collect();
    if written.is_empty() {
        return Ok(());
    }
    check_sizes((before, next), around.pages)?;
    let mut problems = unknown_pages(&written, (before, next), around.pages);
    let beside = (around.file, around.pages);
    let mut placed = next.beside_with_changes_of(&written, beside, around.checks);
    for id in &written {
        if let Some(left_out) = placed.left_out.remove(id) {
            problems.extend(left_out.problems);
        }
        problems.extend(other_zone(id, next, &placed));
    }
    if problems.is_empty() {
        let known = before.beside(around.file, around.pages, around.checks);
        for id in &written {
            let (before, next) = ((before, &known), (next, &placed));
            problems.extend(moved_starts(id, before, next, Timestamp(around.at)));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(RoomRefusal::NotAllowed(problems))
    }
}

/// Refuses a change that makes too many or too large what is at its limit.
fn check_sizes((before, next): (&ApiRooms, &ApiRooms), pages: &Pages) -> Result<(), RoomRefusal> {
    let count = next.present().len();
    if count > API_ROOMS_MAX && count > before.present().len() {
        return Err(RoomRefusal::TooMany);
    }
    let bytes = next.encode().len();
    if bytes > API_ROOMS_BYTES_MAX && bytes > before.encode().len() {
        return Err(RoomRefusal::TooLarge);
    }
    let bytes = |record: &ApiRooms| -> usize {
        let names = record.page_names().into_iter();
        let texts = names.filter_map(|name| pages.get(name));
        texts.map(|text| text.len()).sum()
    };
    if bytes(next) > API_PAGES_BYTES_MAX && bytes(next) > bytes(before) {
        return Err(RoomRefusal::PagesTooLarge);
    }
    Ok(())
}

/// Returns the problems of rooms that refer to pages which nobody has sent.
fn unknown_pages(
    written: &BTreeSet<RoomId>,
    (before, next): (&ApiRooms, &ApiRooms),
    pages: &Pages,
) -> Vec<Problem> {
    let known = before.page_names();
    let is_unknown = |name: &&str| !pages.contains_key(*name) && !known.contains(*name);
    let rooms = written.iter().filter_map(|id| Some((id, next.room(id)?.1)));
    let unknown = rooms.flat_map(|(id, room)| {
        let names = room.page_names().filter(is_unknown);
        names.map(move |name| {
            let text = format!("there is no page with the digest {name}");
            Problem::remark(Owner::Room(id.to_string()), "custom_page_html", &text)
        })
    });
    unknown.collect()
}

/// Key of problems about the site that a room names. It is no key of the file.
pub(crate) const SITE: &str = "site";

/// Returns the problem of a room that another site would serve than the one it names. A room may
/// name none.
fn other_zone(id: &RoomId, next: &ApiRooms, placed: &PlacedRooms) -> Option<Problem> {
    let (_, room) = next.room(id)?;
    let config = placed.rooms.iter().find(|room| room.id == *id)?;
    let RoomOrigins::Site(site) = &config.origins else {
        return None;
    };
    if room.site.is_empty() {
        return None;
    }
    let text = format!("the site {site} serves it, and not {}", room.site);
    let owner = Owner::Room(id.to_string());
    (room.site != site.as_str()).then(|| Problem::remark(owner, SITE, &text))
}

/// Returns the problems of events that have started and would start at another time: those who
/// came for the start would be queued again.
fn moved_starts(
    id: &RoomId,
    before: (&ApiRooms, &PlacedRooms),
    next: (&ApiRooms, &PlacedRooms),
    now: Timestamp,
) -> Vec<Problem> {
    let (before, next) = (starts(id, before), starts(id, next));
    let is_moved = |event: &str, start: Timestamp| {
        let known = before.iter().find(|(known, _)| known == event);
        known.is_some_and(|(_, known)| *known <= now && *known != start)
    };
    let moved = (1..)
        .zip(&next)
        .filter(|(_, (event, start))| is_moved(event, *start));
    let problem = |(number, _)| {
        let key = format!("event[{number}].event_start_time");
        let text = "the event has started: its start stays";
        Problem::remark(Owner::Room(id.to_string()), &key, text)
    };
    moved.map(problem).collect()
}

/// Returns the ids and the starts of a room's events, in order.
fn starts(id: &RoomId, (record, placed): (&ApiRooms, &PlacedRooms)) -> Vec<(String, Timestamp)> {
    let config = placed.rooms.iter().find(|room| room.id == *id);
    let (Some((_, room)), Some(config)) = (record.room(id), config) else {
        return Vec::new();
    };
    let times = config.events.iter().map(|event| event.times.starts_at);
    let ids = room.events.iter().map(|event| event.id.clone());
    ids.zip(times).collect()
}
