//! Meaning of `[[limit]]`: checked rate limits.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use anteroom_limit::policy::Policy;
use anteroom_room::time::DurationMs;
use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};

use super::{RoomName, Route};
use crate::limit::Settings;
use crate::limit_stores::LimitStore;

/// A limit's name: 1 to 64 of `A-Z a-z 0-9 - _`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LimitName(String);

impl LimitName {
    /// Returns a name, if `text` is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        RoomName::new(text).map(|RoomName(text)| Self(text))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One `[[limit]]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LimitConfig {
    /// Unique name.
    pub name: LimitName,
    /// Rule that allows requests, for every client without a policy of its own.
    pub policy: Policy,
    /// Requests that count; empty = all.
    pub routes: Vec<LimitRoute>,
    /// Key by which requests are counted together.
    pub key: ClientKey,
    /// Cost of a request.
    pub cost: NonZeroU32,
    /// Action on a request that is over the limit.
    pub on_limit: OnLimit,
    /// Whether the limit counts, decides and logs, but rejects nothing.
    pub shadow: bool,
    /// Headers of responses about the limit.
    pub headers: LimitHeaders,
    /// Whether polls of a waiting page count too.
    pub count_polling: bool,
    /// Most clients that are remembered at once.
    pub keys_max: usize,
    /// Store in which requests are counted.
    pub store: LimitStore,
    /// Behaviour while the store is unavailable.
    pub on_store_failure: OnLimitStoreFailure,
    /// Policies of single clients, with the same algorithm.
    pub overrides: BTreeMap<Client, Policy>,
    /// Typed settings of the algorithm; overrides take what they leave out from here.
    pub(crate) settings: Settings,
}

/// Requests that a limit covers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LimitRoute {
    /// Host and path, as in a room.
    pub route: Route,
    /// Methods in capitals; empty = all.
    pub methods: Vec<String>,
}

/// Key by which requests are counted together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientKey {
    /// Parts that identify a client; empty = one count for all.
    pub parts: Vec<KeyPart>,
    /// Prefix length of IPv6 networks that count as one client, from 32 to 128 bits.
    pub ipv6_prefix: u8,
    /// Action if a part is missing.
    pub without: WithoutKey,
}

impl ClientKey {
    /// Returns the text for a client's address: the whole IPv4 address, or the first address of the
    /// IPv6 network.
    ///
    /// # Panics
    ///
    /// If `ipv6_prefix` is more than 128.
    #[must_use]
    pub fn address_text(&self, address: IpAddr) -> String {
        match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => Ipv6Net::new_assert(address, self.ipv6_prefix)
                .network()
                .to_string(),
        }
    }
}

/// Part of a request that identifies a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyPart {
    /// The client's address, as trusted proxies report it.
    ClientAddress,
    /// The value of this header, whose name is in lower case.
    Header(String),
    /// The value of this cookie.
    Cookie(String),
    /// This segment of the path, from 1.
    PathSegment(usize),
    /// This claim of a signed token.
    JwtClaim(String),
    /// The visitor of the room that covers the request.
    Ticket,
}

/// `[jwt]`: rules for signed tokens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JwtConfig {
    /// Public keys of the issuers.
    pub keys: JwtKeys,
    /// Location of the token in a request.
    pub token: TokenSource,
    /// Required issuer (`iss`).
    pub issuer: Option<String>,
    /// Required audience (`aud`).
    pub audience: Option<String>,
    /// Tolerated difference between clocks.
    pub leeway: DurationMs,
}

/// A set of public keys (JWKS).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum JwtKeys {
    /// Contents of the file.
    Text(Vec<u8>),
    /// The file, as it was typed.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Line in the config file, for messages.
        line: usize,
    },
}

/// Location of a token in a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TokenSource {
    /// A header, with its name in lower case; in `authorization` after `Bearer`.
    Header(String),
    /// A cookie.
    Cookie(String),
}

/// Action if a part of the key is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WithoutKey {
    /// Count the request by the client's address.
    ClientAddress,
    /// Allow the request without counting it.
    Skip,
    /// Reject the request.
    Reject,
}

/// Action on a request that is over its limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnLimit {
    /// Reject the request, with the time until the next attempt.
    Reject,
    /// Delay the request until it is allowed, or reject it if that takes longer than `max`.
    Delay {
        /// Longest delay.
        max: DurationMs,
    },
    /// Queue the visitor in the waiting room that covers the request.
    Wait,
}

/// Behaviour towards requests while the store is unavailable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnLimitStoreFailure {
    /// Allow what was leased before, and reject the rest.
    Bounded,
    /// Allow all requests without counting them.
    Open,
    /// Reject all requests once the store is known to be unavailable.
    Closed,
    /// Count at each node alone, each up to the whole limit.
    Local,
}

/// Headers of responses about a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitHeaders {
    /// `RateLimit` and `RateLimit-Policy`.
    pub ietf: bool,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, with the format of the last one.
    pub legacy: Option<LegacyReset>,
}

/// Format of `X-RateLimit-Reset`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LegacyReset {
    /// Seconds from now.
    Seconds,
    /// Seconds since 1970.
    Epoch,
}

/// Client of a limit: the values of the key's parts, in order. Its `Debug` shows no value, because
/// values may be API keys.
#[derive(
    Clone, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, utoipa::ToSchema,
)]
pub struct Client(pub Vec<String>);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client([{} parts])", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let check = |ipv6_prefix: u8, address: &str, expected: &str| {
            let key = ClientKey {
                parts: vec![KeyPart::ClientAddress],
                ipv6_prefix,
                without: WithoutKey::ClientAddress,
            };
            let address = address.parse().unwrap();
            assert_eq!(key.address_text(address), expected, "{address}");
        };
        check(64, "203.0.113.7", "203.0.113.7");
        check(64, "::ffff:203.0.113.7", "203.0.113.7");
        check(64, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check(48, "2001:db8:1:2:3:4:5:6", "2001:db8:1::");
        check(128, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6");
    }

    #[test]
    fn a_client_is_not_shown() {
        let client = Client(vec!["secret".to_owned()]);
        assert_eq!(format!("{client:?}"), "Client([1 parts])");
    }
}
