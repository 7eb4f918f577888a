//! Comparison of the step script and the algorithm: every grant and every state.
//!
//! The sequences have small limits and the largest ones, times close to the edges of decisions, a
//! clock that is set back, and limits and epochs that change.

use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leases::epoch::Before;
use anteroom_limit::leases::widened::LeasedLimit;
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

/// Windows, each with divisors. One has few divisors.
const WINDOWS: [(u64, [u32; 4]); 4] = [
    (1_000_000, [1, 2, 5, 100]),
    (1_000_001, [1, 101, 1, 101]),
    (60_000_000, [1, 2, 4, 15]),
    (366 * 86_400_000_000, [1, 3, 4, 120]),
];
/// Sequences for each algorithm, each with some hundreds of round trips.
const CASES: u32 = 64;

impl Client<'_> {
    async fn apply(&mut self, applied: Move) {
        let widened = self.leased_limit.widened();
        let window = widened.rate().window();
        let width = widened
            .counters()
            .map_or(window, |counters| counters.width());
        match applied {
            Move::Later(parts) => self.now = self.now + DurationUs(window.0 / 1_000 * parts),
            Move::Little(micros) => self.now = self.now + DurationUs(micros),
            Move::Edge(past) => {
                self.now = TimestampUs((self.now.0 / width.0 + 1) * width.0 + past - 1);
            }
            Move::Window(past) => self.now = self.now + DurationUs(window.0 + past - 1),
            Move::Back(parts) => self.now = self.now - DurationUs(window.0 / 1_000 * parts),
            Move::Request(least, wants, most) => self.request(least, wants, most).await,
            Move::Flood => {
                for _ in 0..12 {
                    self.request(1, 1, 9).await;
                }
            }
            Move::Change(leased_limit) => self.leased_limit = leased_limit,
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
    /// Advances by thousandths of a window.
    Later(u64),
    /// Advances by a few microseconds.
    Little(u64),
    /// Advances to just around the next edge of a counter.
    Edge(u64),
    /// Advances by just around a window.
    Window(u64),
    /// Sets the clock back by thousandths of a window.
    Back(u64),
    /// Requests a lease: least useful grant, waiting requests, largest grant.
    Request(u32, u32, u32),
    /// Requests leases until nothing is left.
    Flood,
    Change(LeasedLimit),
    /// Starts another epoch, before which everything may have been spent.
    Loss,
}

/// Generates settings of the algorithm of this number, with leases of default length.
fn leased_limits(kind: usize) -> impl Strategy<Value = LeasedLimit> {
    let requests = prop_oneof![1 => Just(0u32), 20 => 1u32..40, 2 => 99_990u32..100_000];
    let large = prop_oneof![6 => Just(false), 1 => Just(true)];
    let extra = (0usize..4, 1u32..60, 0u32..8, 0usize..4, large);
    let policy = move |(requests, (window, burst, initial, parts, is_large)): (u32, _)| {
        let (window, divisors): (u64, [u32; 4]) = WINDOWS[window];
        let few = Rate::new(requests, DurationUs(window)).ok()?;
        let many = if is_large { u32::MAX - burst } else { requests };
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
    let leased_limit = move |both| LeasedLimit::new(policy(both)?).ok();
    (requests, extra).prop_filter_map("it cannot be leased", leased_limit)
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
    let requests = || {
        prop_oneof![
            8 => 0u32..8,
            2 => 8u32..60,
            1 => (0u32..3).prop_map(|less| u32::MAX - less),
        ]
    };
    prop_oneof![
        9 => time,
        12 => (requests(), requests(), requests()).prop_map(|(least, wants, more)| {
            // As a node requests it: least <= wants <= most.
            let wants = wants.max(least);
            Move::Request(least, wants, wants.saturating_add(more))
        }),
        2 => Just(Move::Flood),
        2 => leased_limits(kind).prop_map(Move::Change),
        1 => (0usize..7).prop_flat_map(leased_limits).prop_map(Move::Change),
        1 => Just(Move::Loss),
    ]
}

/// Compares the script and the algorithm over many random sequences.
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
    let sequences = (leased_limits(kind), before, moves);
    let grants = AtomicU64::new(0);
    let compared = TestRunner::new(config).run(&sequences, |(leased_limit, before, moves)| {
        runtime.block_on(async {
            let mut client = arena.client(leased_limit, before).await;
            for applied in moves {
                client.apply(applied).await;
            }
            grants.fetch_add(client.grants, Ordering::SeqCst);
        });
        Ok(())
    });
    if let Err(failure) = compared {
        panic!("{failure}\n{}", arena.server.log());
    }
    let grants = grants.into_inner();
    assert!(
        grants > u64::from(cases),
        "the script granted {grants} times only"
    );
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
