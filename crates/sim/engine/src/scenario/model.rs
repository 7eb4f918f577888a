//! The meaning of a scenario: checked values only.

use anteroom_room::rules::{AllocationKind, Limits, Rules};
use anteroom_room::time::{DurationMs, Timestamp};

/// What is rehearsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name, as typed: `flash-sale`.
    pub name: String,
    /// What it shows, in a few sentences.
    pub about: String,
    /// The same seed gives the same run.
    pub seed: u64,
    /// Wall clock at the start; minutes and the axis of charts follow it.
    pub starts_at: Timestamp,
    /// How long to run; at least a second.
    pub length: DurationMs,
    /// Time between two samples of the charts; at least a second.
    pub sample_every: DurationMs,
    /// How long the world lends to a data center; a second to an hour. Means nothing where there is
    /// one data center without a way to the world.
    pub global_lease: DurationMs,
    /// Allocations to compare, in the order of the table.
    pub compare: Vec<AllocationKind>,
    /// At least one.
    pub rooms: Vec<RoomPlan>,
    /// At least one.
    pub data_centers: Vec<DataCenterPlan>,
    /// What goes wrong, and what the operator changes, by time.
    pub faults: Vec<FaultPlan>,
}

/// A room, its limits and its crowd. Rooms do not influence each other.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomPlan {
    /// Unique name.
    pub name: String,
    /// The limits, as in the gateway's configuration; `allocation` is overruled by `compare`.
    pub rules: Rules,
    /// Who comes; the sum of all of them.
    pub arrivals: Vec<Arrivals>,
    /// What visitors do.
    pub behaviour: Behaviour,
}

/// A data center.
#[derive(Clone, Debug, PartialEq)]
pub struct DataCenterPlan {
    /// Unique name.
    pub name: String,
    /// Nodes in it; at least 1.
    pub nodes: u32,
    /// Its part of the arrivals that name no data center, in proportion to the others'; not
    /// negative.
    pub share: f64,
    /// From a node to the store of its data center, one way.
    pub to_store: Delay,
    /// From that store to the root's, one way.
    pub to_global: Delay,
}

/// How long a message travels: uniform between the two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delay {
    /// At least.
    pub from: DurationMs,
    /// At most; not less than `from`.
    pub to: DurationMs,
}

/// A stream of newcomers: a rate that is linear between points, and 0 outside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// Index of the only data center that they come to; `None`: by the data centers' shares.
    pub data_center: Option<usize>,
    /// By time. Two points at the same time are a step.
    pub points: Vec<RatePoint>,
}

/// A rate at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePoint {
    /// Since the start.
    pub at: DurationMs,
    /// Newcomers per second on average (they come independently of each other); not negative.
    pub per_second: f64,
}

/// What visitors do. Shares are in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behaviour {
    /// Pages that a visitor looks at on average (geometric); at least 1.
    pub pages: f64,
    /// Time between two pages on average (exponential).
    pub think_time: DurationMs,
    /// What a page loads beside itself, at the same moment, with the same cookie.
    pub parallel_requests: u32,
    /// Share of visitors who open a second tab a moment later, with the cookie they then have.
    pub second_tab: f64,
    /// How long those who wait do so on average (exponential) before they leave; `None`: they stay.
    pub patience: Option<DurationMs>,
    /// Share of those who wait who are away when their turn comes: they stop asking.
    pub no_shows: f64,
    /// Share of requests that reach another node of the data center than the one before.
    pub changes_node: f64,
    /// Share of requests that reach another data center.
    pub changes_data_center: f64,
    /// Share of visitors who send no cookie back: each of their requests is a newcomer's.
    pub without_cookies: f64,
    /// Share of visitors who log out after their last page.
    pub log_out: f64,
    /// Share of visitors who later send an old ticket again.
    pub replays: f64,
}

/// Something that happens to the machinery at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// Since the start.
    pub at: DurationMs,
    /// What.
    pub kind: FaultKind,
}

/// A node by its place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NodePlace {
    /// Index of its data center.
    pub data_center: usize,
    /// Index in it.
    pub node: usize,
}

/// A store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StorePlace {
    /// The store of the data center with this index.
    Local(usize),
    /// The root's.
    World,
}

/// A link that can be cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkPlace {
    /// Between a node and the store of its data center.
    NodeToStore(NodePlace),
    /// Between a data center's nodes and the global store.
    ToWorld(usize),
}

/// What happens to the machinery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The node dies at once and starts again `after` that, as a new life.
    Crash {
        /// Which.
        node: NodePlace,
        /// Until it runs again.
        after: DurationMs,
    },
    /// The node says goodbye, stops, and starts again `after` that.
    Restart {
        /// Which.
        node: NodePlace,
        /// Until it runs again.
        after: DurationMs,
    },
    /// The node stands still (a stopped process) and goes on as if nothing had been.
    Pause {
        /// Which.
        node: NodePlace,
        /// For how long.
        lasts: DurationMs,
    },
    /// No message passes.
    Cut {
        /// Which link.
        link: LinkPlace,
        /// Requests arrive and are carried out; only the answer that says so is lost.
        answers_only: bool,
        /// For how long.
        lasts: DurationMs,
    },
    /// Messages are lost, doubled and delayed (and so reordered) on all links.
    BadNetwork {
        /// Share of messages lost.
        lost: f64,
        /// Share of messages that arrive twice.
        doubled: f64,
        /// Added delay, at most.
        delayed: DurationMs,
        /// For how long.
        lasts: DurationMs,
    },
    /// The store does not answer; it keeps what it has.
    StoreDown {
        /// Which.
        store: StorePlace,
        /// For how long.
        lasts: DurationMs,
    },
    /// The store comes back empty, as another server.
    StoreWiped {
        /// Which.
        store: StorePlace,
    },
    /// A replica takes over that has not got the last writes.
    StoreLosesWrites {
        /// Which.
        store: StorePlace,
        /// How much is lost.
        last: DurationMs,
    },
    /// The store's clock jumps.
    StoreClockSteps {
        /// Which.
        store: StorePlace,
        /// By how many milliseconds; may be negative.
        by_ms: i64,
    },
    /// The node's clock stands this far from the true time, and runs too fast or too slow.
    NodeClockIsOff {
        /// Which.
        node: NodePlace,
        /// By how many milliseconds; may be negative.
        by_ms: i64,
        /// How much too fast it runs from then on, in parts per million; may be negative.
        drifts_ppm: i32,
    },
    /// The operator changes the limits at all nodes, one after the other.
    Limits {
        /// The new ones.
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
    /// The operator changes the session's length at all nodes, one after the other.
    SessionDuration {
        /// The new one.
        session: DurationMs,
        /// Time until the last node has it.
        within: DurationMs,
    },
}

impl Scenario {
    /// Whether there is one node with a journal of its own, which stays the one that it is.
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
    /// How long it goes on, its effects not counted. What changes once and stays lasts no time.
    #[must_use]
    pub fn lasts(&self) -> DurationMs {
        match self {
            Self::Crash { after, .. } | Self::Restart { after, .. } => *after,
            Self::Pause { lasts, .. }
            | Self::Cut { lasts, .. }
            | Self::BadNetwork { lasts, .. }
            | Self::StoreDown { lasts, .. } => *lasts,
            Self::Limits { within, .. }
            | Self::Pacing { within, .. }
            | Self::SessionDuration { within, .. } => *within,
            Self::StoreWiped { .. }
            | Self::StoreLosesWrites { .. }
            | Self::StoreClockSteps { .. }
            | Self::NodeClockIsOff { .. } => DurationMs::ZERO,
        }
    }
}
