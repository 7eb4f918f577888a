//! Who calls, as one limit tells clients apart?
//!
//! Parts of a request: the address behind proxies that are trusted, a header, a cookie, a segment of the path, the
//! visitor of a waiting room. What comes from the client can be chosen by it: a limit by a header alone is no
//! protection against somebody who sends another one each time, and a missing one is counted by address.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use anteroom_counts::{CallKey, KeyMaker};
use http::HeaderMap;
use http::header::HeaderName;

/// What tells clients apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// Their address; of IPv6 the first bits only, as whoever has one address has billions.
    Address,
    /// The value of a header, the first one.
    Header(HeaderName),
    /// The value of a cookie, the first one.
    Cookie(String),
    /// A segment of the path as it was sent, from 1.
    PathSegment(usize),
    /// The visitor whom the room knows that covers the request.
    Visitor,
}

/// A request, as far as clients are told apart by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'r> {
    /// Where it comes from.
    pub(crate) address: IpAddr,
    /// Its headers.
    pub(crate) headers: &'r HeaderMap,
    /// Its path, without the query.
    pub(crate) path: &'r str,
    /// The visitor whose ticket it carries, if that is a good one.
    pub(crate) visitor: Option<[u8; 16]>,
}

/// Longest value that is looked at: a header may be as long as all of a request's head.
const BYTES_MAX: usize = 4_096;

impl Part {
    /// What this request says; `None` if it says nothing.
    fn of<'r>(&self, ipv6_prefix: u8, caller: &Caller<'r>) -> Option<Cow<'r, [u8]>> {
        let value = match self {
            Self::Address => network(caller.address, ipv6_prefix),
            Self::Header(name) => Cow::Borrowed(caller.headers.get(name)?.as_bytes()),
            Self::Cookie(name) => Cow::Borrowed(cookie(caller.headers, name)?),
            Self::PathSegment(at) => Cow::Borrowed(segment(caller.path, *at)?.as_bytes()),
            Self::Visitor => Cow::Owned(caller.visitor?.to_vec()),
        };
        // Whoever sends nothing in it might as well not send it.
        Some(value).filter(|value| (1..=BYTES_MAX).contains(&value.len()))
    }
}

/// The key of whoever calls; `None` if a part is missing. Without parts everybody is one client.
pub(crate) fn key(
    parts: &[Part],
    ipv6_prefix: u8,
    keys: &KeyMaker,
    caller: &Caller<'_>,
) -> Option<CallKey> {
    if let [part] = parts {
        let value = part.of(ipv6_prefix, caller)?;
        return Some(keys.key([&*value]));
    }
    let values: Option<Vec<_>> = parts
        .iter()
        .map(|part| part.of(ipv6_prefix, caller))
        .collect();
    Some(keys.key(values?.iter().map(|value| &**value)))
}

/// The key of whoever comes from this address, where something else is missing. Nobody who has what is
/// missing has the same.
pub(crate) fn key_of_address(keys: &KeyMaker, address: IpAddr, ipv6_prefix: u8) -> CallKey {
    let network = network(address, ipv6_prefix);
    keys.key([&b"address"[..], &b"instead"[..], &*network, b"", b""])
}

/// What an operator writes for whoever calls, part by part.
pub(crate) fn texts(parts: &[Part], ipv6_prefix: u8, caller: &Caller<'_>) -> Option<Vec<Vec<u8>>> {
    let text = |part: &Part| match part {
        Part::Address => Some(masked(caller.address, ipv6_prefix).to_string().into_bytes()),
        Part::Visitor => {
            let digits = caller.visitor?.map(|byte| format!("{byte:02x}"));
            Some(digits.concat().into_bytes())
        }
        part => part.of(ipv6_prefix, caller).map(Cow::into_owned),
    };
    parts.iter().map(text).collect()
}

fn masked(address: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let kept = u32::from(ipv6_prefix.clamp(1, 128));
            let mask = u128::MAX << (128 - kept);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

fn network(address: IpAddr, ipv6_prefix: u8) -> Cow<'static, [u8]> {
    Cow::Owned(match masked(address, ipv6_prefix) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    })
}

/// The first value of a cookie (RFC 6265, section 5.4).
fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    let lines = headers.get_all(http::header::COOKIE).iter();
    let mut pieces = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pieces.find_map(|piece| {
        let piece = piece.trim_ascii();
        let value = piece.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(value)
    })
}

fn segment(path: &str, at: usize) -> Option<&str> {
    let segment = path.split('/').nth(at)?;
    Some(segment).filter(|segment| !segment.is_empty())
}

#[cfg(test)]
mod tests;
