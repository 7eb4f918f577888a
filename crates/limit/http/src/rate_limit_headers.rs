//! What is a client told about its limits?
//!
//! - `RateLimit-Policy` and `RateLimit`, as lists (draft-ietf-httpapi-ratelimit-headers since -08),
//!   on every answer;
//! - or the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of the limit that is nearest;
//! - over the limit: 429 (RFC 6585, section 4), `Retry-After` in whole seconds, rounded up, with a
//!   little more for each so that not all who were sent away come back at once, and a body that
//!   names the limits (RFC 9457), or a page for people.

use std::sync::LazyLock;

use anteroom_config::{LegacyReset, LimitHeaders};
use anteroom_limit::rate::Rate;
use anteroom_limit::time::MicroSpan;
use anteroom_limit::verdict::{Outcome, Verdict};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use smallvec::SmallVec;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// What `Retry-After` says where no time would be early enough: no call of this cost is ever let
/// through. A day keeps programs from asking every second.
const NEVER_SECONDS: u64 = 86_400;
/// When to come again while calls cannot be counted: about as long as it takes to find a store that
/// is back.
const AWAY_SECONDS: u64 = 5;
const PROBLEM: &str = "application/problem+json";
const HTML: &str = "text/html; charset=utf-8";
/// How much longer than they must some wait, in parts of a hundred.
const JITTER_PERCENT: u64 = 10;

/// What one limit said to a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'l> {
    pub(crate) name: &'l str,
    pub(crate) rate: Rate,
    /// What it says of its rate where it speaks alone, if that is written down.
    pub(crate) usual: Option<&'l HeaderValue>,
    pub(crate) spoken: LimitHeaders,
    pub(crate) verdict: Verdict,
}

impl Said<'_> {
    /// Whole seconds until more is free: for whoever was rejected until it may come again, for
    /// others until the limit is wholly free.
    fn effective_seconds(&self) -> u64 {
        match self.verdict.outcome {
            Outcome::Reject {
                retry_after: Some(after),
            } => after.secs_ceil(),
            Outcome::Reject { retry_after: None } => NEVER_SECONDS,
            Outcome::Admit { .. } => self.verdict.full_after.secs_ceil(),
        }
    }
}

/// Adds to an answer how the limits stand. `now_seconds` is the wall clock.
pub(crate) fn tell(headers: &mut HeaderMap, said: &[Said<'_>], now_seconds: impl Fn() -> u64) {
    Told::of(said, now_seconds).add_to(headers);
}

/// What is added to an answer, before there is one.
#[derive(Debug, Default)]
pub(crate) struct Told {
    policies: Option<HeaderValue>,
    standings: Option<HeaderValue>,
    legacy: Option<Legacy>,
}

#[derive(Clone, Copy, Debug)]
struct Legacy {
    limit: u32,
    remaining: u32,
    reset: u64,
}

impl Told {
    pub(crate) fn of(said: &[Said<'_>], now_seconds: impl Fn() -> u64) -> Self {
        let mut standings = Line::new();
        for one in said.iter().filter(|one| one.spoken.ietf) {
            standings.begin(one.name);
            standings.number(";r=", u64::from(one.verdict.remaining));
            standings.number(";t=", one.effective_seconds());
        }
        let nearest = said
            .iter()
            .filter(|one| one.spoken.legacy.is_some())
            .min_by_key(|one| (one.verdict.is_admitted(), one.verdict.remaining));
        let legacy = nearest.map(|one| {
            let mut reset = one.effective_seconds();
            if one.spoken.legacy == Some(LegacyReset::Epoch) {
                reset = reset.saturating_add(now_seconds());
            }
            Legacy {
                limit: one.rate.calls(),
                remaining: one.verdict.remaining,
                reset,
            }
        });
        Self {
            policies: policies(said),
            standings: standings.value(),
            legacy,
        }
    }

    /// A list goes on: what an origin says of its own limits stays.
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        if let Some(policies) = self.policies {
            headers.append(RATE_LIMIT_POLICY, policies);
        }
        if let Some(standings) = self.standings {
            headers.append(RATE_LIMIT, standings);
        }
        if let Some(legacy) = self.legacy {
            headers.insert(LEGACY_LIMIT, HeaderValue::from(legacy.limit));
            headers.insert(LEGACY_REMAINING, HeaderValue::from(legacy.remaining));
            headers.insert(LEGACY_RESET, HeaderValue::from(legacy.reset));
        }
    }
}

/// What the limits are, whoever calls. Where one speaks alone, that was written down when it was
/// made.
fn policies(said: &[Said<'_>]) -> Option<HeaderValue> {
    if let [one] = said
        && let Some(usual) = one.usual
    {
        return one.spoken.ietf.then(|| usual.clone());
    }
    let mut line = Line::new();
    for one in said.iter().filter(|one| one.spoken.ietf) {
        line.policy(one.name, one.rate);
    }
    line.value()
}

/// What a limit says of itself in `RateLimit-Policy` if no other one speaks.
pub(crate) fn policy_alone(name: &str, rate: Rate) -> Option<HeaderValue> {
    let mut line = Line::new();
    line.policy(name, rate);
    line.value()
}

/// A list of a header, as it is written. By hand: every answer has two, and formatting costs as
/// much as deciding.
struct Line(SmallVec<[u8; 96]>);

impl Line {
    fn new() -> Self {
        Self(SmallVec::new())
    }

    fn policy(&mut self, name: &str, rate: Rate) {
        self.begin(name);
        self.number(";q=", u64::from(rate.calls()));
        self.number(";w=", rate.window().secs_ceil());
    }

    /// Names hold no quotes.
    fn begin(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.extend_from_slice(b", ");
        }
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'"');
    }

    fn number(&mut self, key: &str, mut number: u64) {
        self.0.extend_from_slice(key.as_bytes());
        // The longest has twenty digits.
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[at..]);
    }

    /// `None` if it is empty.
    fn value(&self) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        HeaderValue::from_bytes(&self.0).ok()
    }
}

/// The answer to a call that is over its limits. `chance` is a random number, for the wait.
pub(crate) fn refuse(
    said: &[Said<'_>],
    accept: Option<&HeaderValue>,
    chance: u64,
) -> Response<Bytes> {
    let rejecting = || said.iter().filter(|one| !one.verdict.is_admitted());
    let longest = rejecting().map(Said::effective_seconds).max();
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
            "detail": format!("The limit {name} cannot be checked. Please ask again in {}.", words(seconds)),
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

/// How long a call that was rejected would have to wait, if it would ever be let through.
pub(crate) fn wait_of(verdicts: impl IntoIterator<Item = Verdict>) -> Option<MicroSpan> {
    let mut longest = MicroSpan::ZERO;
    for verdict in verdicts {
        match verdict.outcome {
            Outcome::Admit { delay } => longest = longest.max(delay),
            Outcome::Reject { retry_after } => longest = longest.max(retry_after?),
        }
    }
    Some(longest)
}

#[cfg(test)]
mod tests;
