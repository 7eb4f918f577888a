//! Encoding of messages between nodes.
//!
//! The first byte of a body is its kind: a message of the membership library, or counters. A
//! message of counters begins with the sender and its clock. Each counter is encoded on its own, so
//! a datagram takes as many as fit.
//!
//! Everything is read with bounds, though only nodes that know the secret get here: one of them may
//! be broken.

use anteroom_limit::time::TimestampUs;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::cell::{CounterId, Share, WriterId};
use crate::seal::SEAL;

/// Largest datagram, in bytes. It passes every network that carries IPv6 (1,280 bytes, less
/// headers) in one piece.
pub const DATAGRAM_LARGEST: usize = 1_200;
/// Largest body of a datagram, in bytes.
pub(crate) const BODY_LARGEST: usize = DATAGRAM_LARGEST - SEAL;
/// Largest message of the membership library, in bytes.
pub(crate) const MEMBERSHIP_LARGEST: usize = BODY_LARGEST - 1;
/// Most shares of a counter in one entry; with all numbers at their largest, such an entry fits
/// into a datagram.
pub(crate) const SHARES_AT_ONCE: usize = 24;

const MEMBERSHIP: u8 = 0;
const COUNTERS: u8 = 1;
const SECOND: u64 = 1_000_000;

/// Body of a datagram.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Message<'d> {
    /// Message of the membership library.
    Membership(&'d [u8]),
    /// Reports of counters.
    Counters {
        /// Time of the sender's clock.
        sent_at: TimestampUs,
        /// Reported counters.
        reports: Vec<CounterReport>,
    },
}

/// Report of one counter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CounterReport {
    pub(crate) id: CounterId,
    pub(crate) forget_at: TimestampUs,
    pub(crate) shares: SmallVec<[Share; 1]>,
}

#[derive(Deserialize, Serialize)]
struct Head {
    writer: u64,
    sent_at: u64,
}

#[derive(Deserialize, Serialize)]
struct Entry {
    name: [u8; 16],
    width: u64,
    index: u64,
    /// Time to forget the counter, in whole seconds since the Unix epoch.
    forget_at: u64,
    /// Tuples of writer (zero is the sender), total added, total refunded.
    shares: SmallShares,
}

type SmallShares = Vec<(u64, u64, u64)>;

impl<'d> Message<'d> {
    /// Decodes a body; `None` if it is invalid.
    pub(crate) fn read(body: &'d [u8]) -> Option<Self> {
        let (kind, rest) = body.split_first()?;
        match *kind {
            MEMBERSHIP => Some(Self::Membership(rest)),
            COUNTERS => read_counters(rest),
            _ => None,
        }
    }
}

fn read_counters(bytes: &[u8]) -> Option<Message<'_>> {
    let (head, mut rest) = postcard::take_from_bytes::<Head>(bytes).ok()?;
    let mut reports = Vec::new();
    while !rest.is_empty() {
        let (entry, behind) = postcard::take_from_bytes::<Entry>(rest).ok()?;
        if !(1..=SHARES_AT_ONCE).contains(&entry.shares.len()) || entry.width == 0 {
            return None;
        }
        reports.push(entry.into_report(head.writer));
        rest = behind;
    }
    let sent_at = TimestampUs(head.sent_at);
    Some(Message::Counters { sent_at, reports })
}

impl Entry {
    fn into_report(self, sender: u64) -> CounterReport {
        let shares = self
            .shares
            .into_iter()
            .map(|(writer, added, refunded)| Share {
                writer: WriterId(if writer == 0 { sender } else { writer }),
                added,
                refunded,
            });
        CounterReport {
            id: CounterId {
                name: u128::from_le_bytes(self.name),
                width: self.width,
                index: self.index,
            },
            forget_at: TimestampUs(self.forget_at.saturating_mul(SECOND)),
            shares: shares.collect(),
        }
    }

    fn of(report: &CounterReport, sender: WriterId, shares: &[Share]) -> Self {
        let shares = shares.iter().map(|share| {
            let is_sender = share.writer == sender;
            let writer = if is_sender { 0 } else { share.writer.0 };
            (writer, share.added, share.refunded)
        });
        Self {
            name: report.id.name.to_le_bytes(),
            width: report.id.width,
            index: report.id.index,
            forget_at: report.forget_at.0.div_ceil(SECOND),
            shares: shares.collect(),
        }
    }
}

/// Encodes a message of the membership library.
pub(crate) fn membership(bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(1 + bytes.len());
    body.push(MEMBERSHIP);
    body.extend_from_slice(bytes);
    body
}

/// Packs reports into as few messages as possible.
#[derive(Debug)]
pub(crate) struct Packer {
    sender: WriterId,
    head: Vec<u8>,
    bodies: Vec<Vec<u8>>,
    bodies_max: usize,
}

impl Packer {
    /// Creates a packer of at most `bodies_max` messages.
    pub(crate) fn new(sender: WriterId, now: TimestampUs, bodies_max: usize) -> Self {
        let head = Head {
            writer: sender.0,
            sent_at: now.0,
        };
        let mut bytes = vec![COUNTERS];
        append(&mut bytes, &head);
        Self {
            sender,
            head: bytes,
            bodies: Vec::new(),
            bodies_max,
        }
    }

    /// Adds a report; returns `false` if it does not fit.
    pub(crate) fn push(&mut self, report: &CounterReport) -> bool {
        let chunks = report.shares.chunks(SHARES_AT_ONCE);
        chunks.into_iter().all(|shares| {
            let mut bytes = Vec::with_capacity(48);
            append(&mut bytes, &Entry::of(report, self.sender, shares));
            self.push_bytes(&bytes)
        })
    }

    fn push_bytes(&mut self, entry: &[u8]) -> bool {
        if let Some(last) = self.bodies.last_mut()
            && last.len() + entry.len() <= BODY_LARGEST
        {
            last.extend_from_slice(entry);
            return true;
        }
        if self.bodies.len() >= self.bodies_max {
            return false;
        }
        let mut body = Vec::with_capacity(BODY_LARGEST);
        body.extend_from_slice(&self.head);
        body.extend_from_slice(entry);
        self.bodies.push(body);
        true
    }

    /// Returns the messages, to be sealed.
    pub(crate) fn into_bodies(self) -> Vec<Vec<u8>> {
        self.bodies
    }
}

fn append(bytes: &mut Vec<u8>, value: &impl Serialize) {
    let written = postcard::to_allocvec(value);
    bytes.extend(written.expect("numbers can be written, and memory grows"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: u128, shares: &[(u64, u64, u64)]) -> CounterReport {
        let shares = shares.iter().map(|&(writer, added, refunded)| Share {
            writer: WriterId(writer),
            added,
            refunded,
        });
        CounterReport {
            id: CounterId {
                name,
                width: 60 * SECOND,
                index: 29_453_760,
            },
            forget_at: TimestampUs(1_767_225_665 * SECOND),
            shares: shares.collect(),
        }
    }

    fn read(body: &[u8]) -> (TimestampUs, Vec<CounterReport>) {
        match Message::read(body) {
            Some(Message::Counters { sent_at, reports }) => (sent_at, reports),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let now = TimestampUs(1_767_225_600_123_456);
        let mut packer = Packer::new(WriterId(u64::MAX), now, 1);
        let all = [
            report(u128::MAX, &[(u64::MAX, 3, 1)]),
            report(1, &[(5, u64::MAX, 0), (u64::MAX, 1, 1)]),
        ];
        assert!(all.iter().all(|one| packer.push(one)));
        let bodies = packer.into_bodies();
        assert_eq!(bodies.len(), 1);
        assert_eq!(read(&bodies[0]), (now, all.to_vec()));
    }

    #[test]
    fn no_message_is_larger_than_a_datagram_and_none_is_lost() {
        let now = TimestampUs(1_767_225_600_000_000);
        let mut packer = Packer::new(WriterId(u64::MAX), now, 40);
        // One counter with more shares than fit into an entry, at their largest, and many small
        // ones.
        let largest: Vec<_> = (0..60)
            .map(|at| (u64::MAX - at, u64::MAX, u64::MAX))
            .collect();
        let mut large = report(0, &largest);
        large.id.width = u64::MAX;
        large.id.index = u64::MAX;
        assert!(packer.push(&large));
        for name in 1..=500 {
            assert!(packer.push(&report(name, &[(u64::MAX, 100, 0)])), "{name}");
        }
        let bodies = packer.into_bodies();
        assert!(bodies.iter().all(|body| body.len() <= BODY_LARGEST));
        let reports: Vec<CounterReport> = bodies.iter().flat_map(|body| read(body).1).collect();
        assert_eq!(reports.len(), 3 + 500);
        assert_eq!(
            reports[..3]
                .iter()
                .map(|report| report.shares.len())
                .sum::<usize>(),
            60
        );
        // The documentation gives this number of counters in a datagram.
        let small = bodies.iter().map(|body| read(body).1.len()).max();
        assert_eq!(small, Some(34));
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_is_nothing() {
        let mut packer = Packer::new(WriterId(7), TimestampUs(1), 1);
        packer.push(&report(9, &[(7, 1, 0)]));
        let body = packer.into_bodies().remove(0);
        let head = 3;
        for length in (0..body.len()).filter(|length| *length != head) {
            assert_eq!(Message::read(&body[..length]), None, "{length}");
        }
        assert_eq!(read(&body[..head]).1, []);
        assert_eq!(Message::read(&[2, 1, 1]), None);
    }
}
