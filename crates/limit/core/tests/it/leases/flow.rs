//! Throughput of leases: what the limit allows gets through where nothing fails.
//!
//! The loss at saturation is the price of leases: the widened window, unused requests at the end of
//! a lease, and the round trip to the store. The test prints it for each kind of limit.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::leases::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::leases::draw::Draw;
use crate::leases::plan::{KINDS, Network, Traffic, policy};
use crate::leases::simulation::{BEGIN, Fault, Simulation};

const NEAR: Network = Network {
    delay_max: 2_000,
    lost: 0,
    doubled: 0,
};

const FAR: Network = Network {
    delay_max: 60_000,
    lost: 0,
    doubled: 0,
};

fn simulation(seed: u64, network: Network, limit: LeasedLimit, traffic: &[Traffic]) -> Simulation {
    let epoch = Epoch {
        id: EpochId {
            number: 1,
            random: 1,
        },
        identity: StoreIdentity(1),
        began_at: TimestampUs(BEGIN),
        before: Before::Nothing,
        longest_loss: None,
    };
    let mut simulation = Simulation::new(Draw::new(seed), Some(epoch), network, None);
    for node_traffic in traffic {
        simulation.add_node(limit, limit, *node_traffic);
    }
    simulation
}

/// Counts what a limit allows one client that sends all the time, without leases.
fn alone(policy: &Policy, from: u64, span: u64) -> u64 {
    let (mut state, mut now, mut admitted) = (State::default(), BEGIN, 0);
    while now < from + span {
        while policy
            .step(&mut state, TimestampUs(now), Cost::ONE)
            .is_allowed()
        {
            admitted += u64::from(now >= from);
        }
        now += 10_000;
    }
    admitted
}

/// Returns traffic of `nodes` nodes at twice the rate of the limit.
fn saturated(window: DurationUs, requests: u32, nodes: u32) -> Vec<Traffic> {
    let apart = window.0 * u64::from(nodes) / u64::from(requests) / 2;
    (0..nodes).map(|_| Traffic::Steady(apart)).collect()
}

#[test]
fn at_saturation_nearly_all_of_the_widened_limit_is_used() {
    println!("kind, network, nodes: allowed by the promised limit, by the widened limit");
    let window = DurationUs::from_secs(20);
    let requests = 200;
    for kind in KINDS {
        for (name, network, nodes) in [("near", NEAR, 1), ("near", NEAR, 5), ("far", FAR, 5)] {
            let limit = LeasedLimit::new(policy(kind, requests, window, 100)).unwrap();
            let traffic = saturated(window, requests, nodes);
            let mut simulation = simulation(7, network, limit, &traffic);
            let warm = window.0 * 3;
            let span = window.0 * 60;
            simulation.run(warm).unwrap();
            let before = simulation.checker.total;
            simulation.run(span).unwrap();
            let admitted = simulation.checker.total - before;
            let promised = alone(limit.promised(), BEGIN + warm, span);
            let widened = alone(limit.widened(), BEGIN + warm, span);
            let percent = |of: u64| admitted * 1_000 / of;
            let (promised, widened) = (percent(promised), percent(widened));
            let rounds = simulation.rounds * 1_000_000 / (warm + span);
            println!(
                "{kind:?}, {name}, {nodes}: {}.{} %, {}.{} %, {rounds} rounds a second",
                promised / 10,
                promised % 10,
                widened / 10,
                widened % 10
            );
            assert!(widened >= 900, "{kind:?} {name} {nodes}: {widened}");
        }
    }
}

/// Requests become free every four milliseconds, and four nodes get twice as many. Each node sends
/// some messages per lease, and not one for each request.
#[test]
fn at_saturation_a_node_sends_few_messages_per_lease() {
    let (window, requests, nodes) = (DurationUs::from_secs(4), 1_000, 4);
    for kind in KINDS {
        let limit = LeasedLimit::new(policy(kind, requests, window, 500)).unwrap();
        let traffic = saturated(window, requests, nodes);
        let mut simulation = simulation(7, NEAR, limit, &traffic);
        let warm = window.0 * 3;
        simulation.run(warm).unwrap();
        let (before, rounds) = (simulation.checker.total, simulation.rounds);
        let span = window.0 * 20;
        simulation.run(span).unwrap();
        let admitted = simulation.checker.total - before;
        let rounds = (simulation.rounds - rounds) * 1_000_000 / span;
        let widened = admitted * 1_000 / alone(limit.widened(), BEGIN + warm, span);
        println!("{kind:?}: {widened} of 1,000, {rounds} rounds a second");
        let leases = u64::from(nodes) * 1_000_000 / limit.ttl().0;
        // Eight during a shortage, and four ahead of demand otherwise.
        assert!(rounds <= leases * 12, "{kind:?}: {rounds}");
        assert!(widened >= 900, "{kind:?}: {widened}");
    }
}

#[test]
fn below_the_limit_a_single_node_rejects_no_request() {
    let window = DurationUs::from_secs(20);
    for kind in KINDS {
        for (apart, requests) in [
            (1_000_000, 100),
            (100_000, 300),
            (20_000, 1_500),
            (3_000, 10_000),
        ] {
            let burst = requests / 4;
            let limit = LeasedLimit::new(policy(kind, requests, window, burst)).unwrap();
            for network in [NEAR, FAR] {
                let mut simulation = simulation(3, network, limit, &[Traffic::Steady(apart)]);
                simulation.run(window.0 * 4).unwrap();
                let outcomes = simulation.outcomes;
                let all_allowed = (outcomes.rejected, outcomes.unavailable) == (0, 0);
                assert!(all_allowed, "{kind:?} {apart}: {outcomes:?}");
                assert!(u64::from(outcomes.admitted) + 100 > window.0 * 4 / apart * 9 / 10);
            }
        }
    }
}

#[test]
fn after_faults_throughput_recovers() {
    let window = DurationUs::from_secs(10);
    for kind in KINDS {
        let limit = LeasedLimit::new(policy(kind, 100, window, 50)).unwrap();
        let traffic = saturated(window, 100, 3);
        let mut simulation = simulation(5, FAR, limit, &traffic);
        for (after, fault) in [
            (3_000_000, Fault::Crash(1)),
            (5_000_000, Fault::RollBack(2_000_000)),
            (6_000_000, Fault::Cut(0, 4_000_000)),
            (9_000_000, Fault::StepBack(3_600_000_000)),
            (11_000_000, Fault::Wipe),
            (12_000_000, Fault::Cut(2, 3_000_000)),
        ] {
            simulation.plan(after, fault);
        }
        // The checker does not know of clocks: a step back makes no window fuller.
        simulation.run(17_000_000 + window.0 * 3).ok();
        let before = simulation.checker.total;
        let span = window.0 * 30;
        simulation.run(span).ok();
        let admitted = simulation.checker.total - before;
        let widened = alone(limit.widened(), BEGIN + window.0 * 5, span);
        assert!(
            admitted * 10 >= widened * 9,
            "{kind:?}: {admitted} of {widened}"
        );
    }
}
