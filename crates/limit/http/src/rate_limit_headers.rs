//! Headers that tell a client the state of its limits.
//!
//! - `RateLimit-Policy` and `RateLimit`, as lists (draft-ietf-httpapi-ratelimit-headers since -08),
//!   on every response;
//! - or the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of the limit that is nearest.

use anteroom_config::{LegacyReset, LimitHeaders};
use anteroom_limit::rate::Rate;
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_proxy::fast_path::write_line;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Value of `Retry-After` if no request of this cost is ever allowed, in seconds. A day keeps
/// programs from polling every second.
const NEVER_SECONDS: u64 = 86_400;

/// Outcome of one request at one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitOutcome<'l> {
    pub(crate) name: &'l str,
    pub(crate) rate: Rate,
    /// Value of `RateLimit-Policy` for this limit alone, if it is cached.
    pub(crate) policy_header: Option<&'l HeaderValue>,
    pub(crate) headers: LimitHeaders,
    pub(crate) verdict: Verdict,
}

impl LimitOutcome<'_> {
    /// Returns whole seconds until more is free: for a rejected request until it may come again,
    /// for others until the limit is fully free.
    pub(crate) fn effective_seconds(&self) -> u64 {
        match self.verdict.outcome {
            Outcome::Reject {
                retry_after: Some(after),
            } => after.secs_ceil(),
            Outcome::Reject { retry_after: None } => NEVER_SECONDS,
            Outcome::Allow { .. } => self.verdict.full_after.secs_ceil(),
        }
    }
}

/// Adds the state of the limits to a response. `now_seconds` is the wall clock.
pub(crate) fn add(
    headers: &mut HeaderMap,
    outcomes: &[LimitOutcome<'_>],
    now_seconds: impl Fn() -> u64,
) {
    HeaderValues::of(outcomes, now_seconds).add_to(headers);
}

/// Header values, computed before there is a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderValues {
    policies: Option<HeaderValue>,
    limits: Option<HeaderValue>,
    legacy: Option<Legacy>,
}

#[derive(Clone, Copy, Debug)]
struct Legacy {
    limit: u32,
    remaining: u32,
    reset: u64,
}

impl HeaderValues {
    pub(crate) fn of(outcomes: &[LimitOutcome<'_>], now_seconds: impl Fn() -> u64) -> Self {
        let mut limits = List::new();
        for one in outcomes.iter().filter(|one| one.headers.ietf) {
            limits.begin(one.name);
            limits.number(";r=", u64::from(one.verdict.remaining));
            limits.number(";t=", one.effective_seconds());
        }
        let nearest = outcomes
            .iter()
            .filter(|one| one.headers.legacy.is_some())
            .min_by_key(|one| (one.verdict.is_allowed(), one.verdict.remaining));
        let legacy = nearest.map(|one| {
            let mut reset = one.effective_seconds();
            if one.headers.legacy == Some(LegacyReset::Epoch) {
                reset = reset.saturating_add(now_seconds());
            }
            Legacy {
                limit: one.rate.requests(),
                remaining: one.verdict.remaining,
                reset,
            }
        });
        Self {
            policies: policies(outcomes),
            limits: limits.value(),
            legacy,
        }
    }

    /// Appends the values as lines to a head that has none of the older headers.
    pub(crate) fn write(&self, lines: &mut Vec<u8>) {
        let lists = [
            (&RATE_LIMIT_POLICY, &self.policies),
            (&RATE_LIMIT, &self.limits),
        ];
        for (name, value) in lists {
            if let Some(value) = value {
                write_line(lines, name.as_str(), value.as_bytes());
            }
        }
        if let Some(legacy) = self.legacy {
            let numbers = [
                (&LEGACY_LIMIT, u64::from(legacy.limit)),
                (&LEGACY_REMAINING, u64::from(legacy.remaining)),
                (&LEGACY_RESET, legacy.reset),
            ];
            for (name, number) in numbers {
                write_line(lines, name.as_str(), HeaderValue::from(number).as_bytes());
            }
        }
    }

    /// Adds the values to a response. Lists are extended, so that the origin's own limits stay.
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        if let Some(policies) = self.policies {
            headers.append(RATE_LIMIT_POLICY, policies);
        }
        if let Some(limits) = self.limits {
            headers.append(RATE_LIMIT, limits);
        }
        if let Some(legacy) = self.legacy {
            headers.insert(LEGACY_LIMIT, HeaderValue::from(legacy.limit));
            headers.insert(LEGACY_REMAINING, HeaderValue::from(legacy.remaining));
            headers.insert(LEGACY_RESET, HeaderValue::from(legacy.reset));
        }
    }
}

/// Returns the policies of the limits, for any client. For a single limit the value is cached.
fn policies(outcomes: &[LimitOutcome<'_>]) -> Option<HeaderValue> {
    if let [one] = outcomes
        && let Some(policy_header) = one.policy_header
    {
        return one.headers.ietf.then(|| policy_header.clone());
    }
    let mut list = List::new();
    for one in outcomes.iter().filter(|one| one.headers.ietf) {
        list.policy(one.name, one.rate);
    }
    list.value()
}

/// Returns the value of `RateLimit-Policy` for one limit alone.
pub(crate) fn policy_alone(name: &str, rate: Rate) -> Option<HeaderValue> {
    let mut list = List::new();
    list.policy(name, rate);
    list.value()
}

/// List value of a header. Written by hand, because every response has two, and formatting costs as
/// much as deciding.
struct List(SmallVec<[u8; 96]>);

impl List {
    fn new() -> Self {
        Self(SmallVec::new())
    }

    fn policy(&mut self, name: &str, rate: Rate) {
        self.begin(name);
        self.number(";q=", u64::from(rate.requests()));
        self.number(";w=", rate.window().secs_ceil());
    }

    /// Begins a member. Names contain no quotes.
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

    /// Returns the value; `None` if it is empty.
    fn value(&self) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        HeaderValue::from_bytes(&self.0).ok()
    }
}

#[cfg(test)]
pub(crate) mod tests;
