//! Limits of one store with different failure settings.

use super::*;

use OnLimitStoreFailure::{Bounded, Closed, Local, Open};

/// Returns two limits of one store, the first of ten requests and the second of three.
fn two(far: &Arc<Far>, settings: [OnLimitStoreFailure; 2]) -> Site {
    let [first, second] = settings;
    Site::behind(vec![
        on_failure(far_limit("first", a_minute(10), far), first),
        on_failure(far_limit("second", a_minute(3), far), second),
    ])
}

/// Sends five requests while the store is unavailable. `spent` limits have no leases left. Returns
/// how many were allowed, and the events of each limit.
async fn while_away(
    settings: [OnLimitStoreFailure; 2],
    spent: &[&'static str],
) -> (usize, [Vec<(&'static str, u64)>; 2]) {
    let far = Arc::new(Far::default());
    far.is_away.store(true, Relaxed);
    far.has_leases.store(true, Relaxed);
    *far.spent.lock() = spent.to_vec();
    let site = two(&far, settings);
    let allowed = site.allowed(5, "/", "192.0.2.7").await;
    (allowed, [site.events("first"), site.events("second")])
}

#[tokio::test(start_paused = true)]
async fn each_limit_follows_its_own_setting_for_unavailable_stores() {
    let check =
        async |settings, spent: &[&'static str], expected: usize, events: [&[(&str, u64)]; 2]| {
            let (allowed, counted) = while_away(settings, spent).await;
            assert_eq!(allowed, expected, "{settings:?} {spent:?}");
            assert_eq!(counted, events, "{settings:?} {spent:?}");
        };
    let both = ["first", "second"];
    // The first has no leases and allows everything; the second continues from its leases.
    check(
        [Open, Bounded],
        &["first"],
        3,
        [&[("uncounted", 3)], &[("allow", 3), ("reject", 2)]],
    )
    .await;
    check(
        [Local, Bounded],
        &["first"],
        3,
        [&[("allow", 3)], &[("allow", 3), ("reject", 2)]],
    )
    .await;
    // Without the store, the second rejects everything that the first would allow.
    check([Open, Bounded], &both, 0, [&[], &[("unavailable", 5)]]).await;
    check(
        [Bounded, Open],
        &["second"],
        5,
        [&[("allow", 5)], &[("uncounted", 5)]],
    )
    .await;
    check(
        [Open, Local],
        &both,
        3,
        [&[("uncounted", 3)], &[("allow", 3), ("reject", 2)]],
    )
    .await;
    check(
        [Open, Open],
        &both,
        5,
        [&[("uncounted", 5)], &[("uncounted", 5)]],
    )
    .await;
    // A closed limit does not even spend leases, and the rejection is its own.
    check([Bounded, Closed], &[], 0, [&[], &[("unavailable", 5)]]).await;
    check([Open, Closed], &["first"], 0, [&[], &[("unavailable", 5)]]).await;
}

#[tokio::test(start_paused = true)]
async fn spent_leases_are_refunded_if_another_limit_rejects() {
    let far = Arc::new(Far::default());
    far.is_away.store(true, Relaxed);
    far.has_leases.store(true, Relaxed);
    *far.spent.lock() = vec!["second"];
    let limits = vec![
        far_limit("first", a_minute(10), &far),
        far_limit("second", a_minute(3), &far),
    ];
    let site = Site::behind(limits);
    assert_eq!(site.get().await, 503);
    assert_eq!(far.left(&far_limit("first", a_minute(10), &far)), 10);
    let failures = site.limiter.stats().into_iter();
    let failures: Vec<u64> = failures.map(|limit| limit.store_failures).collect();
    assert_eq!(failures, [0, 1], "the first could be counted");
}

/// Whether the store counted the request is unknown. A second try could count it twice, and would
/// take as long again.
#[tokio::test(start_paused = true)]
async fn a_request_without_a_reply_is_not_sent_again() {
    let far = Arc::new(Far::default());
    far.is_late.store(true, Relaxed);
    let site = two(&far, [Open, Local]);
    assert_eq!(site.get().await, 200);
    assert_eq!(far.requests.load(Relaxed), 1);
    assert_eq!(site.events("first"), [("uncounted", 1)]);
    assert_eq!(site.events("second"), [("allow", 1)]);
    let site = two(&far, [Open, Bounded]);
    assert_eq!(site.get().await, 503);
}
