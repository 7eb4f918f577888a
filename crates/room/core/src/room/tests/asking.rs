//! When those who wait are told to ask again.

use super::*;

/// A room of so many seats, all taken in this moment for ten seconds.
fn full(seats: u32) -> Pair {
    let mut pair = Pair::new(Rules {
        session_renewal: false,
        session_duration: DurationMs(10_000),
        ..rules(seats, 1_000)
    });
    (0..seats).for_each(|_| {
        pair.admit();
    });
    pair
}

#[test]
fn a_called_visitor_asks_when_the_next_seat_comes_free() {
    let mut pair = full(1);
    let (ticket, _) = pair.queue(None);
    pair.queue(Some(ticket));
    pair.wait(8_800);
    pair.sync();
    let (ticket, place) = pair.queue(Some(ticket));
    let free_at = pair.room.snapshot.next_free_at;
    let asks_at = pair.now + place.ask_after.expect("it is to ask again");
    assert!(
        asks_at >= free_at && asks_at < free_at + DurationMs(250),
        "asks at {asks_at:?}, free at {free_at:?}"
    );
    pair.now = free_at;
    pair.sync();
    assert!(matches!(pair.visit(Some(ticket)), Verdict::Admit(_)));
}

#[test]
fn of_those_who_came_together_first_asks_match_coming_seats() {
    let mut pair = full(10);
    pair.wait(7_900);
    let crowd: Vec<Ticket> = (0..200).map(|_| pair.queue(None).0).collect();
    let crowd: Vec<Ticket> = crowd
        .into_iter()
        .map(|ticket| pair.queue(Some(ticket)).0)
        .collect();
    pair.sync();
    pair.wait(900);
    pair.sync();
    let soon = pair.room.snapshot.next_free_at + DurationMs(250);
    let asks_soon = |pair: &mut Pair, ticket: Ticket| {
        let (_, place) = pair.queue(Some(ticket));
        pair.now + place.ask_after.expect("it is to ask again") <= soon
    };
    let first = crowd
        .into_iter()
        .filter(|&ticket| asks_soon(&mut pair, ticket))
        .count();
    // Ten lots of two hundred, as chance has it.
    assert!((3..=22).contains(&first), "{first} ask first");
}
