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
    with_intent(ticket, Intent::Poll)
}

fn long_poll(ticket: Ticket) -> RequestFlow {
    with_intent(ticket, Intent::LongPoll)
}

fn with_intent(ticket: Ticket, intent: Intent) -> RequestFlow {
    RequestFlow::new(VisitorArrival {
        ticket: Some(ticket),
        fresh: VisitorId([0x55; 16]),
        is_navigation: false,
        gets_page: false,
        intent,
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
fn a_long_poll_waits_and_the_next_one_waits_on() {
    let (mut pair, mut ticket) = with_first_in_line();
    for _ in 0..7 {
        // It is punctual each time.
        let mut request = long_poll(ticket);
        for _ in 0..10 {
            match pair.decide(&mut request) {
                Step::WaitForTurn => advance(&mut pair, 1),
                Step::Admit(admitted) => {
                    assert_eq!(admitted.visitor, ticket.visitor);
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
        request.end_wait_for_turn();
        let (next, position) = queued(pair.decide(&mut request));
        assert_eq!(position.refresh_after, Some(DurationMs::ZERO));
        assert!(next.counted_until > Some(pair.now));
        ticket = next;
        pair.wait(100);
    }
    panic!("no slot came free");
}

/// The slots that come free would be kept for one who has gone.
#[test]
fn who_waited_in_vain_and_does_not_poll_on_counts_no_more() {
    let (mut pair, ticket) = with_first_in_line();
    let mut request = long_poll(ticket);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    advance(&mut pair, 2);
    request.end_wait_for_turn();
    queued(pair.decide(&mut request));
    advance(&mut pair, 3);
    assert_eq!(pair.room.people_waiting(), 0);
}

#[test]
fn a_late_poll_waits_and_the_next_one_is_punctual_or_waits_again() {
    let (mut pair, ticket) = with_first_in_line();
    advance(&mut pair, 5);
    let mut request = flow(ticket);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    request.end_wait_for_turn();
    let (ticket, position) = queued(pair.decide(&mut request));
    assert!(position.refresh_after > Some(DurationMs::ZERO));
    assert_eq!(ticket.counted_until, None, "it may be late again");
    pair.sync();
    assert_eq!(pair.room.people_waiting(), 0);
    pair.wait(2_000);
    pair.sync();
    let (punctual, _) = queued(pair.decide(&mut flow(ticket)));
    assert!(punctual.counted_until > Some(pair.now));
    advance(&mut pair, 5);
    assert_eq!(pair.decide(&mut flow(punctual)), Step::WaitForTurn);
}

#[test]
fn a_punctual_long_poll_far_from_its_turn_counts() {
    let (mut pair, _) = with_first_in_line();
    let mut crowd = [(); 17].map(|()| pair.queue(None).0);
    pair.wait(1_000);
    let mut last = pair.queue(None).0;
    for _ in 0..3 {
        pair.wait(1_000);
        for ticket in &mut crowd {
            *ticket = pair.queue(Some(*ticket)).0;
        }
        pair.sync();
        let step = pair.decide(&mut long_poll(last));
        last = queued(step).0;
        assert!(last.counted_until > Some(pair.now));
    }
}

/// A request that may not wait must not be followed at once, or a client would ask all the time.
#[test]
fn where_too_many_wait_a_poll_is_answered_with_an_interval() {
    let (mut pair, ticket) = with_first_in_line();
    let mut request = long_poll(ticket);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    request.refuse_wait_for_turn();
    let (ticket, position) = queued(pair.decide(&mut request));
    assert!(position.refresh_after > Some(DurationMs::ZERO));
    assert!(ticket.counted_until > Some(pair.now));
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
