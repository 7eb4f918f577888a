//! How far off is a limit that several nodes keep together, in a network of a time of its own?
//!
//! From the moment at which the limit is used up, all that is offered goes through until a node has
//! heard of it: within an interval and a datagram's way; with datagrams that are lost within as
//! many intervals as a change is told. And never more than a whole limit at each node.

use std::time::Duration;

use anteroom_gossip::TELLS;
use anteroom_limit::cost::Cost;

use crate::gossip::network::{INTERVAL, Network, STEP, Weather};
use crate::gossip::support::{a_minute, call, call_of};

const LIMIT: u32 = 3_000;
const DELAY: Duration = Duration::from_millis(20);

/// How much a limit is asked for, and what else nodes have to tell.
#[derive(Clone, Copy)]
struct Demand {
    nodes: u8,
    calls_each_step: u32,
    /// How many times the limit is offered.
    times: u32,
    /// So many other clients call each node once in each interval.
    others: u32,
}

impl Demand {
    const fn of(nodes: u8, calls_each_step: u32) -> Self {
        Self {
            nodes,
            calls_each_step,
            times: 10,
            others: 0,
        }
    }

    /// What is offered in so long, and in two steps: calls come all at once at the beginning of
    /// one, and messages at its end.
    fn offered(&self, length: Duration) -> u32 {
        let steps = (length + 2 * STEP).as_millis() / STEP.as_millis();
        u32::from(self.nodes) * self.calls_each_step * u32::try_from(steps).expect("steps are few")
    }
}

/// How much all nodes let through together.
fn admitted(demand: Demand, weather: Weather) -> u32 {
    let Demand {
        nodes,
        calls_each_step,
        times,
        others,
    } = demand;
    let policy = a_minute(LIMIT);
    let mut network = Network::of(nodes, weather);
    // To the beginning of a minute: 20 s have gone.
    network.run(Duration::from_secs(40));
    let mut admitted = 0;
    let steps_each_interval = INTERVAL.as_millis() / STEP.as_millis();
    let steps_each_interval = u32::try_from(steps_each_interval).expect("steps are few");
    let others_each_step = others / steps_each_interval;
    for step in 0..times * LIMIT / (u32::from(nodes) * calls_each_step) {
        // Its turn comes among the others', and not always as the last.
        let others = (step % steps_each_interval) * others_each_step;
        let others = (others..others + others_each_step).map(|other| 100 + u128::from(other));
        for at in 1..=nodes {
            for _ in 0..calls_each_step {
                let verdict = call(network.counts(at), &policy, Cost::ONE);
                admitted += u32::from(verdict.is_admitted());
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

#[expect(
    clippy::print_stdout,
    reason = "a test that measures says what it found"
)]
fn check(demand: Demand, lost_of_1000: u64, seed: u64) {
    let weather = Weather {
        delay: DELAY,
        lost_of_1000,
        seed,
    };
    let admitted = admitted(demand, weather);
    let intervals = if lost_of_1000 == 0 {
        1
    } else {
        u32::from(TELLS)
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
fn one_node_lets_through_the_limit_and_not_one_more() {
    let weather = Weather {
        delay: DELAY,
        lost_of_1000: 0,
        seed: 1,
    };
    assert_eq!(admitted(Demand::of(1, 10), weather), LIMIT);
}

#[test]
fn nodes_overshoot_by_the_load_of_an_interval_and_a_trip() {
    // Ten times the limit in half a minute: 10 calls in each step of 10 ms, on all nodes together.
    for (nodes, calls_each_step) in [(2, 5), (5, 2), (10, 1)] {
        check(Demand::of(nodes, calls_each_step), 0, 1);
    }
    // A flood: all that is offered in the first interval is a whole limit for each node.
    check(Demand::of(3, 1_000), 0, 1);
}

#[test]
fn datagrams_that_are_lost_add_intervals() {
    for seed in 1..=10 {
        check(Demand::of(2, 5), 100, seed);
        check(Demand::of(5, 2), 100, seed);
    }
}

/// Nearly five times as many as a node can tell of in an interval.
#[test]
fn thousands_of_others_who_call_less_add_nothing() {
    for (lost_of_1000, seed) in [(0, 1), (100, 2)] {
        let demand = Demand {
            times: 2,
            others: 5_000,
            ..Demand::of(2, 5)
        };
        check(demand, lost_of_1000, seed);
    }
}
