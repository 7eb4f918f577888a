//! One of several partitions is unavailable: its clients are not decided by outdated totals, and
//! all other clients are decided as usual.

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit_store::ClientKey;
use proptest::prelude::*;

use super::simulation::{NODES, Simulation, partition};
use super::{acquire, an_hour, slot};
use crate::heartbeats::UNAVAILABLE_AFTER;

const CLIENTS: u128 = 6;
/// Age from which requests of all nodes are known wherever a node decides. A node decides alone for
/// `UNAVAILABLE_AFTER`, a beat is sent once a second, and a round trip takes one.
const KNOWN_AFTER: Duration = UNAVAILABLE_AFTER.saturating_add(Duration::from_secs(1 + 1));
/// Seconds until nodes decide again after an outage, at the latest.
const BACK_AFTER: usize = 6;

/// Generates the number of requests per second, node and client.
fn requests() -> impl Strategy<Value = Vec<[[u32; CLIENTS as usize]; NODES]>> {
    prop::collection::vec(prop::array::uniform3(prop::array::uniform6(0..3_u32)), 80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_client_is_decided_by_totals_that_an_outage_made_outdated(
        requests in requests(),
        down in 0..2_usize,
        (from, lasts) in (0..40_usize, 0..40_usize),
    ) {
        let mut simulation = Simulation::new(false);
        let known_after = usize::try_from(KNOWN_AFTER.as_secs()).unwrap();
        // By client, the sum that all nodes had admitted at each second.
        let mut admitted = [const { Vec::new() }; CLIENTS as usize];
        for (second, requests) in requests.into_iter().enumerate() {
            simulation.at += Duration::from_secs(1);
            simulation.is_down[down] = (from..from + lasts).contains(&second);
            simulation.exchange_all();
            for (client, admitted) in (0..CLIENTS).zip(&mut admitted) {
                let is_cut_off = partition(slot(client)) == down;
                let mut sum: u32 = admitted.last().copied().unwrap_or(0);
                let known = second.checked_sub(known_after);
                let known: u32 = known.map_or(0, |second| admitted[second]);
                for (node, requests) in requests.iter().enumerate() {
                    let at = simulation.at;
                    if simulation.nodes[node].1.is_away("api", ClientKey(client), at) {
                        prop_assert!(is_cut_off, "client {} in second {}", client, second);
                        continue;
                    }
                    // The outage is noticed in time, and no node stays cut off for good.
                    let is_late = second > from + known_after;
                    prop_assert!(!(is_cut_off && is_late && second < from + lasts));
                    let estimate = simulation.estimate(node, client);
                    let what = format!("{estimate} of {known} in second {second}");
                    prop_assert!(estimate >= known, "{}", what);
                    let requests = requests[usize::try_from(client).unwrap()];
                    for _ in 0..requests {
                        let policy = an_hour(1_000_000);
                        acquire(&mut simulation.nodes[node].1, &policy, client, Cost::ONE);
                    }
                    sum += requests;
                }
                admitted.push(sum);
            }
        }
        let at = simulation.at;
        let is_up = from + lasts + BACK_AFTER < 80;
        for (_, node) in &simulation.nodes {
            let is_there = |client| !node.is_away("api", ClientKey(client), at);
            prop_assert!(!is_up || (0..CLIENTS).all(is_there));
        }
    }
}
