//! Encoding of messages between nodes.
//!
//! Both topics have one format: big-endian numbers, nothing between them:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | version, 1 |
//! | 16 | name: digest of limit, client and width |
//! | 8 | index of the sub-window |
//! | 8 | end of validity, in microseconds since the Unix epoch |
//! | 8, 4, 4, repeated | node; requests admitted; requests refunded |
//!
//! A message has one to [`STATS_MAX`] nodes, none twice. It is fixed rather than JSON because there
//! may be one for each client ten times a second.

use anteroom_limit::time::TimestampUs;

use crate::stats::{Name, NodeCount, NodeId, STATS_MAX, SlotId, SlotReport};

/// Version, which changes with the format. Nodes skip other versions, so mixed versions count
/// separately.
const VERSION: u8 = 1;
const HEAD: usize = 1 + 16 + 8 + 8;
const COUNT: usize = 8 + 4 + 4;

/// Encodes a message.
pub(crate) fn encode(report: &SlotReport) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + report.stats.len() * COUNT);
    bytes.push(VERSION);
    bytes.extend(report.id.name.0.to_be_bytes());
    bytes.extend(report.id.index.to_be_bytes());
    bytes.extend(report.until.0.to_be_bytes());
    for (node, count) in &report.stats {
        bytes.extend(node.0.to_be_bytes());
        bytes.extend(count.taken.to_be_bytes());
        bytes.extend(count.refunded.to_be_bytes());
    }
    bytes
}

/// Decodes a message; `None` if it is not valid for this version.
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
    let count = rest.len() / COUNT;
    if count == 0 || count > STATS_MAX || !rest.len().is_multiple_of(COUNT) {
        return None;
    }
    let mut stats = Vec::with_capacity(count);
    while !rest.is_empty() {
        let node = NodeId(u64::from_be_bytes(take(&mut rest)?));
        let taken = u32::from_be_bytes(take(&mut rest)?);
        let refunded = u32::from_be_bytes(take(&mut rest)?);
        stats.push((node, NodeCount { taken, refunded }));
    }
    let mut nodes: Vec<NodeId> = stats.iter().map(|(node, _)| *node).collect();
    nodes.sort_unstable();
    let is_each_once = nodes.windows(2).all(|pair| pair[0] != pair[1]);
    is_each_once.then_some(SlotReport { id, until, stats })
}

/// Returns the key of a message: the client. It decides on the partition while the
/// [partitions](crate::partitions) are not known.
pub(crate) fn key(id: SlotId) -> [u8; 16] {
    id.name.0.to_be_bytes()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(nodes: u64) -> SlotReport {
        SlotReport {
            id: SlotId {
                name: Name(0x0102 << 112),
                index: 3,
            },
            until: TimestampUs(4),
            stats: (0..nodes)
                .map(|node| {
                    let count = NodeCount {
                        taken: 5,
                        refunded: 6,
                    };
                    (NodeId(node), count)
                })
                .collect(),
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        for nodes in [1, 2, STATS_MAX as u64] {
            assert_eq!(
                decode(&encode(&report(nodes))),
                Some(report(nodes)),
                "{nodes}"
            );
        }
        let bytes = encode(&report(1));
        assert_eq!(bytes.len(), 49);
        let ends = [&bytes[..4], &bytes[24..25], &bytes[31..33], &bytes[40..]];
        let expected: [&[u8]; 4] = [&[1, 1, 2, 0], &[3], &[0, 4], &[0, 0, 0, 0, 5, 0, 0, 0, 6]];
        assert_eq!(ends, expected);
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let good = encode(&report(2));
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
        let too_many = encode(&report(STATS_MAX as u64 + 1));
        assert_eq!(decode(&too_many), None);
    }
}
