//! Exactness of the scripts for the largest settings, costs and times.

use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::{Rate, WINDOW_LONGEST};
use anteroom_limit::sliding_log::{LOG_LONGEST, SlidingLog};
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit_store::shared::SharedCounts as _;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::drive::Arena;
use super::{counts, single};

/// Last time for which the scripts count exactly: the year 2112.
const LAST: u64 = 1 << 52;
const CASES: u32 = 160;

/// Generates numbers close to overflows, and all others, up to `most`.
fn wild(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        (0u64..4).prop_map(move |below| most.saturating_sub(below)),
        (0u32..52).prop_map(|shift| 1 << shift),
        (0u32..52, 0u64..3).prop_map(|(shift, below)| (1u64 << shift).saturating_sub(below)),
        0..=most,
    ]
    .prop_map(move |number| number.min(most))
}

fn wild_u32() -> impl Strategy<Value = u32> {
    wild(u64::from(u32::MAX)).prop_map(|number| u32::try_from(number).unwrap())
}

fn costs() -> impl Strategy<Value = Cost> {
    prop_oneof![
        3 => wild_u32().prop_map(Cost::take),
        1 => (1u32..4).prop_map(Cost::take),
        1 => wild_u32().prop_map(Cost::refund),
        1 => Just(Cost::Peek),
    ]
}

/// Generates any algorithm with valid extreme settings.
fn policies() -> impl Strategy<Value = Policy> {
    let window = prop_oneof![
        Just(1_000_000u64),
        Just(1_000_001),
        Just(WINDOW_LONGEST.0),
        Just(WINDOW_LONGEST.0 - 1),
        1_000_000u64..WINDOW_LONGEST.0,
    ];
    let parts = prop_oneof![Just(1u32), 1u32..121];
    let settings = (wild_u32(), window, wild_u32(), wild_u32(), parts, 0..8);
    settings.prop_filter_map("no such limit", |settings| {
        let (requests, window, burst, initial, parts, kind) = settings;
        let rate = Rate::new(requests, DurationUs(window)).unwrap();
        let log = Rate::new(requests.min(LOG_LONGEST), DurationUs(window)).unwrap();
        let whole = Rate::new(
            requests,
            DurationUs(window / u64::from(parts) * u64::from(parts)),
        );
        let policy = match kind {
            0 => Policy::SlidingLog(SlidingLog::new(log).ok()?),
            1 => Policy::FixedWindow(FixedWindow::new(rate)),
            2 => Policy::SlidingWindow(SlidingWindow::new(rate)),
            3 => Policy::SubWindows(SubWindows::new(whole.ok()?, parts).ok()?),
            4 => Policy::SubWindows(SubWindows::strict(whole.ok()?, parts).ok()?),
            5 => Policy::TokenBucket(TokenBucket::new(rate, burst, burst.max(initial)).ok()?),
            6 => Policy::Gcra(Gcra::new(rate, burst).ok()?),
            _ => Policy::LeakyBucket(LeakyBucket::new(rate, burst)),
        };
        // Opens nothing.
        let fits = counts(&single(1)).check("api", &policy).is_ok();
        fits.then_some(policy)
    })
}

#[test]
fn the_largest_numbers_are_counted_exactly() {
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
    let step = (
        prop::option::of(policies()),
        wild(LAST),
        any::<bool>(),
        costs(),
    );
    let sequences = (policies(), wild(LAST), prop::collection::vec(step, 1..12));
    let compared = TestRunner::new(config).run(&sequences, |(policy, starts_at, steps)| {
        runtime.block_on(async {
            let mut client = arena.client(policy, TimestampUs(starts_at));
            for (changed, span, is_back, cost) in steps {
                if let Some(policy) = changed {
                    client.policy = policy;
                }
                let span = DurationUs(span);
                client.now = if is_back {
                    client.now - span
                } else {
                    (client.now + span).min(TimestampUs(LAST))
                };
                client.step(cost).await;
                // As close as possible to the edge of the decision.
                client.now = (client.now + client.retry_after).min(TimestampUs(LAST));
                client.step(cost).await;
            }
        });
        Ok(())
    });
    if let Err(failure) = compared {
        panic!("{failure}\n{}", arena.server().log());
    }
}
