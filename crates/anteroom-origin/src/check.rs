//! Asks origins whether they are well, one task for each, over connections of their own.

use std::error::Error;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anteroom_config::HealthCheck;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{HeaderValue, Request};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::group::Group;
use crate::pool::RequestBody;

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
    let mut ticks = interval(Duration::from_millis(check.every.0));
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
