//! What is told to somebody who waits: place, estimate, when to ask again.

use super::{Room, Verdict, Visit};
use crate::decision::{QueuePosition, QueueReason, WaitRange};
use crate::estimate::{ASK_AFTER_FIRST, ASK_AFTER_LAST, PAGE_RELOAD, ask_after, ask_before_turn};
use crate::id::VisitorId;
use crate::order::ROUND;
use crate::rules::QueueingMethod;
use crate::ticket::{Seats, Ticket};
use crate::time::{DurationMs, Timestamp};
use crate::waiting::{OVERDUE, QueueRequest};
use crate::watermark::{TOLD_EXACTLY, people_before, people_beside};

/// Nobody asks more often than this.
const ASK_AFTER_LEAST: DurationMs = DurationMs(1_000);
/// When a room opens, those who wait ask spread over a second for every so many of them.
const OPENING_ASKS_PER_SECOND: u64 = 5_000;

impl Room {
    /// Writes a waiting ticket and tells the place.
    pub(super) fn queue(&mut self, visit: Visit, reason: QueueReason, now: Timestamp) -> Verdict {
        self.counters.queued += 1;
        let arrived_at = self.bucket(visit, now);
        if reason == QueueReason::Rejecting {
            let place = QueuePosition {
                reason,
                people_ahead: None,
                people_waiting: 0,
                wait: None,
                ask_after: None,
                arrived_at,
            };
            return Verdict::Queue(None, place);
        }
        let place = self.place(visit, reason, arrived_at, now);
        let ticket = Ticket {
            visitor: visit.visitor,
            bucket: arrived_at,
            last_check_in_at: now,
            accepted_at: None,
            is_provisional: false,
            seats: Seats::default(),
        };
        Verdict::Queue(Some(ticket), place)
    }

    fn place(
        &mut self,
        visit: Visit,
        reason: QueueReason,
        arrived_at: Timestamp,
        now: Timestamp,
    ) -> QueuePosition {
        let rank = self.rank(visit, arrived_at);
        let ahead = self.waiting.people_ahead(rank, now);
        let ahead = ahead.saturating_add(self.elsewhere_before(rank));
        let people_waiting = self.people_waiting(now);
        let wait = self.wait(reason, ahead, people_waiting, now);
        let jitter = self.identity.lottery_key.draw(visit.visitor, now.0);
        let turn = self.turn(visit.visitor, rank, ahead);
        let ask_after = self.ask_after(reason, turn, people_waiting, wait, jitter, now);
        // A place must outlive the pause, and one ask that gets lost.
        let ask_after = ask_after.min(DurationMs(self.rules.position_grace.0 / 2));
        if visit.ticket.is_some() {
            let next_ask = if visit.gets_page {
                ask_after.max(PAGE_RELOAD)
            } else {
                ask_after
            };
            let ask = QueueRequest {
                visitor: visit.visitor,
                rank,
                ask_after: next_ask,
            };
            self.waiting.handle_ask(ask, now);
        }
        QueuePosition {
            reason,
            people_ahead: self.is_order_known(reason).then_some(ahead),
            people_waiting,
            wait,
            ask_after: Some(ask_after),
            arrived_at,
        }
    }

    /// How many are to ask before this visitor does. Those who came in the same second have the
    /// same place; if all of them asked as late as the middle one, seats for the first would stay
    /// empty. So lots are drawn, for the time to ask and for nothing else.
    fn turn(&self, visitor: VisitorId, rank: Timestamp, ahead: u32) -> u32 {
        let beside = people_beside(&self.snapshot.line, rank);
        let drawn = self.identity.lottery_key.draw(visitor, rank.0);
        let before = (u128::from(drawn) * u128::from(beside)) >> 64;
        let before = u32::try_from(before).unwrap_or(beside);
        ahead.saturating_sub(beside / 2).saturating_add(before)
    }

    /// The rank that has waited longest, here or elsewhere, as far as it is known.
    pub(super) fn oldest_waiting(&mut self, now: Timestamp) -> Option<Timestamp> {
        let here = self.waiting.oldest(now);
        // Those of this node are in the line as well, and may have gone in since.
        let line = self.snapshot.line.iter().take(TOLD_EXACTLY);
        let elsewhere = line.into_iter().find(|&(rank, count)| {
            let own = self.told_waiting.iter().find(|&(own, _)| own == rank);
            count > own.map_or(0, |(_, count)| count)
        });
        let elsewhere = elsewhere.map(|(rank, _)| rank);
        [here, elsewhere].into_iter().flatten().min()
    }

    /// When somebody of this rank must have asked again that was told when to by another node, as
    /// late as this one would have told it.
    pub(super) fn latest_ask(&mut self, rank: Timestamp, now: Timestamp) -> Timestamp {
        let ahead = people_before(&self.snapshot.line, rank);
        let waiting = self.snapshot.waiting;
        let reason = self.hold(now).unwrap_or(QueueReason::NotYourTurn);
        let wait = self.wait(reason, ahead, waiting, now);
        let interval = self.ask_after(reason, ahead, waiting, wait, 0, now);
        now + interval + OVERDUE
    }

    /// How many stand before `rank` at other nodes: in the whole line, as it was told, less those
    /// of this node in it.
    fn elsewhere_before(&self, rank: Timestamp) -> u32 {
        let all = people_before(&self.snapshot.line, rank);
        all.saturating_sub(people_before(&self.told_waiting, rank))
    }

    /// A lottery has no order, and a draw has none before it was held.
    fn is_order_known(&self, reason: QueueReason) -> bool {
        let is_before_draw = self.rules.draw && matches!(reason, QueueReason::NotOpenYet { .. });
        self.rules.queueing_method != QueueingMethod::Random && !is_before_draw
    }

    fn wait(
        &mut self,
        reason: QueueReason,
        ahead: u32,
        waiting: u32,
        now: Timestamp,
    ) -> Option<WaitRange> {
        match (reason, self.rules.queueing_method) {
            (QueueReason::Full | QueueReason::NotYourTurn, QueueingMethod::Random) => {
                self.throughput.wait_by_lot(waiting.max(1), now)
            }
            (QueueReason::Full | QueueReason::NotYourTurn, _) => self.throughput.wait(ahead, now),
            // Nobody goes in at present: any figure would be invented.
            _ => None,
        }
    }

    fn ask_after(
        &self,
        reason: QueueReason,
        ahead: u32,
        waiting: u32,
        wait: Option<WaitRange>,
        jitter: u64,
        now: Timestamp,
    ) -> DurationMs {
        if let Some(interval) = self.rules.refresh_interval {
            // Within the last second of it, so that it is still that many seconds when rounded up.
            return DurationMs(interval.0 - jitter % 1_000);
        }
        if let QueueReason::NotOpenYet { opens_at } = reason {
            return ask_at_opening(opens_at.since(now), waiting, jitter);
        }
        if self.rules.queueing_method == QueueingMethod::Random {
            // Everybody asks at least once in a round.
            return DurationMs(ROUND.0 - jitter % (ROUND.0 / 8));
        }
        let calm = ask_after(Some(ahead), wait, jitter);
        if !self.is_snapshot_fresh(now) {
            return calm;
        }
        let by_turn = calm.min(ask_before_turn(ahead, &self.snapshot.slots_ahead));
        if ahead < self.snapshot.slots {
            self.when_free(by_turn, jitter, now)
        } else {
            by_turn
        }
    }

    /// Whoever is called already asks when the next seat comes free, if that is soon: a moment
    /// before, there would be nothing, and another interval later it would have been free for long.
    fn when_free(&self, interval: DurationMs, jitter: u64, now: Timestamp) -> DurationMs {
        let free_after = self.snapshot.next_free_at.since(now);
        if free_after == DurationMs::ZERO || free_after > interval + OVERDUE {
            return interval;
        }
        let many = u64::from(self.snapshot.slots) * 1_000 / OPENING_ASKS_PER_SECOND;
        let spread = many.max(ASK_AFTER_LEAST.0 / 4);
        DurationMs(free_after.0 + jitter % spread).max(ASK_AFTER_LEAST)
    }
}

fn ask_at_opening(until: DurationMs, waiting: u32, jitter: u64) -> DurationMs {
    let spread = (u64::from(waiting) * 1_000 / OPENING_ASKS_PER_SECOND).clamp(1_000, 30_000);
    let at_opening = DurationMs(until.0 + jitter % spread);
    if at_opening > ASK_AFTER_LAST {
        ask_after(Some(u32::MAX), None, jitter)
    } else {
        at_opening.max(ASK_AFTER_FIRST)
    }
}
