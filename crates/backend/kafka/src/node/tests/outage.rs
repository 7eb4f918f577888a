//! A partition of several is away: whoever is counted there is not decided about by what is old,
//! and all others are decided about as if nothing were.

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit_store::CallKey;
use proptest::prelude::*;

use super::world::{NODES, World, partition};
use super::{an_hour, charge_with, slot};
use crate::beats::AWAY_AFTER;

const CLIENTS: u128 = 6;
/// What all admitted so long ago is known wherever somebody is decided about: a node goes on alone
/// for so long, a beat is told once a second, and messages take one to go round.
const KNOWN_AFTER: Duration = AWAY_AFTER.saturating_add(Duration::from_secs(1 + 1));
/// By then at the latest nodes decide again after an outage.
const BACK_AFTER: usize = 6;

/// A second each: how often each node is called for each client.
fn calls() -> impl Strategy<Value = Vec<[[u32; CLIENTS as usize]; NODES]>> {
    prop::collection::vec(prop::array::uniform3(prop::array::uniform6(0..3_u32)), 80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nobody_is_decided_about_by_totals_that_an_outage_has_left_old(
        calls in calls(),
        down in 0..2_usize,
        (from, lasts) in (0..40_usize, 0..40_usize),
    ) {
        let mut world = World::new(false);
        let known_after = usize::try_from(KNOWN_AFTER.as_secs()).unwrap();
        // By client, what all nodes together had admitted each second.
        let mut admitted = [const { Vec::new() }; CLIENTS as usize];
        for (second, calls) in calls.into_iter().enumerate() {
            world.at += Duration::from_secs(1);
            world.is_down[down] = (from..from + lasts).contains(&second);
            world.go_round();
            for (client, admitted) in (0..CLIENTS).zip(&mut admitted) {
                let is_cut_off = partition(slot(client)) == down;
                let mut sum: u32 = admitted.last().copied().unwrap_or(0);
                let known = second.checked_sub(known_after);
                let known: u32 = known.map_or(0, |second| admitted[second]);
                for (node, calls) in calls.iter().enumerate() {
                    let at = world.at;
                    if world.nodes[node].1.is_away("api", CallKey(client), at) {
                        prop_assert!(is_cut_off, "client {} in second {}", client, second);
                        continue;
                    }
                    // It is noticed in time, and nobody stays away for good.
                    let is_late = second > from + known_after;
                    prop_assert!(!(is_cut_off && is_late && second < from + lasts));
                    let estimate = world.estimate(node, client);
                    let what = format!("{estimate} of {known} in second {second}");
                    prop_assert!(estimate >= known, "{}", what);
                    let calls = calls[usize::try_from(client).unwrap()];
                    for _ in 0..calls {
                        let policy = an_hour(1_000_000);
                        charge_with(&mut world.nodes[node].1, &policy, client, Cost::ONE);
                    }
                    sum += calls;
                }
                admitted.push(sum);
            }
        }
        let at = world.at;
        let is_up = from + lasts + BACK_AFTER < 80;
        for (_, node) in &world.nodes {
            let is_there = |client| !node.is_away("api", CallKey(client), at);
            prop_assert!(!is_up || (0..CLIENTS).all(is_there));
        }
    }
}
