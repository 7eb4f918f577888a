//! What do nodes say to each other, in bytes?
//!
//! Under the seal lies one byte that says what follows: what the library for membership has to say,
//! or counters. A message of counters begins with who sends it and its clock; each counter stands
//! by itself, so that a datagram has as many as fit.
//!
//! Everything is read with bounds, though only nodes that know the secret can get here: one of them
//! may be broken.

use anteroom_limit::time::TimestampUs;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::cell::{CounterId, Share, WriterId};
use crate::seal::SEAL;

/// The largest datagram. It passes every network that carries IPv6 (1,280 bytes, less headers) in
/// one piece.
pub const DATAGRAM_LARGEST: usize = 1_200;
/// What a datagram says at most.
pub(crate) const BODY_LARGEST: usize = DATAGRAM_LARGEST - SEAL;
/// The same of what the library for membership says.
pub(crate) const MEMBERSHIP_LARGEST: usize = BODY_LARGEST - 1;
/// Shares that one counter tells at once; with all figures at their largest so many fit into a
/// datagram.
pub(crate) const SHARES_AT_ONCE: usize = 24;

const MEMBERSHIP: u8 = 0;
const COUNTERS: u8 = 1;
const SECOND: u64 = 1_000_000;

/// What a datagram says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Message<'d> {
    /// For the library.
    Membership(&'d [u8]),
    /// What was counted.
    Counters {
        /// The sender's clock.
        sent_at: TimestampUs,
        /// Each counter of which it tells something.
        told: Vec<CounterReport>,
    },
}

/// What is told of one counter.
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
    /// In whole seconds since the Unix epoch.
    forget_at: u64,
    /// Writer (zero is the sender), what it added, what it gave back.
    shares: SmallShares,
}

type SmallShares = Vec<(u64, u64, u64)>;

impl<'d> Message<'d> {
    /// Reads what was sealed; `None` if it is nothing that this program says.
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
    let mut told = Vec::new();
    while !rest.is_empty() {
        let (entry, behind) = postcard::take_from_bytes::<Entry>(rest).ok()?;
        if !(1..=SHARES_AT_ONCE).contains(&entry.shares.len()) || entry.width == 0 {
            return None;
        }
        told.push(entry.told(head.writer));
        rest = behind;
    }
    let sent_at = TimestampUs(head.sent_at);
    Some(Message::Counters { sent_at, told })
}

impl Entry {
    fn told(self, sender: u64) -> CounterReport {
        let shares = self.shares.into_iter().map(|(writer, added, back)| Share {
            writer: WriterId(if writer == 0 { sender } else { writer }),
            added,
            back,
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

    fn of(told: &CounterReport, sender: WriterId, shares: &[Share]) -> Self {
        let shares = shares.iter().map(|share| {
            let is_sender = share.writer == sender;
            let writer = if is_sender { 0 } else { share.writer.0 };
            (writer, share.added, share.back)
        });
        Self {
            name: told.id.name.to_le_bytes(),
            width: told.id.width,
            index: told.id.index,
            forget_at: told.forget_at.0.div_ceil(SECOND),
            shares: shares.collect(),
        }
    }
}

/// What the library says, to be sealed.
pub(crate) fn membership(bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(1 + bytes.len());
    body.push(MEMBERSHIP);
    body.extend_from_slice(bytes);
    body
}

/// Puts counters into messages, as many into one as fit.
#[derive(Debug)]
pub(crate) struct Packer {
    sender: WriterId,
    head: Vec<u8>,
    bodies: Vec<Vec<u8>>,
    bodies_max: usize,
}

impl Packer {
    /// For at most so many messages.
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

    /// Adds a counter; `false` if there is no place for it any more.
    pub(crate) fn push(&mut self, told: &CounterReport) -> bool {
        let chunks = told.shares.chunks(SHARES_AT_ONCE);
        chunks.into_iter().all(|shares| {
            let mut bytes = Vec::with_capacity(48);
            append(&mut bytes, &Entry::of(told, self.sender, shares));
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

    /// The messages, to be sealed.
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

    fn told(name: u128, shares: &[(u64, u64, u64)]) -> CounterReport {
        let shares = shares.iter().map(|&(writer, added, back)| Share {
            writer: WriterId(writer),
            added,
            back,
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
            Some(Message::Counters { sent_at, told }) => (sent_at, told),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let now = TimestampUs(1_767_225_600_123_456);
        let mut packer = Packer::new(WriterId(u64::MAX), now, 1);
        let all = [
            told(u128::MAX, &[(u64::MAX, 3, 1)]),
            told(1, &[(5, u64::MAX, 0), (u64::MAX, 1, 1)]),
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
        // One counter of more shares than fit at once, at their largest; and then many small ones.
        let largest: Vec<_> = (0..60)
            .map(|at| (u64::MAX - at, u64::MAX, u64::MAX))
            .collect();
        let mut large = told(0, &largest);
        large.id.width = u64::MAX;
        large.id.index = u64::MAX;
        assert!(packer.push(&large));
        for name in 1..=500 {
            assert!(packer.push(&told(name, &[(u64::MAX, 100, 0)])), "{name}");
        }
        let bodies = packer.into_bodies();
        assert!(bodies.iter().all(|body| body.len() <= BODY_LARGEST));
        let told: Vec<CounterReport> = bodies.iter().flat_map(|body| read(body).1).collect();
        assert_eq!(told.len(), 3 + 500);
        assert_eq!(
            told[..3].iter().map(|one| one.shares.len()).sum::<usize>(),
            60
        );
        // What docs say of how many fit into one.
        let small = bodies.iter().map(|body| read(body).1.len()).max();
        assert_eq!(small, Some(34));
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_is_nothing() {
        let mut packer = Packer::new(WriterId(7), TimestampUs(1), 1);
        packer.push(&told(9, &[(7, 1, 0)]));
        let body = packer.into_bodies().remove(0);
        let head = 3;
        for length in (0..body.len()).filter(|length| *length != head) {
            assert_eq!(Message::read(&body[..length]), None, "{length}");
        }
        assert_eq!(read(&body[..head]).1, []);
        assert_eq!(Message::read(&[2, 1, 1]), None);
    }
}
