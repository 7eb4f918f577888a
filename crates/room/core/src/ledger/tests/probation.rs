//! Tests of a store that comes back as another server with its record, and of the operator's
//! command that nobody is active.

use super::*;
use crate::store::{Durability, Identity};
use crate::sync::Kept;

const LOSES: DurationMs = DurationMs(3_000);
/// Store before it went away.
const BEFORE: Identity = Identity(1);
/// Store after it came back.
const AFTER: Identity = Identity(2);

fn store(identity: Identity, durability: Durability) -> StoreFacts {
    StoreFacts {
        identity,
        durability,
    }
}

/// Sends a request of a child that knows the store `identity`, and demands `slots`.
fn send(
    ledger: Ledger,
    (child, number, generation): (u64, u64, u32),
    (identity, slots): (Identity, u32),
    now: Timestamp,
) -> (Ledger, LeaseReply) {
    let mut sent = request(child, number, generation);
    sent.demand.slots = slots;
    sent.stamp.store = Some(identity);
    sent.stamp.safe_generation = (generation != 0).then_some(generation);
    grant(ledger, &sent, now)
}

/// Makes a ledger with two safe children, of which the first has leased two of ten slots.
fn two_children(durability: Durability) -> Ledger {
    let mut ledger = Ledger::new();
    ledger.note_store(store(BEFORE, durability));
    for child in [1, 2] {
        ledger = send(ledger, (child, 1, 0), (BEFORE, 0), START).0;
        let generation = u32::try_from(child).expect("it is small");
        ledger = send(ledger, (child, 2, generation), (BEFORE, 0), START).0;
    }
    let (ledger, reply) = send(ledger, (1, 3, 1), (BEFORE, 2), START);
    assert_eq!(reply.granted.seats, 2);
    ledger
}

fn back(mut ledger: Ledger, durability: Durability) -> Ledger {
    ledger.begin_probation(store(AFTER, durability), LeaseTerms::default());
    ledger
}

#[test]
fn a_child_is_granted_nothing_before_its_name_is_safe() {
    let mut ledger = Ledger::new();
    ledger.note_store(store(BEFORE, Durability::LosesAtMost(LOSES)));
    let (ledger, reply) = send(ledger, (1, 1, 0), (BEFORE, 5), START);
    assert_eq!((reply.granted.seats, reply.is_safe), (0, false));
    assert!(reply.snapshot.is_exhausted(START));
    // A vouching for another lease than the one in the record is worth nothing.
    let mut other = request(1, 2, 1);
    other.demand.slots = 5;
    other.stamp.store = Some(BEFORE);
    other.stamp.safe_generation = Some(7);
    let (ledger, reply) = grant(ledger, &other, START);
    assert_eq!((reply.granted.seats, reply.is_safe), (0, false));
    let (_, reply) = send(ledger, (1, 3, 1), (BEFORE, 5), START);
    assert_eq!((reply.granted.seats, reply.is_safe), (5, true));
}

#[test]
fn a_ledger_opens_when_all_children_have_reported_to_the_store_that_came_back() {
    let ledger = back(
        two_children(Durability::LosesAtMost(LOSES)),
        Durability::LosesAtMost(LOSES),
    );
    assert_eq!(ledger.missing_reports(), 2);
    // Made before the child learned of the other server: it may be late.
    let (ledger, reply) = send(ledger, (1, 4, 1), (BEFORE, 5), START);
    assert_eq!(ledger.missing_reports(), 2);
    assert_eq!(reply.granted.seats, 0);
    assert_eq!(reply.store.identity, AFTER);
    assert_eq!(reply.snapshot.reopens_at, Some(START + LEASE_TTL));
    let (ledger, _) = send(ledger, (1, 5, 1), (AFTER, 5), START);
    assert_eq!(ledger.missing_reports(), 1);
    let (ledger, reply) = send(ledger, (2, 3, 2), (AFTER, 5), START);
    assert_eq!(ledger.probation(), None);
    assert_eq!(ledger.reserve(), None);
    assert_eq!(reply.granted.seats, 5);
}

#[test]
fn a_missing_report_begins_a_reserve_unless_the_store_keeps_all() {
    let over = START + LEASE_TTL;
    for (durability, has_reserve) in [
        (Durability::LosesAtMost(LOSES), true),
        (Durability::KeepsAll, false),
    ] {
        let mut ledger = back(two_children(durability), durability);
        for (number, after) in [(3, 0), (4, 4_000), (5, 8_000)] {
            let at = START + DurationMs(after);
            ledger = send(ledger, (2, number, 2), (AFTER, 0), at).0;
        }
        assert!(ledger.probation().is_some());
        let mut next = request(2, 6, 2);
        next.is_final = false;
        next.stamp.store = Some(AFTER);
        let (ledger, reply) = ledger.sync(&next, LeaseTerms::default(), over);
        assert_eq!(ledger.reserve().is_some(), has_reserve, "{durability:?}");
        assert_eq!(ledger.probation(), None);
        if has_reserve {
            assert!(matches!(reply, Reply::Void { .. }), "another incarnation");
            assert!(ledger.incarnation().ordinal() > 0);
        } else {
            assert_eq!(ledger.phantoms(), 2, "what the record shows counts as used");
        }
    }
}

#[test]
fn a_record_that_is_older_than_the_promise_allows_is_not_believed() {
    for durability in [Durability::LosesAtMost(LOSES), Durability::KeepsAll] {
        for (store, through, is_broken) in [
            (BEFORE, START, false),
            (BEFORE, START + DurationMs(1), true),
            // This server wrote that itself, after it came back.
            (AFTER, START + DurationMs(1), false),
        ] {
            let ledger = back(two_children(durability), durability);
            let mut sent = request(2, 3, 2);
            sent.stamp.store = Some(BEFORE);
            sent.stamp.kept = Some(Kept { store, through });
            let (ledger, reply) = ledger.sync(&sent, LeaseTerms::default(), START);
            assert_eq!(
                ledger.reserve().is_some(),
                is_broken,
                "{store:?} {through:?}"
            );
            assert_eq!(matches!(reply, Reply::Void { .. }), is_broken);
        }
    }
}

#[test]
fn the_time_in_which_a_store_was_away_ends_no_lease() {
    let ledger = back(
        two_children(Durability::LosesAtMost(LOSES)),
        Durability::LosesAtMost(LOSES),
    );
    // The first request shows how long it was away: longer than a lease.
    let away = START + LEASE_TTL + LEASE_TTL;
    let (ledger, _) = send(ledger, (2, 3, 2), (AFTER, 0), away);
    assert_eq!(ledger.missing_reports(), 1);
    let (ledger, _) = send(ledger, (1, 4, 1), (AFTER, 0), away);
    assert_eq!((ledger.probation(), ledger.reserve()), (None, None));
}

#[test]
fn a_later_incarnation_or_an_unknown_lease_proves_a_loss() {
    let comeback = || {
        back(
            two_children(Durability::LosesAtMost(LOSES)),
            Durability::LosesAtMost(LOSES),
        )
    };
    let mut later = request(1, 4, 1);
    later.parent = Some(Incarnation(0).next(7));
    let (ledger, reply) = comeback().sync(&later, LeaseTerms::default(), START);
    assert!(matches!(reply, Reply::Void { .. }));
    assert!(ledger.reserve().is_some());
    assert!(ledger.incarnation().ordinal() > Incarnation(0).next(7).ordinal());
    // A lease that this record never gave, with slots.
    let mut unknown = request(3, 9, 9);
    unknown.balance.seats = 1;
    let (ledger, _) = comeback().sync(&unknown, LeaseTerms::default(), START);
    assert!(ledger.reserve().is_some());
    // A child of this record that started over under another incarnation, which is as late.
    let mut restarted = request(1, 4, 0);
    restarted.voided_by = Some(Incarnation(99));
    let (ledger, _) = comeback().sync(&restarted, LeaseTerms::default(), START);
    assert!(ledger.reserve().is_some());
}

#[test]
fn what_proves_no_loss_closes_nothing() {
    let comeback = || {
        back(
            two_children(Durability::LosesAtMost(LOSES)),
            Durability::LosesAtMost(LOSES),
        )
    };
    let is_on_probation = |ledger: &Ledger| {
        assert_eq!(ledger.reserve(), None);
        assert!(ledger.probation().is_some());
    };
    // The reply to its first request was lost.
    let (ledger, _) = comeback().sync(&request(3, 1, 0), LeaseTerms::default(), START);
    let (ledger, _) = ledger.sync(&request(3, 2, 0), LeaseTerms::default(), START);
    is_on_probation(&ledger);
    assert_eq!(
        ledger.missing_reports(),
        2,
        "a child that is new is not missing"
    );
    // It used earlier leases, and was granted nothing under the one that the record forgot.
    let mut forgotten = request(3, 9, 9);
    forgotten.used.seats = 7;
    forgotten.row.add(START + DurationMs(100_000));
    let (ledger, reply) = comeback().sync(&forgotten, LeaseTerms::default(), START);
    assert!(matches!(reply, Reply::Void { .. }));
    is_on_probation(&ledger);
    // The store is away once more, and a child that has reported speaks first.
    let (ledger, _) = send(comeback(), (2, 3, 2), (AFTER, 0), START);
    let later = START + LEASE_TTL + DurationMs(1_000);
    let (ledger, _) = send(ledger, (2, 4, 2), (AFTER, 0), later);
    is_on_probation(&ledger);
}

#[test]
fn the_weakest_promise_of_one_server_counts() {
    let mut ledger = two_children(Durability::KeepsAll);
    ledger.note_store(store(BEFORE, Durability::LosesAtMost(LOSES)));
    ledger.note_store(store(BEFORE, Durability::KeepsAll));
    assert_eq!(ledger.store().durability, Durability::LosesAtMost(LOSES));
    let ledger = back(ledger, Durability::KeepsAll);
    assert!(
        ledger
            .probation()
            .is_some_and(|probation| !probation.keeps_all)
    );
}

#[test]
fn closings_that_the_record_forgot_are_known_again() {
    let ledger = back(
        two_children(Durability::LosesAtMost(LOSES)),
        Durability::LosesAtMost(LOSES),
    );
    let mut knows = request(1, 4, 1);
    knows.known_closed = START + DurationMs(500);
    let (ledger, _) = grant(ledger, &knows, START);
    assert_eq!(
        ledger.closed_through(DataCenterId(1)),
        START + DurationMs(500)
    );
}

#[test]
fn logouts_that_the_record_forgot_are_listed_again() {
    let mut ledger = two_children(Durability::LosesAtMost(LOSES));
    let version = ledger.revoked.version();
    ledger = back(ledger, Durability::LosesAtMost(LOSES));
    assert!(ledger.revoked.version() > version + 1_000);
}

#[test]
fn a_data_center_drops_its_pool_and_keeps_silent_until_all_have_reported() {
    let mut here = Ledger::below_root(Incarnation(7), DataCenterId(1));
    here.note_store(store(BEFORE, Durability::LosesAtMost(LOSES)));
    let mut join = request(1, 1, 0);
    join.parent = None;
    let (mut here, _) = grant(here, &join, START);
    assert_eq!(here.carrier(&join), Some(Carrier::OnlyToJoin));
    let mut asked = here.poll_upstream(START).expect("a node has synced");
    asked.is_final = true;
    let mut root = Ledger::first_start(Incarnation(0));
    asked.demand.slots = 4;
    let reply = root.handle_sync(asked, LeaseTerms::ROOT, START);
    here.handle_upstream(reply, START);
    assert_eq!(here.seats_free(), 4);
    assert_eq!(here.carrier(&join), None, "it is not safe yet");
    here.begin_probation(
        store(AFTER, Durability::LosesAtMost(LOSES)),
        LeaseTerms::default(),
    );
    assert_eq!(here.seats_free(), 0);
    assert_eq!(here.poll_upstream(START), None);
    let mut report = request(1, 2, 1);
    report.parent = Some(Incarnation(7));
    report.stamp.store = Some(AFTER);
    report.stamp.carried = Some(5);
    let (mut here, _) = grant(here, &report, START);
    assert_eq!(here.probation(), None);
    assert_eq!(here.incarnation(), Incarnation(7));
    let next = here.poll_upstream(START).expect("it is open");
    assert_eq!(
        next.number, 6,
        "numbers that nodes carried are not used again"
    );
}

#[test]
fn a_room_that_is_assumed_empty_grants_no_minute_twice() {
    let mut ledger = ten_leased(0);
    ledger.begin_epoch(Incarnation(7), LeaseTerms::default());
    ledger.assume_empty(LeaseTerms::default());
    let mut first = request(2, 1, 0);
    first.demand.slots = 10;
    // Child 1 may still use its ten slots.
    let (ledger, reply) = grant(ledger, &first, START);
    assert_eq!(reply.granted.seats, 0);
    assert_eq!(
        reply.snapshot.reopens_at,
        Some(START + DurationMs(60_000)),
        "the end of the minute, and of the lease"
    );
    first.parent = Some(Incarnation(7));
    for number in 2..4 {
        first.number = number;
        let (_, reply) = grant(ledger.clone(), &first, START);
        assert_eq!(reply.granted.seats, 0);
    }
}

#[test]
fn a_first_start_that_is_assumed_empty_opens_at_once() {
    let mut ledger = Ledger::found_empty(Incarnation(7), LeaseTerms::default());
    ledger.assume_empty(LeaseTerms::default());
    let mut first = request(2, 1, 0);
    first.demand.slots = 10;
    let (ledger, reply) = grant(ledger, &first, START);
    assert_eq!(reply.granted.seats, 10);
    // Somebody knows of an earlier ledger all the same.
    let mut witness = request(3, 1, 0);
    witness.witnessed_epoch = Some(Epoch(99));
    let (ledger, _) = grant(ledger, &witness, START);
    assert!(ledger.reserve().is_some());
}

#[test]
fn ledgers_after_two_losses_have_different_names_though_children_name_the_same_earlier_one() {
    let before = Incarnation(7).next(1);
    let follower_of = |fresh: u64| {
        let mut ledger = Ledger::below_root(Incarnation(fresh), DataCenterId(1));
        let mut sync_request = request(1, 5, 0);
        sync_request.parent = Some(before);
        ledger.handle_sync(sync_request, LeaseTerms::default(), START);
        ledger.incarnation()
    };
    assert!(follower_of(8).ordinal() > before.ordinal());
    assert_ne!(follower_of(8), follower_of(9));
}
