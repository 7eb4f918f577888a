//! View that one node has of a record: its time, its store, and how safe the node's name is in it.
//!
//! A node writes this into its requests ([`RecordView::stamp`]).
//!
//! # Record time
//!
//! Record time measures lengths only. A store's own clock may be slow, fast or stepped by any
//! amount, so no ledger reads it. The time of a record rises with the requests of its children. A
//! child that gets a reply reads its own clock, which is never stepped, and from then on knows the
//! record's time without another message.
//!
//! Record time never outruns real time. A reply shows the record's time when it was written. The
//! child reads its clock when the reply arrives, which is later, so its estimate lags by at least
//! the way back. An estimate therefore never exceeds the time of some earlier write plus the real
//! time since then. Another child's better estimate may make up for the lag of the one that got a
//! lease, which then ends early. That is harmless: what it has left becomes phantom seats.
//!
//! # Safe names
//!
//! A store that comes back may lack its newest writes, and with them the name of a child that
//! joined shortly before. If that child had been granted anything and died with the store, nobody
//! would know of its grants. So a child is granted nothing until its name is safe: when it has been
//! in the record for longer than the store can forget.
//!
//! # What a store must have kept
//!
//! The same holds for the whole record. A reply shows the record at some time, and a reply that
//! comes longer after it than the store can forget shows that the server lived on. If it then comes
//! back with an older record, it broke its promise ([`crate::ledger::Probation`]).

mod passed;

use crate::id::Incarnation;
use crate::ledger::UPSTREAM_TIME_OUT_MAX;
use crate::store::StoreFacts;
use crate::sync::{Kept, LeaseReply, Reply, SyncRequest};
use crate::time::{DurationMs, Timestamp};
use passed::ReplyTimes;

/// Longest time by which a reply arrives after the server made it.
const LONGEST_REPLY: DurationMs = UPSTREAM_TIME_OUT_MAX;

/// View of one record, by a clock that is never stepped.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RecordView {
    anchor: Option<Anchor>,
    store: Option<StoreFacts>,
    lease: Option<SeenLease>,
    carried: Option<Carried>,
    /// Reply from which the time runs until a later one shows that the server kept its record.
    marked: Option<Marked>,
    /// Part of the record that the last such server cannot have lost.
    kept: Option<(Incarnation, Kept)>,
    /// Times at which replies arrived.
    times: ReplyTimes,
}

/// Record time, as the fastest reply of an incarnation showed it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Anchor {
    /// Incarnation of the record.
    incarnation: Incarnation,
    /// Record time minus the reading of the own clock, in milliseconds.
    offset_ms: i64,
}

/// Lease of a child as a record has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecordedLease {
    /// Number of the lease.
    pub generation: u32,
    /// Incarnation of the record.
    pub incarnation: Incarnation,
    /// Store of the record.
    pub store: StoreFacts,
    /// Time of the record when it had the lease.
    pub record_time: Timestamp,
}

/// Lease of the child in the record, and the time since which it is known to be there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct SeenLease {
    lease: RecordedLease,
    since: Timestamp,
}

/// Record at the time of a reply that arrived at `at`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Marked {
    incarnation: Incarnation,
    kept: Kept,
    at: Timestamp,
}

/// Newest request that the node carried from this record to the root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Carried {
    incarnation: Incarnation,
    number: u64,
}

impl RecordView {
    /// Learns from a reply that arrives at `now`. Returns whether a request right away would tell
    /// the record something: its store has come back as another server.
    pub fn handle_reply(&mut self, reply: &Reply, now: Timestamp) -> bool {
        let known = self.store;
        match reply {
            Reply::Granted(lease_reply) => {
                let incarnation = lease_reply.incarnation;
                self.note_time(incarnation, lease_reply.record_time, now);
                self.store = Some(lease_reply.store);
                self.note_kept(lease_reply, now);
                let of = (incarnation, lease_reply.store.identity);
                self.times.note(of, lease_reply.record_time, now);
                match lease_reply.generation {
                    None => self.lease = None,
                    Some(generation) => {
                        let store = lease_reply.store;
                        let lease = RecordedLease {
                            generation,
                            incarnation,
                            store,
                            record_time: lease_reply.record_time,
                        };
                        self.note_lease(lease, now);
                    }
                }
            }
            Reply::Void { store, .. } => {
                self.store = Some(*store);
                self.lease = None;
            }
            Reply::Stale => {}
        }
        known.is_some_and(|known| {
            self.store
                .is_some_and(|store| store.identity != known.identity)
        })
    }

    /// Notes that this node is about to carry a request of this record to the root. The record may
    /// forget it, and must not use its number again.
    pub fn note_carried(&mut self, request: &SyncRequest) {
        self.carried = Some(Carried {
            incarnation: Incarnation(request.child.0),
            number: request.number,
        });
    }

    /// Returns the incarnation and the time of the record at `now`; `None` before the first reply.
    #[must_use]
    pub fn time(&self, now: Timestamp) -> Option<(Incarnation, Timestamp)> {
        let anchor = self.anchor?;
        let at = Timestamp(now.0.saturating_add_signed(anchor.offset_ms));
        Some((anchor.incarnation, at))
    }

    /// Notes at `now` that the record has had this lease, as this node or another one of its data
    /// center learned from a reply. The other one's reply is older, so its time is an estimate that
    /// lags; without it, nodes that carry in turn would add up their lags.
    pub fn note_lease(&mut self, lease: RecordedLease, now: Timestamp) {
        self.note_time(lease.incarnation, lease.record_time, now);
        let of = (lease.incarnation, lease.store.identity);
        self.times.note(of, lease.record_time, now);
        let is_same = |known: &SeenLease| {
            let names =
                |lease: RecordedLease| (lease.generation, lease.incarnation, lease.store.identity);
            names(known.lease) == names(lease)
        };
        let since = self.lease.filter(is_same).map_or(now, |known| known.since);
        self.lease = Some(SeenLease { lease, since });
    }

    /// Writes this view into a request that is made at `now`.
    pub fn stamp(&self, request: &mut SyncRequest, now: Timestamp) {
        let is_named = |known: &Carried| request.parent == Some(known.incarnation);
        let carried = self.carried.filter(is_named);
        request.stamp.store = self.store.map(|store| store.identity);
        request.stamp.carried = carried.map(|known| known.number);
        self.stamp_carried(request, now);
    }

    /// Writes this view of the root's record into a request of a data center that is sent at `now`.
    /// The store that the request names is the one that the data center knows.
    pub fn stamp_carried(&self, request: &mut SyncRequest, now: Timestamp) {
        let time = self.time(now);
        let time = time.filter(|(incarnation, _)| request.parent == Some(*incarnation));
        request.stamp.time = time.map(|(_, at)| at);
        let is_of_store = |seen: &SeenLease| request.stamp.store == Some(seen.lease.store.identity);
        let seen = self.lease.filter(is_of_store);
        let safe = seen.filter(|seen| now.since(seen.since) > seen.lease.store.safe_after());
        request.stamp.safe_generation = safe.map(|seen| seen.lease.generation);
        let kept = self.kept;
        let kept = kept.filter(|(incarnation, _)| request.parent == Some(*incarnation));
        request.stamp.kept = kept.map(|(_, kept)| kept);
        request.stamp.passed = self.times.passed(request, now);
    }

    /// Learns from a reply at `now` what its server cannot have lost. What is known of an earlier
    /// server stays until then: that is the one which may have come back with too little.
    fn note_kept(&mut self, reply: &LeaseReply, now: Timestamp) {
        let incarnation = reply.incarnation;
        let kept = Kept {
            store: reply.store.identity,
            through: reply.record_time,
        };
        let marked = Marked {
            incarnation,
            kept,
            at: now,
        };
        let names = |marked: &Marked| (marked.incarnation, marked.kept.store);
        let Some(before) = self.marked.filter(|known| names(known) == names(&marked)) else {
            self.marked = Some(marked);
            return;
        };
        if now.since(before.at) > reply.store.safe_after() + LONGEST_REPLY {
            self.kept = Some((incarnation, before.kept));
            self.marked = Some(marked);
        }
    }

    /// The best estimate of an incarnation stays: a later reply may only have travelled longer.
    fn note_time(&mut self, incarnation: Incarnation, record_time: Timestamp, now: Timestamp) {
        let offset_ms = millis(record_time).saturating_sub(millis(now));
        let known = self.anchor.filter(|known| known.incarnation == incarnation);
        let offset_ms = known.map_or(offset_ms, |known| known.offset_ms.max(offset_ms));
        self.anchor = Some(Anchor {
            incarnation,
            offset_ms,
        });
    }
}

fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use crate::ledger::tests::{START, grant, request};
    use crate::store::{Durability, Identity};
    use crate::sync::LeaseReply;

    const LOSES: DurationMs = DurationMs(3_000);

    fn lease_reply(record_time: u64, incarnation: u64) -> LeaseReply {
        let (_, mut lease_reply) = grant(Ledger::new(), &request(1, 1, 0), START);
        lease_reply.record_time = Timestamp(record_time);
        lease_reply.incarnation = Incarnation(incarnation);
        lease_reply.store = StoreFacts {
            identity: Identity(1),
            durability: Durability::LosesAtMost(LOSES),
        };
        lease_reply
    }

    fn reply_at(record_time: u64, incarnation: u64) -> Reply {
        Reply::Granted(lease_reply(record_time, incarnation))
    }

    #[test]
    fn the_fastest_reply_of_an_incarnation_counts() {
        let mut view = RecordView::default();
        view.handle_reply(&reply_at(1_000, 1), Timestamp(500));
        view.handle_reply(&reply_at(2_000, 1), Timestamp(1_800));
        let known = |view: &RecordView, now| view.time(Timestamp(now)).map(|(_, at)| at);
        assert_eq!(known(&view, 2_000), Some(Timestamp(2_500)));
        view.handle_reply(&reply_at(3_000, 1), Timestamp(2_400));
        assert_eq!(known(&view, 2_400), Some(Timestamp(3_000)));
    }

    #[test]
    fn another_incarnation_has_another_time() {
        let mut view = RecordView::default();
        view.handle_reply(&reply_at(9_000, 1), Timestamp(500));
        view.handle_reply(&reply_at(10, 2), Timestamp(500));
        let expected = (Incarnation(2), Timestamp(110));
        assert_eq!(view.time(Timestamp(600)), Some(expected));
    }

    #[test]
    fn only_requests_to_the_known_incarnation_show_its_time() {
        let mut view = RecordView::default();
        view.handle_reply(&reply_at(9_000, 1), Timestamp(500));
        let mut sent = request(1, 1, 0);
        for (parent, expected) in [
            (None, None),
            (Some(Incarnation(2)), None),
            (Some(Incarnation(1)), Some(Timestamp(9_007))),
        ] {
            sent.parent = parent;
            view.stamp(&mut sent, Timestamp(507));
            assert_eq!(sent.stamp.time, expected);
        }
    }

    #[test]
    fn a_record_is_kept_when_its_server_lived_on_for_longer_than_it_can_forget() {
        let mut view = RecordView::default();
        let mut sent = request(1, 1, 0);
        let mut kept = |view: &RecordView, parent| {
            sent.parent = Some(Incarnation(parent));
            view.stamp(&mut sent, Timestamp(0));
            sent.stamp.kept.map(|kept| (kept.store.0, kept.through.0))
        };
        let since = Timestamp(500);
        let last = since + LOSES + LONGEST_REPLY;
        view.handle_reply(&reply_at(9_000, 1), since);
        view.handle_reply(&reply_at(17_000, 1), last);
        assert_eq!(kept(&view, 1), None, "the server may still have lost it");
        let last = last + DurationMs(1);
        view.handle_reply(&reply_at(17_001, 1), last);
        assert_eq!(kept(&view, 1), Some((1, 9_000)));
        assert_eq!(kept(&view, 2), None, "that is another record");
        // Another server: what the first one must have kept stays known until this one proves more.
        let mut other = lease_reply(17_500, 1);
        other.store.identity = Identity(2);
        view.handle_reply(&Reply::Granted(other.clone()), last);
        assert_eq!(kept(&view, 1), Some((1, 9_000)));
        other.record_time = Timestamp(30_000);
        let later = last + LOSES + LONGEST_REPLY + DurationMs(1);
        view.handle_reply(&Reply::Granted(other), later);
        assert_eq!(kept(&view, 1), Some((2, 17_500)));
    }

    #[test]
    fn a_lease_is_safe_when_its_store_cannot_forget_it_any_more() {
        let mut view = RecordView::default();
        let mut sent = request(1, 1, 0);
        let mut safe = |view: &RecordView, now| {
            view.stamp(&mut sent, now);
            sent.stamp.safe_generation
        };
        let joined_at = Timestamp(500);
        assert_eq!(safe(&view, joined_at), None, "no lease yet");
        view.handle_reply(&reply_at(9_000, 1), joined_at);
        view.handle_reply(&reply_at(9_900, 1), joined_at + LOSES);
        assert_eq!(safe(&view, joined_at + LOSES), None);
        let later = joined_at + LOSES + DurationMs(1);
        assert_eq!(safe(&view, later), Some(1));
        // Another server: the name may be in no copy but its own.
        let mut other = lease_reply(9_999, 1);
        other.store.identity = Identity(2);
        view.handle_reply(&Reply::Granted(other), later);
        assert_eq!(safe(&view, later + LOSES), None);
        assert_eq!(safe(&view, later + LOSES + DurationMs(1)), Some(1));
    }
}
