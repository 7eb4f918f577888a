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

/// The slots that come free would be kept for one who has gone for a minute.
#[test]
fn who_waited_in_vain_does_not_count_until_it_asks_again() {
    let (mut pair, ticket) = with_first_in_line();
    advance(&mut pair, 30);
    let mut request = flow(ticket);
    assert_eq!(pair.decide(&mut request), Step::WaitForTurn);
    request.end_wait_for_turn();
    let (ticket, _) = queued(pair.decide(&mut request));
    assert_eq!(ticket.counted_until, None);
    pair.sync();
    assert_eq!(pair.room.people_waiting(), 0);
    pair.wait(2_000);
    let (ticket, _) = queued(pair.run(ticket, Intent::Poll));
    assert!(ticket.counted_until > Some(pair.now), "it was punctual");
    pair.sync();
    assert_eq!(pair.room.people_waiting(), 1);
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
    let (mut pair, first) = with_first_in_line();
    let second = pair.queue(None).0;
    pair.wait(1_000);
    let second = pair.queue(Some(second)).0;
    pair.sync();
    // The seat ends after some 45 s. The first in line waits all the same: it may end earlier.
    advance(&mut pair, 12);
    let first = pair.queue(Some(first)).0;
    pair.sync();
    let step = pair.decide(&mut flow(second));
    assert!(matches!(step, Step::Queue(..)), "{step:?}");
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
    // Nobody knows that a slot will come free soon, so those after the first do not wait.
    pair.queue(Some(first));
    pair.sync();
    for later in [second, third] {
        let step = pair.decide(&mut flow(later));
        assert!(matches!(step, Step::Queue(..)), "{step:?}");
    }
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
