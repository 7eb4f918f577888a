//! Do the scripts and the algorithms agree, on every verdict and on what is left?
//!
//! Small limits, and moments close to the edges at which algorithms change their mind; a clock that
//! goes back; settings that change, to other algorithms too.

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

/// Windows, each with numbers of parts that divide it. One is no multiple of anything.
const WINDOWS: [(u64, [u32; 4]); 4] = [
    (1_000_000, [1, 2, 5, 100]),
    (1_000_001, [1, 101, 1, 101]),
    (60_000_000, [1, 2, 4, 15]),
    (366 * 86_400_000_000, [1, 3, 4, 120]),
];
const START: u64 = 1_767_225_600_000_000;
/// Sequences for each algorithm. Each is some hundreds of round trips.
const CASES: u32 = 96;

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
    /// As long as one call takes.
    Pace,
    /// As long as the last call that was rejected was told.
    Retry,
    /// Until nothing of it counts any more.
    Rest,
    /// A clock that is set back, by so many thousandths of a window.
    Back(u64),
    Step(Cost),
    /// Calls that count one until one is rejected.
    Flood,
    Change(Policy),
}

/// Settings of the algorithm of this number.
fn policies(kind: usize) -> impl Strategy<Value = Policy> {
    let calls = prop_oneof![1 => Just(0u32), 20 => 1u32..12];
    let extra = (0usize..4, 0u32..12, 0u32..8, 0usize..4);
    (calls, extra).prop_map(move |(calls, (window, burst, initial, parts))| {
        let (window, divisors) = WINDOWS[window];
        let rate = Rate::new(calls, DurationUs(window)).unwrap();
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
        3 => (1u32..8).prop_map(|back| Move::Step(Cost::refund(back))),
        2 => policies(kind).prop_map(Move::Change),
        1 => (0usize..8).prop_flat_map(policies).prop_map(Move::Change),
    ]
}

impl Client<'_> {
    async fn make(&mut self, made: Move) {
        let window = self.policy.rate().window();
        let counters = self.policy.counters();
        let width = counters.map_or(window, |counters| counters.width());
        let part = |part: u64| DurationUs(window.0 / 1_000 * part);
        let calls = u64::from(self.policy.rate().calls());
        self.now = match made {
            Move::Later(parts) => self.now + part(parts),
            Move::Little(micros) => self.now + DurationUs(micros),
            Move::Edge(past) => TimestampUs((self.now.0 / width.0 + 1) * width.0 + past - 1),
            Move::Window(past) => (self.now + window + DurationUs(past)) - DurationUs(1),
            Move::Pace => self.now + DurationUs(window.0 / calls.max(1)),
            Move::Retry => self.now + self.retry_after,
            Move::Rest => {
                let peek = self.step(Cost::Peek).await;
                self.now + peek.full_after
            }
            Move::Back(parts) => self.now - part(parts),
            Move::Step(_) | Move::Flood | Move::Change(_) => self.now,
        };
        match made {
            Move::Step(cost) => {
                self.step(cost).await;
            }
            // No burst is larger.
            Move::Flood => {
                for _ in 0..30 {
                    if !self.step(Cost::ONE).await.is_admitted() {
                        break;
                    }
                }
            }
            Move::Change(policy) => self.policy = policy,
            _ => {}
        }
    }
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
    let sequences = (policies(kind), prop::collection::vec(moves(kind), 1..50));
    let compared = TestRunner::new(config).run(&sequences, |(policy, moves)| {
        runtime.block_on(async {
            let mut client = arena.client(policy, TimestampUs(START));
            for made in moves {
                client.make(made).await;
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

/// Whatever it is, the client is one who never called, and the next charge replaces it.
#[tokio::test]
async fn a_value_that_cannot_be_read_is_a_client_who_never_called() {
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
    let strange: [&[&str]; 16] = [
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
        for command in strange {
            let mut client = arena.client(policy, TimestampUs(START));
            let name = client.name();
            let mut command = command.to_vec();
            command.insert(1, &name);
            arena.server().tell(&command).await;
            for cost in [Cost::Peek, Cost::take(11), Cost::refund(3)] {
                let expected = policy.step(&mut State::default(), client.now, cost);
                assert_eq!(
                    client.charge(cost).await,
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
async fn a_refund_leaves_nothing_of_a_log_that_is_over() {
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

/// Nothing refills, so whoever is forgotten too early would be given what it has spent.
#[tokio::test]
async fn a_bucket_of_a_closed_limit_is_kept_for_a_window() {
    let arena = Arena::start().await;
    let bucket = |calls| {
        let rate = Rate::new(calls, DurationUs::from_secs(3_600)).unwrap();
        Policy::TokenBucket(TokenBucket::new(rate, 10, 10).unwrap())
    };
    let mut client = arena.client(bucket(10), TimestampUs(START));
    client.step(Cost::take(10)).await;
    client.policy = bucket(0);
    client.step(Cost::refund(1)).await;
    client.step(Cost::ONE).await;
}
