//! Requests over a limit: delayed, queued or rejected.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_request_is_delayed_until_it_is_allowed() {
    let rate = Rate::new(60, DurationUs::from_secs(60)).unwrap();
    let mut smooth = limit("smooth", Policy::LeakyBucket(LeakyBucket::new(rate, 10)));
    smooth.on_limit = OnLimit::Delay {
        max: DurationMs::from_secs(3),
    };
    let site = Site::behind(vec![smooth]);
    let began = Instant::now();
    let responses = futures_util::future::join_all((0..6).map(|_| async {
        let status = site.get().await;
        (status.as_u16(), began.elapsed().as_secs())
    }));
    let responses = responses.await;
    // One at once, then one a second, none after more than three; the rejected ones are refunded.
    let expected = [(200, 0), (200, 1), (200, 2), (200, 3), (429, 0), (429, 0)];
    assert_eq!(responses, expected);
    assert_eq!(
        site.events("smooth"),
        [("allow", 1), ("reject", 2), ("delay", 3)]
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(site.get().await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_over_a_window_is_delayed_if_it_ends_soon() {
    let rate = Rate::new(1, DurationUs::from_secs(2)).unwrap();
    let mut window = limit("window", Policy::FixedWindow(FixedWindow::new(rate)));
    window.on_limit = OnLimit::Delay {
        max: DurationMs::from_secs(5),
    };
    let site = Site::behind(vec![window]);
    let began = Instant::now();
    for expected in [0, 2, 4] {
        assert_eq!(site.get().await, 200);

        assert_eq!(began.elapsed().as_secs(), expected);
    }
    assert_eq!(site.events("window"), [("allow", 1), ("delay", 2)]);
    assert_eq!(site.waiting.load(Relaxed), 0);
    let mut strict = limit("strict", a_minute(0));
    strict.on_limit = OnLimit::Delay {
        max: DurationMs::from_secs(5),
    };
    let site = Site::behind(vec![strict]);
    assert_eq!(site.get().await, 429);
}

#[tokio::test(start_paused = true)]
async fn waiting_visitors_are_queued_and_active_ones_rejected() {
    let mut queueing = limit("queueing", a_minute(1));
    queueing.on_limit = OnLimit::Wait;
    let site = Site::behind(vec![queueing]);
    assert_eq!(site.get().await, 200);
    assert_eq!(site.get().await, 200);
    assert_eq!(
        (site.served.load(Relaxed), site.waiting.load(Relaxed)),
        (1, 1)
    );
    site.is_inside.store(true, Relaxed);
    assert_eq!(site.get().await, 429);
    assert_eq!(
        site.events("queueing"),
        [("allow", 1), ("reject", 1), ("wait", 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_a_request_over_the_limit_is_rejected() {
    let mut queueing = limit("queueing", a_minute(1));
    queueing.on_limit = OnLimit::Wait;
    let site = Site::behind(vec![queueing]);
    assert_eq!(site.allowed(1, "/open", "192.0.2.7").await, 1);
    let response = site.send_to(Method::GET, "/open", "192.0.2.7").await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["set-cookie"], "ticket=1");
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(site.events("queueing"), [("allow", 1), ("reject", 1)]);
}

#[tokio::test(start_paused = true)]
async fn rejecting_goes_before_queueing_and_queueing_before_delaying() {
    let max = DurationMs::from_secs(60);
    let with = |name: &str, requests, on_limit| {
        let mut limit = limit(name, a_minute(requests));
        limit.on_limit = on_limit;
        limit
    };
    let site = Site::behind(vec![
        with("reject", 3, OnLimit::Reject),
        with("wait", 2, OnLimit::Wait),
        with("delay", 1, OnLimit::Delay { max }),
    ]);
    assert_eq!(site.get().await, 200);
    // One limit delays it until the next minute.
    let began = Instant::now();
    assert_eq!(site.get().await, 200);
    assert_eq!(
        began.elapsed().as_secs(),
        40,
        "the minute began 20 s before"
    );
    assert_eq!(site.events("delay"), [("allow", 1), ("delay", 1)]);
    let waits = || {
        Site::behind(vec![
            with("wait", 0, OnLimit::Wait),
            with("delay", 0, OnLimit::Delay { max }),
        ])
    };
    let site = waits();
    assert_eq!(site.get().await, 200);
    assert_eq!(site.waiting.load(Relaxed), 1);
    let site = Site::behind(vec![
        with("wait", 0, OnLimit::Wait),
        with("reject", 0, OnLimit::Reject),
    ]);
    assert_eq!(site.get().await, 429);
}

#[tokio::test(start_paused = true)]
async fn a_full_leaky_bucket_delays_no_request_that_another_limit_queues() {
    let rate = Rate::new(1, DurationUs::from_secs(1)).unwrap();
    let mut smooth = limit("smooth", Policy::LeakyBucket(LeakyBucket::new(rate, 10)));
    smooth.on_limit = OnLimit::Delay {
        max: DurationMs::from_secs(9),
    };
    let mut queueing = limit("queueing", a_minute(2));
    queueing.on_limit = OnLimit::Wait;
    let site = Site::behind(vec![smooth, queueing]);
    let all = futures_util::future::join_all((0..3).map(|_| site.get())).await;
    assert!(all.iter().all(|status| *status == 200));
    assert_eq!(
        (site.served.load(Relaxed), site.waiting.load(Relaxed)),
        (2, 1)
    );
    assert_eq!(site.events("smooth"), [("allow", 1), ("delay", 1)]);
    assert_eq!(
        site.events("queueing"),
        [("allow", 1), ("delay", 1), ("wait", 1)]
    );
}
