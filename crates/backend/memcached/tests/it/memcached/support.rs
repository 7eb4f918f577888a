//! Helpers that the tests share.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _, TestTime};
use anteroom_memcached::MemcachedCounts;

/// Start of a minute and of a day.
pub(crate) const START: TimestampUs = TimestampUs(1_767_225_600_000_000);

pub(crate) fn server(port: u16) -> HostPort {
    let host = "127.0.0.1".to_owned();
    HostPort { host, port }
}

/// Returns counts at one server, with a clock that stands still.
pub(crate) fn counts(port: u16) -> MemcachedCounts {
    let time = TestTime::default();
    time.set(START);
    counts_at(port, &time)
}

pub(crate) fn counts_at(port: u16, time: &TestTime) -> MemcachedCounts {
    MemcachedCounts::with_time(&[server(port)], "anteroom", time.clone())
}

/// Returns counts at these servers, with a clock that stands still and this timeout.
pub(crate) fn counts_with_timeout(ports: &[u16], timeout: Duration) -> MemcachedCounts {
    let time = TestTime::default();
    time.set(START);
    let servers: Vec<HostPort> = ports.iter().copied().map(server).collect();
    MemcachedCounts::with_time(&servers, "anteroom", time).with_timeout(timeout)
}

/// Returns counts at one server, with a clock that is ahead of `time`.
pub(crate) fn counts_ahead(port: u16, time: &TestTime, ahead: DurationUs) -> MemcachedCounts {
    let time = time.clone();
    let now = Arc::new(move || time.now() + ahead);
    MemcachedCounts::new(&[server(port)], "anteroom", now)
}

pub(crate) fn rate(requests: u32, secs: u64) -> Rate {
    Rate::new(requests, DurationUs::from_secs(secs)).expect("it is in range")
}

pub(crate) fn a_minute(requests: u32) -> Policy {
    Policy::FixedWindow(FixedWindow::new(rate(requests, 60)))
}

pub(crate) fn gcra(requests: u32) -> Policy {
    Policy::Gcra(Gcra::new(rate(requests, 60), requests).expect("it is in range"))
}

/// Acquires for the client that most tests use.
pub(crate) async fn call(
    counts: &MemcachedCounts,
    policy: &Policy,
    cost: Cost,
) -> Result<Verdict, CountsError> {
    let acquire = SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(1),
        cost,
    };
    Ok(counts.acquire(&[acquire]).await?[0])
}
