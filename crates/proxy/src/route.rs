//! Which room does a request belong to?
//!
//! A table of hosts, and under each a tree of path segments. It compares hosts without case, port
//! and trailing dot, and paths in whole segments without case, in every reading of
//! [`path`](crate::path). It does not decide what happens in the room, and knows rooms by their
//! place in the config only.
//!
//! # Why without case
//!
//! Windows, IIS and Express answer `/SHOP` with the page of `/shop`. Where the origin does tell
//! them apart, the worst that happens is that a visitor queues for a page that is not there.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use anteroom_config::{Host, Route};

use crate::path::{BadPathError, Readings};

/// The readings of a path climb (`..`) and end up in different rooms. The answer is 400: whoever
/// holds a ticket for one of them must not use it in the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the path leads to different rooms, depending on who reads it")]
pub struct AmbiguousPathError;

/// Every room's hosts and paths, ready for look-up.
///
/// # Invariants
///
/// - A request is covered by a room of its host if any reading of its path is; only if none is,
///   rooms for any host are asked.
/// - Of the rooms for one host the one with the most path segments wins.
#[derive(Debug, Default)]
pub struct Routes {
    hosts: HashMap<Box<str>, Node>,
    any_host: Node,
}

#[derive(Debug, Default)]
struct Node {
    /// Rooms whose path ends here, with that path as it was written. More than one only if their
    /// paths differ in case.
    rooms: Vec<(Box<str>, usize)>,
    /// A node has few, all from the config: comparing costs less than a digest of each segment that
    /// comes.
    children: BTreeMap<Box<str>, Self>,
}

/// Where one reading led; the greater, the more specific.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Hit {
    has_host: bool,
    depth: usize,
    room: usize,
}

impl Routes {
    /// Builds the table from each room's routes, in the order of the config.
    ///
    /// If two rooms have the same host and path, the first one is found: the config check
    /// reports that.
    ///
    /// # Errors
    ///
    /// A route's path that [`Readings::of`] refuses could never be found.
    pub fn new<'a>(rooms: impl IntoIterator<Item = &'a [Route]>) -> Result<Self, BadPathError> {
        let mut routes = Self::default();
        for (room, covered) in rooms.into_iter().enumerate() {
            for route in covered {
                let tree = match &route.host {
                    Host::Any => &mut routes.any_host,
                    Host::Name(name) => routes.hosts.entry(bare_host(name).into()).or_default(),
                };
                // Written with or without escapes, it is found either way.
                let readings = Readings::of(&route.path)?;
                tree.insert(route.path.as_str(), room);
                if readings.normal() != route.path {
                    tree.insert(readings.normal(), room);
                }
            }
        }
        Ok(routes)
    }

    /// Finds the room, as its place among those given to [`new`](Self::new).
    ///
    /// `host` is the `Host` header as it came.
    ///
    /// # Errors
    ///
    /// [`AmbiguousPathError`] if it depends on who reads the path, and the path has a `..` or
    /// begins like a host. Without those, two readings differ in where segments end and in nothing
    /// else, so the deeper room cannot be a pretext to reach pages of the other.
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
            if readings.leads_anywhere() && best.is_some_and(|best| best.room != hit.room) {
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

    /// The deepest room above or at `path`: how deep, and which.
    fn find(&self, path: &str) -> Option<(usize, usize)> {
        let mut node = self;
        let mut found = node.room(path).map(|room| (0, room));
        for (depth, segment) in segments(path).skip(1).enumerate() {
            // Nothing lies deeper: whatever else the path says makes no difference.
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

    /// The room whose path ends here: the one in the case that was asked for, or the first.
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

/// What stands between slashes. Byte by byte: segments are short, and a search for many bytes at a
/// time costs more to begin than it saves.
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

/// A segment as it is compared: without case, and without the trailing dots and spaces that
/// Windows ignores.
#[must_use]
pub fn fold(segment: &str) -> Cow<'_, str> {
    let bare = segment.trim_end_matches(['.', ' ']);
    let segment = if bare.is_empty() { segment } else { bare };
    let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if segment.bytes().all(is_plain) {
        return Cow::Borrowed(segment);
    }
    // Up and then down, because some letters have two lower-case forms (`ſ` and `s`).
    Cow::Owned(segment.to_uppercase().to_lowercase())
}

/// A host as it is compared: lower case, without port and trailing dot.
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
    fn rooms_that_differ_in_case_are_told_apart_where_the_request_does() {
        let routes = routes(&[("*", "/Shop"), ("*", "/shop")]);
        check(&routes, "a", "/Shop/x", Some(0));
        check(&routes, "a", "/shop/x", Some(1));
        check(&routes, "a", "/SHOP/x", Some(0));
    }

    #[test]
    fn a_climbing_path_between_two_rooms_is_refused() {
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
    fn a_route_outside_ascii_is_found_encoded_or_not() {
        for written in ["/läden", "/l%C3%A4den"] {
            let routes = routes(&[("*", written)]);
            for path in ["/l%C3%A4den/x", "/l%c3%a4den", "/L%C3%84DEN"] {
                check(&routes, "a", path, Some(0));
            }
        }
    }
}
