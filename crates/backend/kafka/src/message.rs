//! How is that written down which nodes tell each other?
//!
//! One form for both topics, numbers with their first byte first, nothing between them:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | version, 1 |
//! | 16 | name: digest of limit, client and width |
//! | 8 | which stretch of time |
//! | 8 | until when it matters, in microseconds since the Unix epoch |
//! | 8, 4, 4, and again | node; how much it admitted; how much it gave back |
//!
//! At least one node, at most [`STATS_MAX`], none twice. It is fixed rather than JSON because
//! there may be one for each client ten times a second.

use anteroom_limit::time::TimestampUs;

use crate::stats::{Name, NodeCount, NodeId, STATS_MAX, SlotId, SlotReport};

/// Another one for any change of the form. Nodes skip what they do not know, so while versions are
/// mixed they count apart.
const VERSION: u8 = 1;
const HEAD: usize = 1 + 16 + 8 + 8;
const FIGURE: usize = 8 + 4 + 4;

/// Writes a message.
pub(crate) fn encode(told: &SlotReport) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + told.stats.len() * FIGURE);
    bytes.push(VERSION);
    bytes.extend(told.id.name.0.to_be_bytes());
    bytes.extend(told.id.index.to_be_bytes());
    bytes.extend(told.until.0.to_be_bytes());
    for (node, figure) in &told.stats {
        bytes.extend(node.0.to_be_bytes());
        bytes.extend(figure.taken.to_be_bytes());
        bytes.extend(figure.given_back.to_be_bytes());
    }
    bytes
}

/// Reads a message; `None` if it is none of this version.
pub(crate) fn decode(bytes: &[u8]) -> Option<SlotReport> {
    let mut rest = bytes;
    let [VERSION] = take(&mut rest)? else {
        return None;
    };
    let id = SlotId {
        name: Name(u128::from_be_bytes(take(&mut rest)?)),
        index: u64::from_be_bytes(take(&mut rest)?),
    };
    let until = TimestampUs(u64::from_be_bytes(take(&mut rest)?));
    let count = rest.len() / FIGURE;
    if count == 0 || count > STATS_MAX || !rest.len().is_multiple_of(FIGURE) {
        return None;
    }
    let mut stats = Vec::with_capacity(count);
    while !rest.is_empty() {
        let node = NodeId(u64::from_be_bytes(take(&mut rest)?));
        let taken = u32::from_be_bytes(take(&mut rest)?);
        let given_back = u32::from_be_bytes(take(&mut rest)?);
        stats.push((node, NodeCount { taken, given_back }));
    }
    let mut nodes: Vec<NodeId> = stats.iter().map(|(node, _)| *node).collect();
    nodes.sort_unstable();
    let is_each_once = nodes.windows(2).all(|pair| pair[0] != pair[1]);
    is_each_once.then_some(SlotReport { id, until, stats })
}

/// What decides on the partition as long as [partitions](crate::partitions) do not: the client, as
/// there.
pub(crate) fn key(id: SlotId) -> [u8; 16] {
    id.name.0.to_be_bytes()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(nodes: u64) -> SlotReport {
        SlotReport {
            id: SlotId {
                name: Name(0x0102 << 112),
                index: 3,
            },
            until: TimestampUs(4),
            stats: (0..nodes)
                .map(|node| {
                    let figure = NodeCount {
                        taken: 5,
                        given_back: 6,
                    };
                    (NodeId(node), figure)
                })
                .collect(),
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        for nodes in [1, 2, STATS_MAX as u64] {
            assert_eq!(decode(&encode(&told(nodes))), Some(told(nodes)), "{nodes}");
        }
        let bytes = encode(&told(1));
        assert_eq!(bytes.len(), 49);
        let ends = [&bytes[..4], &bytes[24..25], &bytes[31..33], &bytes[40..]];
        let expected: [&[u8]; 4] = [&[1, 1, 2, 0], &[3], &[0, 4], &[0, 0, 0, 0, 5, 0, 0, 0, 6]];
        assert_eq!(ends, expected);
    }

    #[test]
    fn what_nobody_wrote_is_not_read() {
        let good = encode(&told(2));
        for length in 0..good.len() {
            let is_one = length == 49;
            assert_eq!(decode(&good[..length]).is_some(), is_one, "{length}");
        }
        let mut other = good.clone();
        other[0] = 2;
        assert_eq!(decode(&other), None);
        let mut twice = good;
        twice.extend_from_within(33..49);
        assert_eq!(decode(&twice), None);
        let too_many = encode(&told(STATS_MAX as u64 + 1));
        assert_eq!(decode(&too_many), None);
    }
}
