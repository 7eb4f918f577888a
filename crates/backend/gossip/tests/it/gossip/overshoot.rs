//! Overshoot of a limit that several nodes keep together, in a simulated network.
//!
//! Once the limit is used up, everything offered is admitted until a node learns of it: within an
//! interval and a datagram's trip. With lost datagrams it takes as many intervals as a change is
//! sent. And never more than a whole limit at each node.

use std::time::Duration;

use anteroom_gossip::SENDS_PER_CHANGE;
use anteroom_limit::cost::Cost;

use crate::gossip::network::{Conditions, INTERVAL, Network, STEP};
use crate::gossip::support::{a_minute, call, call_of};

const LIMIT: u32 = 3_000;
const DELAY: Duration = Duration::from_millis(20);

/// Load on a limit, and other traffic of the nodes.
#[derive(Clone, Copy)]
struct Demand {
    nodes: u8,
    requests_per_step: u32,
    /// Offered load as a multiple of the limit.
    times: u32,
    /// Other clients that send each node one request in each interval.
    others: u32,
}

impl Demand {
    const fn of(nodes: u8, requests_per_step: u32) -> Self {
        Self {
            nodes,
            requests_per_step,
            times: 10,
            others: 0,
        }
    }

    /// Returns the load offered within `length` and two steps: requests come at the beginning of a
    /// step, and messages at its end.
    fn offered(&self, length: Duration) -> u32 {
        let steps = (length + 2 * STEP).as_millis() / STEP.as_millis();
        let steps = u32::try_from(steps).expect("steps are few");
        u32::from(self.nodes) * self.requests_per_step * steps
    }
}

/// Returns the number of requests that all nodes admit together.
fn admitted(demand: Demand, conditions: Conditions) -> u32 {
    let Demand {
        nodes,
        requests_per_step,
        times,
        others,
    } = demand;
    let policy = a_minute(LIMIT);
    let mut network = Network::of(nodes, conditions);
    // Run to the beginning of a minute: 20 s have passed.
    network.run(Duration::from_secs(40));
    let mut admitted = 0;
    let steps_each_interval = INTERVAL.as_millis() / STEP.as_millis();
    let steps_each_interval = u32::try_from(steps_each_interval).expect("steps are few");
    let others_each_step = others / steps_each_interval;
    for step in 0..times * LIMIT / (u32::from(nodes) * requests_per_step) {
        // Interleave the client with the others, not always as the last.
        let others = (step % steps_each_interval) * others_each_step;
        let others = (others..others + others_each_step).map(|other| 100 + u128::from(other));
        for at in 1..=nodes {
            for _ in 0..requests_per_step {
                let verdict = call(network.counts(at), &policy, Cost::ONE);
                admitted += u32::from(verdict.is_allowed());
            }
            for other in others.clone() {
                call_of(network.counts(at), other, &policy, Cost::ONE);
            }
        }
        network.step();
    }
    network.run(Duration::from_secs(25));
    network.assert_agreement();
    admitted
}

#[expect(clippy::print_stdout, reason = "a measuring test prints its results")]
fn check(demand: Demand, lost_of_1000: u64, seed: u64) {
    let conditions = Conditions {
        delay: DELAY,
        lost_of_1000,
        seed,
    };
    let admitted = admitted(demand, conditions);
    let intervals = if lost_of_1000 == 0 {
        1
    } else {
        u32::from(SENDS_PER_CHANGE)
    };
    let Demand { nodes, others, .. } = demand;
    let late = demand.offered(intervals * INTERVAL + DELAY);
    let most = (LIMIT + late).min(u32::from(nodes) * LIMIT);
    assert!(
        LIMIT <= admitted && admitted <= most,
        "{admitted} of {most}"
    );
    println!(
        "{nodes} nodes, {others} others, {lost_of_1000} of 1,000 lost: {admitted} of {LIMIT} \
         admitted (+{:.1} %), at most {most}",
        f64::from(admitted - LIMIT) * 100.0 / f64::from(LIMIT)
    );
}

#[test]
fn one_node_admits_exactly_the_limit() {
    let conditions = Conditions {
        delay: DELAY,
        lost_of_1000: 0,
        seed: 1,
    };
    assert_eq!(admitted(Demand::of(1, 10), conditions), LIMIT);
}

#[test]
fn nodes_overshoot_by_the_load_of_an_interval_and_a_trip() {
    // Ten times the limit in half a minute: 10 requests in each step of 10 ms, on all nodes
    // together.
    for (nodes, requests_per_step) in [(2, 5), (5, 2), (10, 1)] {
        check(Demand::of(nodes, requests_per_step), 0, 1);
    }
    // A flood: the load of the first interval is a whole limit for each node.
    check(Demand::of(3, 1_000), 0, 1);
}

#[test]
fn datagrams_that_are_lost_add_intervals() {
    for seed in 1..=10 {
        check(Demand::of(2, 5), 100, seed);
        check(Demand::of(5, 2), 100, seed);
    }
}

/// Nearly five times as many as a node can report in an interval.
#[test]
fn thousands_of_other_clients_with_less_traffic_add_nothing() {
    for (lost_of_1000, seed) in [(0, 1), (100, 2)] {
        let demand = Demand {
            times: 2,
            others: 5_000,
            ..Demand::of(2, 5)
        };
        check(demand, lost_of_1000, seed);
    }
}
