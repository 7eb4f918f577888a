//! Check for rooms and limits that clash: names, routes and cookies that two of them claim.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::claims::{Claim, Claims, RoomClaims};
use super::cookie;
use super::limit::LimitRead;
use super::limit_stores::LimitStore;
use super::model::Route;
use super::notes::{Located, Notes};
use super::problem::Finding;
use super::room::RoomRead;
use super::shared_store::StoreConfig;
use super::site::{self, SiteRead};

/// Reports every claim that an earlier room, or the same one, has made before.
pub(super) fn check(notes: &mut Notes, rooms: &[RoomRead]) {
    let mut claims = Claims::default();
    for room in rooms {
        for (claim, line) in claims.claim(&RoomClaims::of(room)) {
            report_clash(notes, room, &claim, line);
        }
    }
}

fn report_clash(notes: &mut Notes, room: &RoomRead, claim: &Claim, line: usize) {
    let location = match claim {
        Claim::Name => room.name.as_ref().map(|name| &name.location),
        Claim::Id => room.id.as_ref().map(|id| &id.location),
        Claim::Route(number) => room.routes.get(*number).map(|route| &route.location),
        Claim::Cookie(_) => Some(&room.cookie.location),
    };
    let Some(location) = location else { return };
    let finding = match claim {
        Claim::Name => format!("the room on line {line} has the same name"),
        Claim::Id => format!("the room on line {line} has the same id"),
        Claim::Route(number) => {
            let route = room
                .routes
                .get(*number)
                .map(|route| route.value.to_string());
            format!("line {line} covers {} already", route.unwrap_or_default())
        }
        Claim::Cookie(cookie) => format!(
            "the cookie {cookie} would be the one of the room on line {line}, on the same host"
        ),
    };
    let hint =
        matches!(claim, Claim::Cookie(_)).then(|| "give each its own cookie_suffix".to_owned());
    notes.report(location, Finding::Remark(finding), "", hint);
}

impl<'a> RoomClaims<'a, usize> {
    /// Returns the claims of a room that was read, each with its line.
    fn of(room: &'a RoomRead) -> Self {
        let name_line = room.name.as_ref().map_or(0, |name| name.location.line);
        let id = room.id.as_ref();
        let routes = room.routes.iter();
        Self {
            name: room.name.as_ref().map(|name| (&name.value, name_line)),
            id: id.map(|id| (&id.value, id.location.line)),
            routes: routes
                .map(|route| (&route.value, route.location.line))
                .collect(),
            cookie: id.map(|id| (cookie::name(&room.cookie.value, &id.value), name_line)),
        }
    }
}

/// Reports names and hosts that an earlier site has.
pub(super) fn check_sites(notes: &mut Notes, sites: &[SiteRead]) {
    let names = sites.iter().filter_map(|site| site.name.as_ref());
    refuse_same_names(notes, "site", names);
    site::check_hosts(notes, sites);
}

/// Reports names that an earlier limit has, and keys that have no effect without a room.
pub(super) fn check_limits(notes: &mut Notes, limits: &[LimitRead], rooms: &[RoomRead]) {
    let names = limits.iter().filter_map(|limit| limit.name.as_ref());
    refuse_same_names(notes, "limit", names);
    for limit in limits {
        if limit.of_rooms.is_empty() || meets_any(limit, rooms) {
            continue;
        }
        for (location, remark) in &limit.of_rooms {
            notes.warn(location, *remark);
        }
    }
}

/// Whether some request is covered by both the limit and a room.
fn meets_any(limit: &LimitRead, rooms: &[RoomRead]) -> bool {
    let mut routes = rooms.iter().flat_map(|room| &room.routes);
    let covers = |room: &Route| {
        let mut own = limit.routes.iter();
        limit.routes.is_empty() || own.any(|own| own.route.meets(room))
    };
    routes.any(|room| covers(&room.value))
}

/// Reports limits that are counted at a store's server if there is no such server. Leases work with
/// the embedded store too.
pub(super) fn check_limits_stores(notes: &mut Notes, limits: &[LimitRead], store: &StoreConfig) {
    if matches!(store, StoreConfig::Valkey(_)) {
        return;
    }
    for location in limits.iter().filter_map(|limit| limit.of_valkey.as_ref()) {
        let found = Finding::Value(format!("{:?}", LimitStore::Valkey.word()));
        let allowed = "\"local\" or \"leases\", unless [store] has kind = \"valkey\"";
        notes.report(location, found, allowed, None);
    }
}

fn refuse_same_names<'a, N: Eq + Hash + 'a>(
    notes: &mut Notes,
    what: &str,
    names: impl Iterator<Item = &'a Located<N>>,
) {
    let mut lines = HashMap::new();
    for Located { value, location } in names {
        match lines.entry(value) {
            Entry::Vacant(entry) => {
                entry.insert(location.line);
            }
            Entry::Occupied(first) => {
                let finding = format!("the {what} on line {} has the same name", first.get());
                notes.report(location, Finding::Remark(finding), "", None);
            }
        }
    }
}
