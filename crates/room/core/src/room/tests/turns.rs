//! Tests of turns: a seat that a poll gave is held for the visitor until a request for the site.

use super::*;
use crate::queue_position::{HeldTurn, Loss};

/// Turn of a minute, until the next edge of five seconds.
const TURN: DurationMs = DurationMs::from_secs(60);

#[track_caller]
fn ticket_of(step: Step) -> Ticket {
    match step {
        Step::Admit(ticket) | Step::Pass { ticket, .. } => ticket,
        other => panic!("not active: {other:?}"),
    }
}

/// Returns a room of one seat, sessions of five minutes, and the visitor whose turn came by a poll.
fn with_turn(rules: Rules) -> (Pair, Ticket) {
    let mut pair = Pair::new(rules);
    let queue_all = |is: bool| Rules {
        queue_all: is,
        ..rules
    };
    pair.change_rules(queue_all(true));
    let waiting = pair.queue(None).0;
    pair.change_rules(queue_all(false));
    pair.wait(1_000);
    pair.sync();
    pair.wait(1_000);
    let step = pair.run(waiting, Intent::Poll);
    assert!(matches!(step, Step::Admit(_)), "{step:?}");
    (pair, ticket_of(step))
}

fn one_seat() -> Rules {
    rules(1, 1_000)
}

/// Moves the time on to the end of a turn, and syncs until its interval has been freed.
fn pass_turn(pair: &mut Pair, ticket: &Ticket) {
    let ends_at = ticket.held_turn().expect("a turn").ends_at;
    pair.now = ends_at;
    for _ in 0..8 {
        pair.sync();
        pair.wait(500);
    }
}

#[test]
fn a_poll_gives_a_turn_and_a_page_request_the_whole_session() {
    let (mut pair, turn) = with_turn(one_seat());
    let held = turn.held_turn().expect("a turn");
    assert!(held.can_extend);
    let lasts = held.ends_at.since(pair.now);
    assert!((TURN.0..TURN.0 + 5_000).contains(&lasts.0), "{lasts}");
    // Polls of a tab that stays open are no use of the site.
    pair.wait(20_000);
    pair.sync();
    let polled = ticket_of(pair.run(turn, Intent::Poll));
    assert_eq!(polled, turn);
    let inside = ticket_of(pair.run(turn, Intent::Enter));
    assert_eq!((inside.held_turn(), inside.first_seat), (None, None));
    let session = pair.room.rules().session_duration;
    assert!(inside.seats.ends_at() >= Some(pair.now + session));
    assert_eq!(
        pair.room.row.total_after(Timestamp::ZERO),
        1,
        "it is one seat"
    );
}

#[test]
fn the_first_page_waits_for_a_credit_if_there_is_none() {
    let (mut pair, turn) = with_turn(one_seat());
    assert_eq!(pair.room.lease.balance().credits, 0);
    let inside = ticket_of(pair.run(turn, Intent::Enter));
    assert_eq!(inside.held_turn(), None);
    let session = pair.room.rules().session_duration;
    assert!(inside.seats.ends_at() >= Some(pair.now + session));
    // The node has asked for a credit when it gave the turn.
    let (mut pair, turn) = with_turn(one_seat());
    pair.sync();
    assert!(pair.room.lease.balance().credits > 0);
    let visit = CheckInRequest {
        ticket: turn,
        is_navigation: true,
        intent: Intent::Enter,
        may_sync: true,
    };
    let renewed = pair.room.handle_check_in(visit, pair.now);
    assert!(matches!(renewed, CheckIn::Renewed(_)), "{renewed:?}");
}

#[test]
fn a_turn_is_extended_once() {
    let (mut pair, turn) = with_turn(one_seat());
    // Nobody has been renewed yet, so the node has no credit, and the request waits for one.
    pair.wait(1_000);
    assert_eq!(pair.room.lease.balance().credits, 0);
    let extended = ticket_of(pair.run(turn, Intent::ExtendTurn));
    let held = extended.held_turn().expect("a turn");
    assert!(!held.can_extend);
    assert_eq!(
        held.ends_at,
        turn.held_turn().expect("a turn").ends_at + TURN
    );
    assert_eq!(pair.room.counters.extended_turns, 1);
    pair.wait(30_000);
    pair.sync();
    // Neither the new ticket nor a copy of the old one gives a third minute.
    for ticket in [extended, turn] {
        let again = ticket_of(pair.run(ticket, Intent::ExtendTurn));
        assert!(again.seats.ends_at() <= Some(held.ends_at));
    }
    assert_eq!(
        pair.room.row.total_after(Timestamp::ZERO),
        1,
        "it is one seat"
    );
}

#[test]
fn a_missed_turn_leaves_the_visitor_near_the_front_once() {
    let (mut pair, turn) = with_turn(one_seat());
    pair.wait(5_000);
    let (mut behind, _) = pair.queue(None);
    for _ in 0..20 {
        pair.wait(2_500);
        behind = pair.queue(Some(behind)).0;
    }
    pass_turn(&mut pair, &turn);
    // The next one has entered meanwhile.
    let next = ticket_of(pair.run(behind, Intent::Enter));
    assert_eq!(next.held_turn(), None);
    let (waiting, position) = queued(pair.run(turn, Intent::Poll));
    let ended_at = turn.held_turn().expect("a turn").ends_at;
    let is_near_front = true;
    let missed = Loss::Turn {
        ended_at,
        is_near_front,
    };
    assert_eq!(position.loss, Some(missed));
    assert_eq!(
        (waiting.visitor, waiting.bucket),
        (turn.visitor, turn.bucket)
    );
    assert_eq!(pair.room.counters.missed_turns, 1);
    // Its second turn is the last one.
    pair.room.handle_revoke(next, pair.now);
    let mut ticket = waiting;
    let second = loop {
        pair.sync();
        pair.wait(1_000);
        match pair.run(ticket, Intent::Poll) {
            Step::Admit(ticket) => break ticket,
            step => {
                let (waiting, position) = queued(step);
                assert_eq!(position.loss, None, "it was mentioned once");
                ticket = waiting;
            }
        }
    };
    pass_turn(&mut pair, &second);
    let other = pair.admit();
    let (last, position) = queued(pair.run(second, Intent::Poll));
    assert!(matches!(
        position.loss,
        Some(Loss::Turn {
            is_near_front: false,
            ..
        })
    ));
    assert_ne!(last.visitor, turn.visitor, "it is at the end of the queue");
    assert!(last.bucket > turn.bucket);
    assert!(other.accepted_at.is_some());
}

#[test]
fn a_turn_is_near_the_front_for_as_long_as_a_position_is_kept() {
    for (late, expected) in [(0, true), (1, false)] {
        let (mut pair, turn) = with_turn(one_seat());
        let grace = pair.room.rules().position_grace;
        let ended_at = turn.held_turn().expect("a turn").ends_at;
        pair.now = ended_at + grace + DurationMs(late);
        pair.sync();
        let rules = *pair.room.rules();
        pair.change_rules(Rules {
            queue_all: true,
            ..rules
        });
        let position = queued(pair.run(turn, Intent::Poll)).1;
        let is_near_front = expected;
        let missed = Loss::Turn {
            ended_at,
            is_near_front,
        };
        assert_eq!(position.loss, Some(missed));
    }
}

/// The turn would last for a moment, and would be the second one that is missed.
#[test]
fn a_turn_that_another_node_took_for_missed_is_over_on_a_clock_that_is_behind() {
    let (mut pair, turn) = with_turn(one_seat());
    let ended_at = turn.held_turn().expect("a turn").ends_at;
    assert!(pair.now < ended_at);
    let missed = turn.after_missed_turn(ended_at + DurationMs(100));
    queued(pair.run(missed, Intent::Poll));
}

#[test]
fn a_turn_that_was_used_is_a_session_even_if_the_seat_ends_no_later() {
    let rules = Rules {
        session_duration: DurationMs::from_secs(20),
        session_renewal: false,
        ..one_seat()
    };
    let (mut pair, turn) = with_turn(rules);
    pair.sync();
    let inside = ticket_of(pair.run(turn, Intent::Enter));
    assert_eq!(inside.seats, turn.seats);
    assert_eq!(inside.held_turn(), None);
    pair.wait(30_000);
    pair.sync();
    let step = pair.run(inside, Intent::Poll);
    let loss = match step {
        Step::Queue(_, position) => position.loss,
        Step::WouldAdmit => None,
        other => panic!("{other:?}"),
    };
    assert!(!matches!(loss, Some(Loss::Turn { .. })), "{loss:?}");
}

#[test]
fn a_second_tab_that_polls_at_the_same_time_holds_the_same_turn() {
    let mut pair = Pair::new(Rules {
        queue_all: true,
        ..one_seat()
    });
    let waiting = pair.queue(None).0;
    pair.change_rules(one_seat());
    pair.wait(1_000);
    pair.sync();
    pair.wait(1_000);
    let first = ticket_of(pair.run(waiting, Intent::Poll));
    let second = ticket_of(pair.run(waiting, Intent::Poll));
    let held = |ticket: &Ticket| ticket.held_turn().map(|HeldTurn { ends_at, .. }| ends_at);
    assert!(held(&first).is_some());
    assert_eq!(held(&first), held(&second));
    assert_eq!(
        pair.room.row.total_after(Timestamp::ZERO),
        1,
        "it is one seat"
    );
}
