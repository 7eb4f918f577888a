//! Tests of the search for a visitor by its code.

use super::*;
use crate::room::find::Known;
use crate::visitor_code::VisitorCode;

fn find(pair: &mut Pair, ticket: Ticket) -> Option<Known> {
    let found = pair.room.find(VisitorCode::of(ticket.visitor), pair.now);
    assert!(found.keys().all(|visitor| *visitor == ticket.visitor));
    found.into_values().next()
}

/// Returns a full room in which two visitors wait, a second apart.
fn full_room() -> (Pair, Ticket, [Ticket; 2]) {
    let mut pair = Pair::new(rules(1, 100));
    let inside = pair.admit();
    let line = [(); 2].map(|()| {
        pair.wait(1_000);
        let (ticket, _) = pair.queue(None);
        pair.queue(Some(ticket)).0
    });
    pair.sync();
    (pair, inside, line)
}

#[test]
fn a_waiting_visitor_is_found_with_its_position_until_it_is_overdue() {
    let (mut pair, _, [_, second]) = full_room();
    let expected = Known::Waiting {
        arrived_at: second.bucket,
        position: Some(2),
        counted_until: second.counted_until.unwrap(),
    };
    assert_eq!(find(&mut pair, second), Some(expected));
    pair.now = second.counted_until.unwrap();
    assert_eq!(find(&mut pair, second), None);
}

#[test]
fn an_active_visitor_is_found_until_its_seat_ends() {
    let (mut pair, inside, _) = full_room();
    let ends_at = inside.seats.ends_at().unwrap();
    let expected = Known::Active {
        accepted_at: inside.accepted_at.unwrap(),
        ends_at,
    };
    assert_eq!(find(&mut pair, inside), Some(expected));
    pair.now = ends_at;
    assert_eq!(find(&mut pair, inside), None);
}

#[test]
fn a_visitor_who_left_and_one_with_a_revoked_session_are_found_as_such() {
    let (mut pair, inside, [first, _]) = full_room();
    pair.room.handle_leave(&first, pair.now);
    assert_eq!(find(&mut pair, first), Some(Known::Left));
    assert!(pair.room.handle_revoke(inside, pair.now));
    assert_eq!(find(&mut pair, inside), Some(Known::Revoked));
}

#[test]
fn an_operator_ends_the_session_of_a_known_visitor_once() {
    let (mut pair, inside, [first, _]) = full_room();
    assert!(
        !pair.room.handle_revoke_of(first.visitor, pair.now),
        "waits"
    );
    assert!(pair.room.handle_revoke_of(inside.visitor, pair.now));
    assert!(
        !pair.room.handle_revoke_of(inside.visitor, pair.now),
        "twice"
    );
    assert!(pair.room.is_revoked(inside.visitor));
    assert_eq!(find(&mut pair, inside), Some(Known::Revoked));
    // The seat is free once the parent knows.
    pair.sync();
    pair.sync();
    assert!(matches!(pair.visit(Some(first)), Verdict::Admit(_)));
    // A seat that has ended cannot be freed.
    let (mut pair, inside, _) = full_room();
    pair.now = inside.seats.ends_at().unwrap();
    assert!(
        !pair.room.handle_revoke_of(inside.visitor, pair.now),
        "over"
    );
}

#[test]
fn an_admitted_visitor_is_no_waiting_one() {
    let (mut pair, _, [first, _]) = full_room();
    pair.change_rules(rules(5, 100));
    pair.sync();
    assert!(matches!(pair.visit(Some(first)), Verdict::Admit(_)));
    assert!(matches!(find(&mut pair, first), Some(Known::Active { .. })));
}

#[test]
fn in_a_queue_without_an_order_a_visitor_has_no_position() {
    let (mut pair, _, [first, _]) = full_room();
    let lots = QueueingMethod::Random;
    pair.change_rules(Rules {
        queueing_method: lots,
        ..rules(1, 100)
    });
    let found = find(&mut pair, first);
    assert!(matches!(found, Some(Known::Waiting { position: None, .. })));
}

#[test]
fn all_visitors_with_a_code_are_found_and_no_others() {
    let (mut pair, ..) = full_room();
    let waiting = |last: u8| {
        let mut id = [9; 16];
        id[15] = last;
        VisitorId(id)
    };
    for last in [1, 2] {
        let visit = Visit {
            is_poll: false,
            visitor: waiting(last),
            ticket: None,
            may_sync: false,
            turn_wait: TurnWait::No,
            gets_page: false,
        };
        let Verdict::Queue(Some(ticket), _) = pair.room.handle_visit(visit, pair.now) else {
            panic!("not queued");
        };
        pair.queue(Some(ticket));
    }
    let found = pair.room.find(VisitorCode([9; 4]), pair.now);
    let found: Vec<_> = found.into_keys().collect();
    assert_eq!(found, [waiting(1), waiting(2)]);
    assert!(pair.room.find(VisitorCode([8; 4]), pair.now).is_empty());
}
