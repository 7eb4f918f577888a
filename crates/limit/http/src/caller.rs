//! Who calls, as one limit tells clients apart?
//!
//! Parts of a request: the address behind proxies that are trusted, a header, a cookie, a segment
//! of the path, the visitor of a waiting room. What comes from the client can be chosen by it: a
//! limit by a header alone is no protection against somebody who sends another one each time.
//!
//! What can be read in several ways, one of which is the origin's, is several clients, and the call
//! is counted to each: two cookies of one name (which browsers send where two paths have set them),
//! a header that stands there twice, a segment that differs from reading to reading. So nobody
//! hides behind a made-up value.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use anteroom_limit_store::{CallKey, KeyMaker};
use anteroom_proxy::cookies;
use anteroom_proxy::forwarded::is_same;
use anteroom_proxy::path::Readings;
use anteroom_proxy::route::fold;
use http::HeaderMap;
use http::header::HeaderName;
use smallvec::{SmallVec, smallvec};

use crate::distinct::{CLIENTS_MAX, Unknown, distinct};
use crate::tokens::ShownTokens;

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
    /// A claim of a signed token.
    Claim(String),
    /// The visitor whom the room knows that covers the request.
    Visitor,
}

/// A request, as far as clients are told apart by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientRequest<'r> {
    /// Where it comes from.
    pub(crate) address: IpAddr,
    /// Its headers.
    pub(crate) headers: &'r HeaderMap,
    /// Its path, without the query.
    pub(crate) readings: &'r Readings<'r>,
    /// The signed tokens that it carries.
    pub(crate) tokens: &'r ShownTokens<'r>,
    /// The visitor whose ticket it carries, if that is a good one.
    pub(crate) visitor: Option<[u8; 16]>,
}

impl Part {
    /// What this request says, in each way in which it can be read.
    fn of<'r>(
        &self,
        ipv6_prefix: u8,
        caller: &ClientRequest<'r>,
    ) -> Result<Vec<Cow<'r, [u8]>>, Unknown> {
        match self {
            Self::Address => Ok(vec![Cow::Owned(
                network(caller.address, ipv6_prefix).to_vec(),
            )]),
            Self::Header(name) => {
                let lines = caller.headers.iter().filter(|(sent, _)| {
                    // In every spelling that an origin may take for it.
                    *sent == name || is_same(sent.as_str(), name.as_str())
                });
                distinct(lines.map(|(_, value)| Cow::Borrowed(value.as_bytes())))
            }
            Self::Cookie(name) => {
                let values = cookies::all_values(caller.headers, name);
                distinct(values.map(Cow::Borrowed))
            }
            Self::PathSegment(at) => {
                let segments = caller.readings.decoded();
                let segments = segments.filter_map(|path| path.split('/').nth(*at));
                let folded = segments.map(|segment| fold(segment).into_owned().into_bytes());
                distinct(folded.map(Cow::Owned))
            }
            Self::Claim(name) => caller.tokens.claim(name),
            Self::Visitor => {
                let visitor = caller.visitor.ok_or(Unknown::Missing)?;
                Ok(vec![Cow::Owned(visitor.to_vec())])
            }
        }
    }

    /// What a request of the client would say whom an operator calls so; `None` if no client is
    /// called so.
    fn named(&self, ipv6_prefix: u8, text: &str) -> Option<Vec<u8>> {
        Some(match self {
            Self::Address => network(text.parse().ok()?, ipv6_prefix).to_vec(),
            Self::Header(_) | Self::Cookie(_) | Self::Claim(_) => text.as_bytes().to_vec(),
            Self::PathSegment(_) => fold(text).into_owned().into_bytes(),
            Self::Visitor => return None,
        })
    }
}

/// The keys of whoever calls: nearly always one.
pub(crate) type Clients = SmallVec<[CallKey; 1]>;

/// The keys of whoever calls. Without parts everybody is one client.
pub(crate) fn keys_of(
    parts: &[Part],
    ipv6_prefix: u8,
    keys: &KeyMaker,
    caller: &ClientRequest<'_>,
) -> Result<Clients, Unknown> {
    if let [Part::Address] = parts {
        let network = network(caller.address, ipv6_prefix);
        return Ok(smallvec![keys.key([&*network])]);
    }
    let values = parts.iter().map(|part| part.of(ipv6_prefix, caller));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let count = values.iter().map(Vec::len).product::<usize>();
    if count > CLIENTS_MAX {
        return Err(Unknown::TooMany);
    }
    // Each way to read all of them, counted like the digits of a number.
    let ways = (0..count).map(|mut way| {
        let chosen = values.iter().map(|values| {
            let value = &values[way % values.len()];
            way /= values.len();
            &**value
        });
        keys.key(chosen)
    });
    Ok(ways.collect())
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

/// The key of whoever comes from this address, where something else is missing. Nobody who has what
/// is missing has the same.
pub(crate) fn key_of_address(keys: &KeyMaker, address: IpAddr, ipv6_prefix: u8) -> CallKey {
    let network = network(address, ipv6_prefix);
    keys.key([&b"address"[..], &b"instead"[..], &*network, b"", b""])
}

/// The bytes of an address, or of its network.
fn network(address: IpAddr, ipv6_prefix: u8) -> SmallVec<[u8; 16]> {
    match address.to_canonical() {
        IpAddr::V4(address) => SmallVec::from_slice(&address.octets()),
        IpAddr::V6(address) => {
            let kept = u32::from(ipv6_prefix.clamp(1, 128));
            let mask = u128::MAX << (128 - kept);
            let network = Ipv6Addr::from_bits(address.to_bits() & mask);
            SmallVec::from_slice(&network.octets())
        }
    }
}

#[cfg(test)]
mod tests;
