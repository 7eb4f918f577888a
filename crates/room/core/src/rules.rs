//! What did the operator decide for a room? Limits and ways of queueing, already checked.
//!
//! Where these values come from (file, flags, a control API) is not known here.

use crate::time::{DurationMs, Timestamp};

/// The rules of one room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// The two ceilings.
    pub limits: Limits,
    /// How long a visitor stays inside after its last request; 1 s to 24 h.
    pub session_duration: DurationMs,
    /// Whether a request inside extends the session (`disable_session_renewal` turns it off).
    pub session_renewal: bool,
    /// In which order those who wait go in.
    pub queueing_method: QueueingMethod,
    /// Hold everybody who is not inside yet.
    pub queue_all: bool,
    /// Hold everybody until this time (room clock).
    pub opens_at: Option<Timestamp>,
    /// Those who came before `opens_at` go in by lot instead of by arrival.
    pub draw: bool,
    /// How slots are shared among nodes.
    pub allocation: AllocationKind,
    /// Exponent of the `curve` allocation.
    pub curve_factor: CurveFactor,
    /// Spread a minute's admissions over the minute while people wait.
    pub pacing: bool,
    /// When a first seat is short until its ticket has been brought back.
    pub seat_needs_cookie: SeatNeedsCookie,
    /// How long a waiting ticket is good after its last ask.
    pub position_grace: DurationMs,
    /// How often everybody asks again, 1 s to 60 s; `None`: often near the front, seldom far back.
    pub refresh_interval: Option<DurationMs>,
    /// What to do when the lease has ended and the store is still away.
    pub on_store_failure: OnStoreFailure,
}

/// The two ceilings of a room; both at least 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most visitors inside at once.
    pub total_active_users: u32,
    /// Most visitors who may come in within one calendar minute.
    pub new_users_per_minute: u32,
}

/// In which order those who wait go in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum QueueingMethod {
    /// By time of arrival.
    #[default]
    Fifo,
    /// By lot, drawn anew in every round.
    Random,
    /// Everybody goes in and is counted; the limits are not applied.
    Passthrough,
    /// Nobody new goes in and nobody queues.
    Reject,
}

/// How slots are shared among nodes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AllocationKind {
    /// Every node takes an equal part.
    Even,
    /// Like `Even`, over-provisioned while the room is far from its limit.
    Curve,
    /// One shared counter per data center, then one for the world.
    Counters,
    /// Slots lent ahead of demand; the limits are never exceeded.
    #[default]
    Leases,
}

/// When a first seat is short until its ticket has been brought back once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SeatNeedsCookie {
    /// Never: every first seat is a full one.
    Never,
    /// While more than 90 % of the seats are taken.
    #[default]
    NearLimit,
    /// Always.
    Always,
}

/// What to do when the lease has ended and the store is still away.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnStoreFailure {
    /// Admit and renew nobody; those inside stay until their tickets end.
    #[default]
    Bounded,
    /// Admit everybody, uncounted by the limits, and say so.
    Admit,
}

/// Exponent of the `curve` allocation in millionths, so that rules stay comparable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CurveFactor {
    /// The exponent times 1 000 000.
    pub millionths: u32,
}

impl CurveFactor {
    /// The article's exponent: the budget is divided by nodes times utilization.
    pub const ONE: Self = Self {
        millionths: 1_000_000,
    };
}

impl Rules {
    /// Width of the intervals in which seats end: a sixtieth of the session, at least a second.
    ///
    /// Sixty keeps a room at about that many counters and lets a seat outlive its session by at
    /// most a thirtieth.
    #[must_use]
    pub const fn seat_grid(&self) -> DurationMs {
        let grid = self.session_duration.0 / 60;
        DurationMs(if grid < 1_000 { 1_000 } else { grid })
    }

    /// The longest seat that a check-in under these rules may take: session + 2 intervals.
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
            session_duration: DurationMs::from_secs(300),
            session_renewal: true,
            queueing_method: QueueingMethod::Fifo,
            queue_all: false,
            opens_at: None,
            draw: false,
            allocation: AllocationKind::Leases,
            curve_factor: CurveFactor::ONE,
            pacing: true,
            seat_needs_cookie: SeatNeedsCookie::NearLimit,
            position_grace: DurationMs::from_secs(300),
            refresh_interval: None,
            on_store_failure: OnStoreFailure::Bounded,
        }
    }
}
