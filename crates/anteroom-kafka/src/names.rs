//! What is a client called between nodes?
//!
//! By a digest of limit, width and client, so that whoever reads the topics learns who called as little as whoever
//! reads a store. A limit whose stretches of time change their width counts under other names, that is from anew.

use anteroom_counts::{CallKey, KeyMaker};
use anteroom_limits::time::MicroSpan;

use crate::figures::{Name, NodeId};

/// Names that clients share who find no place, for each limit. More would bound memory less, fewer would let one
/// client be rejected for more others.
const CROWDS: u128 = 64;

/// The name of a client.
pub(crate) fn client(limit: &str, width: MicroSpan, key: CallKey) -> Name {
    name(b"client", limit, width, key.0)
}

/// The name that a client shares with others of the same limit.
pub(crate) fn crowd(limit: &str, width: MicroSpan, key: CallKey) -> Name {
    name(b"crowd", limit, width, key.0 % CROWDS)
}

/// By which a node tells that it lives.
pub(crate) fn beat(node: NodeId) -> Name {
    name(b"beat", "", MicroSpan::ZERO, u128::from(node.0))
}

fn name(kind: &[u8], limit: &str, width: MicroSpan, of: u128) -> Name {
    let width = width.0.to_be_bytes();
    let of = of.to_be_bytes();
    let key = KeyMaker::shared(limit).key([kind, &width, &of]);
    Name(key.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_limit_width_or_client_is_another_name() {
        let minute = MicroSpan::from_secs(60);
        let hour = MicroSpan::from_secs(3_600);
        let names = [
            client("a", minute, CallKey(1)),
            client("b", minute, CallKey(1)),
            client("a", hour, CallKey(1)),
            client("a", minute, CallKey(2)),
            crowd("a", minute, CallKey(1)),
            beat(NodeId(1)),
            beat(NodeId(2)),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{at}");
        }
        let crowds = [1, 65].map(|key| crowd("a", minute, CallKey(key)));
        assert_eq!(crowds[0], crowds[1]);
    }
}
