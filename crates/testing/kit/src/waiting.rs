//! Waiting for conditions instead of time.

use std::time::Duration;

use tokio::time::{Instant, interval};

/// How long to look for something before it counts as never coming. Generous: build servers are
/// slow, and a test that fails for slowness teaches nothing.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How often a condition is looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until `holds`, looking often.
///
/// # Panics
///
/// If it still does not hold after a minute.
pub async fn eventually<F>(what: &str, holds: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    eventually_within(PATIENCE, what, holds).await;
}

/// Waits until `holds`, looking often: for what may take longer than a minute by its own rules.
///
/// # Panics
///
/// If it still does not hold after `patience`.
pub async fn eventually_within<F>(patience: Duration, what: &str, mut holds: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let deadline = Instant::now() + patience;
    let mut looks = interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        if holds().await {
            return;
        }
        assert!(Instant::now() < deadline, "still not so: {what}");
    }
}
