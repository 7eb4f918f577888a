//! The stores in which limits are counted, and the tables of those that are beside the store of
//! rooms: `[memcached]`, `[kafka]`, `[gossip]`.

use crate::gossip::{self, GossipConfig};
use crate::kafka::{self, KafkaConfig};
use crate::memcached::{self, MemcachedConfig};
use crate::need::Need;
use crate::notes::Location;
use crate::problem::Finding;
use crate::reader::Table;

/// Declares the stores in which limits are counted, one row each: what is typed for it in `store`.
macro_rules! limit_stores {
    ($($(#[$doc:meta])* $store:ident = $word:literal,)*) => {
        /// Where the calls of a limit are counted.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum LimitStore {
            $($(#[$doc])* $store,)*
        }

        impl LimitStore {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$store),*];

            /// What may be typed, and what it means.
            pub(crate) const CHOICES: &[(&'static str, Self)] = &[$(($word, Self::$store)),*];

            /// As it is typed.
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
    /// In the memory of each node.
    Local = "local",
    /// At the server of all nodes, which is asked about each call.
    Valkey = "valkey",
    /// At each node, from batches that the store lends: that of all nodes, or the node's own data
    /// folder.
    Leases = "leases",
    /// At the servers of `[memcached]`, which are asked about each call.
    Memcached = "memcached",
    /// At each node, from what it counts and what others tell over the log of `[kafka]`.
    Kafka = "kafka",
    /// At each node, which tells all others. The last row, for stores open in this order, and this
    /// one is told to other nodes.
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
    finding: "there is no [gossip], so nodes cannot talk",
    allowed: "\"gossip\" only beside a table [gossip] with listen and secret_file",
};

/// Stores in which limits may be counted, beside that of rooms.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LimitStores {
    /// The servers of memcached.
    pub memcached: Option<MemcachedConfig>,
    /// The log over which nodes tell each other what they have counted.
    pub kafka: Option<KafkaConfig>,
    /// How nodes tell each other what they have counted.
    pub gossip: Option<GossipConfig>,
}

impl LimitStores {
    /// The names of the tables that are others in `next`.
    #[must_use]
    pub fn changed(&self, next: &Self) -> Vec<&'static str> {
        // Taken apart, so that a new field cannot be forgotten here.
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

/// The table that a limit with this store needs.
pub(crate) const fn needed_by(store: LimitStore) -> Option<Need> {
    match store {
        LimitStore::Memcached => Some(MEMCACHED),
        LimitStore::Kafka => Some(KAFKA),
        LimitStore::Gossip => Some(GOSSIP),
        // Whether `[store]` is of the right kind is looked at with all limits.
        LimitStore::Local | LimitStore::Valkey | LimitStore::Leases => None,
    }
}

/// Reads all tables. `needs` are those that limits need, and where they say so; `lacks_kafka` says
/// that this program was built without Kafka.
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
        let allowed = "only in one that was built with the cargo feature \"kafka\"";
        root.notes.refuse(&location, finding, allowed, None);
    }
    LimitStores {
        memcached,
        kafka,
        gossip: GOSSIP.read(root, needs, gossip::read),
    }
}
