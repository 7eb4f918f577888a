//! The bounds are tight: the greediest client under 100 requests a minute, and random bursts.
//!
//! The numbers for a greedy client agree with Muscat's algorithms ("Distributed Rate-Limiting
//! Algorithms", 2022) as worked out by hand. The numbers for random bursts depend on the seeds.

use anteroom_limit::algorithm::Algorithm;
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
use anteroom_limit::verdict::Outcome;

use crate::limits::model::Model;

const MINUTE: DurationUs = DurationUs::from_secs(60);
const MILLISECOND: DurationUs = DurationUs(1_000);

fn rate() -> Rate {
    Rate::new(100, MINUTE).expect("the window is in range")
}

fn sub_windows(parts: u32) -> Policy {
    Policy::SubWindows(SubWindows::new(rate(), parts).expect("in range"))
}

fn strict(parts: u32) -> Policy {
    Policy::SubWindows(SubWindows::strict(rate(), parts).expect("in range"))
}

fn token_bucket(capacity: u32, initial_burst: u32) -> Policy {
    Policy::TokenBucket(TokenBucket::new(rate(), capacity, initial_burst).expect("in range"))
}

fn gcra(burst: u32) -> Policy {
    Policy::Gcra(Gcra::new(rate(), burst).expect("in range"))
}

/// Sends as many requests as are allowed in the last millisecond of a window, then one each
/// millisecond for two windows. Returns the largest cost that any window allowed.
fn greedy(policy: Policy) -> u64 {
    let mut state = State::default();
    let mut model = Model::default();
    let mut now = TimestampUs(0) + MINUTE - MILLISECOND;
    let end = now + MINUTE.times(2);
    let mut tries = 1_000;
    while now < end {
        for _ in 0..tries {
            match policy.step(&mut state, now, Cost::ONE).outcome {
                Outcome::Allow { delay } => model.admit(now + delay, 1),
                Outcome::Reject { .. } => break,
            }
        }
        tries = 1;
        now = now + MILLISECOND;
    }
    model.fullest(MINUTE)
}

#[test]
fn a_greedy_client_reaches_the_bound_and_no_more() {
    for (policy, most) in [
        (
            Policy::SlidingLog(SlidingLog::new(rate()).expect("in range")),
            100,
        ),
        (Policy::FixedWindow(FixedWindow::new(rate())), 200),
        (Policy::SlidingWindow(SlidingWindow::new(rate())), 199),
        (sub_windows(1), 199),
        (sub_windows(2), 199),
        (sub_windows(4), 199),
        (sub_windows(15), 199),
        (sub_windows(60), 199),
        (strict(1), 100),
        (strict(4), 100),
        (strict(60), 100),
        (token_bucket(100, 100), 199),
        (token_bucket(1, 1), 100),
        (token_bucket(100, 150), 249),
        (gcra(100), 199),
        (gcra(1), 100),
        (Policy::LeakyBucket(LeakyBucket::new(rate(), 0)), 100),
        (Policy::LeakyBucket(LeakyBucket::new(rate(), 500)), 100),
    ] {
        assert_eq!(greedy(policy), most, "{policy:?}");
        assert_eq!(policy.window_cost_max(1), most, "{policy:?}");
    }
}

#[test]
fn a_costly_request_after_cheap_ones_reaches_the_leaky_buckets_bound() {
    let policy = Policy::LeakyBucket(LeakyBucket::new(rate(), 200));
    let (mut state, mut model) = (State::default(), Model::default());
    let costs = [1; 99].into_iter().chain([40]);
    for cost in costs {
        match policy
            .step(&mut state, TimestampUs(0), Cost::take(cost))
            .outcome
        {
            Outcome::Allow { delay } => model.admit(TimestampUs(0) + delay, cost),
            Outcome::Reject { .. } => panic!("the queue is long enough"),
        }
    }
    assert_eq!(model.fullest(MINUTE), 139);
    assert_eq!(policy.window_cost_max(40), 139);
}

/// Marsaglia's xorshift, equal in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Sends bursts of up to 60 requests, up to 20 seconds apart, for ten minutes.
fn bursts(policy: Policy, seed: u64) -> u64 {
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (mut state, mut model) = (State::default(), Model::default());
    let mut now = TimestampUs(0);
    while now < TimestampUs(0) + MINUTE.times(10) {
        for _ in 0..draw.below(60) {
            if policy.step(&mut state, now, Cost::ONE).is_allowed() {
                model.admit(now, 1);
            }
            now = now + DurationUs(draw.below(10_000));
        }
        now = now + DurationUs(draw.below(20_000_000));
    }
    model.fullest(MINUTE)
}

#[test]
fn random_bursts_exceed_the_limit_only_where_the_oldest_part_is_estimated() {
    let worst = |policy: Policy| (1..=60).map(|seed| bursts(policy, seed)).max().unwrap_or(0);
    for parts in [1, 2, 4, 15, 60] {
        assert!(worst(strict(parts)) <= 100, "{parts}");
    }
    let (one, four, sixty) = (
        worst(sub_windows(1)),
        worst(sub_windows(4)),
        worst(sub_windows(60)),
    );
    assert_eq!(
        worst(Policy::SlidingWindow(SlidingWindow::new(rate()))),
        one
    );
    assert!((101..200).contains(&one), "{one}");
    assert!((101..200).contains(&four), "{four}");
    assert!((101..200).contains(&sixty), "{sixty}");
    assert!(sixty < one, "{sixty} {one}");
}
