//! Who calls, as one limit tells clients apart?
//!
//! Parts of a request: the address behind proxies that are trusted, a header, a cookie, a segment of the path, the
//! visitor of a waiting room. What comes from the client can be chosen by it: a limit by a header alone is no
//! protection against somebody who sends another one each time. What can be read in two ways, one of which may be
//! the origin's, is nobody's key: several values of one header or cookie, a segment that differs from
//! reading to reading.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use anteroom_counts::{CallKey, KeyMaker};
use anteroom_gateway::cookies;
use anteroom_gateway::path::Readings;
use anteroom_gateway::route::fold;
use http::HeaderMap;
use http::header::HeaderName;

/// What tells clients apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// Their address; of IPv6 the first bits only, as whoever has one address has billions.
    Address,
    /// The value of a header.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(String),
    /// A segment of the path, from 1; decoded, and without case, as rooms are found.
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
    pub(crate) readings: &'r Readings<'r>,
    /// The visitor whose ticket it carries, if that is a good one.
    pub(crate) visitor: Option<[u8; 16]>,
}

/// Why nobody can be told from a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unknown {
    /// Something is not there, or empty.
    Missing,
    /// Something can be read in two ways.
    Ambiguous,
}

impl Part {
    /// What this request says.
    fn of<'r>(&self, ipv6_prefix: u8, caller: &Caller<'r>) -> Result<Cow<'r, [u8]>, Unknown> {
        let value = match self {
            Self::Address => network(caller.address, ipv6_prefix),
            Self::Header(name) => {
                let lines = caller.headers.get_all(name).iter();
                Cow::Borrowed(only(lines.map(http::HeaderValue::as_bytes))?)
            }
            Self::Cookie(name) => {
                let values = cookies::values(caller.headers, name);
                Cow::Borrowed(only(values.iter().map(|value| value.as_bytes()))?)
            }
            Self::PathSegment(at) => {
                let segments = caller
                    .readings
                    .decoded()
                    .map(|path| path.split('/').nth(*at));
                let segments = segments.map(|segment| fold(segment.unwrap_or_default()));
                Cow::Owned(only(segments)?.into_owned().into_bytes())
            }
            Self::Visitor => Cow::Owned(caller.visitor.ok_or(Unknown::Missing)?.to_vec()),
        };
        // Whoever sends nothing in it might as well not send it.
        Some(value)
            .filter(|value| !value.is_empty())
            .ok_or(Unknown::Missing)
    }

    /// What a request of the client would say whom an operator calls so; `None` if no client is called so.
    fn named(&self, ipv6_prefix: u8, text: &str) -> Option<Vec<u8>> {
        Some(match self {
            Self::Address => network(text.parse().ok()?, ipv6_prefix).into_owned(),
            Self::Header(_) | Self::Cookie(_) => text.as_bytes().to_vec(),
            Self::PathSegment(_) => fold(text).into_owned().into_bytes(),
            Self::Visitor => return None,
        })
    }
}

/// The value that all of them are.
fn only<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Result<T, Unknown> {
    let first = values.next().ok_or(Unknown::Missing)?;
    if values.all(|value| value == first) {
        Ok(first)
    } else {
        Err(Unknown::Ambiguous)
    }
}

/// The key of whoever calls. Without parts everybody is one client.
pub(crate) fn key(
    parts: &[Part],
    ipv6_prefix: u8,
    keys: &KeyMaker,
    caller: &Caller<'_>,
) -> Result<CallKey, Unknown> {
    if let [part] = parts {
        let value = part.of(ipv6_prefix, caller)?;
        return Ok(keys.key([&*value]));
    }
    let values = parts.iter().map(|part| part.of(ipv6_prefix, caller));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    Ok(keys.key(values.iter().map(|value| &**value)))
}

/// The key of the client whom an operator calls so, part by part.
pub(crate) fn key_of_named(
    parts: &[Part],
    ipv6_prefix: u8,
    keys: &KeyMaker,
    texts: &[String],
) -> Option<CallKey> {
    let values = parts.iter().zip(texts);
    let values = values.map(|(part, text)| part.named(ipv6_prefix, text));
    let values = values.collect::<Option<Vec<_>>>()?;
    Some(keys.key(values.iter().map(Vec::as_slice)))
}

/// The key of whoever comes from this address, where something else is missing. Nobody who has what is
/// missing has the same.
pub(crate) fn key_of_address(keys: &KeyMaker, address: IpAddr, ipv6_prefix: u8) -> CallKey {
    let network = network(address, ipv6_prefix);
    keys.key([&b"address"[..], &b"instead"[..], &*network, b"", b""])
}

fn network(address: IpAddr, ipv6_prefix: u8) -> Cow<'static, [u8]> {
    Cow::Owned(match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => {
            let kept = u32::from(ipv6_prefix.clamp(1, 128));
            let mask = u128::MAX << (128 - kept);
            Ipv6Addr::from_bits(address.to_bits() & mask)
                .octets()
                .to_vec()
        }
    })
}

#[cfg(test)]
mod tests;
