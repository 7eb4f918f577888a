//! Data centers below one root, under faults: messages lost, duplicated, late and out of order at
//! both levels, nodes that crash, stores that lose everything. Every
//! record is encoded and decoded as in a store. Limits hold, and no active visitor is thrown out.

mod deployment;
mod record;

use anteroom_room::time::DurationMs;
use deployment::{DATA_CENTERS, Deployment, NODES, Step};
use proptest::prelude::*;

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    let dc = 0..DATA_CENTERS;
    prop_oneof![
        12 => node.clone().prop_map(Step::Visit),
        4 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::VisitWaiting(n, at)),
        12 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::Returns(n, at)),
        1 => (node.clone(), 0usize..32).prop_map(|(n, at)| Step::LogOut(n, at)),
        4 => node.clone().prop_map(Step::Send),
        4 => (0usize..8, any::<bool>()).prop_map(|(at, again)| Step::DeliverRequest(at, again)),
        4 => (0usize..8, any::<bool>()).prop_map(|(at, again)| Step::DeliverReply(at, again)),
        1 => (0usize..8).prop_map(Step::LoseRequest),
        10 => node.clone().prop_map(Step::Sync),
        3 => dc.clone().prop_map(Step::SendUp),
        3 => (0usize..8, any::<bool>()).prop_map(|(at, again)| Step::DeliverRequestUp(at, again)),
        3 => (0usize..8, any::<bool>()).prop_map(|(at, again)| Step::DeliverReplyUp(at, again)),
        8 => dc.clone().prop_map(Step::SyncUp),
        8 => (1u64..2_000).prop_map(|ms| Step::TimePasses(DurationMs(ms))),
        2 => (2_000u64..30_000).prop_map(|ms| Step::TimePasses(DurationMs(ms))),
        1 => Just(Step::TimePasses(DurationMs::from_secs(601))),
        1 => node.prop_map(Step::CrashNode),
        1 => dc.prop_map(Step::WipeLocal),
        1 => Just(Step::WipeRoot),
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
        let mut deployment = Deployment::new(total, rate, DurationMs::from_secs(session));
        for step in steps {
            deployment.perform(step);
            if let Some(problem) = deployment.problem.take() {
                return Err(TestCaseError::fail(problem));
            }
        }
    }
}

/// The ledger of a data center knows no later time than that of its last sync. A root that has lost
/// its ledger must not take that time for the present.
#[test]
fn an_old_time_of_a_data_center_ends_no_reserve() {
    let mut deployment = Deployment::new(1, 1, DurationMs::from_secs(5));
    let steps = [
        Step::Sync(0),
        Step::SyncUp(0),
        Step::TimePasses(DurationMs::from_secs(608)),
        // The other data center uses the one admission of this minute.
        Step::Visit(2),
        Step::WipeRoot,
        Step::SyncUp(0),
        Step::Visit(0),
    ];
    for step in steps {
        deployment.perform(step);
        assert_eq!(deployment.problem, None);
    }
}
