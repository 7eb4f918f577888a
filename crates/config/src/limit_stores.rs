//! The tables of stores in which limits are counted, beside that of rooms: `[memcached]`,
//! `[kafka]`, `[gossip]`.

use crate::checks::Checks;
use crate::model::{GossipConfig, KafkaConfig, LimitStore, MemcachedConfig};
use crate::need::Need;
use crate::notes::Spot;
use crate::problem::Finding;
use crate::reader::Table;
use crate::{gossip, kafka, memcached};

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

/// Reads all of them. `needs` are the tables that limits need, and where they say so.
pub(crate) fn read(root: &mut Table<'_>, needs: &[&(Need, Spot)], checks: Checks) -> LimitStores {
    let memcached = MEMCACHED.read(root, needs, memcached::read);
    let kafka = KAFKA.read(root, needs, kafka::read);
    if root.has(KAFKA.table) && checks.lacks_kafka {
        let spot = root.spot(KAFKA.table);
        let finding = Finding::Remark("this program was built without Kafka".to_owned());
        let allowed = "only in one that was built with the cargo feature \"kafka\"";
        root.notes.refuse(&spot, finding, allowed, None);
    }
    LimitStores {
        memcached,
        kafka,
        gossip: GOSSIP.read(root, needs, gossip::read),
    }
}
