//! What is a client called between nodes?
//!
//! By a digest of limit and client, so that whoever reads the topics learns who called as little as
//! whoever reads a store. A limit whose stretches of time change their width counts under other
//! names, that is from anew: the width changes the upper half of a name, and only that, so that
//! over which [partition](crate::partitions) a client is told does not hang on it.

use anteroom_limit::time::DurationUs;
use anteroom_limit_store::{CallKey, KeyMaker};

use crate::partitions::Partitions;
use crate::stats::{Name, NodeId};

/// Names that clients share who find no place, for each limit. More would bound memory less, fewer
/// would let one client be rejected for more others.
const CROWDS: u128 = 64;

/// The name of a client.
pub(crate) fn client(limit: &str, width: DurationUs, key: CallKey) -> Name {
    name(b"client", limit, width, key.0)
}

/// The name that a client shares with others of the same limit.
pub(crate) fn crowd(limit: &str, width: DurationUs, key: CallKey) -> Name {
    name(b"crowd", limit, width, key.0 % CROWDS)
}

/// By which a node tells in a lane that it lives.
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
            client("a", minute, CallKey(1)),
            client("b", minute, CallKey(1)),
            client("a", hour, CallKey(1)),
            client("a", minute, CallKey(2)),
            crowd("a", minute, CallKey(1)),
            beat(NodeId(1), partitions[0], 0),
            beat(NodeId(2), partitions[0], 0),
            beat(NodeId(1), partitions[1], 0),
            beat(NodeId(1), partitions[1], 1),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{at}");
        }
        let crowds = [1, 65].map(|key| crowd("a", minute, CallKey(key)));
        assert_eq!(crowds[0], crowds[1]);
    }

    #[test]
    fn a_client_is_in_one_partition_whatever_the_width() {
        let partitions = Partitions::among(256, 256).unwrap();
        let of = |width, key| partitions.partition(client("a", DurationUs(width), CallKey(key)));
        for key in 0..100 {
            assert_eq!(of(1, key), of(u64::MAX, key));
        }
        let mut used: Vec<u16> = (0..4_000).map(|key| of(1, key)).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 256, "all lanes are used");
    }
}
