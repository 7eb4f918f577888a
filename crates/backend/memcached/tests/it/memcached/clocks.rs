//! Nodes whose clocks differ.

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::clock::CLOCKS_APART_MAX;
use anteroom_limit_store::shared::TestTime;
use anteroom_testkit::memcached_server::MemcachedServer;

use crate::memcached::support::{START, call, counts_ahead, gcra, rate};

const WINDOW: DurationUs = DurationUs::from_secs(10);

/// Returns the largest number of requests in any window of this length, by a wall clock.
fn most(admitted: &[TimestampUs], window: DurationUs) -> usize {
    let within = |from: &TimestampUs| {
        let is_in = |at: &&TimestampUs| **at >= *from && at.since(*from) < window;
        admitted.iter().filter(is_in).count()
    };
    admitted.iter().map(within).max().unwrap_or(0)
}

/// Sends requests of one client from two nodes, one of which is ahead by `ahead`, and returns the
/// times of admitted ones.
async fn admitted(policy: &Policy, ahead: DurationUs) -> Vec<TimestampUs> {
    let server = MemcachedServer::start().await;
    let time = TestTime::default();
    let nodes = [DurationUs::ZERO, ahead].map(|by| counts_ahead(server.port(), &time, by));
    let mut admitted = Vec::new();
    for step in 0..250_u64 {
        // Begin late in a window, where one node crosses the edge before the other.
        let now = START + DurationUs(8_500_000 + step * 100_000);
        time.set(now);
        for node in &nodes {
            let verdict = call(node, policy, Cost::ONE)
                .await
                .expect("the request is counted");
            if verdict.is_allowed() {
                admitted.push(now);
            }
        }
    }
    admitted
}

#[tokio::test]
async fn strict_limits_hold_in_windows_shortened_by_the_clocks_difference() {
    let rate = rate(20, 10);
    for policy in [
        Policy::SubWindows(SubWindows::strict(rate, 5).unwrap()),
        Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
    ] {
        for ahead in [DurationUs::ZERO, DurationUs(300_000), CLOCKS_APART_MAX] {
            let admitted = admitted(&policy, ahead).await;
            let shorter = DurationUs(WINDOW.0 - ahead.0);
            let most = most(&admitted, shorter);
            assert!(most <= 20, "{policy:?} {ahead}: {most}");
            // The limit must still admit requests.
            assert!(
                admitted.len() >= 40,
                "{policy:?} {ahead}: {}",
                admitted.len()
            );
        }
    }
}

/// The node behind sees what the other one has added to a sub-window that has not begun for it.
#[tokio::test]
async fn a_node_behind_counts_requests_of_a_node_ahead() {
    let rate = rate(10, 60);
    for policy in [
        Policy::SubWindows(SubWindows::strict(rate, 4).unwrap()),
        Policy::SubWindows(SubWindows::new(rate, 4).unwrap()),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        gcra(10),
    ] {
        let server = MemcachedServer::start().await;
        let time = TestTime::default();
        time.set(START - DurationUs(1));
        let behind = counts_ahead(server.port(), &time, DurationUs::ZERO);
        let ahead = counts_ahead(server.port(), &time, CLOCKS_APART_MAX);
        for _ in 0..10 {
            let verdict = call(&ahead, &policy, Cost::ONE).await.unwrap();
            assert!(verdict.is_allowed(), "{policy:?}");
        }
        let verdict = call(&behind, &policy, Cost::ONE).await.unwrap();
        assert!(!verdict.is_allowed(), "{policy:?}");
        // The rejected request leaves no count.
        let left = call(&ahead, &policy, Cost::refund(1)).await.unwrap();
        assert_eq!(left.remaining, 1, "{policy:?}");
    }
}
