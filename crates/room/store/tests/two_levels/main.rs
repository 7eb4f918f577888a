//! Data centers under the world, with everything that can happen to them: messages lost, doubled,
//! late and out of order at both levels, nodes that die, stores that come back empty, clocks that
//! are stepped. Every record passes through the form in which stores keep it. Never above a limit,
//! and nobody inside is thrown out.

mod record;
mod world;

use anteroom_room::time::DurationMs;
use proptest::prelude::*;
use world::{DATA_CENTERS, NODES, Step, World};

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    let dc = 0..DATA_CENTERS;
    prop_oneof![
        12 => node.clone().prop_map(Step::Visit),
        4 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::WaitingAsks(n, at)),
        12 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::Returns(n, at)),
        1 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::LogOut(n, at)),
        4 => node.clone().prop_map(Step::Send),
        4 => (0usize..8, any::<bool>()).prop_map(|(at, stays)| Step::Hear(at, stays)),
        4 => (0usize..8, any::<bool>()).prop_map(|(at, stays)| Step::Answer(at, stays)),
        1 => (0usize..8).prop_map(Step::Lose),
        10 => node.clone().prop_map(Step::Sync),
        3 => dc.clone().prop_map(Step::SendUp),
        3 => (0usize..8, any::<bool>()).prop_map(|(at, stays)| Step::HearUp(at, stays)),
        3 => (0usize..8, any::<bool>()).prop_map(|(at, stays)| Step::AnswerUp(at, stays)),
        8 => dc.clone().prop_map(Step::Uplink),
        8 => (1u64..2_000).prop_map(|ms| Step::TimePasses(DurationMs(ms))),
        2 => (2_000u64..30_000).prop_map(|ms| Step::TimePasses(DurationMs(ms))),
        1 => Just(Step::TimePasses(DurationMs::from_secs(601))),
        1 => node.prop_map(Step::Die),
        1 => dc.clone().prop_map(Step::WipeLocal),
        1 => Just(Step::WipeWorld),
        1 => (dc, -20_000i64..20_000).prop_map(|(dc, by)| Step::LocalClockMoves(dc, by)),
        1 => (-100_000i64..100_000).prop_map(Step::WorldClockMoves),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn limits_hold_over_two_levels_whatever_is_lost(
        total in 1u32..8,
        rate in 1u32..30,
        session in prop_oneof![Just(1u64), Just(5), Just(60), Just(300)],
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let mut world = World::new(total, rate, DurationMs::from_secs(session));
        for step in steps {
            world.perform(step);
            if let Some(problem) = world.problem.take() {
                return Err(TestCaseError::fail(problem));
            }
        }
    }
}

/// While nobody speaks in a data center its time stands still, and a root that has lost its memory
/// must not take that for the present.
#[test]
fn a_time_of_long_ago_ends_no_reserve() {
    let mut world = World::new(1, 1, DurationMs::from_secs(5));
    let steps = [
        Step::Sync(0),
        Step::Uplink(0),
        Step::TimePasses(DurationMs::from_secs(608)),
        // The other data center uses the one admission of this minute.
        Step::Visit(2),
        Step::WipeWorld,
        Step::Uplink(0),
        Step::Visit(0),
    ];
    for step in steps {
        world.perform(step);
        assert_eq!(world.problem, None);
    }
}
