//! Identity of a client, as one limit distinguishes clients.
//!
//! It comes from parts of a request: the address behind trusted proxies, a header, a cookie, a
//! segment of the path, the visitor of a waiting room. A client chooses what it sends, so a limit
//! by header alone does not stop a client that changes the header each time.
//!
//! A value that can be read in several ways, one of which is the origin's, counts for several
//! clients: two cookies of one name (browsers send them if two paths have set them), a repeated
//! header, a segment that differs between readings. So a made-up value does not hide a client.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use anteroom_limit_store::{ClientKey, KeyMaker};
use anteroom_proxy::cookies;
use anteroom_proxy::forwarded::is_same;
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::path::Readings;
use anteroom_proxy::route::fold;
use http::header::HeaderName;
use smallvec::{SmallVec, smallvec};

use crate::distinct::{CLIENTS_MAX, Unknown, distinct};
use crate::tokens::ShownTokens;

/// Part of a request that identifies the client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// Address; of IPv6 only the first bits, because one host has billions of addresses.
    Address,
    /// Value of a header.
    Header(HeaderName),
    /// Value of a cookie.
    Cookie(String),
    /// Segment of the path, from 1; decoded and case-folded, like the paths of rooms.
    PathSegment(usize),
    /// Claim of a signed token.
    Claim(String),
    /// Visitor known to the room that covers the request.
    Visitor,
}

/// Request data that identifies the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientRequest<'r> {
    /// Address of the client.
    pub(crate) address: IpAddr,
    /// Headers of the request.
    pub(crate) headers: HeaderView<'r>,
    /// Path without the query.
    pub(crate) readings: &'r Readings<'r>,
    /// Signed tokens in the request.
    pub(crate) tokens: &'r ShownTokens<'r>,
    /// Visitor of a valid ticket in the request.
    pub(crate) visitor: Option<[u8; 16]>,
}

impl Part {
    /// Returns each value that this part can have in the request.
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
                // Match every spelling that an origin may take for it.
                let lines = caller.headers.iter();
                let lines = lines.filter(|(sent, _)| is_same(sent, name.as_str()));
                distinct(lines.map(|(_, value)| Cow::Borrowed(value)))
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

    /// Returns the value for a client as an operator writes it; `None` if it cannot be written.
    fn named(&self, ipv6_prefix: u8, text: &str) -> Option<Vec<u8>> {
        Some(match self {
            Self::Address => network(text.parse().ok()?, ipv6_prefix).to_vec(),
            Self::Header(_) | Self::Cookie(_) | Self::Claim(_) => text.as_bytes().to_vec(),
            Self::PathSegment(_) => fold(text).into_owned().into_bytes(),
            Self::Visitor => return None,
        })
    }
}

/// Keys of the clients of a request: nearly always one.
pub(crate) type Clients = SmallVec<[ClientKey; 1]>;

/// Returns the keys of the clients of a request. Without parts, all requests share one client.
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
    // Enumerate all combinations, like the digits of a number.
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

/// Returns the key of the client that an operator names, part by part.
pub(crate) fn key_of_named(
    parts: &[Part],
    ipv6_prefix: u8,
    keys: &KeyMaker,
    texts: &[String],
) -> Option<ClientKey> {
    let values = parts.iter().zip(texts);
    let values = values.map(|(part, text)| part.named(ipv6_prefix, text));
    let values = values.collect::<Option<Vec<_>>>()?;
    Some(keys.key(values.iter().map(Vec::as_slice)))
}

/// Returns the key of an address, for requests without the configured parts. It differs from the
/// key of every client that has them.
pub(crate) fn key_of_address(keys: &KeyMaker, address: IpAddr, ipv6_prefix: u8) -> ClientKey {
    let network = network(address, ipv6_prefix);
    keys.key([&b"address"[..], &b"instead"[..], &*network, b"", b""])
}

/// Returns the bytes of an address, or of its network.
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
