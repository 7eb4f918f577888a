//! A gateway as a process, a client with a cookie jar, and waiting for conditions instead of time.

pub(crate) mod browser;
pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod crowd;
pub(crate) mod line;
pub(crate) mod operator;
pub(crate) mod origin;
pub(crate) mod process;
pub(crate) mod raw;
pub(crate) mod site;
pub(crate) mod stage;

use std::future::Future;
use std::time::Duration;

use anteroom_node::{SystemWallClock, WallClock as _};
use anteroom_room::time::Millis;
use tokio::time::Instant;

/// Longer than anything here takes on a busy machine; a test that reaches it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How often a condition is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The time by the machine's wall clock.
pub(crate) fn now() -> Millis {
    SystemWallClock.read()
}

/// Waits until `holds` says so, looking often.
pub(crate) async fn eventually<F>(what: &str, mut holds: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let deadline = Instant::now() + PATIENCE;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        if holds().await {
            return;
        }
        assert!(Instant::now() < deadline, "still not so: {what}");
    }
}
