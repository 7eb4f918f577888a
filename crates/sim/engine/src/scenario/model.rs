//! Checked values of a scenario.

use anteroom_config::RoomEvent;
use anteroom_room::rules::{AllocationKind, Limits, NewUsersWindow, Rules};
use anteroom_room::store::{Durability, StoreFacts};
use anteroom_room::time::{DurationMs, Timestamp};

/// Scenario of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name as typed: `flash-sale`.
    pub name: String,
    /// Description in a few sentences.
    pub about: String,
    /// Seed of the random numbers; the same seed gives the same run.
    pub seed: u64,
    /// Wall clock at the start; minutes and the axis of charts follow it.
    pub starts_at: Timestamp,
    /// Length of the run; at least a second.
    pub length: DurationMs,
    /// Time between two samples of the charts; at least a second.
    pub sample_every: DurationMs,
    /// Length of a lease from the root to a data center; a second to an hour. It has no effect
    /// where there is one data center without a link to a global store.
    pub global_lease: DurationMs,
    /// Promise of all stores about their writes.
    pub durability: Durability,
    /// Allocations to compare, in the order of the table.
    pub compare: Vec<AllocationKind>,
    /// Rooms; at least one.
    pub rooms: Vec<RoomPlan>,
    /// Data centers; at least one.
    pub data_centers: Vec<DataCenterPlan>,
    /// Faults, and changes by the operator, by time.
    pub faults: Vec<FaultPlan>,
}

/// Room with its limits and its visitors. Rooms do not influence each other.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomPlan {
    /// Unique name.
    pub name: String,
    /// Rules as in the gateway's configuration; `compare` replaces `allocation`.
    pub rules: Rules,
    /// Scheduled changes, as in the gateway's configuration; no two of them at once.
    pub events: Vec<RoomEvent>,
    /// Streams of visitors, which add up.
    pub arrivals: Vec<Arrivals>,
    /// Behaviour of visitors.
    pub behaviour: Behaviour,
}

/// Data center.
#[derive(Clone, Debug, PartialEq)]
pub struct DataCenterPlan {
    /// Unique name.
    pub name: String,
    /// Number of nodes; at least 1.
    pub nodes: u32,
    /// Share of the arrivals that name no data center, in proportion to the others' shares; not
    /// negative.
    pub share: f64,
    /// Delay from a node to the store of its data center, one way.
    pub to_store: Delay,
    /// Delay from that store to the root's, one way.
    pub to_global: Delay,
}

/// Delay of a message: uniform between the two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delay {
    /// Shortest delay.
    pub from: DurationMs,
    /// Longest delay; not less than `from`.
    pub to: DurationMs,
}

/// Stream of new visitors: a rate that is linear between points, and 0 outside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// Index of the only data center that they come to; `None`: by the data centers' shares.
    pub data_center: Option<usize>,
    /// Points by time. Two points at the same time are a step.
    pub points: Vec<RatePoint>,
}

/// Rate at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePoint {
    /// Time since the start.
    pub at: DurationMs,
    /// New visitors per second on average, independent of each other; not negative.
    pub per_second: f64,
}

/// Behaviour of visitors. Shares are in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behaviour {
    /// Mean number of pages of a visitor (geometric); at least 1.
    pub pages: f64,
    /// Mean time between two pages (exponential).
    pub think_time: DurationMs,
    /// Further requests of a page, at the same moment and with the same cookie.
    pub parallel_requests: u32,
    /// Share of visitors who open a second tab a moment later, with their cookie of that time.
    pub second_tab: f64,
    /// Mean wait after which a waiting visitor leaves (exponential); `None`: waiting visitors never
    /// leave.
    pub patience: Option<DurationMs>,
    /// Share of waiting visitors who send no more requests before their turn.
    pub no_shows: f64,
    /// Share of visitors whose page is in the background when their turn comes: they come back a
    /// while later.
    pub away: f64,
    /// Share of visitors whose browser sends a request for the position once a minute at most, as
    /// browsers do with pages in the background.
    pub throttled: f64,
    /// Share of requests that reach another node of the data center than the last one.
    pub changes_node: f64,
    /// Share of requests that reach another data center.
    pub changes_data_center: f64,
    /// Share of visitors who send no cookie back, so that each of their requests looks new.
    pub without_cookies: f64,
    /// Share of visitors who log out after their last page.
    pub log_out: f64,
    /// Share of visitors who later send an old ticket again. Those who lose patience leave the
    /// queue by the form of the page, twice.
    pub replays: f64,
}

/// Fault, or change by the operator, at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// Time since the start.
    pub at: DurationMs,
    /// Kind of the fault.
    pub kind: FaultKind,
}

/// Node in a data center.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NodeRef {
    /// Index of its data center.
    pub data_center: usize,
    /// Index in the data center.
    pub node: usize,
}

/// Store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreRef {
    /// Store of the data center with this index.
    Local(usize),
    /// Store of the root.
    Global,
}

/// Event of a room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EventRef {
    /// Index of its room.
    pub room: usize,
    /// Index in the room.
    pub event: usize,
}

/// New values of an event; those that are absent stay.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EventChange {
    /// Both limits, without the steps.
    pub limits: Option<Limits>,
    /// End, by the wall clock.
    pub ends_at: Option<Timestamp>,
    /// Whether the event is ignored from then on.
    pub is_suspended: Option<bool>,
}

impl EventChange {
    /// Makes the change.
    pub fn apply(&self, event: &mut RoomEvent) {
        if self.limits.is_some() {
            event.values.limits = self.limits;
        }
        if self.ends_at.is_some() {
            event.times.ends_at = self.ends_at;
        }
        if let Some(is_suspended) = self.is_suspended {
            event.is_suspended = is_suspended;
        }
    }
}

/// Link that can be cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkRef {
    /// Link between a node and the store of its data center.
    NodeToStore(NodeRef),
    /// Link between a data center's nodes and the global store.
    ToGlobal(usize),
}

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The node crashes and starts again `after` that, as a new process.
    Crash {
        /// Node that crashes.
        node: NodeRef,
        /// Time until it runs again.
        after: DurationMs,
    },
    /// The node drains, stops, and starts again `after` that.
    Restart {
        /// Node that restarts.
        node: NodeRef,
        /// Time until it runs again.
        after: DurationMs,
    },
    /// The node pauses (a stopped process) and then continues.
    Pause {
        /// Node that pauses.
        node: NodeRef,
        /// Length of the pause.
        lasts: DurationMs,
    },
    /// The link transports no messages.
    Cut {
        /// Link that is cut.
        link: LinkRef,
        /// Whether requests arrive and are carried out, and only the replies about it are lost.
        replies_only: bool,
        /// Length of the cut.
        lasts: DurationMs,
    },
    /// Messages are lost, duplicated and delayed (and so reordered) on all links.
    BadNetwork {
        /// Share of messages lost.
        lost: f64,
        /// Share of messages that arrive twice.
        doubled: f64,
        /// Longest added delay.
        delayed: DurationMs,
        /// Length of the fault.
        lasts: DurationMs,
    },
    /// The store sends no replies; it keeps its data.
    StoreDown {
        /// Store that is down.
        store: StoreRef,
        /// Length of the fault.
        lasts: DurationMs,
    },
    /// The store comes back empty, as another server.
    StoreWiped {
        /// Store that is wiped.
        store: StoreRef,
    },
    /// A replica takes over that lacks the last writes.
    StoreLosesWrites {
        /// Store that loses writes.
        store: StoreRef,
        /// Time before the fault whose writes are lost.
        last: DurationMs,
    },
    /// The store's clock steps.
    StoreClockSteps {
        /// Store whose clock steps.
        store: StoreRef,
        /// Step in milliseconds; may be negative.
        by_ms: i64,
    },
    /// The node's clock is wrong, and runs too fast or too slow.
    NodeClockIsOff {
        /// Node whose clock is wrong.
        node: NodeRef,
        /// Error in milliseconds; may be negative.
        by_ms: i64,
        /// Drift from then on in parts per million; may be negative.
        drifts_ppm: i32,
    },
    /// The node's wall clock steps. Its room time goes on.
    NodeWallClockSteps {
        /// Node whose wall clock steps.
        node: NodeRef,
        /// Step in milliseconds; may be negative.
        by_ms: i64,
    },
    /// The operator changes an event in the file of all nodes, one after the other.
    Event {
        /// Event that changes.
        event: EventRef,
        /// New values.
        change: EventChange,
        /// Time until the last node has them.
        within: DurationMs,
    },
    /// The operator changes the limits at all nodes, one after the other.
    Limits {
        /// New limits.
        limits: Limits,
        /// Time until the last node has them.
        within: DurationMs,
    },
    /// The operator turns pacing on or off at all nodes, one after the other.
    Pacing {
        /// Whether a minute's admissions are spread over it from then on.
        pacing: bool,
        /// Time until the last node has it.
        within: DurationMs,
    },
    /// The operator changes the window of the limit of admissions at all nodes, one after the
    /// other.
    NewUsersWindow {
        /// New window.
        window: NewUsersWindow,
        /// Time until the last node has it.
        within: DurationMs,
    },
    /// The operator changes the session's length at all nodes, one after the other.
    SessionDuration {
        /// New length.
        session: DurationMs,
        /// Time until the last node has it.
        within: DurationMs,
    },
}

impl Scenario {
    /// Returns the longest time until a process or a data center that starts is safe in all
    /// records, and granted anything: one after the other at two levels.
    pub(crate) fn safe_after(&self) -> DurationMs {
        let store = StoreFacts {
            durability: self.durability,
            ..StoreFacts::default()
        };
        match store.safe_after() {
            DurationMs::ZERO => DurationMs::ZERO,
            each => each + each + DurationMs(4_000),
        }
    }

    /// Whether there is one node with a journal of its own, which never loses its record.
    #[must_use]
    pub fn is_one_node(&self) -> bool {
        let is_lost = |fault: &FaultPlan| {
            let kind = &fault.kind;
            matches!(
                kind,
                FaultKind::StoreWiped { .. } | FaultKind::StoreLosesWrites { .. }
            )
        };
        let is_one =
            |only: &DataCenterPlan| only.nodes == 1 && only.to_global.to == DurationMs::ZERO;
        matches!(self.data_centers.as_slice(), [only] if is_one(only))
            && !self.faults.iter().any(is_lost)
    }
}

impl FaultKind {
    /// Returns the length of the fault without its effects. A permanent change has length 0.
    #[must_use]
    pub fn lasts(&self) -> DurationMs {
        match self {
            Self::Crash { after, .. } | Self::Restart { after, .. } => *after,
            Self::Pause { lasts, .. }
            | Self::Cut { lasts, .. }
            | Self::BadNetwork { lasts, .. }
            | Self::StoreDown { lasts, .. } => *lasts,
            Self::Event { within, .. }
            | Self::Limits { within, .. }
            | Self::Pacing { within, .. }
            | Self::NewUsersWindow { within, .. }
            | Self::SessionDuration { within, .. } => *within,
            Self::StoreWiped { .. }
            | Self::StoreLosesWrites { .. }
            | Self::StoreClockSteps { .. }
            | Self::NodeClockIsOff { .. }
            | Self::NodeWallClockSteps { .. } => DurationMs::ZERO,
        }
    }
}
