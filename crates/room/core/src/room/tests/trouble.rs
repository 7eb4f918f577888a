//! Tests of an unavailable or slow parent, one that lost its record, and of rules that change
//! meanwhile.

use super::*;

#[test]
fn a_reply_under_way_when_limits_are_lowered_is_void() {
    let mut pair = Pair::new(rules(10, 100));
    pair.visit(None);
    pair.room
        .demand
        .note_missing_slot(VisitorId([8; 16]), pair.now + DurationMs(1_000));
    let request = pair.room.poll_sync(pair.now);
    let ledger = core::mem::take(&mut pair.ledger);
    let (ledger, reply) = ledger.sync(&request, LeaseTerms::default(), pair.now);
    pair.ledger = ledger;
    pair.change_rules(rules(1, 100));
    assert!(!pair.room.handle_reply(reply, pair.now));
    pair.queue(None);
}

#[test]
fn after_its_goodbye_a_room_admits_nobody_and_active_visitors_pass() {
    let mut pair = Pair::new(rules(5, 100));
    let ticket = pair.admit();
    let request = pair.room.poll_goodbye(pair.now);
    let ledger = core::mem::take(&mut pair.ledger);
    let (_, reply) = ledger.sync(&request, LeaseTerms::default(), pair.now);
    pair.room.handle_reply(reply, pair.now);
    pair.wait(60_000);
    let returning = CheckInRequest {
        intent: Intent::Enter,
        ticket,
        is_navigation: true,
        may_sync: true,
    };
    assert_eq!(
        pair.room.handle_check_in(returning, pair.now),
        CheckIn::Pass
    );
    let visit = Visit {
        is_poll: false,
        visitor: VisitorId([9; 16]),
        ticket: None,
        may_sync: true,
        turn_wait: TurnWait::No,
        gets_page: false,
    };
    let verdict = pair.room.handle_visit(visit, pair.now);
    assert!(matches!(verdict, Verdict::Queue(..)), "{verdict:?}");
}

#[test]
fn without_a_parent_nobody_is_admitted_or_extended_but_tickets_run_on() {
    let mut pair = Pair::new(rules(10, 100));
    let ticket = pair.admit();
    pair.wait(10_000);
    let visit = Visit {
        is_poll: false,
        visitor: VisitorId([9; 16]),
        ticket: None,
        may_sync: false,
        turn_wait: TurnWait::No,
        gets_page: false,
    };
    let Verdict::Queue(_, position) = pair.room.handle_visit(visit, pair.now) else {
        panic!("expected to be queued without a lease")
    };
    assert_eq!(position.reason, QueueReason::StoreUnavailable);
    let returning = CheckInRequest {
        intent: Intent::Enter,
        ticket,
        is_navigation: true,
        may_sync: false,
    };
    assert_eq!(
        pair.room.handle_check_in(returning, pair.now),
        CheckIn::Pass
    );
    assert_eq!(pair.room.counters().passed_unrenewed, 1);
    assert_eq!(
        pair.room.degraded(pair.now),
        Some(QueueReason::StoreUnavailable)
    );
}

#[test]
fn on_store_failure_admit_admits_and_counts_all_visitors() {
    let mut pair = Pair::new(Rules {
        on_store_failure: OnStoreFailure::Admit,
        ..rules(1, 1)
    });
    let visit = Visit {
        is_poll: false,
        visitor: VisitorId([9; 16]),
        ticket: None,
        may_sync: false,
        turn_wait: TurnWait::No,
        gets_page: false,
    };
    let verdict = pair.room.handle_visit(visit, pair.now);
    assert!(matches!(verdict, Verdict::Admit(_)));
    assert_eq!(pair.room.counters().admitted_outside_limits, 1);
}

#[test]
fn lowered_limits_act_at_once_and_end_no_session() {
    let mut pair = Pair::new(rules(10, 100));
    let tickets: Vec<_> = (0..6).map(|_| pair.admit()).collect();
    pair.change_rules(rules(3, 100));
    pair.queue(None);
    assert!(tickets.iter().all(|t| pair.check_in(*t) == CheckIn::Pass));
    pair.change_rules(rules(7, 100));
    pair.admit();
    pair.queue(None);
}

#[test]
fn a_longer_session_needs_the_parents_consent() {
    let mut pair = Pair::new(rules(10, 100));
    pair.sync();
    pair.change_rules(Rules {
        session_duration: DurationMs(600_000),
        ..rules(10, 100)
    });
    assert_eq!(pair.room.seat_terms.session, DurationMs(300_000));
    pair.sync();
    assert_eq!(pair.room.seat_terms.session, DurationMs(600_000));
    pair.change_rules(rules(10, 100));
    assert_eq!(pair.room.seat_terms.session, DurationMs(300_000));
}

/// The parent has the request with short seats, and computes phantom seats with them.
#[test]
fn a_shortened_session_stays_short_until_a_reply_allows_more() {
    let mut pair = Pair::new(rules(10, 100));
    pair.sync();
    pair.change_rules(Rules {
        session_duration: DurationMs(60_000),
        ..rules(10, 100)
    });
    // The reply is lost.
    let reported = pair.room.poll_sync(pair.now).longest_seat;
    pair.change_rules(rules(10, 100));
    assert!(pair.room.seat_terms.longest_seat() <= reported);
    pair.sync();
    assert_eq!(pair.room.seat_terms.session, DurationMs(300_000));
}

#[test]
fn a_node_that_slept_past_its_lease_keeps_its_visitors() {
    let mut pair = Pair::new(rules(10, 100));
    let ticket = pair.admit();
    pair.wait(60_000);
    pair.sync();
    assert_eq!(pair.ledger.phantoms(), 0, "its report is complete");
    assert_eq!(pair.ledger.active(), 1);
    pair.renew(ticket);
    assert_eq!(pair.room.lease.generation(), Some(2));
}

#[test]
fn a_lost_reply_costs_nothing() {
    let mut pair = Pair::new(rules(2, 100));
    for _ in 0..3 {
        let request = pair.room.poll_sync(pair.now);
        let ledger = core::mem::take(&mut pair.ledger);
        pair.ledger = ledger.sync(&request, LeaseTerms::default(), pair.now).0;
    }
    pair.admit();
    pair.admit();
    pair.queue(None);
}

#[test]
fn a_late_reply_is_not_applied() {
    let mut pair = Pair::new(rules(2, 100));
    pair.visit(None);
    let request = pair.room.poll_sync(pair.now);
    let ledger = core::mem::take(&mut pair.ledger);
    let (ledger, late) = ledger.sync(&request, LeaseTerms::default(), pair.now);
    pair.ledger = ledger;
    pair.sync();
    assert!(!pair.room.handle_reply(late, pair.now));
    assert!(!pair.room.handle_reply(Reply::Stale, pair.now));
}

#[test]
fn a_process_started_while_cut_off_accepts_tickets_like_its_predecessor() {
    let mut pair = Pair::new(rules(5, 100));
    let ticket = pair.admit();
    let identity = RoomIdentity {
        is_alone: false,
        ..pair.room.identity
    };
    let check_in = |in_touch_until: Timestamp| {
        let before = Predecessors {
            ended: alloc::vec![NodeId(1)],
            in_touch_until: Some(in_touch_until),
            revoked: Vec::new(),
        };
        let mut room = Room::new(identity, before, rules(5, 100), Capacity::default(), START);
        let returning = CheckInRequest {
            intent: Intent::Enter,
            ticket,
            is_navigation: true,
            may_sync: true,
        };
        room.handle_check_in(returning, START)
    };
    assert_eq!(
        check_in(START - FORGOTTEN_AFTER + DurationMs(1)),
        CheckIn::Pass
    );
    assert_eq!(check_in(START - FORGOTTEN_AFTER), CheckIn::Over);
}

#[test]
fn changed_rules_keep_renewals() {
    let mut pair = Pair::new(rules(5, 100));
    let ticket = pair.admit();
    pair.sync();
    pair.wait(6_000);
    pair.sync();
    pair.change_rules(rules(4, 100));
    let returning = CheckInRequest {
        intent: Intent::Enter,
        ticket,
        is_navigation: true,
        may_sync: true,
    };
    let check_in = pair.room.handle_check_in(returning, pair.now);
    assert!(matches!(check_in, CheckIn::Renewed(_)), "{check_in:?}");
}
