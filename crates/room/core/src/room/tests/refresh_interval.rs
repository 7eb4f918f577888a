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

#[test]
fn the_turn_of_a_visitor_waits_for_the_interval_that_it_keeps() {
    let mut pair = Pair::new(Rules {
        session_duration: DurationMs(60_000),
        session_renewal: false,
        ..rules(1, 100)
    });
    pair.admit();
    let (mut slow, _) = pair.queue(None);
    pair.wait(2_000);
    let (mut quick, _) = pair.queue(None);
    let mut entered = Vec::new();
    for secs in 3..=190 {
        pair.wait(1_000);
        pair.sync();
        // It polls once a minute, though the reply says two seconds.
        if secs % 60 == 5 {
            match pair.visit(Some(slow)) {
                Verdict::Queue(Some(ticket), _) => slow = ticket,
                Verdict::Admit(_) => {
                    entered.push(("slow", secs));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        match pair.visit(Some(quick)) {
            Verdict::Queue(Some(ticket), _) => quick = ticket,
            Verdict::Admit(_) => {
                entered.push(("quick", secs));
                pair.wait(1_000);
                quick = pair.queue(None).0;
            }
            other => panic!("{other:?}"),
        }
    }
    let who: Vec<&str> = entered.iter().map(|(who, _)| *who).collect();
    // Nobody could know its interval before the first seat was free; the second one is its own.
    assert_eq!(who, ["quick", "slow"], "{entered:?}");
}
