//! Responses to rejected requests.
//!
//! - Over the limit: 429 (RFC 6585, section 4), `Retry-After` in whole seconds, rounded up, with
//!   some jitter so that clients do not come back all at once, and a body that names the limits
//!   (RFC 9457), or an HTML page.
//! - A limit that cannot be checked: 503, in the same forms.
//! - A request without the key of a limit: 400.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderValue, Response, StatusCode};

use crate::rate_limit_headers::LimitOutcome;

/// Retry time while requests cannot be counted, in seconds: about as long as it takes to notice
/// that a store has recovered.
const UNAVAILABLE_SECONDS: u64 = 5;
const PROBLEM: &str = "application/problem+json";
const HTML: &str = "text/html; charset=utf-8";
/// Largest jitter of `Retry-After`, in percent.
const JITTER_PERCENT: u64 = 10;

/// Returns the response to a request that is over its limits. `chance` is a random number for the
/// jitter.
pub(crate) fn over_limit(
    outcomes: &[LimitOutcome<'_>],
    accept: Option<&str>,
    chance: u64,
) -> Response<Bytes> {
    let rejecting = || outcomes.iter().filter(|one| !one.verdict.is_allowed());
    let longest = rejecting().map(LimitOutcome::effective_seconds).max();
    let seconds = with_jitter(longest.unwrap_or(1).max(1), chance);
    let names: Vec<&str> = rejecting().map(|one| one.name).collect();
    let (kind, body) = if wants_html(accept) {
        (HTML, page(seconds))
    } else {
        (PROBLEM, problem(&names, seconds))
    };
    let response = respond(StatusCode::TOO_MANY_REQUESTS, kind, body);
    with_retry_after(response, seconds)
}

/// Returns the response to a request that cannot be counted. `chance` is a random number for the
/// jitter.
pub(crate) fn unavailable(name: &str, accept: Option<&str>, chance: u64) -> Response<Bytes> {
    let seconds = with_jitter(UNAVAILABLE_SECONDS, chance);
    let (kind, body) = if wants_html(accept) {
        let page = include_str!("../templates/unavailable.html");
        let page = page.replace("{{wait}}", &in_words(seconds));
        (HTML, Bytes::from(page))
    } else {
        let problem = serde_json::json!({
            "type": "about:blank",
            "title": "Service unavailable",
            "status": 503,
            "detail": format!(
                "The limit {name} cannot be checked. Please try again in {}.",
                in_words(seconds)
            ),
        });
        (PROBLEM, Bytes::from(problem.to_string()))
    };
    let response = respond(StatusCode::SERVICE_UNAVAILABLE, kind, body);
    with_retry_after(response, seconds)
}

/// Returns the response to a request without the key of a limit.
pub(crate) fn missing_key(name: &str) -> Response<Bytes> {
    let problem = serde_json::json!({
        "type": "about:blank",
        "title": "Bad request",
        "status": 400,
        "detail": format!("The request lacks the key of the limit {name}."),
    });
    let problem = Bytes::from(problem.to_string());
    respond(StatusCode::BAD_REQUEST, PROBLEM, problem)
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // RFC 6585: caches must not store it.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Adds the retry time, and that the form depends on `Accept`.
fn with_retry_after(mut response: Response<Bytes>, seconds: u64) -> Response<Bytes> {
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// Adds up to a tenth, and up to a second at least.
fn with_jitter(seconds: u64, chance: u64) -> u64 {
    let most = (seconds / (100 / JITTER_PERCENT)).max(1);
    seconds.saturating_add(chance % (most + 1))
}

/// Whether the client prefers HTML. Programs accept JSON, or anything.
fn wants_html(accept: Option<&str>) -> bool {
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
        "detail": format!("Over the limit. Please try again in {}.", in_words(seconds)),
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
    Bytes::from([before, &in_words(seconds), after].concat())
}

/// Formats a waiting time in words.
fn in_words(seconds: u64) -> String {
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
