//! Comparison of the scripts and the algorithms: every verdict and every remaining state.
//!
//! The sequences have small limits, times close to the edges of decisions, a clock that is set
//! back, and settings that change, even to other algorithms.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::{Policy, State};
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
const START: u64 = 1_767_225_600_000_000;
/// Sequences for each algorithm, each with some hundreds of round trips.
const CASES: u32 = 96;

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
    /// Advances by the interval of one request.
    Pace,
    /// Advances by the last `retry_after`.
    Retry,
    /// Advances until nothing counts any more.
    Rest,
    /// Sets the clock back by thousandths of a window.
    Back(u64),
    Step(Cost),
    /// Sends requests of cost one until one is rejected.
    Flood,
    Change(Policy),
}

/// Generates settings of the algorithm of this number.
fn policies(kind: usize) -> impl Strategy<Value = Policy> {
    let requests = prop_oneof![1 => Just(0u32), 20 => 1u32..12];
    let extra = (0usize..4, 0u32..12, 0u32..8, 0usize..4);
    (requests, extra).prop_map(move |(requests, (window, burst, initial, parts))| {
        let (window, divisors) = WINDOWS[window];
        let rate = Rate::new(requests, DurationUs(window)).unwrap();
        let capacity = burst.max(1);
        let initial = capacity + initial.saturating_sub(4);
        match kind {
            0 => Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
            1 => Policy::FixedWindow(FixedWindow::new(rate)),
            2 => Policy::SlidingWindow(SlidingWindow::new(rate)),
            3 => Policy::SubWindows(SubWindows::new(rate, divisors[parts]).unwrap()),
            4 => Policy::SubWindows(SubWindows::strict(rate, divisors[parts]).unwrap()),
            5 => Policy::TokenBucket(TokenBucket::new(rate, capacity, initial).unwrap()),
            6 => Policy::Gcra(Gcra::new(rate, capacity).unwrap()),
            _ => Policy::LeakyBucket(LeakyBucket::new(rate, burst)),
        }
    })
}

fn moves(kind: usize) -> impl Strategy<Value = Move> {
    let time = prop_oneof![
        4 => (1u64..400).prop_map(Move::Later),
        1 => (400u64..3_000).prop_map(Move::Later),
        2 => (0u64..4).prop_map(Move::Little),
        4 => (0u64..3).prop_map(Move::Edge),
        2 => (0u64..3).prop_map(Move::Window),
        2 => Just(Move::Pace),
        3 => Just(Move::Retry),
        1 => Just(Move::Rest),
        2 => (0u64..1_500).prop_map(Move::Back),
    ];
    let takes = prop_oneof![6 => Just(1u32), 3 => 2u32..5, 1 => 5u32..16];
    prop_oneof![
        8 => time,
        8 => takes.prop_map(|taken| Move::Step(Cost::take(taken))),
        2 => Just(Move::Flood),
        1 => Just(Move::Step(Cost::Peek)),
        3 => (1u32..8).prop_map(|amount| Move::Step(Cost::refund(amount))),
        2 => policies(kind).prop_map(Move::Change),
        1 => (0usize..8).prop_flat_map(policies).prop_map(Move::Change),
    ]
}

impl Client<'_> {
    async fn apply(&mut self, applied: Move) {
        let window = self.policy.rate().window();
        let counters = self.policy.counters();
        let width = counters.map_or(window, |counters| counters.width());
        let part = |part: u64| DurationUs(window.0 / 1_000 * part);
        let requests = u64::from(self.policy.rate().requests());
        self.now = match applied {
            Move::Later(parts) => self.now + part(parts),
            Move::Little(micros) => self.now + DurationUs(micros),
            Move::Edge(past) => TimestampUs((self.now.0 / width.0 + 1) * width.0 + past - 1),
            Move::Window(past) => (self.now + window + DurationUs(past)) - DurationUs(1),
            Move::Pace => self.now + DurationUs(window.0 / requests.max(1)),
            Move::Retry => self.now + self.retry_after,
            Move::Rest => {
                let peek = self.step(Cost::Peek).await;
                self.now + peek.full_after
            }
            Move::Back(parts) => self.now - part(parts),
            Move::Step(_) | Move::Flood | Move::Change(_) => self.now,
        };
        match applied {
            Move::Step(cost) => {
                self.step(cost).await;
            }
            // No burst is larger.
            Move::Flood => {
                for _ in 0..30 {
                    if !self.step(Cost::ONE).await.is_allowed() {
                        break;
                    }
                }
            }
            Move::Change(policy) => self.policy = policy,
            _ => {}
        }
    }
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
    let sequences = (policies(kind), prop::collection::vec(moves(kind), 1..50));
    let compared = TestRunner::new(config).run(&sequences, |(policy, moves)| {
        runtime.block_on(async {
            let mut client = arena.client(policy, TimestampUs(START));
            for applied in moves {
                client.apply(applied).await;
            }
        });
        Ok(())
    });
    if let Err(failure) = compared {
        panic!("{failure}\n{}", arena.server().log());
    }
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

#[test]
fn leaky_bucket() {
    compare(7);
}

/// The client counts as new, and the next acquire replaces the value.
#[tokio::test]
async fn an_invalid_value_counts_as_a_new_client() {
    let arena = Arena::start().await;
    let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
    let policies = [
        Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(SubWindows::new(rate, 4).unwrap()),
        Policy::SubWindows(SubWindows::strict(rate, 4).unwrap()),
        Policy::TokenBucket(TokenBucket::new(rate, 10, 10).unwrap()),
        Policy::Gcra(Gcra::new(rate, 10).unwrap()),
        Policy::LeakyBucket(LeakyBucket::new(rate, 9)),
        Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
    ];
    let invalid: [&[&str]; 16] = [
        &["SET", ""],
        &["SET", "hello"],
        &["SET", "17"],
        &["SET", "f 1 99999999999999999999 7"],
        &["SET", "f 1 1767225600000000 4294967296"],
        &["SET", "s 3 1767225600000000 7"],
        &["SET", "w 0 1767225600000000"],
        &["SET", "w 122 1767225600000000 7"],
        &["SET", "w 5 1767225600000000 7 -1"],
        &["SET", "g 1767225660000000"],
        &["SET", "l 1767225660000000 0 0"],
        &["SET", "t 1767225600000000 0 4294967296"],
        &["RPUSH", "hello"],
        &["RPUSH", "1767225600000000 7"],
        &["HSET", "version", "7"],
        &["SADD", "member"],
    ];
    for policy in policies {
        for command in invalid {
            let mut client = arena.client(policy, TimestampUs(START));
            let name = client.name();
            let mut command = command.to_vec();
            command.insert(1, &name);
            arena.server().send_ok(&command).await;
            for cost in [Cost::Peek, Cost::take(11), Cost::refund(3)] {
                let expected = policy.step(&mut State::default(), client.now, cost);
                assert_eq!(
                    client.acquire(cost).await,
                    expected,
                    "{policy:?} {command:?}"
                );
            }
            client.step(Cost::take(4)).await;
            client.step(Cost::ONE).await;
        }
    }
}

#[tokio::test]
async fn a_refund_deletes_an_expired_log() {
    let arena = Arena::start().await;
    let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
    let log = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
    let mut client = arena.client(log, TimestampUs(START));
    for (after, cost) in [
        (0, Cost::take(2)),
        (20, Cost::take(4)),
        (20, Cost::take(4)),
        (21, Cost::refund(6)),
        (0, Cost::take(9)),
        (0, Cost::take(8)),
    ] {
        client.now = client.now + DurationUs::from_secs(after);
        client.step(cost).await;
    }
}

/// A limit of zero does not refill, so a client that expires too early would get its tokens again.
#[tokio::test]
async fn a_bucket_of_a_limit_of_zero_is_kept_for_a_window() {
    let arena = Arena::start().await;
    let bucket = |requests| {
        let rate = Rate::new(requests, DurationUs::from_secs(3_600)).unwrap();
        Policy::TokenBucket(TokenBucket::new(rate, 10, 10).unwrap())
    };
    let mut client = arena.client(bucket(10), TimestampUs(START));
    client.step(Cost::take(10)).await;
    client.policy = bucket(0);
    client.step(Cost::refund(1)).await;
    client.step(Cost::ONE).await;
}
