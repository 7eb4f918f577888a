//! Route table: the room of a request.
//!
//! A table of hosts with a tree of path segments each. It compares hosts without case, port and
//! trailing dot, and paths in whole segments without case, in every reading of
//! [`path`](crate::path). Rooms are known only by their index in the config.
//!
//! # Why without case
//!
//! Windows, IIS and Express serve the page of `/shop` at `/SHOP`. If the origin does distinguish
//! them, the worst case is a visitor who queues for a page that does not exist.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use anteroom_config::{Host, Route};

use crate::path::{BadPathError, Readings};

/// Error of a path whose readings climb (`..`) and end up in different rooms. The response has
/// status 400, so that a ticket of one room cannot be used in the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the path leads to different rooms, depending on who reads it")]
pub struct AmbiguousPathError;

/// Route table of all rooms' hosts and paths.
///
/// # Invariants
///
/// - A request is covered by a room of its host if any reading of its path is. Only otherwise are
///   rooms for any host searched.
/// - Of the rooms for one host the one with the most path segments wins.
#[derive(Debug, Default)]
pub struct Routes {
    hosts: HashMap<Box<str>, Node>,
    any_host: Node,
}

#[derive(Debug, Default)]
struct Node {
    /// Rooms whose path ends here, with the path as configured. More than one only if their paths
    /// differ in case.
    rooms: Vec<(Box<str>, usize)>,
    /// Child segments. A node has few, all from the config, so comparing costs less than hashing.
    children: BTreeMap<Box<str>, Self>,
}

/// Match of one reading; greater means more specific.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Hit {
    has_host: bool,
    depth: usize,
    room: usize,
}

impl Routes {
    /// Builds the table from each room's routes, in the order of the config.
    ///
    /// If two rooms have the same host and path, the first one wins; the config check reports that.
    ///
    /// # Errors
    ///
    /// [`BadPathError`] if [`Readings::of`] rejects a route's path, which could never match.
    pub fn new<'a>(rooms: impl IntoIterator<Item = &'a [Route]>) -> Result<Self, BadPathError> {
        let mut routes = Self::default();
        for (room, covered) in rooms.into_iter().enumerate() {
            for route in covered {
                let tree = match &route.host {
                    Host::Any => &mut routes.any_host,
                    Host::Name(name) => routes.hosts.entry(bare_host(name).into()).or_default(),
                };
                // The route matches with and without escapes.
                let readings = Readings::of(&route.path)?;
                tree.insert(route.path.as_str(), room);
                if readings.normal() != route.path {
                    tree.insert(readings.normal(), room);
                }
            }
        }
        Ok(routes)
    }

    /// Finds the room, as its index among those given to [`new`](Self::new).
    ///
    /// `host` is the `Host` header as received.
    ///
    /// # Errors
    ///
    /// [`AmbiguousPathError`] if the readings lead to different rooms, and the path has a `..` or
    /// begins like a host. Without those, two readings differ only in where segments end, so the
    /// deeper room cannot be a pretext to reach pages of the other.
    pub fn find(
        &self,
        host: &str,
        readings: &Readings<'_>,
    ) -> Result<Option<usize>, AmbiguousPathError> {
        let of_host = if self.hosts.is_empty() {
            None
        } else {
            self.hosts.get(&*bare_host(host))
        };
        let mut best: Option<Hit> = None;
        for reading in readings.iter() {
            let Some(hit) = self.look_up(of_host, reading) else {
                continue;
            };
            if readings.can_escape() && best.is_some_and(|best| best.room != hit.room) {
                return Err(AmbiguousPathError);
            }
            best = best.max(Some(hit));
        }
        Ok(best.map(|hit| hit.room))
    }

    fn look_up(&self, of_host: Option<&Node>, reading: &str) -> Option<Hit> {
        let hit = |has_host, found: Option<(usize, usize)>| {
            found.map(|(depth, room)| Hit {
                has_host,
                depth,
                room,
            })
        };
        hit(true, of_host.and_then(|tree| tree.find(reading)))
            .or_else(|| hit(false, self.any_host.find(reading)))
    }
}

impl Node {
    fn insert(&mut self, path: &str, room: usize) {
        let path = path.trim_end_matches('/');
        let mut node = self;
        for segment in path.split('/').skip(1) {
            node = node.children.entry(fold(segment).into()).or_default();
        }
        node.rooms.push((path.into(), room));
    }

    /// Returns the depth and the index of the deepest room above or at `path`.
    fn find(&self, path: &str) -> Option<(usize, usize)> {
        let mut node = self;
        let mut found = node.room(path).map(|room| (0, room));
        for (depth, segment) in segments(path).skip(1).enumerate() {
            // No deeper routes: the rest of the path has no effect.
            if node.children.is_empty() {
                break;
            }
            let Some(child) = node.children.get(&*fold(segment)) else {
                break;
            };
            node = child;
            found = node.room(path).map(|room| (depth + 1, room)).or(found);
        }
        found
    }

    /// Returns the room whose path ends here: the one with the requested case, or the first.
    fn room(&self, path: &str) -> Option<usize> {
        let exact = |(written, _): &&(Box<str>, usize)| {
            self.rooms.len() > 1
                && path
                    .strip_prefix(&**written)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.rooms.iter().find(exact).or_else(|| self.rooms.first());
        found.map(|(_, room)| *room)
    }
}

/// Returns the segments between slashes. It scans byte by byte: segments are short, and a
/// vectorized search costs more to start than it saves.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.bytes().position(|byte| byte == b'/') else {
            rest = None;
            return Some(text);
        };
        rest = Some(&text[end + 1..]);
        Some(&text[..end])
    })
}

/// Returns a segment for comparison: without case, and without the trailing dots and spaces that
/// Windows ignores.
#[must_use]
pub fn fold(segment: &str) -> Cow<'_, str> {
    let bare = segment.trim_end_matches(['.', ' ']);
    let segment = if bare.is_empty() { segment } else { bare };
    let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if segment.bytes().all(is_plain) {
        return Cow::Borrowed(segment);
    }
    // Upper and then lower case, because some letters have two lower-case forms (`ſ` and `s`).
    Cow::Owned(segment.to_uppercase().to_lowercase())
}

/// Returns a host for comparison: lower case, without port and trailing dot.
#[must_use]
pub fn bare_host(host: &str) -> Cow<'_, str> {
    let name = if host.starts_with('[') {
        host.find(']').map_or(host, |end| &host[..=end])
    } else {
        host.split(':').next().unwrap_or(host)
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(rooms: &[(&str, &str)]) -> Routes {
        let rooms: Vec<_> = rooms
            .iter()
            .map(|(host, path)| {
                vec![Route {
                    host: match *host {
                        "*" => Host::Any,
                        name => Host::Name(name.to_owned()),
                    },
                    path: (*path).to_owned(),
                }]
            })
            .collect();
        Routes::new(rooms.iter().map(Vec::as_slice)).unwrap()
    }

    #[track_caller]
    fn check(routes: &Routes, host: &str, path: &str, expected: Option<usize>) {
        let readings = Readings::of(path).unwrap();
        assert_eq!(routes.find(host, &readings), Ok(expected), "{host} {path}");
    }

    #[test]
    fn a_room_covers_whole_segments() {
        let routes = routes(&[("*", "/shop")]);
        for path in [
            "/shop",
            "/shop/",
            "/shop/x",
            "/SHOP/x",
            "/Shop.",
            "/shop%20/x",
            "//shop",
        ] {
            check(&routes, "a", path, Some(0));
        }
        for path in ["/", "/shopping", "/x/shop", "/sho"] {
            check(&routes, "a", path, None);
        }
    }

    #[test]
    fn the_longest_path_wins() {
        let routes = routes(&[("*", "/"), ("*", "/shop"), ("*", "/shop/vip")]);
        check(&routes, "a", "/x", Some(0));
        check(&routes, "a", "/shop/x", Some(1));
        check(&routes, "a", "/shop/vip/x", Some(2));
        check(&routes, "a", "/shop//vip", Some(2));
        check(&routes, "a", "/shop/vip%2Fx", Some(2));
    }

    #[test]
    fn a_room_of_the_host_beats_a_longer_path_of_any_host() {
        let routes = routes(&[("*", "/shop/vip"), ("a.example", "/shop")]);
        check(&routes, "a.example", "/shop/vip", Some(1));
        check(&routes, "b.example", "/shop/vip", Some(0));
        check(&routes, "a.example", "/x", None);
    }

    #[test]
    fn hosts_compare_without_case_port_and_trailing_dot() {
        let routes = routes(&[("a.example", "/"), ("[::1]", "/")]);
        for host in [
            "a.example",
            "A.Example",
            "a.example:8080",
            "a.example.",
            "A.EXAMPLE.:80",
        ] {
            check(&routes, host, "/", Some(0));
        }
        check(&routes, "[::1]:8080", "/", Some(1));
        check(&routes, "b.a.example", "/", None);
    }

    #[test]
    fn rooms_that_differ_in_case_match_the_exact_case_first() {
        let routes = routes(&[("*", "/Shop"), ("*", "/shop")]);
        check(&routes, "a", "/Shop/x", Some(0));
        check(&routes, "a", "/shop/x", Some(1));
        check(&routes, "a", "/SHOP/x", Some(0));
    }

    #[test]
    fn a_climbing_path_between_two_rooms_is_an_error() {
        let routes = routes(&[("*", "/shop"), ("*", "/free")]);
        for path in [
            "/free/..%2fshop",
            "/free/../shop",
            "/free\\..\\shop",
            "/free/..;/shop",
        ] {
            let readings = Readings::of(path).unwrap();
            assert_eq!(
                routes.find("a", &readings),
                Err(AmbiguousPathError),
                "{path}"
            );
        }
        check(&routes, "a", "/free/../x", Some(1));
        check(&routes, "a", "/x/../free", Some(1));
    }

    #[test]
    fn a_non_ascii_route_matches_encoded_or_not() {
        for written in ["/läden", "/l%C3%A4den"] {
            let routes = routes(&[("*", written)]);
            for path in ["/l%C3%A4den/x", "/l%c3%a4den", "/L%C3%84DEN"] {
                check(&routes, "a", path, Some(0));
            }
        }
    }
}
