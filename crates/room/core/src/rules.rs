//! Rules of a room: the operator's limits and ways of queueing, already checked.
//!
//! This module does not know where the values come from (file, flags, a control API).

use crate::time::{DurationMs, Timestamp};

/// Most admissions in a second of a room whose limit is small. With fewer, two friends who come
/// together would wait for nothing.
const BURST_MIN: u32 = 3;

/// Rules of one room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// Ceilings of active visitors and of admissions.
    pub limits: Limits,
    /// Window that the limit of admissions is for.
    pub new_users_window: NewUsersWindow,
    /// Time for which a visitor stays active after its last request; 1 s to 24 h.
    pub session_duration: DurationMs,
    /// Whether a request extends the session (`disable_session_renewal` turns it off).
    pub session_renewal: bool,
    /// Order in which waiting visitors enter.
    pub queueing_method: QueueingMethod,
    /// Whether all new visitors are queued.
    pub queue_all: bool,
    /// Opening time (room clock): new visitors are queued until then.
    pub opens_at: Option<Timestamp>,
    /// Time (room clock) from which they are; it is before `opens_at`, or there is no such time.
    pub holds_from: Timestamp,
    /// Whether those who came from `holds_from` to `opens_at` enter in random order instead of by
    /// arrival. Those who came before are ahead of them.
    pub draw: bool,
    /// Name of that draw: each has another order. The same at all nodes.
    pub draw_name: Timestamp,
    /// Draw of an earlier opening, whose order those who still wait keep.
    pub earlier_draw: Option<Draw>,
    /// Kind of allocation: how nodes share slots.
    pub allocation: AllocationKind,
    /// Exponent of the `curve` allocation.
    pub curve_factor: CurveFactor,
    /// Whether a minute's admissions are spread over the minute while visitors wait.
    pub pacing: bool,
    /// Condition under which a first seat is short until its ticket comes back.
    pub seat_needs_cookie: SeatNeedsCookie,
    /// Time for which a waiting ticket is good after its last refresh.
    pub position_grace: DurationMs,
    /// Time for which a seat is held for a visitor whose page polled when its turn came.
    pub turn_held_for: DurationMs,
    /// Refresh interval of all visitors, 1 s to 60 s; `None`: short near the front, long far back.
    pub refresh_interval: Option<DurationMs>,
    /// Behavior when the lease has ended and the store is still unavailable.
    pub on_store_failure: OnStoreFailure,
}

/// Random order of those who came in a time (room clock).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Draw {
    /// Start of the time.
    pub from: Timestamp,
    /// End of the time, after the start: the opening.
    pub until: Timestamp,
    /// Name of the draw: each has another order.
    pub name: Timestamp,
}

/// Ceilings of a room; both at least 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most active visitors at once.
    pub total_active_users: u32,
    /// Most admissions within one minute.
    pub new_users_per_minute: u32,
}

impl Limits {
    /// Returns the most admissions in any second: a tenth of a minute's, so that a minute's
    /// admissions never reach the origin at once. Small limits allow a burst of three.
    #[must_use]
    pub fn admissions_per_second(&self) -> u32 {
        (self.new_users_per_minute / 10)
            .max(BURST_MIN)
            .min(self.new_users_per_minute)
    }
}

/// Window of time that `new_users_per_minute` limits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NewUsersWindow {
    /// Calendar minute: up to twice the limit may be admitted in 60 s, at the turn of a minute.
    #[default]
    Minute,
    /// Any 60 s.
    Sliding,
}

impl NewUsersWindow {
    /// Returns the window of two that allows less.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Minute, Self::Minute) => Self::Minute,
            _ => Self::Sliding,
        }
    }
}

/// Order in which waiting visitors enter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum QueueingMethod {
    /// Order of arrival.
    #[default]
    Fifo,
    /// Random order, drawn anew in every round.
    Random,
    /// Everybody enters and is counted; the limits are not applied.
    Passthrough,
    /// Everybody new is rejected; there is no queue.
    Reject,
}

/// Kind of allocation: how nodes share slots.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AllocationKind {
    /// Equal shares, one for each node.
    Even,
    /// Equal shares, over-provisioned while the room is far from its limit.
    Curve,
    /// One shared counter per data center, then one for all.
    Counters,
    /// Slots that a parent grants ahead of demand; the limits are never exceeded.
    #[default]
    Leases,
}

/// Condition under which a first seat is short until its ticket comes back once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SeatNeedsCookie {
    /// Every first seat has its full length.
    Never,
    /// While more than 90 % of the seats are taken.
    #[default]
    NearLimit,
    /// Every first seat is short.
    Always,
}

/// Behavior when the lease has ended and the store is still unavailable.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnStoreFailure {
    /// Admit and renew nobody; active visitors stay until their tickets end.
    #[default]
    Bounded,
    /// Admit everybody, uncounted by the limits, and report it.
    Admit,
}

/// Exponent of the `curve` allocation in millionths, so that rules stay comparable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CurveFactor {
    /// The exponent times 1 000 000.
    pub millionths: u32,
}

impl CurveFactor {
    /// Exponent 1: the budget is divided by nodes times utilization.
    pub const ONE: Self = Self {
        millionths: 1_000_000,
    };
}

impl Rules {
    /// Returns the width of the intervals in which seats end: a sixtieth of the session, at least 1
    /// s.
    ///
    /// Sixty keeps a room at about that many counters and lets a seat outlive its session by at
    /// most a thirtieth.
    #[must_use]
    pub const fn seat_grid(&self) -> DurationMs {
        let grid = self.session_duration.0 / 60;
        DurationMs(if grid < 1_000 { 1_000 } else { grid })
    }

    /// Returns the opening time, if all new visitors are queued for it now.
    #[must_use]
    pub fn opening_ahead(&self, now: Timestamp) -> Option<Timestamp> {
        let opens_at = self.opens_at?;
        (self.holds_from <= now && now < opens_at).then_some(opens_at)
    }

    /// Returns the draw of the opening; `None` without one.
    #[must_use]
    pub fn drawn(&self) -> Option<Draw> {
        let until = self.opens_at.filter(|_| self.draw)?;
        (self.holds_from < until).then_some(Draw {
            from: self.holds_from,
            until,
            name: self.draw_name,
        })
    }

    /// Returns the draw of the opening, and the earlier one.
    pub fn draws(&self) -> impl Iterator<Item = Draw> {
        self.drawn().into_iter().chain(self.earlier_draw)
    }

    /// Returns the rules that a room applies now if its settings want these. `before` are the rules
    /// that it applies so far. `may_wait` says whether visitors wait, as far as anybody knows.
    ///
    /// They differ where the room lets everybody pass. While it holds all visitors, it has a queue.
    /// When that ends, or when a queue ends otherwise, those who wait and everyone after them enter
    /// under the last limits until nobody waits. Without this, all of them would reach the origin
    /// at once.
    #[must_use]
    pub fn in_force(self, before: &Self, may_wait: bool, now: Timestamp) -> Self {
        if self.queueing_method != QueueingMethod::Passthrough {
            return self;
        }
        if self.queue_all || self.opening_ahead(now).is_some() {
            return Self {
                queueing_method: QueueingMethod::Fifo,
                ..self
            };
        }
        match before.queueing_method {
            method @ (QueueingMethod::Fifo | QueueingMethod::Random) if may_wait => Self {
                limits: before.limits,
                new_users_window: before.new_users_window,
                queueing_method: method,
                pacing: before.pacing,
                ..self
            },
            _ => self,
        }
    }

    /// Returns the longest seat that a check-in under these rules takes: session + 2 intervals.
    #[must_use]
    pub fn longest_seat(&self) -> DurationMs {
        self.session_duration + self.seat_grid().times(2)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            limits: Limits {
                total_active_users: 200,
                new_users_per_minute: 200,
            },
            new_users_window: NewUsersWindow::Minute,
            session_duration: DurationMs::from_secs(300),
            session_renewal: true,
            queueing_method: QueueingMethod::Fifo,
            queue_all: false,
            opens_at: None,
            holds_from: Timestamp::ZERO,
            draw: false,
            draw_name: Timestamp::ZERO,
            earlier_draw: None,
            allocation: AllocationKind::Leases,
            curve_factor: CurveFactor::ONE,
            pacing: true,
            seat_needs_cookie: SeatNeedsCookie::NearLimit,
            position_grace: DurationMs::from_secs(300),
            turn_held_for: DurationMs::from_secs(60),
            refresh_interval: None,
            on_store_failure: OnStoreFailure::Bounded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);
    fn sale() -> Rules {
        Rules {
            limits: Limits {
                total_active_users: 5,
                new_users_per_minute: 7,
            },
            new_users_window: NewUsersWindow::Sliding,
            queueing_method: QueueingMethod::Random,
            ..Rules::default()
        }
    }

    fn open() -> Rules {
        Rules {
            queueing_method: QueueingMethod::Passthrough,
            ..Rules::default()
        }
    }

    #[test]
    fn a_room_that_lets_all_pass_lets_those_who_wait_enter_first() {
        let (sale, open) = (sale(), open());
        let run_off = open.in_force(&sale, true, NOW);
        assert_eq!(run_off.queueing_method, QueueingMethod::Random);
        assert_eq!(run_off.limits, sale.limits);
        assert_eq!(run_off.new_users_window, NewUsersWindow::Sliding);
        assert_eq!(
            open.in_force(&run_off, true, NOW),
            run_off,
            "until nobody waits"
        );
        assert_eq!(open.in_force(&run_off, false, NOW), open);
        assert_eq!(
            open.in_force(&open, true, NOW),
            open,
            "nobody can wait here"
        );
        let closed = Rules {
            queueing_method: QueueingMethod::Reject,
            ..sale
        };
        assert_eq!(open.in_force(&closed, true, NOW), open);
        assert_eq!(closed.in_force(&sale, true, NOW), closed);
        assert_eq!(sale.in_force(&open, true, NOW), sale);
    }

    #[test]
    fn a_held_room_that_lets_all_pass_has_a_queue() {
        let held = [
            Rules {
                queue_all: true,
                ..open()
            },
            Rules {
                opens_at: Some(NOW + DurationMs(1)),
                ..open()
            },
        ];
        for rules in held {
            let in_force = rules.in_force(&open(), false, NOW);
            assert_eq!(in_force.queueing_method, QueueingMethod::Fifo);
            let opened = Rules {
                queue_all: false,
                opens_at: None,
                ..rules
            };
            let after = opened.in_force(&in_force, true, NOW);
            assert_eq!(after.queueing_method, QueueingMethod::Fifo);
        }
    }
}
