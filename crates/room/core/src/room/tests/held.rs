//! Somebody who calls more often than it may.

use super::*;

#[test]
fn a_held_visitor_waits_despite_capacity_and_enters_on_the_next_request() {
    let mut pair = Pair::new(rules(5, 5));
    pair.sync();
    pair.admit();
    let held = |ticket: Option<Ticket>| Visit {
        visitor: ticket.map_or(VisitorId([9; 16]), |ticket| ticket.visitor),
        ticket,
        may_ask_parent: true,
        gets_page: false,
    };
    let Verdict::Queue(Some(ticket), place) = pair.room.handle_held(held(None), pair.now) else {
        panic!("it waits");
    };
    assert_eq!(place.reason, QueueReason::NotYourTurn);
    pair.wait(1_000);
    let Verdict::Admit(accepted) = pair.visit(Some(ticket)) else {
        panic!("it goes in");
    };
    // What it was given for this ticket, it is given again, whatever holds it.
    let Verdict::Admit(again) = pair.room.handle_held(held(Some(ticket)), pair.now) else {
        panic!("it is inside");
    };
    assert_eq!(again.accepted_at, accepted.accepted_at);
}
