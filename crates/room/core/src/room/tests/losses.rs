//! Tests of what a visitor loses, and that the next response mentions it once.

use super::*;
use crate::queue_position::Loss;

/// Returns a room of one seat that another visitor holds, with sessions of 10 s.
fn taken() -> Pair {
    let mut pair = Pair::new(Rules {
        session_duration: DurationMs(10_000),
        ..rules(1, 1_000)
    });
    pair.admit();
    pair
}

/// Sends a request for a page.
fn request(pair: &mut Pair, ticket: Ticket) -> (Ticket, QueuePosition) {
    queued(pair.run(ticket, Intent::Enter))
}

#[test]
fn an_ended_session_is_mentioned_once() {
    let mut pair = taken();
    let mut lost = pair.queue(None).0;
    lost.accepted_at = Some(START);
    lost.seats.put(Seat {
        data_center: DataCenterId(1),
        ends_at: START + DurationMs(5_000),
        epoch: Epoch(0),
    });
    pair.wait(7_000);
    let (ticket, position) = request(&mut pair, lost);
    let ended_at = START + DurationMs(5_000);
    let was_idle = true;
    assert_eq!(position.loss, Some(Loss::Session { ended_at, was_idle }));
    assert_ne!(
        ticket.visitor, lost.visitor,
        "it is at the end of the queue"
    );
    assert_eq!(request(&mut pair, ticket).1.loss, None);
}

#[test]
fn a_position_that_ended_is_mentioned_for_an_hour() {
    let after = |ms: u64| {
        let mut pair = Pair::new(Rules {
            queue_all: true,
            ..rules(1, 1_000)
        });
        let waiting = pair.queue(None).0;
        pair.wait(ms);
        request(&mut pair, waiting).1.loss
    };
    let grace = Rules::default().position_grace;
    let loss = Loss::Position {
        last_request_at: START,
        ended_at: START + grace,
    };
    assert_eq!(after(grace.0), None);
    assert_eq!(after(grace.0 + 1), Some(loss));
    assert_eq!(after(grace.0 + 3_600_000), None);
}

#[test]
fn a_session_that_was_revoked_is_mentioned() {
    let mut pair = Pair::new(rules(1, 1_000));
    let active = pair.admit();
    pair.room.handle_revoke(active, pair.now);
    let rules = *pair.room.rules();
    pair.change_rules(Rules {
        queue_all: true,
        ..rules
    });
    let position = request(&mut pair, active).1;
    assert_eq!(position.loss, Some(Loss::Revoked));
}

/// The site's script asks first, then the visitor opens a page.
#[test]
fn the_next_page_mentions_a_loss_that_a_script_met() {
    for intent in [Intent::Enter, Intent::Poll] {
        let mut pair = Pair::new(Rules {
            queue_all: true,
            ..rules(1, 1_000)
        });
        let lost = pair.queue(None).0;
        pair.wait(Rules::default().position_grace.0 + 1);
        let script = |pair: &mut Pair, ticket| {
            let mut request = RequestFlow::new(VisitorArrival {
                ticket: Some(ticket),
                fresh: VisitorId([0x55; 16]),
                is_navigation: false,
                gets_page: false,
                intent: Intent::Enter,
            });
            queued(pair.decide(&mut request))
        };
        let (ticket, first) = script(&mut pair, lost);
        let (ticket, second) = script(&mut pair, ticket);
        assert_eq!((first.loss, second.loss), (None, None), "nobody sees it");
        let (ticket, page) = queued(pair.run(ticket, intent));
        assert!(matches!(page.loss, Some(Loss::Position { .. })));
        assert_eq!(queued(pair.run(ticket, intent)).1.loss, None, "once");
    }
}
