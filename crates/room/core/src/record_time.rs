//! Record time: the clock of a ledger's record, which measures lengths only.
//!
//! A store's own clock may be slow, fast or stepped by any amount, so no ledger reads it. The time
//! of a record rises with the requests of its children. A child that gets a reply reads its own
//! clock, which is never stepped, and from then on knows the record's time without another message.
//!
//! # Why record time never outruns real time
//!
//! A reply shows the record's time when it was written. The child reads its clock when the reply
//! arrives, which is later, so its estimate lags by at least the way back. An estimate therefore
//! never exceeds the time of some earlier write plus the real time since then. A lease that ends by
//! record time never ends before its length has passed since the record last showed that time.
//! Another child's better estimate may make up for the lag of the one that got the lease, which
//! then ends early. That is harmless: what it has left becomes phantom seats.

use crate::id::Incarnation;
use crate::sync::{Reply, SyncRequest};
use crate::time::Timestamp;

/// Estimate of the time of one record, by a clock that is never stepped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RecordClock {
    anchor: Option<Anchor>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Anchor {
    /// Incarnation of the record.
    incarnation: Incarnation,
    /// Record time minus the reading of the own clock, in milliseconds.
    offset_ms: i64,
}

impl RecordClock {
    /// Learns the record's time from a reply that arrives at `now`. The best estimate of an
    /// incarnation stays: a later reply may only have travelled longer.
    pub fn handle_reply(&mut self, reply: &Reply, now: Timestamp) {
        let Reply::Granted(lease_reply) = reply else {
            return;
        };
        let incarnation = lease_reply.incarnation;
        let offset_ms = millis(lease_reply.record_time).saturating_sub(millis(now));
        let known = self.anchor.filter(|known| known.incarnation == incarnation);
        let offset_ms = known.map_or(offset_ms, |known| known.offset_ms.max(offset_ms));
        self.anchor = Some(Anchor {
            incarnation,
            offset_ms,
        });
    }

    /// Returns the incarnation and the time of the record at `now`; `None` before the first reply.
    #[must_use]
    pub fn read(&self, now: Timestamp) -> Option<(Incarnation, Timestamp)> {
        let anchor = self.anchor?;
        let at = Timestamp(now.0.saturating_add_signed(anchor.offset_ms));
        Some((anchor.incarnation, at))
    }

    /// Writes the record's time into a request that is sent at `now`, if the request names the
    /// incarnation whose time is known.
    pub fn stamp(&self, request: &mut SyncRequest, now: Timestamp) {
        let known = self.read(now);
        let known = known.filter(|(incarnation, _)| request.parent == Some(*incarnation));
        request.record_time = known.map(|(_, at)| at);
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
    use crate::time::DurationMs;

    fn reply_at(record_time: u64, incarnation: u64) -> Reply {
        let (_, mut lease_reply) = grant(Ledger::new(), &request(1, 1, 0), START);
        lease_reply.record_time = Timestamp(record_time);
        lease_reply.incarnation = Incarnation(incarnation);
        Reply::Granted(lease_reply)
    }

    #[test]
    fn the_fastest_reply_of_an_incarnation_counts() {
        let mut clock = RecordClock::default();
        clock.handle_reply(&reply_at(1_000, 1), Timestamp(500));
        clock.handle_reply(&reply_at(2_000, 1), Timestamp(1_800));
        let known = |clock: &RecordClock, now| clock.read(Timestamp(now)).map(|(_, at)| at);
        assert_eq!(known(&clock, 2_000), Some(Timestamp(2_500)));
        clock.handle_reply(&reply_at(3_000, 1), Timestamp(2_400));
        assert_eq!(known(&clock, 2_400), Some(Timestamp(3_000)));
    }

    #[test]
    fn another_incarnation_has_another_time() {
        let mut clock = RecordClock::default();
        clock.handle_reply(&reply_at(9_000, 1), Timestamp(500));
        clock.handle_reply(&reply_at(10, 2), Timestamp(500));
        let expected = (Incarnation(2), Timestamp(110));
        assert_eq!(clock.read(Timestamp(600)), Some(expected));
    }

    #[test]
    fn only_requests_to_the_known_incarnation_are_stamped() {
        let mut clock = RecordClock::default();
        clock.handle_reply(&reply_at(9_000, 1), Timestamp(500));
        let mut asked = request(1, 1, 0);
        for (parent, expected) in [
            (None, None),
            (Some(Incarnation(2)), None),
            (Some(Incarnation(1)), Some(Timestamp(9_000) + DurationMs(7))),
        ] {
            asked.parent = parent;
            clock.stamp(&mut asked, Timestamp(507));
            assert_eq!(asked.record_time, expected);
        }
    }
}
