//! What does a limit need elsewhere in the file? Tables without which it means nothing.

use super::client_key::KEY;
use super::store::STORE;
use crate::model::{ClientKey, KeyPart, LimitStore};
use crate::notes::Spot;
use crate::reader::Table;

/// A table that some limits need.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Need {
    /// Which tokens are good.
    Jwt,
    /// On which servers calls are counted.
    Memcached,
    /// Over which brokers.
    Kafka,
    /// How nodes tell each other.
    Gossip,
}

impl Need {
    /// The table's name.
    pub(crate) const fn table(self) -> &'static str {
        match self {
            Self::Jwt => "jwt",
            Self::Memcached => "memcached",
            Self::Kafka => "kafka",
            Self::Gossip => "gossip",
        }
    }

    /// What is wrong without it, and what is allowed.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Jwt => (
                "there is no [jwt], so no token is good",
                "\"jwt_claim:NAME\" only beside a table [jwt] with keys_file",
            ),
            Self::Memcached => (
                "there is no [memcached], so there is no server",
                "\"memcached\" only beside a table [memcached] with servers",
            ),
            Self::Kafka => (
                "there is no [kafka], so there is no broker",
                "\"kafka\" only beside a table [kafka] with brokers",
            ),
            Self::Gossip => (
                "there is no [gossip], so nodes cannot talk",
                "\"gossip\" only beside a table [gossip] with listen and secret_file",
            ),
        }
    }
}

/// What a limit needs, and where it says so.
pub(super) fn of(
    table: &Table<'_>,
    store: LimitStore,
    key: Option<&ClientKey>,
) -> Vec<(Need, Spot)> {
    let of_store = match store {
        LimitStore::Memcached => Some(Need::Memcached),
        LimitStore::Kafka => Some(Need::Kafka),
        LimitStore::Gossip => Some(Need::Gossip),
        // Whether `[store]` is of the right kind is looked at with all limits.
        LimitStore::Local | LimitStore::Valkey | LimitStore::Leases => None,
    };
    let of_store = of_store.map(|need| (need, table.spot(STORE.name)));
    let is_claim = |part: &KeyPart| matches!(part, KeyPart::JwtClaim(_));
    let has_claim = key.is_some_and(|key| key.parts.iter().any(is_claim));
    let of_key = has_claim.then(|| (Need::Jwt, table.spot(KEY.name)));
    of_store.into_iter().chain(of_key).collect()
}
