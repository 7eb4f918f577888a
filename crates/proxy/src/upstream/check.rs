//! Asks origins whether they are well, one task for each, over connections of their own.

use std::error::Error;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anteroom_config::HealthCheck;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{HeaderValue, Request};
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::upstream::group::Group;
use crate::upstream::request::RequestBody;

/// The first check comes within so long.
const FIRST_WITHIN: Duration = Duration::from_secs(1);

/// Begins to check the origins of a group, if it has checks; the tasks end with the group.
pub(crate) fn begin<B: RequestBody + Sync>(group: &Arc<Group<B>>, host: &str) {
    let Some(check) = &group.check else { return };
    let tasks = (0..group.len()).map(|index| {
        let watch = watch(Arc::downgrade(group), index, check.clone(), host.to_owned());
        tokio::spawn(watch).abort_handle()
    });
    let tasks: Vec<AbortHandle> = tasks.collect();
    group.hold_tasks(tasks);
}

async fn watch<B: RequestBody + Sync>(
    group: Weak<Group<B>>,
    index: usize,
    check: HealthCheck,
    host: String,
) {
    let interval = Duration::from_millis(check.interval.0);
    // Not the same for two of them, nor for two nodes.
    let lot = RandomState::new().hash_one(index);
    let mut ticks = interval_at(Instant::now() + first_after(lot, interval), interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(group) = group.upgrade() else { return };
        let wait = Duration::from_millis(check.timeout.0);
        let result = timeout(wait, ask(&group, index, &check, &host)).await;
        let late = |_| {
            Err(format!(
                "no answer to a check within {} ms",
                wait.as_millis()
            ))
        };
        group.note_check(index, result.unwrap_or_else(late));
    }
}

/// How long the first check waits: a part of the time between two that is drawn by lot, so that not
/// all origins of all rooms are asked at the same moment, for ever; and not long, for nobody knows
/// until then whether there is an origin.
fn first_after(lot: u64, interval: Duration) -> Duration {
    const LOTS: u32 = 1_024;
    let part = u32::try_from(lot % u64::from(LOTS)).unwrap_or(0);
    interval.min(FIRST_WITHIN) * part / LOTS
}

async fn ask<B: RequestBody>(
    group: &Group<B>,
    index: usize,
    check: &HealthCheck,
    host: &str,
) -> Result<(), String> {
    let origin = group.origin(index);
    let host = if host.is_empty() {
        origin.url.split("://").nth(1).unwrap_or_default()
    } else {
        host
    };
    let mut request = Request::new(B::default());
    *request.uri_mut() = check
        .path
        .parse()
        .map_err(|_| "no path to ask for".to_owned())?;
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(host) {
        headers.insert(HOST, host);
    }
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static("anteroom-health-check"),
    );
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let answer = origin.pool.ask(request).await;
    let status = answer.map_err(|failure| chain(&failure))?.status();
    if check.expected_status.contain(status.as_u16()) {
        Ok(())
    } else {
        Err(format!("a check was answered with {status}"))
    }
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some say what their cause says.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_checks_are_spread_over_a_second_or_the_time_between_two() {
        let check = |lot, every_ms, expected_ms| {
            let after = first_after(lot, Duration::from_millis(every_ms));
            assert_eq!(after, Duration::from_millis(expected_ms), "{lot}");
        };
        check(0, 5_000, 0);
        check(512, 5_000, 500);
        check(u64::MAX - 511, 5_000, 500);
        check(256, 100, 25);
        let last = first_after(1_023, Duration::from_secs(60));
        assert!(last < FIRST_WITHIN);
    }
}
