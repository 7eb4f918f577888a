//! What the tests have in common.

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
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _, TestTime};
use anteroom_memcached::MemcachedCounts;

/// A minute's beginning, and a day's.
pub(crate) const START: TimestampUs = TimestampUs(1_767_225_600_000_000);

pub(crate) fn server(port: u16) -> HostPort {
    let host = "127.0.0.1".to_owned();
    HostPort { host, port }
}

/// Counts at one server, by a clock that stands still.
pub(crate) fn counts(port: u16) -> MemcachedCounts {
    let time = TestTime::default();
    time.set(START);
    counts_at(port, &time)
}

pub(crate) fn counts_at(port: u16, time: &TestTime) -> MemcachedCounts {
    MemcachedCounts::with_time(&[server(port)], "anteroom", time.clone())
}

/// Counts at these servers, by a clock that stands still, where each call waits for so long.
pub(crate) fn patient_for(ports: &[u16], timeout: Duration) -> MemcachedCounts {
    let time = TestTime::default();
    time.set(START);
    let servers: Vec<HostPort> = ports.iter().copied().map(server).collect();
    MemcachedCounts::with_time(&servers, "anteroom", time).with_timeout(timeout)
}

/// Counts at one server, by a clock that is so far from another one.
pub(crate) fn counts_ahead(port: u16, time: &TestTime, ahead: DurationUs) -> MemcachedCounts {
    let time = time.clone();
    let now = Arc::new(move || time.now() + ahead);
    MemcachedCounts::new(&[server(port)], "anteroom", now)
}

pub(crate) fn rate(calls: u32, secs: u64) -> Rate {
    Rate::new(calls, DurationUs::from_secs(secs)).expect("it is in range")
}

pub(crate) fn a_minute(calls: u32) -> Policy {
    Policy::FixedWindow(FixedWindow::new(rate(calls, 60)))
}

pub(crate) fn gcra(calls: u32) -> Policy {
    Policy::Gcra(Gcra::new(rate(calls, 60), calls).expect("it is in range"))
}

/// Charges the client that most tests use.
pub(crate) async fn call(
    counts: &MemcachedCounts,
    policy: &Policy,
    cost: Cost,
) -> Result<Verdict, CountsError> {
    let charge = SharedAcquire {
        limit: "api",
        policy,
        key: CallKey(1),
        cost,
    };
    Ok(counts.charge(&[charge]).await?[0])
}
