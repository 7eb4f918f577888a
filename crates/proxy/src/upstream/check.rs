//! Health checks of origins, one task for each, over their own connections.

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

/// Longest delay of the first check.
const FIRST_WITHIN: Duration = Duration::from_secs(1);

/// Starts the checks of a group's origins, if it has checks; the tasks end with the group.
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
    // Different for each origin and each node.
    let lot = RandomState::new().hash_one(index);
    let mut ticks = interval_at(Instant::now() + first_after(lot, interval), interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(group) = group.upgrade() else { return };
        let wait = Duration::from_millis(check.timeout.0);
        let result = timeout(wait, probe(&group, index, &check, &host)).await;
        let late = |_| {
            Err(format!(
                "no response to a check within {} ms",
                wait.as_millis()
            ))
        };
        group.note_check(index, result.unwrap_or_else(late));
    }
}

/// Returns the delay of the first check: a random part of the interval, so that the checks of all
/// origins do not run at the same moment. It is short, because the health is unknown until then.
fn first_after(lot: u64, interval: Duration) -> Duration {
    const LOTS: u32 = 1_024;
    let part = u32::try_from(lot % u64::from(LOTS)).unwrap_or(0);
    interval.min(FIRST_WITHIN) * part / LOTS
}

async fn probe<B: RequestBody>(
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
        .map_err(|_| "invalid path of the health check".to_owned())?;
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(host) {
        headers.insert(HOST, host);
    }
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static("anteroom-health-check"),
    );
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let response = origin.pool.probe(request).await;
    let status = response.map_err(|failure| chain(&failure))?.status();
    if check.expected_status.contain(status.as_u16()) {
        Ok(())
    } else {
        Err(format!("a check got status {status}"))
    }
}

/// Formats an error with its causes on one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors include the text of their cause.
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
    fn first_checks_are_spread_over_a_second_or_the_interval() {
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
