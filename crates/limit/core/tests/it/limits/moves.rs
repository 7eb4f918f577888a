//! Inputs of the property tests: small limits, and times close to the edges at which verdicts
//! change.

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
use anteroom_limit::verdict::{Outcome, Verdict};
use proptest::prelude::*;

/// Windows, each with numbers of parts that divide it. One of them has no common factor with any
/// other.
const WINDOWS: [(u64, [u32; 4]); 4] = [
    (1_000_000, [1, 2, 5, 100]),
    (1_000_001, [1, 101, 1, 101]),
    (60_000_000, [1, 2, 4, 15]),
    (366 * 86_400_000_000, [1, 3, 4, 61]),
];

pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    let calls = prop_oneof![1 => Just(0u32), 20 => 1u32..12];
    let extra = (0usize..8, 0u32..12, 0u32..8, 0usize..4);
    (calls, 0usize..4, extra).prop_map(|(calls, window, (kind, burst, initial, parts))| {
        let (window, divisors) = WINDOWS[window];
        let rate = Rate::new(calls, DurationUs(window)).expect("the window is in range");
        let parts = divisors[parts];
        let capacity = burst.max(1);
        let initial = capacity + initial.saturating_sub(4);
        match kind {
            0 => Policy::SlidingLog(SlidingLog::new(rate).expect("in range")),
            1 => Policy::FixedWindow(FixedWindow::new(rate)),
            2 => Policy::SlidingWindow(SlidingWindow::new(rate)),
            3 => Policy::SubWindows(SubWindows::new(rate, parts).expect("in range")),
            4 => Policy::SubWindows(SubWindows::strict(rate, parts).expect("in range")),
            5 => Policy::TokenBucket(TokenBucket::new(rate, capacity, initial).expect("in range")),
            6 => Policy::Gcra(Gcra::new(rate, capacity).expect("in range")),
            _ => Policy::LeakyBucket(LeakyBucket::new(rate, burst)),
        }
    })
}

/// Step of the clock, often close to an edge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Jump {
    Stay,
    /// A few microseconds.
    Little(u64),
    /// Thousandths of a window.
    Part(u64),
    /// Next edge of a counter, this many microseconds past the instant before it.
    Edge(u64),
    /// A window, this many microseconds past the instant before it.
    Window(u64),
    /// Time that one request takes.
    Pace,
    /// Retry time of the last rejected request.
    Retry,
    /// Backwards, by thousandths of a window.
    Back(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Jump(Jump),
    Step(Cost),
    /// Requests of cost one until one is rejected.
    Flood,
    /// Forgets the state if it is idle.
    Forget,
}

fn jumps() -> impl Strategy<Value = Jump> {
    prop_oneof![
        1 => Just(Jump::Stay),
        2 => (1u64..4).prop_map(Jump::Little),
        4 => (1u64..400).prop_map(Jump::Part),
        1 => (400u64..3_000).prop_map(Jump::Part),
        4 => (0u64..3).prop_map(Jump::Edge),
        2 => (0u64..3).prop_map(Jump::Window),
        2 => Just(Jump::Pace),
        3 => Just(Jump::Retry),
    ]
}

fn takes() -> impl Strategy<Value = Cost> {
    prop_oneof![6 => Just(1u32), 3 => 2u32..5, 1 => 5u32..16].prop_map(Cost::take)
}

/// Generates any step on a clock that does not go back.
pub(crate) fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => jumps().prop_map(Move::Jump),
        8 => takes().prop_map(Move::Step),
        3 => Just(Move::Flood),
        1 => Just(Move::Step(Cost::Peek)),
        1 => (1u32..8).prop_map(|back| Move::Step(Cost::refund(back))),
        1 => Just(Move::Forget),
    ]
}

/// Generates requests, while the clock also goes back.
pub(crate) fn moves_on_a_bad_clock() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => jumps().prop_map(Move::Jump),
        2 => (0u64..1_500).prop_map(|part| Move::Jump(Jump::Back(part))),
        8 => takes().prop_map(Move::Step),
        3 => Just(Move::Flood),
    ]
}

/// Client under one limit, with the current time.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) policy: Policy,
    pub(crate) state: State,
    pub(crate) now: TimestampUs,
    retry_after: DurationUs,
}

impl Client {
    pub(crate) fn new(policy: Policy, now: u64) -> Self {
        Self {
            policy,
            state: State::default(),
            now: TimestampUs(now),
            retry_after: DurationUs::ZERO,
        }
    }

    pub(crate) fn step(&mut self, cost: Cost) -> Verdict {
        let verdict = self.policy.step(&mut self.state, self.now, cost);
        if let Outcome::Reject { retry_after } = verdict.outcome {
            self.retry_after = retry_after.unwrap_or_default();
        }
        verdict
    }

    /// Returns the verdict that a request would get, without applying it.
    pub(crate) fn would(&self, now: TimestampUs, cost: Cost) -> Verdict {
        self.policy.step(&mut self.state.clone(), now, cost)
    }

    pub(crate) fn jump(&mut self, jump: Jump) {
        let window = self.policy.rate().window();
        let counters = self.policy.counters();
        let width = counters.map_or(window, |counters| counters.width());
        let part = |part: u64| DurationUs(window.0 / 1_000 * part);
        let one = DurationUs(1);
        self.now = match jump {
            Jump::Stay => self.now,
            Jump::Little(micros) => self.now + DurationUs(micros),
            Jump::Part(parts) => self.now + part(parts),
            Jump::Edge(past) => {
                let edge = TimestampUs((self.now.0 / width.0 + 1) * width.0);
                self.now.max(edge + DurationUs(past) - one)
            }
            Jump::Window(past) => (self.now + window + DurationUs(past)) - one,
            Jump::Pace => {
                self.now + DurationUs(window.0 / u64::from(self.policy.rate().requests().max(1)))
            }
            Jump::Retry => self.now + self.retry_after,
            Jump::Back(parts) => self.now - part(parts),
        };
    }
}
