//! Widened limits, and limits that cannot have leases.

use super::*;
use crate::algorithm::Algorithm;
use crate::fixed_window::FixedWindow;
use crate::gcra::Gcra;
use crate::leaky_bucket::LeakyBucket;
use crate::sliding_log::SlidingLog;
use crate::sliding_window::SlidingWindow;
use crate::sub_windows::SubWindows;
use crate::testing::a_minute;
use crate::token_bucket::TokenBucket;

fn secs(secs: u64) -> DurationUs {
    DurationUs::from_secs(secs)
}

fn gcra(calls: u32, burst: u32) -> Policy {
    Policy::Gcra(Gcra::new(a_minute(calls), burst).unwrap())
}

#[test]
fn a_lease_is_a_twentieth_of_the_window_within_bounds() {
    for (window, ttl) in [
        (1, 200_000),
        (10, 500_000),
        (60, 3_000_000),
        (3_600, 5_000_000),
    ] {
        let rate = Rate::new(100, secs(window)).unwrap();
        let limit = LeasedLimit::new(Policy::SlidingWindow(SlidingWindow::new(rate))).unwrap();
        assert_eq!(limit.ttl(), DurationUs(ttl), "{window}");
    }
}

#[test]
fn windows_are_longer_by_a_lease_and_have_whole_parts() {
    let strict = SubWindows::strict(a_minute(100), 16).unwrap();
    let limit = LeasedLimit::with_ttl(Policy::SubWindows(strict), DurationUs(1_000_001));
    let widened = limit.unwrap().widened().rate();
    assert_eq!(widened.window(), DurationUs(61_000_016));
    assert_eq!(widened.requests(), 100);
    let fixed = Policy::FixedWindow(FixedWindow::new(a_minute(100)));
    assert_eq!(*LeasedLimit::new(fixed).unwrap().widened(), fixed);
}

#[test]
fn a_window_of_a_year_can_have_leases() {
    let year = Rate::new(7, crate::rate::WINDOW_LONGEST).unwrap();
    let log = Policy::SlidingLog(SlidingLog::new(year).unwrap());
    let widened = LeasedLimit::new(log).unwrap().widened().rate().window();
    assert_eq!(widened, DurationUs(year.window().0 + TTL_LONGEST.0));
}

#[test]
fn a_burst_is_smaller_by_what_the_rate_gives_during_a_lease() {
    let bucket = TokenBucket::new(a_minute(100), 50, 60).unwrap();
    let limit = LeasedLimit::with_ttl(Policy::TokenBucket(bucket), secs(3)).unwrap();
    let widened = TokenBucket::new(a_minute(100), 45, 55).unwrap();
    assert_eq!(*limit.widened(), Policy::TokenBucket(widened));
    // A third of a request counts as one.
    let limit = LeasedLimit::with_ttl(gcra(20, 50), secs(1)).unwrap();
    assert_eq!(*limit.widened(), gcra(20, 49));
    let error = NotLeasableError::BurstTooSmall {
        burst: 5,
        during_lease: 5,
        ttl: secs(3),
    };
    assert_eq!(LeasedLimit::with_ttl(gcra(100, 5), secs(3)), Err(error));
}

#[test]
fn half_of_a_small_burst_remains_with_default_leases() {
    let limit = LeasedLimit::new(gcra(100, 4)).unwrap();
    assert_eq!(limit.ttl(), DurationUs(1_200_000));
    assert_eq!(*limit.widened(), gcra(100, 2));
    assert!(LeasedLimit::new(gcra(100, 1)).is_err());
}

#[test]
fn the_widened_limit_keeps_the_promise_of_a_window_and_a_lease() {
    for (calls, burst, ttl) in [(100, 50, 3_000_000), (7, 9, 200_000), (60, 61, 5_000_000)] {
        let limit = LeasedLimit::with_ttl(gcra(calls, burst), DurationUs(ttl)).unwrap();
        let Policy::Gcra(widened) = *limit.widened() else {
            panic!("another algorithm");
        };
        let longer = a_minute(calls)
            .with_longer_window(DurationUs(ttl), 1)
            .window();
        let refilled = product(u64::from(calls), longer.0).div_ceil(60_000_000);
        let most = u128::from(widened.burst()) + refilled - 1;
        assert!(most <= u128::from(limit.promised().window_cost_max(1)));
    }
}

#[test]
fn a_leaky_bucket_has_no_leases_and_the_error_says_why() {
    let leaky = Policy::LeakyBucket(LeakyBucket::new(a_minute(100), 10));
    let error = LeasedLimit::new(leaky).unwrap_err();
    let message = "leases cannot keep a leaky-bucket: its requests share one queue";
    assert_eq!(alloc::string::ToString::to_string(&error), message);
}

#[test]
fn leases_are_not_longer_than_the_window() {
    let second = Rate::new(1, secs(1)).unwrap();
    let policy = Policy::SlidingWindow(SlidingWindow::new(second));
    for (ttl, fits) in [
        (199_999, false),
        (200_000, true),
        (1_000_000, true),
        (1_000_001, false),
    ] {
        assert_eq!(
            LeasedLimit::with_ttl(policy, DurationUs(ttl)).is_ok(),
            fits,
            "{ttl}"
        );
    }
}

#[test]
fn a_lease_ends_with_its_fixed_window() {
    let fixed = LeasedLimit::new(Policy::FixedWindow(FixedWindow::new(a_minute(9)))).unwrap();
    assert_eq!(fixed.ttl_at(TimestampUs(60_000_000)), secs(3));
    assert_eq!(
        fixed.ttl_at(TimestampUs(118_500_000)),
        DurationUs(1_500_000)
    );
}
