//! Tests of the maximum of networks, and of bounded memory.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn visitor(id: u8) -> VisitorId {
    VisitorId([id; 16])
}

fn network(text: &str) -> Network {
    Network::of(text.parse().unwrap())
}

fn secs(secs: u64) -> Timestamp {
    NOW + DurationMs::from_secs(secs)
}

#[test]
fn a_64_of_ipv6_is_one_network_and_ipv4_is_itself() {
    let check = |one, other, is_one| {
        assert_eq!(network(one) == network(other), is_one, "{one} {other}");
    };
    check("2001:db8:1:2::3", "2001:db8:1:2:ffff::4", true);
    check("2001:db8:1:2::3", "2001:db8:1:3::3", false);
    check("192.0.2.1", "::ffff:192.0.2.1", true);
    check("192.0.2.1", "192.0.2.2", false);
    check("192.0.2.1", "2001:db8::1", false);
}

#[test]
fn the_first_addresses_stay_and_excess_is_reported_once_a_window() {
    let mut table = TicketAddresses::new(64);
    let mut see = |last: u8, at| {
        let address = IpAddr::from([192, 0, 2, last]);
        table.see(visitor(1), Network::of(address), 2, secs(at))
    };
    assert_eq!(see(1, 0), Seen::Within);
    assert_eq!(see(2, 1), Seen::Within);
    assert_eq!(see(3, 2), Seen::FirstAbove);
    assert_eq!(see(4, 3), Seen::Above);
    assert_eq!(see(1, 300), Seen::Within);
    // The second has not been seen for a window, and the third replaces it.
    assert_eq!(see(3, 601), Seen::Within);
    assert_eq!(see(2, 602), Seen::FirstAbove);
}

#[test]
fn a_phone_that_changes_its_network_now_and_then_is_never_above() {
    let mut table = TicketAddresses::new(64);
    let phone = visitor(7);
    // Home, a train in which the network changes every four minutes, the office, and back.
    for trip in 0..4_u16 {
        let start = u64::from(trip) * 3_600;
        let mut see = |network, at| {
            let seen = table.see(phone, network, 6, secs(start + at));
            assert_eq!(seen, Seen::Within, "trip {trip}, second {at}");
        };
        for second in 0..300_u16 {
            // Both families at once, and temporary addresses.
            see(network("203.0.113.9"), second.into());
            let home = [0x2001, 0xdb8, 0, 1, 0, 0, second, 1];
            see(Network::of(IpAddr::from(home)), second.into());
        }
        for second in 300..1_500_u16 {
            let cell = 10 * trip + second / 240;
            let train = [0x2001, 0xdb8, 1, cell, 0, 0, 0, 1];
            see(Network::of(IpAddr::from(train)), second.into());
        }
        for second in 2_100..2_400 {
            see(network("198.51.100.3"), second);
        }
    }
}

#[test]
fn two_hundred_clients_of_a_ticket_get_no_more_networks_than_allowed() {
    let mut table = TicketAddresses::new(64);
    let mut seen = Vec::new();
    for second in 0..3_u64 {
        for client in 0..200 {
            let network = Network::of(IpAddr::from([10, 0, 0, client]));
            seen.push(table.see(visitor(1), network, 4, secs(second)));
        }
    }
    let count = |wanted| seen.iter().filter(|seen| **seen == wanted).count();
    assert_eq!(count(Seen::Within), 3 * 4);
    assert_eq!(count(Seen::FirstAbove), 1);
    assert_eq!(table.evicted_total(), 0);
}

#[test]
fn the_longest_unused_ticket_is_evicted_and_counts_if_recent() {
    let mut table = TicketAddresses::new(WAYS);
    let here = network("192.0.2.1");
    let there = network("192.0.2.2");
    for id in 0..8 {
        table.see(visitor(id), here, 1, secs(id.into()));
    }
    assert_eq!(table.see(visitor(0), there, 1, secs(9)), Seen::FirstAbove);
    // The ninth replaces the second, as the first was seen again.
    table.see(visitor(8), here, 1, secs(10));
    assert_eq!(table.evicted_total(), 1);
    assert_eq!(table.see(visitor(0), there, 1, secs(11)), Seen::Above);
    let mut later = table;
    later.see(visitor(1), there, 1, secs(700));
    assert_eq!(
        later.evicted_total(),
        1,
        "an old entry does not count as evicted"
    );
}

#[test]
fn a_clock_that_is_stepped_back_forgets_nothing() {
    let mut table = TicketAddresses::new(64);
    table.see(visitor(1), network("192.0.2.1"), 1, secs(5_000));
    let seen = table.see(visitor(1), network("192.0.2.2"), 1, secs(0));
    assert_eq!(seen, Seen::FirstAbove);
    assert_eq!(TicketAddresses::new(0).sets.len(), 1);
    let mut table = TicketAddresses::new(0);
    assert_eq!(
        table.see(visitor(1), network("::1"), 0, Timestamp::ZERO),
        Seen::Within
    );
}

#[test]
fn a_lowered_maximum_holds_at_once() {
    let mut table = TicketAddresses::new(64);
    let mut see = |last, max| {
        let address = IpAddr::from([192, 0, 2, last]);
        table.see(visitor(1), Network::of(address), max, NOW)
    };
    for last in 1..=4 {
        assert_eq!(see(last, 4), Seen::Within);
    }
    assert_eq!(see(4, 2), Seen::FirstAbove);
    assert_eq!(see(1, 2), Seen::Within);
}

/// Naive model: remembers everything for ever.
#[derive(Default)]
struct Model {
    seen: Vec<(u8, Network, u64)>,
}

impl Model {
    /// Whether this network is within the maximum.
    fn see(&mut self, visitor: u8, network: Network, max: usize, now: u64) -> bool {
        let recent = |at: u64| (now - at) * 1_000 < WINDOW.0;
        self.seen.retain(|(_, _, at)| recent(*at));
        let mine = self.seen.iter().filter(|(id, ..)| *id == visitor);
        let count = mine.count();
        let mut seen = self.seen.iter_mut();
        match seen.find(|(id, known, _)| *id == visitor && *known == network) {
            Some((.., at)) => *at = now,
            None if count < max => self.seen.push((visitor, network, now)),
            None => return false,
        }
        true
    }
}

proptest! {
    /// Compares a table with the naive model. With too little memory the table still never reports
    /// "above" for a ticket that was used from no more networks than allowed.
    #[test]
    fn a_small_table_never_overcounts_and_a_large_one_is_exact(
        requests in prop::collection::vec((0_u8..20, 0_u8..5, 0_u64..90), 1..300),
        max in 1_usize..5,
    ) {
        let mut wide = TicketAddresses::new(20 * WAYS);
        let mut narrow = TicketAddresses::new(WAYS);
        let mut model = Model::default();
        let mut used = BTreeSet::new();
        let mut now = 0;
        for (id, last, pause) in requests {
            now += pause;
            used.insert((id, last));
            let network = Network::of(IpAddr::from([192, 0, 2, last]));
            let expected = model.see(id, network, max, now);
            let found = wide.see(visitor(id), network, max, secs(now));
            prop_assert_eq!(found == Seen::Within, expected);
            let found = narrow.see(visitor(id), network, max, secs(now));
            let networks = used.range((id, 0)..=(id, u8::MAX)).count();
            prop_assert!(found == Seen::Within || networks > max);
        }
        prop_assert_eq!(wide.evicted_total(), 0);
        prop_assert_eq!(narrow.sets.len(), 1);
    }
}
