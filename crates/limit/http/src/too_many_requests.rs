//! What limits respond instead of letting a call through.
//!
//! - Over the limit: 429 (RFC 6585, section 4), `Retry-After` in whole seconds, rounded up, with a
//!   little more for each so that not all who were sent away come back at once, and a body that
//!   names the limits (RFC 9457), or a page for people.
//! - A limit that cannot be checked: 503, in the same forms.
//! - A call without what a limit tells clients apart by: 400.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderValue, Response, StatusCode};

use crate::rate_limit_headers::LimitOutcome;

/// When to come again while calls cannot be counted: about as long as it takes to find a store that
/// is back.
const AWAY_SECONDS: u64 = 5;
const PROBLEM: &str = "application/problem+json";
const HTML: &str = "text/html; charset=utf-8";
/// How much longer than they must some wait, in parts of a hundred.
const JITTER_PERCENT: u64 = 10;

/// The answer to a call that is over its limits. `chance` is a random number, for the wait.
pub(crate) fn refuse(
    said: &[LimitOutcome<'_>],
    accept: Option<&HeaderValue>,
    chance: u64,
) -> Response<Bytes> {
    let rejecting = || said.iter().filter(|one| !one.verdict.is_admitted());
    let longest = rejecting().map(LimitOutcome::effective_seconds).max();
    let seconds = with_jitter(longest.unwrap_or(1).max(1), chance);
    let names: Vec<&str> = rejecting().map(|one| one.name).collect();
    let (kind, body) = if is_for_people(accept) {
        (HTML, page(seconds))
    } else {
        (PROBLEM, problem(&names, seconds))
    };
    let response = refusal(StatusCode::TOO_MANY_REQUESTS, kind, body);
    for_now(response, seconds)
}

/// The answer to a call that cannot be counted. `chance` is a random number, for the wait.
pub(crate) fn unavailable(
    name: &str,
    accept: Option<&HeaderValue>,
    chance: u64,
) -> Response<Bytes> {
    let seconds = with_jitter(AWAY_SECONDS, chance);
    let (kind, body) = if is_for_people(accept) {
        let page = include_str!("../templates/unavailable.html");
        let page = page.replace("{{wait}}", &words(seconds));
        (HTML, Bytes::from(page))
    } else {
        let problem = serde_json::json!({
            "type": "about:blank",
            "title": "Service unavailable",
            "status": 503,
            "detail": format!(
                "The limit {name} cannot be checked. Please ask again in {}.",
                words(seconds)
            ),
        });
        (PROBLEM, Bytes::from(problem.to_string()))
    };
    let response = refusal(StatusCode::SERVICE_UNAVAILABLE, kind, body);
    for_now(response, seconds)
}

/// The answer to a call that lacks what a limit tells clients apart by.
pub(crate) fn incomplete(name: &str) -> Response<Bytes> {
    let problem = serde_json::json!({
        "type": "about:blank",
        "title": "Bad request",
        "status": 400,
        "detail": format!("The request lacks what the limit {name} tells clients apart by."),
    });
    let problem = Bytes::from(problem.to_string());
    refusal(StatusCode::BAD_REQUEST, PROBLEM, problem)
}

fn refusal(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // RFC 6585: it must not be stored.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A refusal that comes as a page or for programs, and does not hold for longer than this.
fn for_now(mut response: Response<Bytes>, seconds: u64) -> Response<Bytes> {
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// Up to a tenth longer, and at least up to a second.
fn with_jitter(seconds: u64, chance: u64) -> u64 {
    let most = (seconds / (100 / JITTER_PERCENT)).max(1);
    seconds.saturating_add(chance % (most + 1))
}

/// Programs ask for JSON, or for anything.
fn is_for_people(accept: Option<&HeaderValue>) -> bool {
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| {
        let html = accept.find("text/html");
        let json = accept.find("json");
        html.is_some_and(|html| json.is_none_or(|json| html < json))
    })
}

fn problem(names: &[&str], seconds: u64) -> Bytes {
    let problem = serde_json::json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too many requests",
        "status": 429,
        "detail": format!("Over the limit. Please ask again in {}.", words(seconds)),
        "violated-policies": names,
    });
    Bytes::from(problem.to_string())
}

fn page(seconds: u64) -> Bytes {
    static PAGE: LazyLock<(&str, &str)> = LazyLock::new(|| {
        include_str!("../templates/too-many.html")
            .split_once("{{wait}}")
            .unwrap_or_default()
    });
    let (before, after) = *PAGE;
    Bytes::from([before, &words(seconds), after].concat())
}

/// A time to wait, in words.
fn words(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds.div_ceil(60), "minute"),
        7_200..172_800 => (seconds.div_ceil(3_600), "hour"),
        _ => (seconds.div_ceil(86_400), "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests;
