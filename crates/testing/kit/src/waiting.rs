//! Waiting for conditions instead of time.

use std::time::Duration;

use tokio::time::{Instant, interval};

/// Time after which a condition counts as false. Generous, because build servers are slow and a
/// slow test should not fail.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Interval at which a condition is checked.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until `holds` returns true.
///
/// # Panics
///
/// If it still does not hold after a minute.
pub async fn eventually<F>(what: &str, holds: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    eventually_within(TIMEOUT, what, holds).await;
}

/// Waits until `holds` returns true, for conditions that may take longer than a minute.
///
/// # Panics
///
/// If it still does not hold after `patience`.
pub async fn eventually_within<F>(patience: Duration, what: &str, mut holds: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let deadline = Instant::now() + patience;
    let mut looks = interval(POLL_INTERVAL);
    loop {
        looks.tick().await;
        if holds().await {
            return;
        }
        assert!(Instant::now() < deadline, "still not so: {what}");
    }
}
