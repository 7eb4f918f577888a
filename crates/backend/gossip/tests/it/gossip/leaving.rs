//! Requests that a node counts after it has left, while it still serves open ones.

use std::time::Duration;

use anteroom_limit::cost::Cost;

use crate::gossip::network::{Conditions, INTERVAL, Network, RELIABLE, an_hour, left, take};
use crate::gossip::support::call_of;

#[test]
fn counts_after_leaving_reach_the_peers_and_the_successor() {
    for lost_of_1000 in [0, 100] {
        let policy = an_hour(100);
        let conditions = Conditions {
            lost_of_1000,
            ..RELIABLE
        };
        let mut network = Network::of(3, conditions);
        network.leave(3);
        take(network.counts_of_departed(), &policy, 10);
        network.run(Duration::from_secs(2));
        assert_eq!(left(network.counts(1), &policy), 90);
        network.start(3, 13);
        take(network.counts_of_departed(), &policy, 5);
        network.run(Duration::from_secs(5));
        // The last counts, after which no interval follows.
        take(network.counts_of_departed(), &policy, 7);
        network.finish();
        network.run(5 * INTERVAL);
        for at in 1..=3 {
            assert_eq!(left(network.counts(at), &policy), 78, "{at}");
        }
        network.run(Duration::from_secs(20));
        network.assert_agreement();
    }
}

#[test]
fn a_successor_without_peers_receives_all_counts_of_its_predecessor() {
    const CLIENTS: u128 = 3_000;
    let policy = an_hour(100);
    let mut network = Network::of(1, RELIABLE);
    let request = |network: &Network, client| {
        let verdict = call_of(network.counts(1), client, &policy, Cost::ONE);
        assert!(verdict.is_allowed());
    };
    (0..CLIENTS).for_each(|client| request(&network, client));
    network.run(Duration::from_secs(20));
    network.leave(1);
    network.run(Duration::from_secs(1));
    network.start(1, 11);
    network.run(Duration::from_secs(1));
    network.finish();
    let known = |client| call_of(network.counts(1), client, &policy, Cost::Peek).remaining == 99;
    let known = (0..CLIENTS).filter(|client| known(*client)).count();
    assert_eq!(known as u128, CLIENTS);
}
