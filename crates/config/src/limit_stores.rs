//! Stores in which limits are counted, and the tables of those besides the store of rooms:
//! `[memcached]`, `[kafka]`, `[gossip]`.

use crate::gossip::{self, GossipConfig};
use crate::kafka::{self, KafkaConfig};
use crate::memcached::{self, MemcachedConfig};
use crate::need::Need;
use crate::notes::Location;
use crate::problem::Finding;
use crate::reader::Table;

/// Declares the stores in which limits are counted, one row each, with the word of the config.
macro_rules! limit_stores {
    ($($(#[$doc:meta])* $store:ident = $word:literal,)*) => {
        /// Store in which the requests of a limit are counted.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum LimitStore {
            $($(#[$doc])* $store,)*
        }

        impl LimitStore {
            /// All stores.
            pub const ALL: &[Self] = &[$(Self::$store),*];

            /// Words of the config file, and what they mean.
            pub(crate) const CHOICES: &[(&'static str, Self)] = &[$(($word, Self::$store)),*];

            /// Returns the word of the config file.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$store => $word,)*
                }
            }
        }
    };
}

limit_stores! {
    /// Counts in the memory of each node.
    Local = "local",
    /// Counts at the server of all nodes, with a round trip for each request.
    Valkey = "valkey",
    /// Counts at each node, from batches that the store leases: the store of all nodes, or the
    /// node's own data folder.
    Leases = "leases",
    /// Counts at the servers of `[memcached]`, with a round trip for each request.
    Memcached = "memcached",
    /// Counts at each node, from its own counts and those that other nodes send through the log
    /// of `[kafka]`.
    Kafka = "kafka",
    /// Counts at each node, which sends its counts to all others. The last row, because stores
    /// open in this order and this one is announced to other nodes.
    Gossip = "gossip",
}

const MEMCACHED: Need = Need {
    table: "memcached",
    finding: "there is no [memcached], so there is no server",
    allowed: "\"memcached\" only beside a table [memcached] with servers",
};
const KAFKA: Need = Need {
    table: "kafka",
    finding: "there is no [kafka], so there is no broker",
    allowed: "\"kafka\" only beside a table [kafka] with brokers",
};
const GOSSIP: Need = Need {
    table: "gossip",
    finding: "there is no [gossip], so nodes cannot exchange counts",
    allowed: "\"gossip\" only beside a table [gossip] with listen and secret_file",
};

/// Stores in which limits may be counted, besides the store of rooms.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LimitStores {
    /// The servers of memcached.
    pub memcached: Option<MemcachedConfig>,
    /// The log through which nodes exchange their counts.
    pub kafka: Option<KafkaConfig>,
    /// The direct exchange of counts between nodes.
    pub gossip: Option<GossipConfig>,
}

impl LimitStores {
    /// Returns the names of the tables that differ in `next`.
    #[must_use]
    pub fn changed(&self, next: &Self) -> Vec<&'static str> {
        // Destructured, so that a new field cannot be forgotten here.
        let Self {
            memcached,
            kafka,
            gossip,
        } = self;
        let changes = [
            (MEMCACHED.table, *memcached != next.memcached),
            (KAFKA.table, *kafka != next.kafka),
            (GOSSIP.table, *gossip != next.gossip),
        ];
        let changed = changes.into_iter().filter(|(_, has_changed)| *has_changed);
        changed.map(|(table, _)| table).collect()
    }
}

/// Returns the table that a limit with this store needs.
pub(crate) const fn needed_by(store: LimitStore) -> Option<Need> {
    match store {
        LimitStore::Memcached => Some(MEMCACHED),
        LimitStore::Kafka => Some(KAFKA),
        LimitStore::Gossip => Some(GOSSIP),
        // The kind of `[store]` is checked with all limits.
        LimitStore::Local | LimitStore::Valkey | LimitStore::Leases => None,
    }
}

/// Reads all tables. `needs` are the tables that limits need, with locations; `lacks_kafka` is set
/// if this program was built without Kafka.
pub(crate) fn read(
    root: &mut Table<'_>,
    needs: &[&(Need, Location)],
    lacks_kafka: bool,
) -> LimitStores {
    let memcached = MEMCACHED.read(root, needs, memcached::read);
    let kafka = KAFKA.read(root, needs, kafka::read);
    if root.has(KAFKA.table) && lacks_kafka {
        let location = root.location(KAFKA.table);
        let finding = Finding::Remark("this program was built without Kafka".to_owned());
        let allowed = "only in a program that was built with the cargo feature \"kafka\"";
        root.notes.report(&location, finding, allowed, None);
    }
    LimitStores {
        memcached,
        kafka,
        gossip: GOSSIP.read(root, needs, gossip::read),
    }
}
