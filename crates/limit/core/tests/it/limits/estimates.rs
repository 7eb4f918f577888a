//! The estimate of the oldest part is wrong by no more than the requests in it.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use proptest::prelude::*;

use crate::limits::model::Model;

const MINUTE: DurationUs = DurationUs::from_secs(60);
/// High enough that nothing is rejected and the remaining requests show every count.
const LIMIT: u32 = 100_000;

/// Generates a policy and the width of its counters in microseconds.
fn policies() -> impl Strategy<Value = (Policy, u64)> {
    let rate = Rate::new(LIMIT, MINUTE).expect("the window is in range");
    prop_oneof![Just(0u32), Just(1), Just(2), Just(4), Just(15), Just(60)].prop_map(move |parts| {
        let policy = match SubWindows::new(rate, parts) {
            Ok(sub_windows) => Policy::SubWindows(sub_windows),
            Err(_) => Policy::SlidingWindow(SlidingWindow::new(rate)),
        };
        (policy, MINUTE.0 / u64::from(parts.max(1)))
    })
}

/// Returns what was allowed from `from` on for `width`.
fn in_part(model: &Model, from: TimestampUs, width: u64) -> i128 {
    let is_inside = |at: TimestampUs| at >= from && at.since(from).0 < width;
    let inside = model.admitted.iter().filter(|(at, _)| is_inside(*at));
    inside.map(|(_, cost)| i128::from(*cost)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_estimate_errs_by_at_most_the_oldest_part(
        (policy, width) in policies(),
        steps in prop::collection::vec((0u64..12_000_000, 1u32..30), 1..60),
    ) {
        let (mut state, mut model) = (State::default(), Model::default());
        let mut now = TimestampUs(1_700_000_000_000_000);
        for (later, cost) in steps {
            now = now + DurationUs(later);
            let remaining = policy.step(&mut state, now, Cost::take(cost)).remaining;
            model.admit(now, cost);
            let estimate = i128::from(LIMIT - remaining);
            let truth = i128::from(model.in_window_until(now, MINUTE));
            let elapsed = now.0 % width;
            let oldest = in_part(&model, TimestampUs(now.0 - elapsed) - MINUTE, width);
            let (elapsed, width) = (i128::from(elapsed), i128::from(width));
            // In parts of a request, of which one has as many as a counter has microseconds. The
            // estimate is rounded up.
            let off = (estimate - truth) * width;
            prop_assert!(off >= -elapsed * oldest, "{} is too low for {}", estimate, truth);
            let most = (width - elapsed) * oldest + width;
            prop_assert!(off < most, "{} is too high for {}", estimate, truth);
        }
    }
}
