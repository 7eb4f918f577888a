//! What `[[limit]]` means: how many calls a client may make, checked.

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
    /// A name, if `text` is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        RoomName::new(text).map(|RoomName(text)| Self(text))
    }

    /// The name as text.
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
    /// Which calls are over the limit, for every client without a policy of its own.
    pub policy: Policy,
    /// Which requests are calls; empty = all.
    pub routes: Vec<LimitRoute>,
    /// Whose calls are counted together.
    pub key: ClientKey,
    /// How much a call counts.
    pub cost: NonZeroU32,
    /// What becomes of a call that is over the limit.
    pub on_limit: OnLimit,
    /// Decide, count and log, and let every call pass.
    pub shadow: bool,
    /// What answers say about the limit.
    pub headers: LimitHeaders,
    /// Whether what a waiting page asks is a call, too.
    pub count_polling: bool,
    /// How many clients are remembered at once.
    pub keys_max: usize,
    /// Where calls are counted.
    pub store: LimitStore,
    /// What becomes of calls that cannot be counted because the store is away.
    pub on_store_failure: OnLimitStoreFailure,
    /// Policies of single clients; by the same algorithm.
    pub overrides: BTreeMap<Client, Policy>,
    /// What was typed for the algorithm: clients of their own have what they leave out from it.
    pub(crate) settings: Settings,
}

/// Requests that a limit covers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LimitRoute {
    /// Host and path, meant as a room's.
    pub route: Route,
    /// Methods in capitals; empty = all.
    pub methods: Vec<String>,
}

/// Whose calls are counted together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientKey {
    /// What tells clients apart; empty = one count for everybody.
    pub parts: Vec<KeyPart>,
    /// Addresses of IPv6 that share so many bits are one client, from 32 to 128.
    pub ipv6_prefix: u8,
    /// What happens where a part is missing.
    pub without: WithoutKey,
}

impl ClientKey {
    /// The text that stands for a client's address: the whole address of IPv4, the first of its
    /// network of IPv6.
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

/// Something of a request that tells clients apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyPart {
    /// The client's address, as trusted proxies tell it.
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

/// `[jwt]`: which signed tokens are good.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JwtConfig {
    /// The public keys of whoever issues them.
    pub keys: JwtKeys,
    /// Where requests carry them.
    pub token: TokenPlace,
    /// Who must have issued them (`iss`).
    pub issuer: Option<String>,
    /// For whom they must be (`aud`).
    pub audience: Option<String>,
    /// How far the clocks may be apart.
    pub leeway: DurationMs,
}

/// A set of public keys (JWKS).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum JwtKeys {
    /// What the file holds.
    Text(Vec<u8>),
    /// The file that holds it, as it was typed.
    File {
        /// Which file.
        path: PathBuf,
        /// Line in the config file, for messages.
        line: usize,
    },
}

/// Where requests carry a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TokenPlace {
    /// In this header, whose name is in lower case; in `authorization` behind `Bearer`.
    Header(String),
    /// In this cookie.
    Cookie(String),
}

/// What happens where a part of the key is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WithoutKey {
    /// The call is counted by the client's address.
    ClientAddress,
    /// It passes uncounted.
    Skip,
    /// It is rejected.
    Reject,
}

/// What becomes of a call that is over its limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnLimit {
    /// It is told when to come again.
    Reject,
    /// It is held until it may go on, or rejected if that would be longer than `max`.
    Delay {
        /// How long it is held at most.
        max: DurationMs,
    },
    /// It goes into the waiting room that covers it.
    Wait,
}

/// What becomes of calls that cannot be counted because the store is away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnLimitStoreFailure {
    /// What was lent before goes on; beyond that calls are refused.
    Bounded,
    /// They pass uncounted.
    Open,
    /// They are refused, from when the store is known to be away.
    Closed,
    /// Each node counts them by itself, up to the whole limit.
    Local,
}

/// What answers say about a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitHeaders {
    /// `RateLimit` and `RateLimit-Policy`.
    pub ietf: bool,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, and how the last one counts.
    pub legacy: Option<LegacyReset>,
}

/// What `X-RateLimit-Reset` says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LegacyReset {
    /// How many seconds from now.
    Seconds,
    /// Which second since 1970.
    Epoch,
}

/// Who calls: what each part of the key is, in its order. Its `Debug` shows none of it: it may be
/// the key of an API.
#[derive(Clone, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
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
    fn who_calls_is_not_shown() {
        let client = Client(vec!["secret".to_owned()]);
        assert_eq!(format!("{client:?}"), "Client([1 parts])");
    }
}
