//! Systems that the article compares, each in its worst case. These are sticky sessions while nodes
//! are added, servers that report everything to each other, a queue of events under load, and
//! writers that swap one value.
//!
//! Each module returns numbers of runs and a chart of them; the story describes them.

pub(crate) mod contention;
pub(crate) mod queue;
pub(crate) mod report_to_all;
pub(crate) mod sticky;

use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::DurationUs;

use crate::lab::routing::Routing;
use crate::lab::run::{INTERVAL, Plan, StoreKind};
use crate::lab::traffic::{Demand, Traffic, bursty};

pub(crate) const MINUTE: DurationUs = DurationUs::from_secs(60);
/// Seed of all runs of the story.
pub(crate) const SEED: u64 = 1;
/// One-way delay between nodes and stores of one data center.
pub(crate) const NEAR: DurationUs = DurationUs(1_000);

/// Returns a rate of so many requests a minute.
pub(crate) fn a_minute(requests: u32) -> Rate {
    Rate::new(requests, MINUTE).expect("a minute is in range")
}

/// Parts of a minute.
pub(crate) const STRICT_PARTS: u32 = 60;

/// Returns a limit that is never exceeded where one place counts, so that any excess is due to
/// sharing. Sub-windows are as fine as possible, so that few requests are delayed too long.
pub(crate) fn strict(requests: u32) -> Policy {
    let strict = SubWindows::strict(a_minute(requests), STRICT_PARTS);
    Policy::SubWindows(strict.expect("a minute has sixty parts"))
}

/// Limit of a client with many requests.
pub(crate) const RUSH_LIMIT: u32 = 1_000;
/// Nodes that receive them.
pub(crate) const RUSH_NODES: u32 = 6;

/// Minutes of the rush.
pub(crate) const RUSH_MINUTES: u64 = 5;

/// Returns minutes of bursts, half as many requests again as the limit allows.
pub(crate) fn rush() -> Traffic {
    let demand = Demand {
        rate: a_minute(RUSH_LIMIT / 2 * 3),
        length: MINUTE.times(RUSH_MINUTES),
        clients: 1,
        seed: SEED,
    };
    bursty(&demand).expect("some thousand requests")
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
