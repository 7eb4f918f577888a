//! Rules that a room applies at a node: its settings by the node's clocks, and what events that
//! have begun or ended leave behind.
//!
//! What has begun is latched, so that no phase goes back. While the wall clock and room time
//! differ, the wall clock was stepped lately and may be wrong. Then phases follow it and are not
//! latched. A node and the simulator run this code. When they do, and how phases reach other nodes,
//! is up to them.

use std::sync::Arc;

use anteroom_room::event::EventPhase;
use anteroom_room::room::Room;
use anteroom_room::rules::{Draw, QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::effective::{Effective, EventNow, effective};
use crate::model::RoomConfig;
use crate::overrides::{EventLatch, EventLatches, RoomOverrides};

/// Difference of the clocks above which a time is converted. Two clocks cannot be read at once, so
/// below it a conversion would make times jitter. That is worse than a time that is a little off.
pub const TOLERANCE: DurationMs = DurationMs(500);

/// Longest time between two evaluations, and between two attempts to store phases: a clock that
/// was stepped must not make a node oversleep.
pub const LOOK_EVERY: DurationMs = DurationMs(1_000);

/// Time in which all who wait send a request, and so are counted for a moment: the longest interval
/// of their pages, and some more. Those who have just come are counted with their second request.
const COUNTED_WITHIN: DurationMs = DurationMs(65_000);
/// Time after the end of an event after which nobody waits for it any more.
const DRAINED_AFTER: DurationMs = DurationMs::from_secs(86_400);
const TOTAL_ACTIVE_USERS: &str = "total_active_users";
const NEW_USERS_PER_MINUTE: &str = "new_users_per_minute";

/// Clocks of a node at a moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Clocks {
    /// Wall clock, by which people write times.
    pub wall: Timestamp,
    /// Room time.
    pub room: Timestamp,
}

/// Converts `at` from one clock to another. The clocks show `from` and `to` at present.
#[must_use]
pub fn converted(at: Timestamp, from: Timestamp, to: Timestamp) -> Timestamp {
    if from.0.abs_diff(to.0) < TOLERANCE.0 {
        return at;
    }
    Timestamp(at.0.saturating_add(to.0).saturating_sub(from.0))
}

impl Clocks {
    /// Whether both agree, so that the wall clock was not stepped lately.
    #[must_use]
    pub const fn are_steady(self) -> bool {
        self.wall.0.abs_diff(self.room.0) <= TOLERANCE.0
    }

    fn in_room_time(self, at: Timestamp) -> Timestamp {
        match at {
            Timestamp::ZERO => at,
            at => converted(at, self.wall, self.room),
        }
    }
}

/// Settings of a room as a node evaluated them.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// All layers, and where values come from.
    pub effective: Effective,
    /// Overrides in effect, with the phases that were known.
    pub overrides: Arc<RoomOverrides>,
    /// Wall-clock time of the evaluation.
    pub at: Timestamp,
}

/// Phases that events of a room have reached, here or in the store.
#[derive(Debug, Default)]
pub struct Phases {
    latches: EventLatches,
    /// Room time since which nobody waits under the present settings; `None` while somebody does,
    /// or nobody has said.
    nobody_waits_since: Option<Timestamp>,
    queue_of_gone: QueueOfGone,
}

/// Queue for an event that the room does not have any more.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum QueueOfGone {
    /// None under the present settings.
    #[default]
    Never,
    /// Queue in which some may wait.
    MayWait,
    /// Queue in which nobody waits any more, as some node found.
    Done,
}

impl Phases {
    /// Evaluates the settings of a process that starts. Returns them with the rules to begin with.
    pub fn begin(&mut self, file: &RoomConfig, clocks: Clocks) -> (Evaluation, Rules) {
        let evaluation = self.evaluated(file, RoomOverrides::default(), clocks);
        let effective = &evaluation.effective;
        let rules = self.in_room_time(effective, clocks, None);
        // After an event, visitors may still wait: this node does not know yet.
        let before = effective.last_rules.unwrap_or(rules);
        let rules = rules.in_force(&before, true, clocks.room);
        (evaluation, rules)
    }

    /// Evaluates the settings again. `overrides` are those in effect, and `stored` has the phases
    /// in the store; `before` is the last evaluation.
    pub fn evaluate(
        &mut self,
        file: &RoomConfig,
        (overrides, stored): (RoomOverrides, &EventLatches),
        before: &Effective,
        clocks: Clocks,
    ) -> Evaluation {
        self.latches.adopt(stored);
        let evaluation = self.evaluated(file, overrides, clocks);
        let has_changed = evaluation.effective.config != before.config;
        if has_changed {
            // Those who came just before the settings changed are not counted yet.
            self.nobody_waits_since = None;
        }
        self.queue_of_gone = match self.latches.run_off_of_gone(file) {
            Some(_) => QueueOfGone::MayWait,
            None if has_changed || self.queue_of_gone == QueueOfGone::Never => QueueOfGone::Never,
            None => QueueOfGone::Done,
        };
        evaluation
    }

    fn evaluated(
        &mut self,
        file: &RoomConfig,
        overrides: RoomOverrides,
        clocks: Clocks,
    ) -> Evaluation {
        let overrides = RoomOverrides {
            events: self.latches.clone(),
            ..overrides
        };
        let overrides = overrides.in_effect(file, clocks.wall).into_owned();
        let effective = effective(file, &overrides, clocks.wall);
        self.latch(&effective, clocks);
        Evaluation {
            effective,
            overrides: Arc::new(overrides),
            at: clocks.wall,
        }
    }

    /// Returns the rules that the settings want and those that the room applies now, and notes if
    /// nobody waits any more.
    pub fn rules(
        &mut self,
        evaluation: &Evaluation,
        room: &Room,
        clocks: Clocks,
    ) -> RulesOfSchedule {
        let found = self.found(evaluation, room, clocks);
        if found.in_force.queueing_method == QueueingMethod::Passthrough {
            self.drain(&evaluation.effective);
        }
        found
    }

    /// Whether the settings change by themselves, or the room applies other rules than it should:
    /// a step of the wall clock has moved the opening, or nobody waits any more.
    pub fn must_evaluate(&mut self, evaluation: &Evaluation, room: &Room, clocks: Clocks) -> bool {
        let next_at = evaluation.effective.next_change_at;
        let is_due = next_at.is_some_and(|at| at <= clocks.wall);
        let went_back = clocks.wall < evaluation.at;
        if is_due || went_back {
            return true;
        }
        let has_nobody = room.has_parent_reply() && room.people_waiting() == 0;
        let since = self.nobody_waits_since.unwrap_or(clocks.room);
        self.nobody_waits_since = has_nobody.then_some(since);
        *room.rules() != self.found(evaluation, room, clocks).in_force
    }

    /// Returns the phases that the store lacks, as far as this node knows; `None` if it lacks none.
    #[must_use]
    pub fn lacking_in(&self, stored: &EventLatches) -> Option<&EventLatches> {
        (!self.latches.are_in(stored)).then_some(&self.latches)
    }

    /// Latches the phases of events that have begun, with the room time of their prequeues.
    fn latch(&mut self, effective: &Effective, clocks: Clocks) {
        if !clocks.are_steady() {
            return;
        }
        for event in &effective.begun {
            let (holds_from, opens_at) = prequeue_by_clock(event, clocks);
            let latch = EventLatch::new(event.phase, holds_from, opens_at);
            let latch = latch.with_run_off(event.run_off);
            self.latches.advance(&event.name, &event.times, latch);
        }
        // The store forgets them, too.
        self.latches.forget_old(clocks.wall);
    }

    /// Notes that nobody waits any more who came before the end of the last event: then all nodes
    /// let everybody pass. One that went on with its queue would give no seats to those who wait
    /// there.
    fn drain(&mut self, effective: &Effective) {
        if let Some(event) = over(effective) {
            self.latches.drain(&event.name, &event.times);
        }
        self.latches.finish_gone(&effective.config);
        self.queue_of_gone = QueueOfGone::Never;
    }

    /// Returns the rules that the settings want, with the times of opening in room time. Times that
    /// are nearly those of the `applied` rules stay: clocks are not read at once, and each change
    /// of a draw makes the room count its visitors again.
    fn in_room_time(
        &self,
        effective: &Effective,
        clocks: Clocks,
        applied: Option<&Rules>,
    ) -> Rules {
        let mut rules = effective.config.rules;
        let Some(prequeue_of) = &effective.prequeue_of else {
            return rules;
        };
        let (holds_from, opens_at) = self.prequeue_in_room_time(prequeue_of, clocks);
        let near = |one: Timestamp, other: Timestamp| one.0.abs_diff(other.0) <= TOLERANCE.0;
        let kept = applied.and_then(|applied| {
            let applied = (applied.holds_from, applied.opens_at?);
            (near(applied.0, holds_from) && near(applied.1, opens_at)).then_some(applied)
        });
        let (holds_from, opens_at) = kept.unwrap_or((holds_from, opens_at));
        rules.holds_from = holds_from;
        rules.opens_at = Some(opens_at);
        rules.draw_name = prequeue_of.times.starts_at;
        let earlier = effective.earlier_draw.as_ref();
        rules.earlier_draw = earlier.map(|event| {
            let (from, until) = self.prequeue_in_room_time(event, clocks);
            let draw = Draw {
                from,
                until,
                name: event.times.starts_at,
            };
            let mut before = applied.into_iter().flat_map(|applied| applied.draws());
            let is_same = |known: &Draw| {
                known.name == draw.name && near(known.from, from) && near(known.until, until)
            };
            before.find(is_same).unwrap_or(draw)
        });
        rules
    }

    fn prequeue_in_room_time(&self, event: &EventNow, clocks: Clocks) -> (Timestamp, Timestamp) {
        let (holds_from, opens_at) = prequeue_by_clock(event, clocks);
        match self.latches.of(&event.name, &event.times) {
            // The start moves with the wall clock until it has come.
            Some(latch) if latch.phase() < EventPhase::Running => (latch.prequeue().0, opens_at),
            Some(latch) => latch.prequeue(),
            None => (holds_from, opens_at),
        }
    }

    /// Returns the rules that the settings want, and those that the room applies now. Values that
    /// operators set hold for those who still wait, too.
    fn found(&self, evaluation: &Evaluation, room: &Room, clocks: Clocks) -> RulesOfSchedule {
        let effective = &evaluation.effective;
        let wanted = self.in_room_time(effective, clocks, Some(room.rules()));
        let since = self
            .nobody_waits_since
            .filter(|_| room.people_waiting() == 0);
        let has_nobody = since.is_some_and(|since| since + COUNTED_WITHIN <= clocks.room);
        let is_drained = match self.queue_of_gone {
            QueueOfGone::Never => self.has_drained(effective, clocks),
            QueueOfGone::MayWait => false,
            QueueOfGone::Done => true,
        };
        let before = self.rules_before(effective, room.rules());
        let may_wait = !has_nobody && !is_drained;
        let mut rules = wanted.in_force(&before, may_wait, clocks.room);
        let is_set = |key| evaluation.overrides.values.contains_key(key);
        if is_set(TOTAL_ACTIVE_USERS) {
            rules.limits.total_active_users = wanted.limits.total_active_users;
        }
        if is_set(NEW_USERS_PER_MINUTE) {
            rules.limits.new_users_per_minute = wanted.limits.new_users_per_minute;
        }
        RulesOfSchedule {
            wanted,
            in_force: rules,
        }
    }

    /// Returns the rules that hold for those who may still wait. A process that starts, or has just
    /// got a room, knows them from the record if the event was deleted.
    fn rules_before(&self, effective: &Effective, applied: &Rules) -> Rules {
        let lets_pass = applied.queueing_method == QueueingMethod::Passthrough;
        let run_off = self.latches.run_off_of_gone(&effective.config);
        match run_off.filter(|_| lets_pass) {
            Some(run_off) => run_off.applied_to(*applied),
            None => *applied,
        }
    }

    /// Whether nobody waits any more who came before the end of the last event, as some node found.
    fn has_drained(&self, effective: &Effective, clocks: Clocks) -> bool {
        let Some(event) = over(effective) else {
            return false;
        };
        let latch = self.latches.of(&event.name, &event.times);
        let ends_at = event.times.ends_at.unwrap_or(Timestamp::NEVER);
        let is_long_ago = ends_at + DRAINED_AFTER <= clocks.wall;
        is_long_ago || latch.is_some_and(EventLatch::has_drained)
    }
}

/// Rules of a room by its schedule, with times in room time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RulesOfSchedule {
    /// Rules that the settings want.
    pub wanted: Rules,
    /// Rules that the room applies: after an event, those who wait enter under its last limits.
    pub in_force: Rules,
}

/// Returns the event that has ended last, if the room has its times.
fn over(effective: &Effective) -> Option<&EventNow> {
    let prequeue_of = effective.prequeue_of.as_ref();
    prequeue_of.filter(|event| event.phase == EventPhase::Over)
}

fn prequeue_by_clock(event: &EventNow, clocks: Clocks) -> (Timestamp, Timestamp) {
    let times = &event.times;
    (
        clocks.in_room_time(times.prequeue_at),
        clocks.in_room_time(times.starts_at),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(at: u64, (from, to): (u64, u64), expected: u64) {
        let found = converted(Timestamp(at), Timestamp(from), Timestamp(to));
        assert_eq!(found, Timestamp(expected), "{at} from {from} to {to}");
    }

    #[test]
    fn a_small_difference_of_the_clocks_changes_no_time() {
        for to in [99_501, 99_999, 100_000, 100_001, 100_499] {
            check(60_000, (100_000, to), 60_000);
        }
    }

    #[test]
    fn a_converted_time_is_equally_far_away_by_both_clocks() {
        check(160_000, (100_000, 3_700_000), 3_760_000);
        check(3_760_000, (3_700_000, 100_000), 160_000);
    }

    #[test]
    fn times_at_the_ends_of_the_scale_saturate() {
        check(u64::MAX, (100_000, 100_000), u64::MAX);
        check(u64::MAX, (0, 100_000), u64::MAX);
        check(5, (100_000, 0), 0);
    }
}
