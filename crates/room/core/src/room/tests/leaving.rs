//! Tests of visitors who leave the queue.

use super::*;
use crate::room::request_flow::{Intent, RequestFlow, Step, VisitorArrival};

/// Returns three visitors who wait in a full room, a second apart, and are counted.
fn three_waiting() -> (Pair, [Ticket; 3]) {
    let mut pair = Pair::new(rules(1, 100));
    pair.admit();
    let tickets = [(); 3].map(|()| {
        pair.wait(1_000);
        let (ticket, _) = pair.queue(None);
        pair.queue(Some(ticket)).0
    });
    pair.sync();
    assert_eq!(pair.room.people_waiting(), 3);
    (pair, tickets)
}

/// Sends a request of a page with this ticket.
fn send(pair: &mut Pair, ticket: Ticket) -> Step {
    let mut flow = RequestFlow::new(VisitorArrival {
        ticket: Some(ticket),
        fresh: VisitorId([99; 16]),
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    });
    assert_eq!(flow.decide(&mut pair.room, pair.now), Step::NotActive);
    flow.set_may_sync(false);
    flow.decide(&mut pair.room, pair.now)
}

#[test]
fn those_behind_move_up_at_the_next_report() {
    let (mut pair, [_, second, third]) = three_waiting();
    let (third, position) = pair.queue(Some(third));
    assert_eq!(position.people_ahead, Some(2));
    let inside = pair.ledger.active();
    assert!(pair.room.handle_leave(&second, pair.now));
    assert_eq!(
        pair.room.people_waiting(),
        2,
        "at once in the node's snapshot"
    );
    pair.sync();
    assert_eq!(pair.room.people_waiting(), 2);
    let (_, position) = pair.queue(Some(third));
    assert_eq!(position.people_ahead, Some(1));
    assert_eq!(pair.ledger.active(), inside, "no limit changes");
}

#[test]
fn leaving_again_frees_nothing() {
    let (mut pair, [first, ..]) = three_waiting();
    assert!(pair.room.handle_leave(&first, pair.now));
    assert!(!pair.room.handle_leave(&first, pair.now));
    pair.sync();
    assert_eq!(pair.room.people_waiting(), 2);
}

#[test]
fn a_visitor_who_left_and_comes_back_is_new() {
    let (mut pair, [first, ..]) = three_waiting();
    pair.room.handle_leave(&first, pair.now);
    pair.wait(2_000);
    let Step::Queue(Some(ticket), position) = send(&mut pair, first) else {
        panic!("not queued");
    };
    assert_eq!(ticket.visitor, VisitorId([99; 16]));
    assert!(ticket.bucket > first.bucket);
    assert_eq!(position.loss, None, "it knows that it left");
}

#[test]
fn a_request_that_waits_while_its_visitor_leaves_is_one_of_a_new_visitor() {
    let (mut pair, [first, ..]) = three_waiting();
    let mut flow = RequestFlow::new(VisitorArrival {
        ticket: Some(first),
        fresh: VisitorId([99; 16]),
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    });
    flow.decide(&mut pair.room, pair.now);
    pair.room.handle_leave(&first, pair.now);
    flow.set_may_sync(false);
    let Step::Queue(Some(ticket), _) = flow.decide(&mut pair.room, pair.now) else {
        panic!("not queued");
    };
    assert_eq!(ticket.visitor, VisitorId([99; 16]));
}

#[test]
fn an_active_visitor_leaves_no_queue() {
    let mut pair = Pair::new(rules(1, 100));
    let inside = pair.admit();
    assert!(!pair.room.handle_leave(&inside, pair.now));
    pair.sync();
    assert_eq!(pair.ledger.active(), 1);
}

#[test]
fn a_waiting_ticket_that_was_exchanged_leaves_no_queue() {
    let (mut pair, [first, ..]) = three_waiting();
    pair.change_rules(rules(5, 100));
    pair.sync();
    assert!(matches!(pair.visit(Some(first)), Verdict::Admit(_)));
    assert!(!pair.room.handle_leave(&first, pair.now));
    pair.sync();
    assert_eq!((pair.ledger.active(), pair.room.people_waiting()), (2, 2));
}
