//! Reads the rooms of the API by the rules of the file, and finds those that cannot be served
//! beside the file's.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ApiRoom, ApiRooms, Pages};
use crate::checks::Checks;
use crate::claims::{Claim, Claims, RoomClaims};
use crate::json_table::JsonTable;
use crate::live::unplaced;
use crate::model::{Config, RoomConfig, RoomId};
use crate::notes::Notes;
use crate::origins;
use crate::problem::{Owner, Problem, key_name};
use crate::reader::Table;
use crate::room;
use crate::site::{self, ServedHosts};
use crate::source::Source;

/// Rooms of the API beside those of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacedRooms {
    /// Rooms that can be served, the oldest first.
    pub rooms: Vec<RoomConfig>,
    /// Rooms that cannot, by id.
    pub left_out: BTreeMap<RoomId, LeftOut>,
}

/// Reason why a room of the API is not served.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Mistakes in it, and names and routes that other rooms have.
    pub problems: Vec<Problem>,
    /// Whether a room of the file has its name, its id, a route or its cookie.
    pub is_shadowed: bool,
}

/// Keys of a room that name files of one machine, or that the record has elsewhere.
const FILE_ONLY: [&str; 3] = ["id", "custom_page_file", "logo"];

/// Keys of a room in the file whose values a room of the API has beside its `values`.
const ELSEWHERE: [(&str, &str); 2] = [
    ("event", "a room of the API has its events in \"events\""),
    ("bypass", "a room of the API has its rules in \"rules\""),
];

impl ApiRooms {
    /// Returns the rooms that can be served beside those of `file`. Where two claim the same, the
    /// file's room has it, and then the older one.
    #[must_use]
    pub fn beside(&self, file: &Config, pages: &Pages, checks: Checks) -> PlacedRooms {
        self.beside_with_changes_of(&BTreeSet::new(), (file, pages), checks)
    }

    /// Returns the same for a change of some rooms: whatever these claim, the others have before
    /// them.
    #[must_use]
    pub fn beside_with_changes_of(
        &self,
        changed: &BTreeSet<RoomId>,
        (file, pages): (&Config, &Pages),
        checks: Checks,
    ) -> PlacedRooms {
        let present = self.present().into_iter();
        let present = present.filter_map(|(id, _, room)| Some((RoomId::new(id)?, room)));
        let mut present: Vec<(RoomId, &ApiRoom)> = present.collect();
        // The sort keeps the order of the others.
        present.sort_by_key(|(id, _)| changed.contains(id));
        let read = present.into_iter().map(|(id, room)| {
            let read = read(&id, &room.with_pages(pages), file, checks);
            (id, read)
        });
        let read: Vec<(RoomId, Result<RoomConfig, Vec<Problem>>)> = read.collect();
        let read_rooms = read.iter().map(|(_, read)| read.as_ref().ok());
        let claimants: Vec<Option<&RoomConfig>> =
            file.rooms.iter().map(Some).chain(read_rooms).collect();
        let mut placed = PlacedRooms::default();
        let mut claims = Claims::default();
        for (number, room) in file.rooms.iter().enumerate() {
            claims.claim(&claims_of(room, number));
        }
        for (number, (id, read)) in (file.rooms.len()..).zip(&read) {
            let left_out = match read {
                Err(problems) => LeftOut {
                    problems: problems.clone(),
                    is_shadowed: false,
                },
                Ok(room) => {
                    let clashes = claims.claim(&claims_of(room, number));
                    if clashes.is_empty() {
                        placed.rooms.push(room.clone());
                        continue;
                    }
                    claims.withdraw(number);
                    let problem = |(claim, by): &(Claim, usize)| {
                        let is_file = *by < file.rooms.len();
                        let by = claimants.get(*by).copied().flatten();
                        let by = by.map_or("", |by| by.name.as_str());
                        clash(room, claim, by, is_file)
                    };
                    LeftOut {
                        problems: clashes.iter().map(problem).collect(),
                        is_shadowed: clashes.iter().any(|(_, by)| *by < file.rooms.len()),
                    }
                }
            };
            placed.left_out.insert(id.clone(), left_out);
        }
        placed
    }
}

fn claims_of(room: &RoomConfig, number: usize) -> RoomClaims<'_, usize> {
    let routes = room.routes.iter();
    RoomClaims {
        name: Some((&room.name, number)),
        id: Some((&room.id, number)),
        routes: routes.map(|route| (route, number)).collect(),
        cookie: Some((room.cookie_name(), number)),
    }
}

/// Returns the problem of a room that claims what another one has.
fn clash(room: &RoomConfig, claim: &Claim, by: &str, is_file: bool) -> Problem {
    let of = if is_file { " of the file" } else { "" };
    let (key, text) = match claim {
        Claim::Name => (
            "name".to_owned(),
            format!("the room \"{by}\"{of} has this name"),
        ),
        Claim::Id => (
            "name".to_owned(),
            format!("the room \"{by}\"{of} has this room's id"),
        ),
        Claim::Route(number) => {
            let route = room.routes.get(*number).map(ToString::to_string);
            let route = route.unwrap_or_default();
            (
                path_key(*number),
                format!("the room \"{by}\"{of} covers {route} already"),
            )
        }
        Claim::Cookie(cookie) => (
            "cookie_suffix".to_owned(),
            format!("the room \"{by}\"{of} has the cookie {cookie} on the same host"),
        ),
    };
    Problem::remark(Owner::Room(room.name.to_string()), &key, &text)
}

/// Returns the key of the path of a route, by its number in the room.
fn path_key(number: usize) -> String {
    match number {
        0 => "path".to_owned(),
        number => format!("additional_routes[{number}].path"),
    }
}

/// Reads one room by the rules of the file.
fn read(
    id: &RoomId,
    room: &ApiRoom,
    file: &Config,
    checks: Checks,
) -> Result<RoomConfig, Vec<Problem>> {
    let file_values = room.file_values();
    let values = JsonTable::of(file_values.iter());
    let entries = values.table();
    let mut notes = Notes::new(Some(Source::new("", "")));
    let table = Table::root(&mut notes, &entries);
    let has_origins = origins::are_in(&table);
    let mut rooms = [room::read(table, checks, true)];
    let mistakes = notes.problems.len();
    let served: Vec<_> = file.sites.iter().map(ServedHosts::from).collect();
    site::assign(&mut notes, &served, &mut rooms);
    let [read] = rooms;
    for problem in notes.problems.iter_mut().skip(mistakes) {
        problem.hint = Some("a room of the API needs a [[site]] of the file".to_owned());
        // It is about a host, wherever the route begins.
        problem.key = match problem.key.strip_suffix(".path") {
            Some(route) => format!("{route}.host"),
            None if problem.key.ends_with(".host") => continue,
            None => "host".to_owned(),
        };
    }
    let mut problems: Vec<_> = notes.problems.into_iter().map(unplaced).collect();
    let name = room.values.get("name").and_then(Value::as_str);
    let owner = Owner::Room(name.map(key_name).unwrap_or_default());
    if has_origins {
        let text = "a room of the API has the origins of its site";
        problems.push(Problem::remark(owner.clone(), "origin", text));
    }
    for (key, text) in ELSEWHERE {
        if room.values.contains_key(key) {
            problems.push(Problem::remark(owner.clone(), key, text));
        }
    }
    for key in file_only(&file_values) {
        let text = "only the configuration file sets this";
        problems.push(Problem::remark(owner.clone(), &key, text));
    }
    for (number, route) in read.routes.iter().enumerate() {
        if let Some(text) = (checks.path)(&route.value.path) {
            let text = format!("never matches a request: {text}");
            problems.push(Problem::remark(owner.clone(), &path_key(number), &text));
        }
    }
    match read.config {
        Some(config) if problems.is_empty() => Ok(RoomConfig {
            id: id.clone(),
            ..config
        }),
        _ => Err(problems),
    }
}

/// Returns the paths of keys that a room of the API cannot have.
fn file_only(values: &serde_json::Map<String, Value>) -> Vec<String> {
    let events = values.get("event").and_then(Value::as_array);
    let events = (1..).zip(events.into_iter().flatten());
    let events = events.map(|(number, event)| (format!("event[{number}]."), event));
    let page = values.get("page").map(|page| ("page.".to_owned(), page));
    let tables = page.into_iter().chain(events);
    let tables = tables.filter_map(|(prefix, table)| Some((prefix, table.as_object()?)));
    let all = [(String::new(), values)].into_iter().chain(tables);
    let found = all.flat_map(|(prefix, table)| {
        let keys = FILE_ONLY.iter().filter(|key| table.contains_key(**key));
        keys.map(|key| format!("{prefix}{key}")).collect::<Vec<_>>()
    });
    found.collect()
}
