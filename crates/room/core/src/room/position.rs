//! Reply to a waiting visitor: position, estimate, refresh interval.

use super::announcement::is_counted;
use super::{Room, Verdict, Visit};
use crate::estimate::{
    PAGE_RELOAD, REFRESH_AFTER_FIRST, REFRESH_AFTER_LAST, refresh_after, refresh_before_turn,
};
use crate::figures::{FirstAnnouncement, WaitEnd};
use crate::id::VisitorId;
use crate::order::ROUND;
use crate::queue_position::{QueuePosition, QueueReason, WaitRange};
use crate::rules::QueueingMethod;
use crate::ticket::{Announced, Seats, Ticket};
use crate::time::{DurationMs, Timestamp};
use crate::wait_forecast::WaitForecast;
use crate::waiting::OVERDUE;
use crate::watermark::{people_before, people_beside};

/// Shortest refresh interval.
const REFRESH_AFTER_MIN: DurationMs = DurationMs(1_000);
/// Refreshes per second when a room opens: the waiting visitors are spread accordingly.
const OPENING_REFRESHES_PER_SECOND: u64 = 5_000;

impl Room {
    /// Queues a visitor: writes a waiting ticket and returns the position.
    pub(super) fn queue(&mut self, visit: Visit, reason: QueueReason, now: Timestamp) -> Verdict {
        self.counters.queued += 1;
        self.demand.handle_queued(visit.visitor, now);
        let arrived_at = self.bucket(visit, now);
        if visit.ticket.is_none() {
            self.figures.at(now).arrivals += 1;
        }
        if reason == QueueReason::Rejecting {
            self.figures.at(now).rejected += 1;
            return Verdict::Queue(None, QueuePosition::unknown(reason, arrived_at));
        }
        let (position, ticket) = self.position(visit, reason, arrived_at, now);
        Verdict::Queue(Some(ticket), position)
    }

    fn position(
        &mut self,
        visit: Visit,
        reason: QueueReason,
        arrived_at: Timestamp,
        now: Timestamp,
    ) -> (QueuePosition, Ticket) {
        let rank = self.rank(visit, arrived_at);
        let ahead = people_before(&self.snapshot.queue, rank);
        let people_waiting = self.people_waiting();
        let turn = self.turn(visit.visitor, rank, ahead);
        let expected = self.wait(reason, turn, people_waiting, now);
        let jitter = self.identity.lottery_key.draw(visit.visitor, now.0);
        let has_order = self.is_order_known(reason);
        let ask_after = self.ask_after(reason, turn, people_waiting, expected, jitter, now);
        // Those who gather have to be counted before they go in, or each would be told it is next.
        let gathers = matches!(
            reason,
            QueueReason::NotOpenYet { .. } | QueueReason::QueueAll
        );
        let is_in_line = gathers || (is_moving(reason) && has_order);
        let ask_after = if visit.ticket.is_none() && is_in_line {
            self.ask_newcomer_after(ask_after, jitter)
        } else {
            ask_after
        };
        let ask_after = if self.asks_at_once(visit) {
            DurationMs::ZERO
        } else {
            self.soon_enough(ask_after)
        };
        let is_late = is_moving(reason) && self.is_late_again(visit, ask_after, now);
        let wait_end = visit.ticket.and_then(|ticket| self.wait_end(&ticket));
        let counted_until = self.count(visit, (rank, is_late), ask_after, now);
        let are_all_counted = is_counted(arrived_at, now) && now >= self.counting_until;
        let is_counted = !has_order || are_all_counted;
        let announced = if has_order && is_counted {
            let before = visit
                .ticket
                .map(|ticket| ticket.announced)
                .unwrap_or_default();
            let expected = expected.map(|wait| wait.middle);
            self.announce((before, arrived_at), ahead, expected, now)
        } else {
            Announced::default()
        };
        self.note_wait(wait_end, counted_until, (&announced, arrived_at), now);
        let known_ahead = announced.position.map(|position| position.get() - 1);
        let admission = announced.admission.map(|after| after.time(arrived_at));
        let wait = if is_counted && has_order {
            admission.map(|at| WaitRange::around(at.since(now)))
        } else {
            expected
        };
        let position = QueuePosition {
            // Before all are counted it is a number that may still rise, and pages do not show it.
            people_ahead: known_ahead.or_else(|| has_order.then_some(ahead)),
            people_waiting,
            wait,
            refresh_after: Some(ask_after),
            is_counted,
            rise: announced.rise,
            ..QueuePosition::unknown(reason, arrived_at)
        };
        let ticket = Ticket {
            visitor: visit.visitor,
            bucket: arrived_at,
            last_check_in_at: now,
            accepted_at: None,
            first_seat: None,
            has_missed_turn: visit.ticket.is_some_and(|ticket| ticket.has_missed_turn),
            counted_until,
            announced,
            unseen_loss: None,
            seats: Seats::default(),
        };
        (position, ticket)
    }

    /// Returns the first interval of a newcomer. It counts from its next request on, so that those
    /// behind it learn where they are.
    fn ask_newcomer_after(&self, ask_after: DurationMs, jitter: u64) -> DurationMs {
        if self.rules.refresh_interval.is_some() {
            return ask_after;
        }
        ask_after.min(REFRESH_AFTER_MIN + DurationMs(jitter % REFRESH_AFTER_MIN.0 / 2))
    }

    /// Returns an interval that the position outlives.
    fn soon_enough(&self, ask_after: DurationMs) -> DurationMs {
        // One refresh may get lost.
        let ask_after = ask_after.min(DurationMs(self.rules.position_grace.0 / 2));
        if self.has_left {
            // Another node has to count it before its count here runs out.
            ask_after.min(REFRESH_AFTER_FIRST)
        } else {
            ask_after
        }
    }

    /// Returns the time at which a visitor with this ticket counts as gone; `None` if it does not
    /// wait, as far as known.
    pub(super) fn wait_end(&mut self, ticket: &Ticket) -> Option<WaitEnd> {
        Some(WaitEnd {
            at: self.waiting.newest_end(ticket)?,
            announced: FirstAnnouncement::of(&ticket.announced, ticket.bucket),
        })
    }

    /// Notes when a visitor counts as gone that waits until then, after another such time before.
    fn note_wait(
        &mut self,
        before: Option<WaitEnd>,
        until: Option<Timestamp>,
        (announced, arrived_at): (&Announced, Timestamp),
        now: Timestamp,
    ) {
        if let Some(at) = until.filter(|_| !self.has_left) {
            let announced = FirstAnnouncement::of(announced, arrived_at);
            let after = WaitEnd { at, announced };
            self.figures.move_wait(before, Some(after), now);
        }
    }

    /// Counts a visitor who refreshes after this interval. Returns the end of its count.
    fn count(
        &mut self,
        visit: Visit,
        (rank, is_late): (Timestamp, bool),
        ask_after: DurationMs,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let ticket = visit.ticket?;
        if self.has_left {
            // Nobody would learn that it is counted here.
            return ticket.counted_until;
        }
        if is_late {
            // It will ask again late, like this time. A slot that comes free is for others.
            self.pause(&ticket, rank, now);
            return None;
        }
        let interval = if visit.gets_page {
            ask_after.max(PAGE_RELOAD)
        } else {
            ask_after
        };
        Some(self.waiting.handle_refresh(&ticket, rank, interval, now))
    }

    /// Returns how many visitors refresh before this one. Visitors of the same rank have the same
    /// position. If all of them refreshed as late as the middle one, seats for the first would stay
    /// empty. So each draws a number, for the refresh and the wait.
    fn turn(&self, visitor: VisitorId, rank: Timestamp, ahead: u32) -> u32 {
        let beside = people_beside(&self.snapshot.queue, rank);
        let drawn = self.identity.lottery_key.draw(visitor, rank.0);
        let before = (u128::from(drawn) * u128::from(beside)) >> 64;
        let before = u32::try_from(before).unwrap_or(beside);
        ahead.saturating_sub(beside / 2).saturating_add(before)
    }

    /// Returns the longest wait that is expected at present: that of a visitor behind all others.
    /// `None` if nothing is known of it.
    pub fn longest_wait(&mut self, now: Timestamp) -> Option<DurationMs> {
        let waiting = self.people_waiting();
        if waiting == 0 {
            return Some(DurationMs::ZERO);
        }
        let wait = self.wait(QueueReason::NotYourTurn, waiting, waiting, now)?;
        let is_lottery = self.rules.queueing_method == QueueingMethod::Random;
        Some(if is_lottery { wait.high } else { wait.middle })
    }

    /// Returns the rank that has waited longest, as far as known.
    pub(super) fn oldest_waiting(&self) -> Option<Timestamp> {
        self.snapshot.queue.iter().next().map(|(rank, _)| rank)
    }

    /// Whether the queue has an order: a lottery has none, and a draw has none before it was held.
    pub(super) fn is_order_known(&self, reason: QueueReason) -> bool {
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
        if !is_moving(reason) {
            // Nobody enters at present, and nobody knows when that ends.
            return None;
        }
        // After a change of the rules there is no snapshot for a moment.
        if self.snapshot.as_of != Timestamp::ZERO && !self.forecast.is_of(&self.snapshot) {
            self.forecast = WaitForecast::of(&self.snapshot, &self.rules, &self.habits);
        }
        if self.rules.queueing_method == QueueingMethod::Random {
            return self.forecast.wait_by_lot(waiting, now);
        }
        self.forecast.wait(ahead, now).map(WaitRange::around)
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
            // Half of a second at least, so that a count outlives the way of its report.
            return DurationMs(interval.0 - jitter % (interval.0 / 2).min(1_000));
        }
        if let QueueReason::NotOpenYet { opens_at } = reason {
            return refresh_at_opening(opens_at.since(now), waiting, jitter);
        }
        if self.rules.queueing_method == QueueingMethod::Random {
            // Every visitor refreshes at least once in a round.
            return DurationMs(ROUND.0 - jitter % (ROUND.0 / 8));
        }
        let by_position = refresh_after(Some(ahead), wait, jitter);
        if !self.is_snapshot_fresh(now) {
            return by_position;
        }
        let by_turn = by_position.min(refresh_before_turn(ahead, &self.snapshot.slots_ahead));
        if ahead < self.snapshot.slots {
            self.when_free(by_turn, jitter, now)
        } else {
            by_turn
        }
    }

    /// Returns the refresh interval of a visitor within the watermark: until the next seat comes
    /// free, if that is soon. A moment before there would be none, and an interval later it would
    /// have been free for long.
    fn when_free(&self, interval: DurationMs, jitter: u64, now: Timestamp) -> DurationMs {
        let free_after = self.snapshot.next_free_at.since(now);
        if free_after == DurationMs::ZERO || free_after > interval + OVERDUE {
            return interval;
        }
        let many = u64::from(self.snapshot.slots) * 1_000 / OPENING_REFRESHES_PER_SECOND;
        let spread = many.max(REFRESH_AFTER_MIN.0 / 4);
        DurationMs(free_after.0 + jitter % spread).max(REFRESH_AFTER_MIN)
    }
}

/// Whether the room admits visitors at present.
const fn is_moving(reason: QueueReason) -> bool {
    matches!(reason, QueueReason::Full | QueueReason::NotYourTurn)
}

fn refresh_at_opening(until: DurationMs, waiting: u32, jitter: u64) -> DurationMs {
    let spread = (u64::from(waiting) * 1_000 / OPENING_REFRESHES_PER_SECOND).clamp(1_000, 30_000);
    let at_opening = DurationMs(until.0 + jitter % spread);
    if at_opening > REFRESH_AFTER_LAST {
        refresh_after(Some(u32::MAX), None, jitter)
    } else {
        at_opening.max(REFRESH_AFTER_FIRST)
    }
}
