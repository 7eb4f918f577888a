//! Tests of how often waiting visitors poll, if they obey the intervals of the replies and open no
//! event streams.

use super::*;

const MINUTE: DurationMs = DurationMs::from_secs(60);

/// Visitor who polls as its replies say, with the times of its polls and the people ahead then.
struct Poller {
    ticket: Ticket,
    next: Timestamp,
    polls: Vec<(Timestamp, u32)>,
}

/// Lets visitors wait at a room with these seats for ten minutes. Sessions last for `session`.
/// Returns the polls of each.
fn wait_in_line(seats: u32, session: DurationMs, visitors: u32) -> Vec<Vec<(Timestamp, u32)>> {
    let mut pair = Pair::new(Rules {
        session_renewal: false,
        session_duration: session,
        ..rules(seats, 1_000)
    });
    (0..seats).for_each(|_| {
        pair.admit();
        pair.wait(session.0 / u64::from(seats) / 2);
        pair.sync();
    });
    let line = (0..visitors).map(|_| Poller {
        ticket: pair.queue(None).0,
        next: pair.now + DurationMs(1_000),
        polls: Vec::new(),
    });
    let mut line: Vec<Poller> = line.collect();
    let mut done = Vec::new();
    let end = pair.now + MINUTE.times(10);
    while pair.now < end && !line.is_empty() {
        pair.wait(50);
        if pair.now.0.is_multiple_of(250) {
            pair.sync();
        }
        let mut waiting = Vec::new();
        for mut poller in line {
            if poller.next > pair.now {
                waiting.push(poller);
                continue;
            }
            match pair.visit(Some(poller.ticket)) {
                Verdict::Queue(Some(ticket), position) => {
                    let ahead = position.people_ahead.unwrap_or(u32::MAX);
                    poller.polls.push((pair.now, ahead));
                    let after = position.refresh_after.expect("it is to refresh");
                    (poller.ticket, poller.next) = (ticket, pair.now + after);
                    waiting.push(poller);
                }
                _ => done.push(poller.polls),
            }
        }
        line = waiting;
    }
    done.extend(line.into_iter().map(|poller| poller.polls));
    done
}

/// Returns the most polls of one visitor within a minute, of those with so many people ahead.
fn most_in_a_minute(polls: &[Vec<(Timestamp, u32)>], ahead: core::ops::Range<u32>) -> usize {
    let of_visitor = |polls: &Vec<(Timestamp, u32)>| {
        let times: Vec<Timestamp> = polls
            .iter()
            .filter(|(_, of)| ahead.contains(of))
            .map(|(at, _)| *at)
            .collect();
        let within = |from: usize| {
            let rest = times[from..].iter();
            rest.take_while(|at| **at < times[from] + MINUTE).count()
        };
        (0..times.len()).map(within).max().unwrap_or(0)
    };
    polls.iter().map(of_visitor).max().unwrap_or(0)
}

#[test]
fn in_a_queue_that_stands_a_visitor_polls_thirty_times_a_minute() {
    let polls = wait_in_line(1, DurationMs::from_secs(3_600), 10);
    assert_eq!(polls.len(), 10);
    assert!(polls.iter().all(|polls| polls.len() <= 300));
    // Chance puts one more into some minutes.
    let most = most_in_a_minute(&polls, 0..16);
    assert!((30..=31).contains(&most), "{most}");
}

#[test]
fn just_before_its_turn_a_visitor_polls_a_little_more_often() {
    // A seat comes free every five seconds.
    let polls = wait_in_line(12, MINUTE, 100);
    let most = most_in_a_minute(&polls, 0..16);
    assert!((31..=36).contains(&most), "{most}");
}

#[test]
fn far_back_in_a_slow_queue_a_visitor_polls_four_times_a_minute() {
    let polls = wait_in_line(2, MINUTE, 600);
    let most = most_in_a_minute(&polls, 240..600);
    assert!((1..=4).contains(&most), "{most}");
}
