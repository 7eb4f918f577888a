//! Cases of the measurement.

use std::time::Duration;

use anteroom_e2e::cluster::Setup;
use anteroom_room::rules::Limits;
use anteroom_testkit::relay::Delays;

/// Limit that no case reaches, in a minute or in a second.
const NO_LIMIT: u32 = 1_000_000;

/// One deployment and its newcomers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) per_second_at_node: u32,
    /// Nodes in each of two data centers.
    pub(crate) nodes: usize,
    pub(crate) seats: u32,
    pub(crate) session_secs: u64,
    pub(crate) per_minute: u32,
    pub(crate) method: &'static str,
    /// Time there and back between a data center and the root.
    pub(crate) round_trip_ms: u64,
    /// Time for which admitted visitors open pages; with zero they are gone after the first.
    pub(crate) stays_secs: u64,
}

/// Case from which the others differ.
const BASE: Case = Case {
    per_second_at_node: 100,
    nodes: 2,
    seats: 2_000,
    session_secs: 5,
    per_minute: NO_LIMIT,
    method: "fifo",
    round_trip_ms: 200,
    stays_secs: 0,
};

/// Returns all cases.
pub(crate) fn all() -> Vec<Case> {
    let at = |per_second_at_node, seats| Case {
        per_second_at_node,
        seats,
        ..BASE
    };
    vec![
        Case {
            session_secs: 2,
            ..at(25, 2)
        },
        at(25, 200),
        at(25, 2_000),
        at(100, 200),
        Case {
            stays_secs: 4,
            ..at(100, 200)
        },
        Case {
            method: "random",
            ..at(100, 200)
        },
        at(100, 2_000),
        Case {
            round_trip_ms: 400,
            ..at(100, 2_000)
        },
        Case {
            per_minute: 3_000,
            ..at(100, 200_000)
        },
        at(100, 200_000),
        // Two processors do not carry four nodes at this rate, and those who poll.
        Case {
            nodes: 1,
            ..at(1_000, 2_000)
        },
        Case {
            nodes: 1,
            ..at(1_000, 200_000)
        },
        Case {
            nodes: 1,
            round_trip_ms: 400,
            ..at(1_000, 200_000)
        },
    ]
}

impl Case {
    /// Returns its name, which has all that distinguishes it.
    pub(crate) fn name(&self) -> String {
        let Self {
            per_second_at_node,
            seats,
            method,
            round_trip_ms,
            ..
        } = self;
        let mut name = format!("{per_second_at_node}/s-{seats}-seats-{method}-{round_trip_ms}ms");
        if self.per_minute != NO_LIMIT {
            name += &format!("-{}-a-minute", self.per_minute);
        }
        if self.nodes != BASE.nodes {
            name += &format!("-{}-nodes", self.nodes * 2);
        }
        if self.stays_secs > 0 {
            name += "-staying";
        }
        name
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            total_active_users: self.seats,
            new_users_per_minute: self.per_minute,
        }
    }

    /// Returns the deployment. Nodes choose the refresh interval, as in production.
    pub(crate) fn setup(&self) -> Setup {
        Setup {
            nodes: self.nodes,
            global_delays: Delays::each_way(Duration::from_millis(self.round_trip_ms / 2)),
            is_recorded: false,
            room: format!("queueing_method = \"{}\"", self.method),
            ..Setup::new(self.limits(), self.session_secs)
        }
    }
}
