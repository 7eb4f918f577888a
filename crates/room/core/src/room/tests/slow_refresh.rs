//! Tests of visitors who refresh more slowly than the replies say.

use super::*;

/// Sessions of a minute, which are not extended.
fn one_seat() -> Rules {
    Rules {
        session_duration: DurationMs::from_secs(60),
        session_renewal: false,
        ..rules(1, 1_000)
    }
}

/// Returns a full room of one seat, with a visitor who has refreshed twice, an interval apart.
fn with_first_in_line() -> (Pair, Ticket) {
    let mut pair = Pair::new(one_seat());
    pair.admit();
    let ticket = pair.queue(None).0;
    pair.wait(1_000);
    let ticket = pair.queue(Some(ticket)).0;
    pair.sync();
    (pair, ticket)
}

fn flow(ticket: Ticket) -> RequestFlow {
    RequestFlow::new(VisitorArrival {
        ticket: Some(ticket),
        fresh: VisitorId([0x55; 16]),
        is_navigation: false,
        gets_page: false,
        intent: Intent::Poll,
    })
}

fn advance(pair: &mut Pair, secs: u64) {
    for _ in 0..secs * 2 {
        pair.wait(500);
        pair.sync();
    }
}

#[test]
fn a_late_request_waits_for_the_turn_and_a_punctual_one_is_queued() {
    let (mut pair, punctual) = with_first_in_line();
    let mut request = flow(punctual);
    pair.wait(2_000);
    pair.sync();
    assert!(matches!(pair.decide(&mut request), Step::Queue(Some(_), _)));
    // The seat ends in a few seconds when the visitor comes again.
    advance(&mut pair, 52);
    let mut request = flow(punctual);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    let later = pair.queue(None).0;
    let mut later = pair.queue(Some(later)).0;
    for _ in 0..24 {
        advance(&mut pair, 1);
        match pair.decide(&mut request) {
            Step::WaitForTurn => later = pair.queue(Some(later)).0,
            Step::Admit(ticket) => {
                assert_eq!(ticket.visitor, punctual.visitor);
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("no slot came free");
}

/// A browser delays the timers of a page in the background, and no responses.
#[test]
fn who_waited_in_vain_asks_at_once_and_waits_on() {
    let (mut pair, mut ticket) = with_first_in_line();
    advance(&mut pair, 30);
    for _ in 0..2 {
        let mut request = flow(ticket);
        for _ in 0..10 {
            assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
            advance(&mut pair, 1);
        }
        request.end_wait_for_turn();
        let (next, position) = queued(pair.decide(&mut request));
        assert_eq!(position.refresh_after, Some(DurationMs::ZERO));
        assert!(next.asks_at_once && next.counted_until > Some(pair.now));
        ticket = next;
        pair.wait(100);
    }
    // The seat has come free: the request that waits takes it.
    let mut request = flow(ticket);
    for _ in 0..10 {
        if let Step::Admit(admitted) = pair.decide(&mut request) {
            assert_eq!(admitted.visitor, ticket.visitor);
            assert!(!admitted.asks_at_once);
            return;
        }
        advance(&mut pair, 1);
    }
    panic!("no slot came free");
}

/// The slots that come free would be kept for one who has gone for a minute.
#[test]
fn who_waited_in_vain_and_does_not_ask_at_once_counts_no_more() {
    let (mut pair, ticket) = with_first_in_line();
    advance(&mut pair, 20);
    let mut request = flow(ticket);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    advance(&mut pair, 2);
    request.end_wait_for_turn();
    let (ticket, _) = queued(pair.decide(&mut request));
    advance(&mut pair, 3);
    assert_eq!(pair.room.people_waiting(), 0);
    // Its next request is late again, and begins a new wait.
    advance(&mut pair, 8);
    let step = pair.decide(&mut flow(ticket));
    assert_eq!(step, Step::WaitForTurn);
}

// A page does so that is visible again.
#[test]
fn who_asks_two_seconds_later_is_told_its_position() {
    let (mut pair, ticket) = with_first_in_line();
    advance(&mut pair, 20);
    let mut request = flow(ticket);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    request.end_wait_for_turn();
    let (ticket, _) = queued(pair.decide(&mut request));
    pair.wait(2_000);
    pair.sync();
    let (ticket, position) = queued(pair.decide(&mut flow(ticket)));
    assert!(position.refresh_after > Some(DurationMs::ZERO));
    assert!(!ticket.asks_at_once && ticket.counted_until > Some(pair.now));
}

// Too many requests wait at the node. One that did not wait must not be followed at once.
#[test]
fn who_could_not_wait_does_not_ask_all_the_time() {
    let (mut pair, ticket) = with_first_in_line();
    advance(&mut pair, 30);
    let mut ticket = ticket;
    let mut intervals = Vec::new();
    for _ in 0..3 {
        let mut request = flow(ticket);
        assert_eq!(request.decide(&mut pair.room, pair.now), Step::NotActive);
        request.end_wait_for_turn();
        let (next, position) = queued(pair.decide(&mut request));
        intervals.push(position.refresh_after.unwrap() == DurationMs::ZERO);
        ticket = next;
        pair.wait(50);
    }
    assert_eq!(intervals, [true, false, false], "at once");
}

#[test]
fn of_the_copies_of_a_ticket_one_waits() {
    let (mut pair, ticket) = with_first_in_line();
    advance(&mut pair, 30);
    let mut copies = [(); 3].map(|()| flow(ticket));
    // All of them came before one was decided.
    for copy in &mut copies {
        assert_eq!(copy.decide(&mut pair.room, pair.now), Step::NotActive);
    }
    let steps = copies.each_mut().map(|copy| pair.decide(copy));
    assert_eq!(steps[0], Step::WaitForTurn);
    assert!(
        matches!(steps[1..], [Step::Queue(..), Step::Queue(..)]),
        "{steps:?}"
    );
    assert_eq!(pair.decide(&mut copies[0]), Step::WaitForTurn);
}

#[test]
fn a_request_waits_only_if_its_turn_is_near_and_the_queue_has_an_order() {
    let (mut pair, mut first) = with_first_in_line();
    let mut crowd = [(); 16].map(|()| pair.queue(None).0);
    pair.wait(1_000);
    let last = pair.queue(None).0;
    pair.wait(1_000);
    let last = pair.queue(Some(last)).0;
    advance(&mut pair, 12);
    // The seat ends after some 45 s, and seventeen are ahead.
    for ticket in crowd.iter_mut().chain([&mut first]) {
        *ticket = pair.queue(Some(*ticket)).0;
    }
    pair.sync();
    let step = pair.decide(&mut flow(last));
    assert!(matches!(step, Step::Queue(..)), "{step:?}");
    // Two of them leave.
    advance(&mut pair, 5);
    for ticket in &mut crowd[1..] {
        *ticket = pair.queue(Some(*ticket)).0;
    }
    pair.sync();
    assert_eq!(pair.decide(&mut flow(last)), Step::WaitForTurn);
    let random = Rules {
        queueing_method: QueueingMethod::Random,
        ..one_seat()
    };
    pair.change_rules(random);
    advance(&mut pair, 30);
    let step = pair.decide(&mut flow(first));
    assert!(!matches!(step, Step::WaitForTurn), "{step:?}");
}

/// A distant root sends the slot a moment after other visitors would be sent away.
#[test]
fn without_an_order_a_late_request_waits_for_a_free_slot() {
    let random = |seats| Rules {
        queueing_method: QueueingMethod::Random,
        ..rules(seats, 1_000)
    };
    let mut pair = Pair::new(random(1));
    pair.admit();
    let ticket = pair.queue(None).0;
    pair.wait(1_000);
    let ticket = pair.queue(Some(ticket)).0;
    pair.sync();
    advance(&mut pair, 60);
    let step = pair.decide(&mut flow(ticket));
    assert!(
        matches!(step, Step::Queue(..)),
        "the room is full: {step:?}"
    );
    advance(&mut pair, 60);
    pair.change_rules(random(2));
    pair.sync();
    let mut request = flow(ticket);
    assert_eq!(request.decide(&mut pair.room, pair.now), Step::NotActive);
    // The reply to its request has not come in time.
    request.set_may_sync(false);
    let step = request.decide(&mut pair.room, pair.now);
    assert_eq!(step, Step::WaitForTurn);
    pair.sync();
    let step = request.decide(&mut pair.room, pair.now);
    assert!(matches!(step, Step::Admit(_)), "{step:?}");
}

/// Three visitors ask once a minute. Two have just gone again when a slot comes free.
#[test]
fn a_request_waits_for_a_slot_that_is_kept_for_those_who_may_not_come() {
    let mut pair = Pair::new(rules(1, 1_000));
    pair.admit();
    let [first, second, third] = [(); 3].map(|()| {
        let ticket = pair.queue(None).0;
        pair.wait(1_000);
        let ticket = pair.queue(Some(ticket)).0;
        pair.sync();
        ticket
    });
    advance(&mut pair, 60);
    pair.queue(Some(first));
    pair.sync();
    pair.queue(Some(second));
    pair.change_rules(rules(2, 1_000));
    advance(&mut pair, 1);
    let mut request = flow(third);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    advance(&mut pair, 5);
    let step = pair.decide(&mut request);
    assert!(matches!(step, Step::Admit(_)), "{step:?}");
}

#[test]
fn a_copy_of_an_old_ticket_does_not_wait() {
    let (mut pair, old) = with_first_in_line();
    advance(&mut pair, 50);
    let current = queued(pair.run(old, Intent::Poll)).0;
    pair.wait(2_000);
    let current = queued(pair.run(current, Intent::Poll)).0;
    assert!(current.counted_until > Some(pair.now));
    let step = pair.decide(&mut flow(old));
    assert!(matches!(step, Step::Queue(..)), "{step:?}");
}
