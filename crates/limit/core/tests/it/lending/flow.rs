//! Does what the limit allows get through, where nothing is wrong any more?
//!
//! What is missing at saturation is the price of leases: the widened window, calls that lie unused
//! at a node when a lease ends, and the way to the store. It is printed for each kind of limit.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::lending::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::lending::draw::Draw;
use crate::lending::plan::{Crowd, KINDS, Network, policy};
use crate::lending::world::{BEGIN, Fault, World};

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

fn world(seed: u64, network: Network, lending: LeasedLimit, crowds: &[Crowd]) -> World {
    let epoch = Epoch {
        id: EpochId {
            number: 1,
            random: 1,
        },
        identity: StoreIdentity(1),
        began_at: TimestampUs(BEGIN),
        before: Before::Nothing,
    };
    let mut world = World::new(Draw::new(seed), Some(epoch), network, None);
    for crowd in crowds {
        world.add_node(lending, lending, *crowd);
    }
    world
}

/// What a limit admits of one client who calls all the time and asks nobody but the limit.
fn alone(policy: &Policy, from: u64, span: u64) -> u64 {
    let (mut state, mut now, mut admitted) = (State::default(), BEGIN, 0);
    while now < from + span {
        while policy
            .step(&mut state, TimestampUs(now), Cost::ONE)
            .is_admitted()
        {
            admitted += u64::from(now >= from);
        }
        now += 10_000;
    }
    admitted
}

/// Calls of `nodes` nodes that come at twice the rate of the limit.
fn saturated(window: DurationUs, calls: u32, nodes: u32) -> Vec<Crowd> {
    let apart = window.0 * u64::from(nodes) / u64::from(calls) / 2;
    (0..nodes).map(|_| Crowd::Steady(apart)).collect()
}

#[test]
fn at_saturation_nearly_all_that_the_widened_limit_allows_is_admitted() {
    println!("kind, network, nodes: admitted of what is promised, of what is lent by");
    let window = DurationUs::from_secs(20);
    let calls = 200;
    for kind in KINDS {
        for (name, network, nodes) in [("near", NEAR, 1), ("near", NEAR, 5), ("far", FAR, 5)] {
            let lending = LeasedLimit::new(policy(kind, calls, window, 100)).unwrap();
            let crowds = saturated(window, calls, nodes);
            let mut world = world(7, network, lending, &crowds);
            let warm = window.0 * 3;
            let span = window.0 * 60;
            world.run(warm).unwrap();
            let before = world.judge.total;
            world.run(span).unwrap();
            let admitted = world.judge.total - before;
            let promised = alone(lending.promised(), BEGIN + warm, span);
            let lent_by = alone(lending.widened(), BEGIN + warm, span);
            let percent = |of: u64| admitted * 1_000 / of;
            let (promised, lent_by) = (percent(promised), percent(lent_by));
            let rounds = world.rounds * 1_000_000 / (warm + span);
            println!(
                "{kind:?}, {name}, {nodes}: {}.{} %, {}.{} %, {rounds} rounds a second",
                promised / 10,
                promised % 10,
                lent_by / 10,
                lent_by % 10
            );
            assert!(lent_by >= 900, "{kind:?} {name} {nodes}: {lent_by}");
        }
    }
}

/// Calls come free every four milliseconds, and four nodes are asked for twice as many. Each of
/// them asks some times in a lease, and not for each call.
#[test]
fn at_saturation_a_node_asks_some_times_in_a_lease() {
    let (window, calls, nodes) = (DurationUs::from_secs(4), 1_000, 4);
    for kind in KINDS {
        let lending = LeasedLimit::new(policy(kind, calls, window, 500)).unwrap();
        let crowds = saturated(window, calls, nodes);
        let mut world = world(7, NEAR, lending, &crowds);
        let warm = window.0 * 3;
        world.run(warm).unwrap();
        let (before, rounds) = (world.judge.total, world.rounds);
        let span = window.0 * 20;
        world.run(span).unwrap();
        let admitted = world.judge.total - before;
        let rounds = (world.rounds - rounds) * 1_000_000 / span;
        let lent_by = admitted * 1_000 / alone(lending.widened(), BEGIN + warm, span);
        println!("{kind:?}: {lent_by} of 1,000, {rounds} rounds a second");
        let leases = u64::from(nodes) * 1_000_000 / lending.ttl().0;
        // Eight where there is too little, and four ahead of demand where there is enough.
        assert!(rounds <= leases * 12, "{kind:?}: {rounds}");
        assert!(lent_by >= 900, "{kind:?}: {lent_by}");
    }
}

#[test]
fn below_the_limit_nobody_is_refused_by_a_node_that_is_alone() {
    let window = DurationUs::from_secs(20);
    for kind in KINDS {
        for (apart, calls) in [
            (1_000_000, 100),
            (100_000, 300),
            (20_000, 1_500),
            (3_000, 10_000),
        ] {
            let burst = calls / 4;
            let lending = LeasedLimit::new(policy(kind, calls, window, burst)).unwrap();
            for network in [NEAR, FAR] {
                let mut world = world(3, network, lending, &[Crowd::Steady(apart)]);
                world.run(window.0 * 4).unwrap();
                let told = world.told;
                let nobody = (told.rejected, told.away) == (0, 0);
                assert!(nobody, "{kind:?} {apart}: {told:?}");
                assert!(u64::from(told.admitted) + 100 > window.0 * 4 / apart * 9 / 10);
            }
        }
    }
}

#[test]
fn after_faults_things_go_on() {
    let window = DurationUs::from_secs(10);
    for kind in KINDS {
        let lending = LeasedLimit::new(policy(kind, 100, window, 50)).unwrap();
        let crowds = saturated(window, 100, 3);
        let mut world = world(5, FAR, lending, &crowds);
        for (after, fault) in [
            (3_000_000, Fault::Crash(1)),
            (5_000_000, Fault::RollBack(2_000_000)),
            (6_000_000, Fault::Cut(0, 4_000_000)),
            (9_000_000, Fault::StepBack(3_600_000_000)),
            (11_000_000, Fault::Wipe),
            (12_000_000, Fault::Cut(2, 3_000_000)),
        ] {
            world.plan(after, fault);
        }
        // The judge is told nothing of clocks: a step back makes no window fuller.
        world.run(17_000_000 + window.0 * 3).ok();
        let before = world.judge.total;
        let span = window.0 * 30;
        world.run(span).ok();
        let admitted = world.judge.total - before;
        let lent_by = alone(lending.widened(), BEGIN + window.0 * 5, span);
        assert!(
            admitted * 10 >= lent_by * 9,
            "{kind:?}: {admitted} of {lent_by}"
        );
    }
}
