//! The systems that the article weighs, each brought into the situation in which it fails: sessions
//! that stick while nodes are added, servers that tell each other everything, a queue of events
//! under load, and writers that swap one value.
//!
//! Each gives figures of runs and a chart of them. What is told about it stands in the story.

pub(crate) mod chatty;
pub(crate) mod contention;
pub(crate) mod queue;
pub(crate) mod sticky;

use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::DurationUs;

use crate::lab::routing::Routing;
use crate::lab::run::{INTERVAL, Plan, StoreKind};
use crate::lab::traffic::{Demand, Traffic, bursty};

pub(crate) const MINUTE: DurationUs = DurationUs::from_secs(60);
/// The seed of all runs of the story.
pub(crate) const SEED: u64 = 1;
/// Nodes and stores of one data center, one way.
pub(crate) const NEAR: DurationUs = DurationUs(1_000);

/// So many calls a minute.
pub(crate) fn a_minute(calls: u32) -> Rate {
    Rate::new(calls, MINUTE).expect("a minute is in range")
}

/// Parts of a minute.
pub(crate) const STRICT_PARTS: u32 = 60;

/// A limit that is never exceeded where one place counts: what goes over is the fault of sharing
/// alone. Sub-windows are as fine as they can be in a minute, so that hardly anybody is held back
/// too long.
pub(crate) fn strict(calls: u32) -> Policy {
    let strict = SubWindows::strict(a_minute(calls), STRICT_PARTS);
    Policy::SubWindows(strict.expect("a minute has sixty parts"))
}

/// A limit for a client that calls a lot.
pub(crate) const RUSH_LIMIT: u32 = 1_000;
/// The nodes that it meets.
pub(crate) const RUSH_NODES: u32 = 6;

/// For how long.
pub(crate) const RUSH_MINUTES: u64 = 5;

/// Minutes of bursts, half as many calls again as the limit allows.
pub(crate) fn rush() -> Traffic {
    let demand = Demand {
        rate: a_minute(RUSH_LIMIT / 2 * 3),
        length: MINUTE.times(RUSH_MINUTES),
        clients: 1,
        seed: SEED,
    };
    bursty(&demand).expect("some thousand calls")
}

pub(crate) fn plan(policy: Policy, store: StoreKind, nodes: u32) -> Plan {
    Plan {
        policy,
        store,
        nodes,
        routing: Routing::Spread(Vec::new()),
        delay: NEAR,
        interval: INTERVAL,
        events_per_second: 1_000,
        seed: SEED,
    }
}
