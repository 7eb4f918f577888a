//! Expiry of values that still count.

use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::shared::TestTime;
use anteroom_testkit::memcached_server::MemcachedServer;

use crate::memcached::support::{START, call, counts, counts_at, gcra, rate};

/// A server takes an expiry of more than thirty days as a Unix time, and expires a past one at
/// once.
#[tokio::test]
async fn a_window_of_more_than_thirty_days_is_kept_to_its_end() {
    let server = MemcachedServer::start().await;
    let now = server.stat("time").await;
    let time = TestTime::default();
    time.set(TimestampUs(now * 1_000_000));
    let counts = counts_at(server.port(), &time);
    let window = 365 * 86_400;
    let year = Policy::SubWindows(SubWindows::strict(rate(3, window), 1).unwrap());
    call(&counts, &year, Cost::ONE).await.unwrap();
    let again = call(&counts, &year, Cost::ONE).await.unwrap();
    assert_eq!(again.remaining, 1);
    let values = server.values().await;
    let [(_, exp)] = values.as_slice() else {
        panic!("{values:?}");
    };
    // This window of a year and the next one; a day for wrong clocks, and a thousandth for slow
    // ones.
    let matters_to = (now / window + 2) * window;
    let least = matters_to + 86_400;
    assert!(
        (least..=least + 2 * window / 1_000 + 10).contains(exp),
        "{exp}"
    );
}

/// Servers keep times in 31 bits, and expire later ones at once.
#[tokio::test]
async fn values_that_count_beyond_2038_are_kept() {
    let server = MemcachedServer::start().await;
    let time = TestTime::default();
    time.set(TimestampUs(server.stat("time").await * 1_000_000));
    let counts = counts_at(server.port(), &time);
    let daily = Policy::Gcra(Gcra::new(rate(1, 86_400), 5_000).unwrap());
    call(&counts, &daily, Cost::take(5_000)).await.unwrap();
    let rejected = call(&counts, &daily, Cost::ONE).await.unwrap();
    assert!(!rejected.is_allowed());
    time.set(TimestampUs(2_140_000_000_000_000));
    let year = Policy::FixedWindow(FixedWindow::new(rate(3, 365 * 86_400)));
    for left in [2, 1, 0] {
        let verdict = call(&counts, &year, Cost::ONE).await.unwrap();
        assert_eq!(verdict.remaining, left);
    }
}

#[tokio::test]
async fn requests_without_effect_leave_no_value() {
    let server = MemcachedServer::start().await;
    let counts = counts(server.port());
    for policy in [gcra(5), Policy::FixedWindow(FixedWindow::new(rate(5, 60)))] {
        for cost in [Cost::Peek, Cost::refund(3)] {
            let verdict = call(&counts, &policy, cost).await.unwrap();
            assert_eq!(
                (verdict.remaining, verdict.full_after),
                (5, DurationUs::ZERO)
            );
        }
    }
    assert_eq!(server.values().await, []);
    let rejected = call(&counts, &gcra(5), Cost::take(6)).await.unwrap();
    assert!(!rejected.is_allowed());
    assert_eq!(server.values().await, []);
    // A counter keeps a zero, as the request was added before the decision.
    let window = Policy::FixedWindow(FixedWindow::new(rate(5, 60)));
    let rejected = call(&counts, &window, Cost::take(6)).await.unwrap();
    assert!(!rejected.is_allowed());
    let left = call(&counts, &window, Cost::Peek).await.unwrap();
    assert_eq!((left.remaining, left.full_after), (5, DurationUs::ZERO));
    assert_eq!(server.values().await.len(), 1);
}

#[tokio::test]
async fn each_sub_window_has_its_own_counter() {
    let server = MemcachedServer::start().await;
    let time = TestTime::default();
    let counts = counts_at(server.port(), &time);
    let policy = Policy::SubWindows(SubWindows::strict(rate(10, 60), 4).unwrap());
    for part in 0..6 {
        time.set(START + DurationUs::from_secs(15 * part));
        let verdict = call(&counts, &policy, Cost::ONE).await.unwrap();
        // Five sub-windows count, the oldest of which is leaving the window.
        let counted = u32::try_from(part + 1).unwrap().min(5);
        assert_eq!(verdict.remaining, 10 - counted, "{part}");
    }
    assert_eq!(server.stat("curr_items").await, 6);
    // A refund starts at the newest one.
    let verdict = call(&counts, &policy, Cost::refund(3)).await.unwrap();
    assert_eq!(verdict.remaining, 8);
    time.set(START + DurationUs::from_secs(15 * 6));
    let verdict = call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(
        verdict.remaining, 9,
        "the sub-window that has left was not refunded"
    );
}
