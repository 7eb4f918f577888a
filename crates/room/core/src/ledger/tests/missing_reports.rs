//! Tests of the counts of a child that stopped reporting.

use super::*;

#[test]
fn a_child_without_reports_counts_as_full_until_its_longest_seat_ends() {
    let lease_end = START + LEASE_TTL;
    let mut other = request(2, 1, 0);
    other.demand.slots = 20;
    let (ledger, _) = grant(ten_leased(0), &other, lease_end - DurationMs(1));
    assert_eq!(ledger.phantoms(), 0, "the lease still runs");
    other = SyncRequest {
        number: 2,
        generation: Some(2),
        ..other
    };
    let (ledger, reply) = grant(ledger, &other, lease_end);
    assert_eq!(ledger.phantoms(), 10);
    assert_eq!(reply.granted.seats, 0);
    let phantoms_end = lease_end + LONGEST;
    other.number = 3;
    other.is_final = true;
    let (ledger, _) = grant(ledger, &other, phantoms_end - DurationMs(1));
    assert_eq!(ledger.phantoms(), 10);
    other.number = 4;
    other.generation = Some(3);
    other.closed_through = phantoms_end;
    other.parent = Some(Incarnation(0));
    other.stamp.store = Some(StoreFacts::UNWRITTEN.identity);
    other.stamp.passed.second = Some(phantoms_end);
    let (ledger, reply) = grant(ledger, &other, phantoms_end);
    assert_eq!(ledger.phantoms(), 0);
    assert_eq!(
        reply.granted.seats + ledger.children[&NodeId(2)].balance.seats,
        20
    );
}

#[test]
fn a_shorter_lease_ends_the_longer_one_before_it_only_once_the_child_has_it() {
    let short = LeaseTerms {
        ttl: DurationMs(1_000),
    };
    let sent_at = START + DurationMs(2_000);
    for (is_final, ends_at) in [(false, START + LEASE_TTL), (true, sent_at + short.ttl)] {
        let ledger = ten_leased(10);
        let second = SyncRequest {
            sent_at,
            is_final,
            balance: ledger.children[&NodeId(1)].balance,
            ..request(1, 2, 1)
        };
        // The reply may be lost: the child goes on under the lease that it has.
        let (ledger, _) = ledger.sync(&second, short, sent_at);
        assert_eq!(ledger.children[&NodeId(1)].ends_at_child_at, ends_at);
    }
}

#[test]
fn a_data_center_that_gives_shorter_seats_may_have_forgotten_it() {
    // Its store may lose the newest writes. Under its lease of before it then gives longer seats.
    for (is_of_ledger, expected) in [(true, [59_000, 20_000, 2_000]), (false, [2_000; 3])] {
        let mut ledger = Ledger::new();
        let mut longest = Vec::new();
        for (number, (secs, longest_ms)) in [(0, 60_000), (1, 2_000), (40, 2_000), (90, 2_000)]
            .into_iter()
            .enumerate()
        {
            let at = START + DurationMs::from_secs(secs);
            let generation = ledger
                .children
                .get(&NodeId(1))
                .map(|child| child.generation);
            let mut report = request(1, number as u64 + 1, generation.unwrap_or(0));
            report.sent_at = at;
            report.is_of_ledger = is_of_ledger;
            report.longest_seat = DurationMs(longest_ms);
            report.settings.longest_seat = DurationMs(longest_ms);
            let terms = LeaseTerms {
                ttl: DurationMs::from_secs(100),
            };
            ledger = ledger.sync(&report, terms, at).0;
            longest.push(ledger.children[&NodeId(1)].longest_seat.0);
        }
        assert_eq!(longest, [vec![60_000], expected.to_vec()].concat());
    }
}

#[test]
fn unreported_credits_count_for_seats_they_may_have_extended() {
    let ends_at = START + LEASE_TTL + LONGEST;
    let seat_end = START + DurationMs(5_000);
    for is_alone in [true, false] {
        let mut lost = request(1, 1, 0);
        lost.demand.credits = 100;
        lost.row.add_many(seat_end, 3);
        let (ledger, _) = grant(Ledger::new(), &lost, START);
        let mut other = request(2, 1, 0);
        let (mut ledger, _) = if is_alone {
            (ledger, None)
        } else {
            other.row.add_many(seat_end, 2);
            let (ledger, reply) = grant(ledger, &other, START);
            (ledger, Some(reply))
        };
        ledger.give_up(NodeId(1));
        // Alone, its three seats count at their latest possible end. Among others they count at
        // their own end, and its credits count as phantoms until the latest one.
        let expected = if is_alone { (3, 0) } else { (5, 5) };
        assert_eq!((ledger.active(), ledger.phantoms()), expected);
        let row = &ledger.departed[0].row;
        let latest = if is_alone { ends_at } else { seat_end };
        assert_eq!(row.iter().collect::<Vec<_>>(), [(latest, 3)]);
    }
}

#[test]
fn unreported_admissions_count_as_used_in_their_minute() {
    let mut ledger = ten_leased(0);
    ledger.give_up_all_leases(START + DurationMs(1_000));
    assert_eq!(ledger.admitted_in(START.minute()), 10);
    assert_eq!(ledger.admitted_in(START.minute().next()), 0);
}

#[test]
fn credits_count_in_full_while_unreported_seats_may_run() {
    let terms = LeaseTerms::default();
    let mut lost = request(1, 1, 0);
    lost.demand.credits = 100;
    let phantoms_of = |ledger: Ledger, at: Timestamp| {
        let request = SyncRequest {
            sent_at: at,
            closed_through: at,
            ..lost.clone()
        };
        let (mut ledger, _) = grant(ledger, &request, at);
        ledger
            .children
            .get_mut(&NodeId(1))
            .expect("it has synced")
            .balance
            .credits = 100;
        ledger.rebuild_sums();
        ledger.give_up(NodeId(1));
        ledger.phantoms()
    };
    // A root in its reserve: active visitors are counted anew as their seats are extended.
    let root = Ledger::found_empty(Incarnation(7), terms);
    assert_eq!(phantoms_of(root, START), 100);
    assert_eq!(phantoms_of(Ledger::new(), START), 0);
    // A data center whose record was lost: the root counts its earlier seats.
    let young = Ledger::below_root(Incarnation(7), DataCenterId(1));
    assert_eq!(phantoms_of(young.clone(), START), 100);
    let old = Ledger {
        began_at: Some(START - LEASE_TTL - LONGEST - DurationMs(2_000)),
        longest_seat: LONGEST,
        ..young
    };
    assert_eq!(phantoms_of(old, START), 0);
}

#[test]
fn a_late_message_of_the_incarnation_before_does_not_time_the_reserve() {
    let terms = LeaseTerms::default();
    let sent = |ledger: Ledger, number: u64, parent: Incarnation, at: Timestamp| {
        let message = SyncRequest {
            parent: Some(parent),
            sent_at: at,
            closed_through: at,
            ..request(1, number, 0)
        };
        ledger.sync(&message, terms, at).0
    };
    let reserve_of = |ledger: &Ledger| ledger.reserve.expect("it may have lost its record");
    let root = Ledger::found_empty(Incarnation(7), terms);
    // It was on its way for a minute: leases granted meanwhile end a minute later.
    let root = sent(root, 1, Incarnation(0), START);
    assert!(!reserve_of(&root).is_clock_known);
    let loss = START + DurationMs::from_secs(60);
    let root = sent(root, 2, Incarnation(7), loss);
    let reserve = reserve_of(&root);
    assert_eq!((reserve.is_clock_known, reserve.began_at), (true, loss));
    assert!(reserve.ends_at >= loss + terms.ttl);
    let root = sent(root, 3, Incarnation(7), loss + DurationMs(1));
    assert_eq!(reserve_of(&root).began_at, loss);
}
