//! Do the rooms get along? Names, routes and cookies that two of them claim.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::cookie;
use super::model::{Host, Route};
use super::notes::{Notes, Placed};
use super::problem::Finding;
use super::room::RoomRead;

/// Notes every claim that an earlier room, or the same one, has made before.
pub(super) fn check(notes: &mut Notes, rooms: &[RoomRead]) {
    check_names(notes, rooms);
    check_routes(notes, rooms);
    check_cookies(notes, rooms);
}

fn check_names(notes: &mut Notes, rooms: &[RoomRead]) {
    let mut lines = HashMap::new();
    for Placed { value, spot } in rooms.iter().filter_map(|room| room.name.as_ref()) {
        match lines.entry(value) {
            Entry::Vacant(entry) => {
                entry.insert(spot.line);
            }
            Entry::Occupied(first) => {
                let finding = format!("the room on line {} has the same name", first.get());
                notes.refuse(spot, Finding::Remark(finding), "", None);
            }
        }
    }
}

fn check_routes(notes: &mut Notes, rooms: &[RoomRead]) {
    let mut lines: HashMap<(&Host, &str), usize> = HashMap::new();
    for Placed { value, spot } in rooms.iter().flat_map(|room| &room.routes) {
        match lines.entry((&value.host, &value.path)) {
            Entry::Vacant(entry) => {
                entry.insert(spot.line);
            }
            Entry::Occupied(first) => {
                let Route { host, path } = value;
                let host = match host {
                    Host::Any => "any host",
                    Host::Name(name) => name,
                };
                let finding = format!("line {} covers {host} {path} already", first.get());
                notes.refuse(spot, Finding::Remark(finding), "", None);
            }
        }
    }
}

fn check_cookies(notes: &mut Notes, rooms: &[RoomRead]) {
    // By cookie: its hosts and the line of the room that took each.
    let mut taken: HashMap<String, HashMap<&Host, usize>> = HashMap::new();
    let mut names = HashSet::new();
    for room in rooms {
        let Some(name) = &room.name else { continue };
        // Two rooms of one name are told once.
        if !names.insert(&name.value) {
            continue;
        }
        let cookie = cookie::name(&room.cookie.value, &name.value);
        let hosts = taken.entry(cookie.clone()).or_default();
        let own = || room.routes.iter().map(|route| &route.value.host);
        // A room on any host shares each of them.
        let clash = if own().any(|host| *host == Host::Any) {
            hosts.values().min()
        } else {
            own().chain([&Host::Any]).find_map(|host| hosts.get(host))
        };
        if let Some(line) = clash {
            let finding = format!(
                "the cookie {cookie} would be the one of the room on line {line}, on the same host"
            );
            let hint = "give each its own cookie_suffix".to_owned();
            notes.refuse(&room.cookie.spot, Finding::Remark(finding), "", Some(hint));
        } else {
            let line = name.spot.line;
            hosts.extend(own().map(|host| (host, line)));
        }
    }
}
