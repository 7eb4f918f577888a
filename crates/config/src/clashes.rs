//! Check for rooms and limits that clash: names, routes and cookies that two of them claim.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::cookie;
use super::limit::LimitRead;
use super::limit_stores::LimitStore;
use super::model::{Host, Route};
use super::notes::{Located, Notes};
use super::problem::Finding;
use super::room::RoomRead;
use super::shared_store::StoreConfig;
use super::site::{self, SiteRead};

/// Reports every claim that an earlier room, or the same one, has made before.
pub(super) fn check(notes: &mut Notes, rooms: &[RoomRead]) {
    check_names(notes, rooms);
    check_routes(notes, rooms);
    check_cookies(notes, rooms);
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

fn check_names(notes: &mut Notes, rooms: &[RoomRead]) {
    let names = rooms.iter().filter_map(|room| room.name.as_ref());
    refuse_same_names(notes, "room", names);
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

fn check_routes(notes: &mut Notes, rooms: &[RoomRead]) {
    let mut lines: HashMap<(&Host, &str), usize> = HashMap::new();
    for Located { value, location } in rooms.iter().flat_map(|room| &room.routes) {
        match lines.entry((&value.host, &value.path)) {
            Entry::Vacant(entry) => {
                entry.insert(location.line);
            }
            Entry::Occupied(first) => {
                let Route { host, path } = value;
                let host = match host {
                    Host::Any => "any host",
                    Host::Name(name) => name,
                };
                let finding = format!("line {} covers {host} {path} already", first.get());
                notes.report(location, Finding::Remark(finding), "", None);
            }
        }
    }
}

fn check_cookies(notes: &mut Notes, rooms: &[RoomRead]) {
    // By cookie: its hosts, and the line of the first room on each.
    let mut taken: HashMap<String, HashMap<&Host, usize>> = HashMap::new();
    let mut names = HashSet::new();
    for room in rooms {
        let Some(name) = &room.name else { continue };
        // Two rooms with one name are reported once.
        if !names.insert(&name.value) {
            continue;
        }
        let cookie = cookie::name(&room.cookie.value, &name.value);
        let hosts = taken.entry(cookie.clone()).or_default();
        let own = || room.routes.iter().map(|route| &route.value.host);
        // A room on any host shares its cookie with rooms on every host.
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
            notes.report(
                &room.cookie.location,
                Finding::Remark(finding),
                "",
                Some(hint),
            );
        } else {
            let line = name.location.line;
            hosts.extend(own().map(|host| (host, line)));
        }
    }
}
