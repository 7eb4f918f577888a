//! Names, ids, routes and cookies of rooms, which no two rooms may share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::model::{Host, RoomId, RoomName, Route};

/// Claims of the rooms so far, each with its claimant: a line of the file, or a number.
pub(super) struct Claims<'a, W> {
    names: HashMap<&'a RoomName, W>,
    ids: HashMap<&'a RoomId, W>,
    routes: HashMap<(&'a Host, &'a str), W>,
    /// Hosts of each cookie.
    cookies: HashMap<String, HashMap<&'a Host, W>>,
}

/// Claims of one room, as far as they could be read.
pub(super) struct RoomClaims<'a, W> {
    pub(super) name: Option<(&'a RoomName, W)>,
    pub(super) id: Option<(&'a RoomId, W)>,
    pub(super) routes: Vec<(&'a Route, W)>,
    /// Name of the cookie, on the hosts of the routes.
    pub(super) cookie: Option<(String, W)>,
}

/// Claim that another room has made before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Claim {
    Name,
    Id,
    /// Route, by its number in the room.
    Route(usize),
    /// Cookie, by its name.
    Cookie(String),
}

impl<W> Default for Claims<'_, W> {
    fn default() -> Self {
        Self {
            names: HashMap::new(),
            ids: HashMap::new(),
            routes: HashMap::new(),
            cookies: HashMap::new(),
        }
    }
}

impl<'a, W: Copy + Ord> Claims<'a, W> {
    /// Adds the claims of a room. Returns those that were made before, with the earlier claimant,
    /// who keeps them.
    pub(super) fn claim(&mut self, room: &RoomClaims<'a, W>) -> Vec<(Claim, W)> {
        let name = room.name.and_then(|name| claim(&mut self.names, name));
        let id = room.id.and_then(|id| claim(&mut self.ids, id));
        // Two rooms with one name or id have one cookie; that is reported once.
        let is_same = name.is_some() || id.is_some();
        let name = name.map(|by| (Claim::Name, by));
        // Without an id of its own, a room has its name as the id.
        let id = id.filter(|_| name.is_none()).map(|by| (Claim::Id, by));
        let mut clashes: Vec<_> = name.into_iter().chain(id).collect();
        for (number, (route, by)) in room.routes.iter().enumerate() {
            let route = ((&route.host, &*route.path), *by);
            let taken = claim(&mut self.routes, route);
            clashes.extend(taken.map(|by| (Claim::Route(number), by)));
        }
        if let Some((cookie, by)) = room.cookie.as_ref().filter(|_| !is_same) {
            let hosts = self.cookies.entry(cookie.clone()).or_default();
            let own = || room.routes.iter().map(|(route, _)| &route.host);
            // A room on any host shares its cookie with rooms on every host.
            let taken = if own().any(|host| *host == Host::Any) {
                hosts.values().min().copied()
            } else {
                own()
                    .chain([&Host::Any])
                    .find_map(|host| hosts.get(host).copied())
            };
            if let Some(by) = taken {
                clashes.push((Claim::Cookie(cookie.clone()), by));
            } else {
                hosts.extend(own().map(|host| (host, *by)));
            }
        }
        clashes
    }

    /// Removes all claims of a claimant.
    pub(super) fn withdraw(&mut self, claimant: W) {
        self.names.retain(|_, by| *by != claimant);
        self.ids.retain(|_, by| *by != claimant);
        self.routes.retain(|_, by| *by != claimant);
        for hosts in self.cookies.values_mut() {
            hosts.retain(|_, by| *by != claimant);
        }
    }
}

/// Adds a claim; returns the earlier claimant if there is one.
fn claim<K: Eq + Hash, W: Copy>(claims: &mut HashMap<K, W>, (what, by): (K, W)) -> Option<W> {
    match claims.entry(what) {
        Entry::Occupied(earlier) => Some(*earlier.get()),
        Entry::Vacant(entry) => {
            entry.insert(by);
            None
        }
    }
}
