//! Tests of the refresh interval of waiting visitors.

use super::*;

/// Makes a room with all `seats` taken now for ten seconds.
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
fn a_visitor_within_the_watermark_refreshes_when_a_seat_comes_free() {
    let mut pair = full(1);
    let (ticket, _) = pair.queue(None);
    pair.queue(Some(ticket));
    pair.wait(9_400);
    pair.sync();
    let (ticket, position) = pair.queue(Some(ticket));
    let free_at = pair.room.snapshot.next_free_at;
    let refreshes_at = pair.now + position.refresh_after.expect("it is to refresh");
    assert!(
        refreshes_at >= free_at && refreshes_at < free_at + DurationMs(250),
        "refreshes at {refreshes_at:?}, free at {free_at:?}"
    );
    pair.now = free_at;
    pair.sync();
    assert!(matches!(pair.visit(Some(ticket)), Verdict::Admit(_)));
}

#[test]
fn of_visitors_who_came_together_as_many_refresh_first_as_seats_come() {
    let mut pair = full(10);
    pair.wait(7_900);
    let tickets: Vec<Ticket> = (0..200).map(|_| pair.queue(None).0).collect();
    let tickets: Vec<Ticket> = tickets
        .into_iter()
        .map(|ticket| pair.queue(Some(ticket)).0)
        .collect();
    pair.sync();
    pair.wait(900);
    pair.sync();
    let soon = pair.room.snapshot.next_free_at + DurationMs(250);
    let refreshes_soon = |pair: &mut Pair, ticket: Ticket| {
        let (_, position) = pair.queue(Some(ticket));
        pair.now + position.refresh_after.expect("it is to refresh") <= soon
    };
    let first = tickets
        .into_iter()
        .filter(|&ticket| refreshes_soon(&mut pair, ticket))
        .count();
    // Ten draws of two hundred, with random deviation.
    assert!((3..=22).contains(&first), "{first} refresh first");
}
