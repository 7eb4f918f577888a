//! Tests of the reply that follows from a record, after another writer applied the request.

use super::*;
use crate::ledger_exchange::{LedgerOperation, LedgerRole};

/// Ledger of a root with one child that was granted four slots, and its next request.
fn granted_four() -> (Ledger, SyncRequest) {
    let mut first = request(1, 1, 0);
    first.demand.slots = 4;
    let (ledger, reply) = grant(Ledger::first_start(Incarnation(0)), &first, START);
    assert_eq!(reply.granted.seats, 4);
    let mut next = request(1, 2, 1);
    next.sent_at = START + DurationMs(250);
    next.balance = reply.granted;
    // It used one.
    next.balance.seats -= 1;
    next.balance.admissions -= 1;
    next.used.seats = 1;
    next.demand.slots = 6;
    (ledger, next)
}

fn handle(ledger: &Ledger, request: &SyncRequest) -> (Ledger, Reply) {
    let now = ledger.time_of(request);
    ledger.clone().sync(request, LeaseTerms::default(), now)
}

#[test]
fn the_recorded_reply_is_the_one_that_was_given() {
    let (ledger, next) = granted_four();
    let (ledger, reply) = handle(&ledger, &next);
    assert!(matches!(&reply, Reply::Granted(reply) if reply.granted.seats == 3));
    assert_eq!(ledger.recorded_reply(&next), Some(reply));
}

#[test]
fn a_request_that_is_not_the_newest_of_its_child_has_no_recorded_reply() {
    let (ledger, next) = granted_four();
    assert_eq!(ledger.recorded_reply(&next), None, "it was not applied");
    let mut newer = request(1, 3, 1);
    newer.sent_at = next.sent_at + DurationMs(250);
    let (ledger, _) = handle(&ledger, &newer);
    assert_eq!(ledger.recorded_reply(&next), None);
}

#[test]
fn another_request_of_the_same_number_has_no_recorded_reply() {
    let (ledger, next) = granted_four();
    let (ledger, _) = handle(&ledger, &next);
    let check = |change: fn(&mut SyncRequest)| {
        let mut other = next.clone();
        change(&mut other);
        assert_eq!(ledger.recorded_reply(&other), None, "{other:?}");
    };
    // The child would have more than its parent counts.
    check(|other| other.balance.seats += 1);
    check(|other| other.balance.admissions += 1);
    check(|other| other.balance.credits += 1);
    check(|other| other.is_final = true);
    // It would have it for longer.
    check(|other| other.sent_at = other.sent_at + DurationMs(1));
    check(|other| other.used.seats += 1);
    check(|other| other.generation = Some(2));
    check(|other| other.parent = Some(Incarnation(7)));
    check(|other| other.child = NodeId(2));
}

#[test]
fn later_requests_of_others_shorten_what_the_reply_allows_and_never_extend_it() {
    let (ledger, next) = granted_four();
    let (ledger, reply) = handle(&ledger, &next);
    let Reply::Granted(given) = reply else {
        panic!("{reply:?}");
    };
    for (longest, expected) in [(LONGEST.0 * 2, LONGEST), (1_000, DurationMs(1_000))] {
        let mut ledger = ledger.clone();
        for child in ledger.children.values_mut() {
            child.settings.longest_seat = DurationMs(longest);
        }
        ledger.rebuild_sums();
        let mut other = request(2, 1, 0);
        other.settings.longest_seat = DurationMs(longest);
        let (ledger, _) = handle(&ledger, &other);
        let Some(Reply::Granted(recorded)) = ledger.recorded_reply(&next) else {
            panic!("it is still the newest request of its child");
        };
        assert_eq!(recorded.granted, given.granted);
        assert_eq!(recorded.longest_seat, expected);
        assert_eq!(recorded.snapshot.nodes, 2, "the snapshot is the newest");
    }
}

#[test]
fn a_recorded_goodbye_has_no_lease() {
    let (ledger, next) = granted_four();
    let mut goodbye = next;
    goodbye.is_leaving = true;
    goodbye.balance = LeaseBalance::default();
    // Its visitor is still active.
    goodbye.row.add(goodbye.sent_at + LONGEST);
    let (ledger, reply) = handle(&ledger, &goodbye);
    assert!(matches!(&reply, Reply::Granted(reply) if reply.generation.is_none()));
    assert_eq!(ledger.recorded_reply(&goodbye), Some(reply));
}

#[test]
fn a_void_or_stale_request_is_so_again_without_a_write() {
    let (ledger, next) = granted_four();
    let terms = LeaseTerms::default();
    let applied = |request: &SyncRequest, was_taken| {
        let operation = LedgerOperation::Sync {
            request: Box::new(request.clone()),
            root_reply: None,
            is_wanted: false,
        };
        assert!(
            operation
                .request_to_leave(LedgerRole::Root(terms))
                .is_some()
        );
        let done = operation.applied_by_another(&ledger, terms, was_taken);
        done.map(|exchange| exchange.reply)
    };
    let mut void = next.clone();
    void.parent = Some(Incarnation(7));
    let mut stale = next.clone();
    stale.number = 1;
    assert!(matches!(applied(&void, true), Some(Reply::Void { .. })));
    assert_eq!(applied(&stale, true), Some(Reply::Stale));
    // Nobody has applied these, as far as known.
    assert_eq!(applied(&void, false), None);
    assert_eq!(applied(&stale, false), None);
    assert_eq!(applied(&next, true), None, "a grant must be written");
    // Nor does a reply count that would begin another incarnation, which is written nowhere.
    let mut lost = next;
    lost.generation = Some(9);
    lost.balance.seats = 1;
    assert_eq!(applied(&lost, true), None);
}
