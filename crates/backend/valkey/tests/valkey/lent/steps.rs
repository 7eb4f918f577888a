//! Does the script lend what the algorithm lends, and leave behind what it would?
//!
//! Small limits and the largest, moments close to the edges at which algorithms change their mind,
//! a clock that goes back, limits and epochs that change.

use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::lending::epoch::Before;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::TokenBucket;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::drive::{Arena, Client};

/// Windows, each with numbers of parts that divide it. One is no multiple of anything.
const WINDOWS: [(u64, [u32; 4]); 4] = [
    (1_000_000, [1, 2, 5, 100]),
    (1_000_001, [1, 101, 1, 101]),
    (60_000_000, [1, 2, 4, 15]),
    (366 * 86_400_000_000, [1, 3, 4, 120]),
];
/// Sequences for each algorithm. Each is some hundreds of round trips.
const CASES: u32 = 64;

impl Client<'_> {
    async fn make(&mut self, made: Move) {
        let widened = self.lending.widened();
        let window = widened.rate().window();
        let width = widened
            .counters()
            .map_or(window, |counters| counters.width());
        match made {
            Move::Later(parts) => self.now = self.now + DurationUs(window.0 / 1_000 * parts),
            Move::Little(micros) => self.now = self.now + DurationUs(micros),
            Move::Edge(past) => {
                self.now = TimestampUs((self.now.0 / width.0 + 1) * width.0 + past - 1);
            }
            Move::Window(past) => self.now = self.now + DurationUs(window.0 + past - 1),
            Move::Back(parts) => self.now = self.now - DurationUs(window.0 / 1_000 * parts),
            Move::Ask(least, wants, most) => self.ask(least, wants, most).await,
            Move::Flood => {
                for _ in 0..12 {
                    self.ask(1, 1, 9).await;
                }
            }
            Move::Change(lending) => self.lending = lending,
            Move::Loss => {
                self.epoch.id.number += 1;
                self.epoch.began_at = self.now;
                self.epoch.before = Before::Lost;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Move {
    /// So many thousandths of a window.
    Later(u64),
    /// A few microseconds.
    Little(u64),
    /// To the next edge of a counter, this many microseconds past the one before it.
    Edge(u64),
    /// A window, this many microseconds past the one before it.
    Window(u64),
    /// A clock that is set back, by so many thousandths of a window.
    Back(u64),
    /// At least, as many as somebody waits for, and at most.
    Ask(u32, u32, u32),
    /// Requests of one call and some more, until there is nothing.
    Flood,
    Change(LeasedLimit),
    /// Another epoch, before which all may have been spent.
    Loss,
}

/// Settings of the algorithm of this number; the same leases as if nobody had said how long.
fn lendings(kind: usize) -> impl Strategy<Value = LeasedLimit> {
    let calls = prop_oneof![1 => Just(0u32), 20 => 1u32..40, 2 => 99_990u32..100_000];
    let large = prop_oneof![6 => Just(false), 1 => Just(true)];
    let extra = (0usize..4, 1u32..60, 0u32..8, 0usize..4, large);
    let policy = move |(calls, (window, burst, initial, parts, is_large)): (u32, _)| {
        let (window, divisors): (u64, [u32; 4]) = WINDOWS[window];
        let few = Rate::new(calls, DurationUs(window)).ok()?;
        let many = if is_large { u32::MAX - burst } else { calls };
        let rate = Rate::new(many, DurationUs(window)).ok()?;
        let capacity = if is_large { u32::MAX - 20 } else { burst };
        Some(match kind {
            0 => Policy::SlidingLog(SlidingLog::new(few).ok()?),
            1 => Policy::FixedWindow(FixedWindow::new(rate)),
            2 => Policy::SlidingWindow(SlidingWindow::new(rate)),
            3 => Policy::SubWindows(SubWindows::new(rate, divisors[parts]).ok()?),
            4 => Policy::SubWindows(SubWindows::strict(rate, divisors[parts]).ok()?),
            5 => Policy::TokenBucket(TokenBucket::new(rate, capacity, capacity + initial).ok()?),
            _ => Policy::Gcra(Gcra::new(rate, capacity).ok()?),
        })
    };
    let lending = move |both| LeasedLimit::new(policy(both)?).ok();
    (calls, extra).prop_filter_map("it cannot be lent", lending)
}

fn moves(kind: usize) -> impl Strategy<Value = Move> {
    let time = prop_oneof![
        4 => (1u64..400).prop_map(Move::Later),
        1 => (400u64..3_000).prop_map(Move::Later),
        2 => (0u64..4).prop_map(Move::Little),
        4 => (0u64..3).prop_map(Move::Edge),
        2 => (0u64..3).prop_map(Move::Window),
        1 => (0u64..1_500).prop_map(Move::Back),
    ];
    let calls = || {
        prop_oneof![
            8 => 0u32..8,
            2 => 8u32..60,
            1 => (0u32..3).prop_map(|less| u32::MAX - less),
        ]
    };
    prop_oneof![
        9 => time,
        12 => (calls(), calls(), calls()).prop_map(|(least, wants, more)| {
            // As a node asks: no more is wanted than at most, and the least is part of what
            // somebody waits for.
            let wants = wants.max(least);
            Move::Ask(least, wants, wants.saturating_add(more))
        }),
        2 => Just(Move::Flood),
        2 => lendings(kind).prop_map(Move::Change),
        1 => (0usize..7).prop_flat_map(lendings).prop_map(Move::Change),
        1 => Just(Move::Loss),
    ]
}

/// Lets the script and the algorithm do the same, many times over.
fn compare(kind: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let arena = runtime.block_on(Arena::start());
    let cases = std::env::var("PROPTEST_CASES").map_or(CASES, |cases| cases.parse().unwrap());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let before = prop::sample::select(vec![Before::Nothing, Before::Unknown, Before::Lost]);
    let moves = prop::collection::vec(moves(kind), 1..40);
    let sequences = (lendings(kind), before, moves);
    let lent = AtomicU64::new(0);
    let compared = TestRunner::new(config).run(&sequences, |(lending, before, moves)| {
        runtime.block_on(async {
            let mut client = arena.client(lending, before).await;
            for made in moves {
                client.make(made).await;
            }
            lent.fetch_add(client.lent, Ordering::SeqCst);
        });
        Ok(())
    });
    if let Err(failure) = compared {
        panic!("{failure}\n{}", arena.server.log());
    }
    let lent = lent.into_inner();
    assert!(lent > u64::from(cases), "the script lent {lent} times only");
}

#[test]
fn sliding_log() {
    compare(0);
}

#[test]
fn fixed_window() {
    compare(1);
}

#[test]
fn sliding_window() {
    compare(2);
}

#[test]
fn sub_windows() {
    compare(3);
}

#[test]
fn sub_windows_strict() {
    compare(4);
}

#[test]
fn token_bucket() {
    compare(5);
}

#[test]
fn gcra() {
    compare(6);
}
