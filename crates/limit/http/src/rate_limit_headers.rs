//! Headers that tell a client how its limits stand.
//!
//! - `RateLimit-Policy` and `RateLimit`, as lists (draft-ietf-httpapi-ratelimit-headers since -08),
//!   on every response;
//! - or the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of the limit that is nearest.

use anteroom_config::{LegacyReset, LimitHeaders};
use anteroom_limit::rate::Rate;
use anteroom_limit::verdict::{Outcome, Verdict};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// What `Retry-After` says where no time would be early enough: no call of this cost is ever let
/// through. A day keeps programs from asking every second.
const NEVER_SECONDS: u64 = 86_400;

/// What one limit said to a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitOutcome<'l> {
    pub(crate) name: &'l str,
    pub(crate) rate: Rate,
    /// What it says of its rate where it speaks alone, if that is written down.
    pub(crate) usual: Option<&'l HeaderValue>,
    pub(crate) spoken: LimitHeaders,
    pub(crate) verdict: Verdict,
}

impl LimitOutcome<'_> {
    /// Whole seconds until more is free: for whoever was rejected until it may come again, for
    /// others until the limit is wholly free.
    pub(crate) fn effective_seconds(&self) -> u64 {
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
pub(crate) fn tell(
    headers: &mut HeaderMap,
    said: &[LimitOutcome<'_>],
    now_seconds: impl Fn() -> u64,
) {
    HeaderValues::of(said, now_seconds).add_to(headers);
}

/// What is added to an answer, before there is one.
#[derive(Debug, Default)]
pub(crate) struct HeaderValues {
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

impl HeaderValues {
    pub(crate) fn of(said: &[LimitOutcome<'_>], now_seconds: impl Fn() -> u64) -> Self {
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
fn policies(said: &[LimitOutcome<'_>]) -> Option<HeaderValue> {
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

#[cfg(test)]
pub(crate) mod tests;
