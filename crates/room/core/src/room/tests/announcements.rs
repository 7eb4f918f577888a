//! Tests of announcements, one response after another.

use core::num::NonZeroU32;

use super::*;
use crate::queue_position::{Rise, WaitRange};
use crate::ticket::{AfterArrival, Announced};
use crate::wait_forecast::GivingUp;

/// Returns a room of one seat that is taken, with sessions of a minute that nothing extends.
fn full() -> Pair {
    let mut pair = Pair::new(Rules {
        session_duration: DurationMs(60_000),
        session_renewal: false,
        ..rules(1, 100)
    });
    pair.admit();
    pair
}

/// Lets these visitors refresh each second for so long. Returns the last positions.
fn refresh(pair: &mut Pair, tickets: &mut [Ticket], secs: u64) -> Vec<QueuePosition> {
    let mut positions = Vec::new();
    for _ in 0..secs {
        pair.wait(1_000);
        pair.sync();
        positions.clear();
        for ticket in &mut *tickets {
            let (renewed, position) = pair.queue(Some(*ticket));
            *ticket = renewed;
            positions.push(position);
        }
    }
    positions
}

#[test]
fn a_position_is_not_announced_before_the_second_of_arrival_is_counted() {
    let mut pair = full();
    let mut tickets = [pair.queue(None).0];
    for secs in 1..5 {
        let [position] = refresh(&mut pair, &mut tickets, 1)[..] else {
            panic!("one visitor")
        };
        assert!(!position.is_counted, "{secs}");
        assert_eq!(tickets[0].announced, Announced::default());
    }
    let [position] = refresh(&mut pair, &mut tickets, 1)[..] else {
        panic!("one visitor")
    };
    assert!(position.is_counted);
    assert_eq!(position.people_ahead, Some(0));
    assert!(position.wait.is_some());
}

#[test]
fn the_wait_is_known_before_anybody_was_admitted_from_the_queue() {
    let mut pair = full();
    let mut tickets = [(); 3].map(|()| {
        pair.wait(1_000);
        pair.queue(None).0
    });
    let positions = refresh(&mut pair, &mut tickets, 6);
    // The seat ends a minute after the admission, and so does each one after it.
    for (n, position) in positions.iter().enumerate() {
        let middle = position.wait.unwrap().middle.0 / 1_000;
        let truth = 60 * (n as u64 + 1) - 9;
        assert!(middle.abs_diff(truth) <= 8, "{n}: {middle} of {truth}");
    }
}

#[test]
fn a_paused_time_is_no_slow_time() {
    let mut pair = full();
    let mut tickets = [pair.queue(None).0];
    let before = refresh(&mut pair, &mut tickets, 6)[0].wait.unwrap().middle;
    let open = *pair.room.rules();
    pair.change_rules(Rules {
        queue_all: true,
        ..open
    });
    let paused = refresh(&mut pair, &mut tickets, 20)[0];
    assert_eq!((paused.reason, paused.wait), (QueueReason::QueueAll, None));
    pair.change_rules(open);
    let after = refresh(&mut pair, &mut tickets, 1)[0];
    let (after, rise) = (after.wait.unwrap().middle, after.rise);
    assert!(after < before, "{after} after {before}");
    assert_eq!(rise, None);
}

/// Returns the announcement after one of a position and a time of admission.
fn announced(pair: &Pair, before: Announced, ahead: u32, wait_secs: u64) -> Announced {
    let wait = Some(DurationMs::from_secs(wait_secs));
    pair.room.announce((before, START), ahead, wait, pair.now)
}

fn position(n: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(n)
}

fn after(secs: u32) -> Option<AfterArrival> {
    NonZeroU32::new(secs).map(AfterArrival)
}

/// Returns a node that has learned how many give up, and the announcement to a visitor 100 s after
/// its arrival: 99 people ahead, and an admission 500 s later.
fn announced_before() -> (Pair, Announced) {
    let mut pair = full();
    pair.room.habits.giving_up = GivingUp::known(0);
    pair.wait(100_000);
    let first = announced(&pair, Announced::default(), 99, 500);
    assert_eq!(
        (first.position, first.admission),
        (position(100), after(600))
    );
    (pair, first)
}

#[test]
fn a_visitor_keeps_what_it_was_told_until_the_truth_differs_by_a_tenth() {
    let (pair, before) = announced_before();
    for (ahead, wait) in [(99, 545), (102, 460), (104, 500)] {
        let next = announced(&pair, before, ahead, wait);
        assert_eq!(next, before, "{ahead} {wait}");
    }
    let sooner = announced(&pair, before, 80, 440);
    assert_eq!(
        (sooner.position, sooner.admission),
        (position(81), after(540))
    );
    assert_eq!(
        sooner.first, before.first,
        "it is the first one that counts"
    );
}

#[test]
fn whatever_becomes_worse_has_a_reason() {
    let (mut pair, before) = announced_before();
    let slower = announced(&pair, before, 99, 600);
    assert_eq!(slower.rise, Some(Rise::Slower));
    assert_eq!(slower.admission, after(700));
    let moved_back = announced(&pair, before, 120, 600);
    assert_eq!(moved_back.rise, Some(Rise::EarlierVisitors));
    assert_eq!(moved_back.position, position(121));
    let rules = *pair.room.rules();
    pair.change_rules(Rules {
        limits: Limits {
            new_users_per_minute: 50,
            ..rules.limits
        },
        ..rules
    });
    let lowered = announced(&pair, before, 99, 600);
    assert_eq!(lowered.rise, Some(Rise::LimitLowered));
    pair.change_rules(rules);
    let raised_again = announced(&pair, before, 99, 600);
    assert_eq!(raised_again.rise, Some(Rise::Slower));
    pair.change_rules(Rules {
        limits: Limits {
            new_users_per_minute: 50,
            ..rules.limits
        },
        ..rules
    });
    let better_again = announced(&pair, lowered, 99, 400);
    assert_eq!(better_again.rise, None);
}

#[test]
fn a_node_changes_no_announcement_in_its_first_minute() {
    let (mut pair, before) = announced_before();
    pair.room.habits.giving_up = GivingUp::default();
    let found = Snapshot {
        as_of: pair.now,
        waiting: 100,
        ..Snapshot::default()
    };
    pair.room.habits.giving_up.handle_snapshot(&found, 0);
    for (secs, is_changed) in [(0, false), (59, false), (2, true)] {
        pair.wait(secs * 1_000);
        let next = announced(&pair, before, 99, 900);
        assert_eq!(next != before, is_changed, "{secs} s later");
    }
}

#[test]
fn first_announcements_are_compared_with_admissions() {
    let waiting = full().queue(None).0;
    let (mut pair, announced) = announced_before();
    let ticket = Ticket {
        bucket: START,
        announced,
        ..waiting
    };
    let range = WaitRange::around(DurationMs(500_000));
    let announced_at = pair.now;
    for after in [range.low.0 - 1, range.low.0, range.high.0, range.high.0 + 1] {
        pair.room
            .note_announced(&ticket, announced_at + DurationMs(after));
    }
    let PromiseCounts { right, early, late } = pair.room.counters().promises;
    assert_eq!((right, early, late), (2, 1, 1));
}

#[test]
fn after_a_rejecting_room_all_are_counted_when_their_pages_have_checked() {
    let mut pair = Pair::new(rules(1, 100));
    pair.admit();
    let mut ticket = pair.queue(None).0;
    pair.sync();
    let fifo = *pair.room.rules();
    pair.wait(6_000);
    assert!(pair.queue(Some(ticket)).1.is_counted);
    pair.change_rules(Rules {
        queueing_method: QueueingMethod::Reject,
        ..fifo
    });
    pair.wait(45_000);
    pair.change_rules(fifo);
    pair.sync();
    for (ms, is_counted) in [(1_000, false), (32_000, false), (1_500, true)] {
        pair.wait(ms);
        pair.sync();
        let (next, position) = pair.queue(Some(ticket));
        assert_eq!(position.is_counted, is_counted, "{ms} ms later");
        ticket = next;
    }
}
