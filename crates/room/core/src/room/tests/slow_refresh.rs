//! Tests of visitors who refresh more slowly than the replies say.

use super::*;
use crate::waiting::COUNTED_MAX;

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

/// Decides up to the first step that is final or waits for a turn.
fn decide(flow: &mut RequestFlow, pair: &mut Pair) -> Step {
    loop {
        match flow.decide(&mut pair.room, pair.now) {
            Step::NotActive => {}
            Step::SyncWithParent => {
                pair.sync();
                flow.set_may_sync(false);
            }
            step => return step,
        }
    }
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
    assert!(matches!(
        decide(&mut request, &mut pair),
        Step::Queue(Some(_), _)
    ));
    // The seat ends in a few seconds when the visitor comes again.
    advance(&mut pair, 52);
    let mut request = flow(punctual);
    assert_eq!(decide(&mut request, &mut pair), Step::WaitForTurn);
    let later = pair.queue(None).0;
    let mut later = pair.queue(Some(later)).0;
    for _ in 0..24 {
        advance(&mut pair, 1);
        match decide(&mut request, &mut pair) {
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

#[test]
fn who_waited_in_vain_counts_for_the_interval_that_it_keeps() {
    let (mut pair, ticket) = with_first_in_line();
    advance(&mut pair, 45);
    let mut request = flow(ticket);
    let step = decide(&mut request, &mut pair);
    request.end_wait_for_turn();
    let step = if step == Step::WaitForTurn {
        decide(&mut request, &mut pair)
    } else {
        step
    };
    let (ticket, position) = queued(step);
    let counted_until = ticket.counted_until.expect("it counts");
    let refresh_after = position.refresh_after.expect("an interval");
    assert!(refresh_after <= DurationMs(10_000), "{refresh_after}");
    let counts_for = counted_until.since(pair.now);
    assert!(counts_for >= DurationMs(45_000), "{counts_for}");
    assert!(counts_for <= COUNTED_MAX);
    // Its slot is there when it comes again, and others have not taken it.
    advance(&mut pair, 40);
    let other = pair.queue(None).0;
    pair.queue(Some(other));
    let step = decide(&mut flow(ticket), &mut pair);
    assert!(matches!(step, Step::Admit(_)), "{step:?}");
}

#[test]
fn a_request_waits_only_if_its_turn_is_near_and_the_queue_has_an_order() {
    let (mut pair, ticket) = with_first_in_line();
    // The seat ends after some 50 s.
    advance(&mut pair, 12);
    let step = decide(&mut flow(ticket), &mut pair);
    assert!(matches!(step, Step::Queue(..)), "{step:?}");
    let random = Rules {
        queueing_method: QueueingMethod::Random,
        ..one_seat()
    };
    pair.change_rules(random);
    advance(&mut pair, 44);
    let step = decide(&mut flow(ticket), &mut pair);
    assert!(!matches!(step, Step::WaitForTurn), "{step:?}");
}

#[test]
fn a_copy_of_an_old_ticket_does_not_wait() {
    let (mut pair, old) = with_first_in_line();
    advance(&mut pair, 50);
    let current = queued(pair.run(old, Intent::Poll)).0;
    assert!(current.counted_until > Some(pair.now));
    let step = decide(&mut flow(old), &mut pair);
    assert!(matches!(step, Step::Queue(..)), "{step:?}");
}

#[test]
fn a_node_that_is_out_of_touch_counts_nobody_for_longer_than_it_says() {
    let (mut pair, ticket) = with_first_in_line();
    // No sync: its lease ends, and nobody would learn whom it counts.
    pair.wait(70_000);
    let mut visit = flow(ticket);
    let step = loop {
        match visit.decide(&mut pair.room, pair.now) {
            Step::NotActive => {}
            Step::SyncWithParent => visit.set_may_sync(false),
            step => break step,
        }
    };
    let (ticket, position) = queued(step);
    let refresh_after = position.refresh_after.expect("an interval");
    let counted_until = ticket.counted_until.expect("it counts");
    let counts_for = counted_until.since(pair.now);
    assert!(
        counts_for <= refresh_after + DurationMs(20_000),
        "{counts_for}"
    );
}
