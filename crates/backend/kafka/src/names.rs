//! Names of clients in messages between nodes.
//!
//! A name is a digest of limit and client, so a reader of the topics learns as little about clients
//! as a reader of a store. A limit whose sub-windows change their width counts under new names,
//! from zero. The width changes only the upper half of a name, so the
//! [partition](crate::partitions) of a client does not depend on it.

use anteroom_limit::time::DurationUs;
use anteroom_limit_store::{ClientKey, KeyMaker};

use crate::partitions::Partitions;
use crate::stats::{Name, NodeId};

/// Overflow entries of each limit. More would bound memory less, fewer would reject clients because
/// of more others.
const OVERFLOW_ENTRIES: u128 = 64;

/// Returns the name of a client.
pub(crate) fn client(limit: &str, width: DurationUs, key: ClientKey) -> Name {
    name(b"client", limit, width, key.0)
}

/// Returns the name of a client's overflow entry.
pub(crate) fn overflow(limit: &str, width: DurationUs, key: ClientKey) -> Name {
    name(b"crowd", limit, width, key.0 % OVERFLOW_ENTRIES)
}

/// Returns the name of a node's beats in a partition.
pub(crate) fn beat(node: NodeId, partitions: Partitions, partition: u16) -> Name {
    let of = u128::from(partitions.count()) << 64 | u128::from(node.0);
    let name = name(b"beat", "", DurationUs::ZERO, of);
    partitions.name_in(partition, name)
}

fn name(kind: &[u8], limit: &str, width: DurationUs, of: u128) -> Name {
    let of = of.to_be_bytes();
    let key = KeyMaker::shared(limit).key([kind, &of]);
    Name(key.0 ^ u128::from(width.0) << 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_limit_width_or_client_is_another_name() {
        let minute = DurationUs::from_secs(60);
        let hour = DurationUs::from_secs(3_600);
        let partitions = [1, 2].map(|count| Partitions::among(count, count).unwrap());
        let names = [
            client("a", minute, ClientKey(1)),
            client("b", minute, ClientKey(1)),
            client("a", hour, ClientKey(1)),
            client("a", minute, ClientKey(2)),
            overflow("a", minute, ClientKey(1)),
            beat(NodeId(1), partitions[0], 0),
            beat(NodeId(2), partitions[0], 0),
            beat(NodeId(1), partitions[1], 0),
            beat(NodeId(1), partitions[1], 1),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{at}");
        }
        let entries = [1, 65].map(|key| overflow("a", minute, ClientKey(key)));
        assert_eq!(entries[0], entries[1]);
    }

    #[test]
    fn a_client_is_in_one_partition_whatever_the_width() {
        let partitions = Partitions::among(256, 256).unwrap();
        let of = |width, key| partitions.partition(client("a", DurationUs(width), ClientKey(key)));
        for key in 0..100 {
            assert_eq!(of(1, key), of(u64::MAX, key));
        }
        let mut used: Vec<u16> = (0..4_000).map(|key| of(1, key)).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 256, "all partitions are used");
    }
}
