//! Tests of a visitor with too frequent requests.

use super::*;

#[test]
fn a_visitor_with_too_frequent_requests_waits_and_then_enters() {
    let mut pair = Pair::new(rules(5, 5));
    pair.sync();
    pair.admit();
    let visit_of = |ticket: Option<Ticket>| Visit {
        is_poll: false,
        visitor: ticket.map_or(VisitorId([9; 16]), |ticket| ticket.visitor),
        ticket,
        may_sync: true,
        turn_wait: TurnWait::No,
        gets_page: false,
    };
    let Verdict::Queue(Some(ticket), position) =
        pair.room.handle_too_frequent(visit_of(None), pair.now)
    else {
        panic!("expected to be queued");
    };
    assert_eq!(position.reason, QueueReason::NotYourTurn);
    pair.wait(1_000);
    let Verdict::Admit(accepted) = pair.visit(Some(ticket)) else {
        panic!("expected an admission");
    };
    // It gets the session of this ticket again, even if its requests are too frequent.
    let Verdict::Admit(again) = pair
        .room
        .handle_too_frequent(visit_of(Some(ticket)), pair.now)
    else {
        panic!("expected an active visitor");
    };
    assert_eq!(again.accepted_at, accepted.accepted_at);
}
