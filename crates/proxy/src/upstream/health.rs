//! Health of an origin, a state machine fed by checks and requests.
//!
//! Checks decide permanently: after a number of bad ones in a row an origin is unhealthy, until as
//! many good ones. Requests decide for a while: an origin without a response to several in a row,
//! or with gateway errors for most, is ejected. It comes back after a time, on trial; each further
//! failure doubles the time. The clock is an argument. The group decides whether an origin may be
//! ejected at all.
//!
//! # Why not every 5xx, and not in a row
//!
//! Visitors choose their requests. If any 5xx counted, a visitor who knows a broken page could
//! eject origins with five clicks. So a 500 counts like any other response (as with nginx, where no
//! status counts unless it is named, and with Envoy's gateway errors). 502, 503 and 504 mean that
//! the origin or its backend fails: they count by their share among all responses of a window (as
//! with Envoy's failure percentage). Only missing responses count in a row. The group bounds what a
//! visitor who causes those can do: half of its origins.

use std::time::Duration;

use tokio::time::Instant;

/// Requests in a row without a response that eject an origin. One may be a restart of a worker.
const UNANSWERED_MAX: u32 = 5;
/// Requests in a row without a response that eject an origin on trial. It has failed before, and
/// yet one may be a single odd page.
const UNANSWERED_ON_TRIAL_MAX: u32 = 2;
/// Window for the share of gateway errors; a new one begins after it, as for admissions.
const WINDOW: Duration = Duration::from_secs(10);
/// Minimum gateway errors in a window (502, 503, 504) for an ejection: a rate limit for one visitor
/// gives fewer.
const GATEWAY_ERRORS_MIN: u32 = 10;
/// Minimum gateway errors on trial, where the first good response ends the trial.
const GATEWAY_ERRORS_ON_TRIAL_MIN: u32 = 3;
/// Length of the first ejection: a restart takes about so long.
const EJECTION_MIN: Duration = Duration::from_secs(10);
/// Maximum length of an ejection: a repaired origin should not be idle for longer.
const EJECTION_MAX: Duration = Duration::from_secs(160);

/// Numbers of checks in a row that change the health.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CheckThresholds {
    pub(crate) healthy_after: u32,
    pub(crate) unhealthy_after: u32,
}

/// Condition of an origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Condition {
    /// Origin that gets requests.
    Up,
    /// Origin that is ejected after failed requests; it comes back after a time.
    Out,
    /// Origin that fails its checks.
    Unhealthy,
}

impl Condition {
    /// Returns the stable word for JSON, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Out => "out",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// Health of one origin.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    since: Instant,
    /// Whether a check has run.
    is_known: bool,
    is_unhealthy: bool,
    /// Checks in a row that contradict the present health.
    contrary_checks: u32,
    /// Requests in a row without a response.
    unanswered: u32,
    window_began: Instant,
    /// Responses in the window.
    responses: u32,
    /// Responses in the window with status 502, 503 or 504.
    gateway_errors: u32,
    out_until: Option<Instant>,
    /// Ejections since the last good response.
    ejections: u32,
}

impl Health {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            is_known: false,
            is_unhealthy: false,
            contrary_checks: 0,
            unanswered: 0,
            window_began: now,
            responses: 0,
            gateway_errors: 0,
            out_until: None,
            ejections: 0,
        }
    }

    pub(crate) fn condition(&self, now: Instant) -> Condition {
        if self.is_unhealthy {
            Condition::Unhealthy
        } else if self.is_out(now) {
            Condition::Out
        } else {
            Condition::Up
        }
    }

    /// Whether the origin fails its checks.
    pub(crate) const fn is_unhealthy(&self) -> bool {
        self.is_unhealthy
    }

    /// Returns the duration of the present condition.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        let since = self.out_until.filter(|until| *until <= now);
        now.saturating_duration_since(since.unwrap_or(self.since).max(self.since))
    }

    /// Returns the end of the ejection.
    pub(crate) const fn back_at(&self) -> Option<Instant> {
        self.out_until
    }

    /// Forgets the results of checks, because checks have ended.
    pub(crate) fn forget_checks(&mut self, now: Instant) {
        if self.is_unhealthy {
            self.since = now;
        }
        self.is_known = false;
        self.is_unhealthy = false;
        self.contrary_checks = 0;
    }

    /// Handles the result of a check. The very first one decides alone: an origin that was
    /// unavailable at the start should not get requests until its third check.
    pub(crate) fn handle_check(
        &mut self,
        is_good: bool,
        thresholds: CheckThresholds,
        now: Instant,
    ) {
        let is_first = !std::mem::replace(&mut self.is_known, true);
        if is_good != self.is_unhealthy {
            self.contrary_checks = 0;
            return;
        }
        self.contrary_checks += 1;
        let needed = if is_good {
            thresholds.healthy_after
        } else {
            thresholds.unhealthy_after
        };
        if is_first || self.contrary_checks >= needed {
            self.is_unhealthy = !is_good;
            self.contrary_checks = 0;
            self.since = now;
        }
    }

    /// Whether the ejection has ended, and no request has succeeded since.
    pub(crate) fn is_on_trial(&self, now: Instant) -> bool {
        self.out_until.is_some_and(|until| until <= now)
    }

    /// Handles a good response.
    pub(crate) fn handle_good(&mut self, now: Instant) {
        // A request from before the ejection says nothing about the time since.
        if self.is_out(now) {
            return;
        }
        if self.is_on_trial(now) {
            self.since = self.age_began(now);
            self.out_until = None;
            self.ejections = 0;
            self.begin_window(now);
        }
        self.note_response(false, now);
    }

    /// Handles a failed request: without a response (`is_unanswered`), or with 502, 503 or 504.
    /// Ejects the origin if there were too many and `may_spare` allows it.
    pub(crate) fn handle_failure(&mut self, is_unanswered: bool, may_spare: bool, now: Instant) {
        if self.is_out(now) {
            return;
        }
        let is_on_trial = self.is_on_trial(now);
        let is_enough = if is_unanswered {
            self.unanswered = self.unanswered.saturating_add(1);
            let most = if is_on_trial {
                UNANSWERED_ON_TRIAL_MAX
            } else {
                UNANSWERED_MAX
            };
            self.unanswered >= most
        } else {
            self.note_response(true, now);
            let least = if is_on_trial {
                GATEWAY_ERRORS_ON_TRIAL_MIN
            } else {
                GATEWAY_ERRORS_MIN
            };
            self.gateway_errors >= least && self.gateway_errors > self.responses / 2
        };
        if is_enough && may_spare {
            self.eject(now);
        }
    }

    fn is_out(&self, now: Instant) -> bool {
        self.out_until.is_some_and(|until| now < until)
    }

    fn eject(&mut self, now: Instant) {
        let doubled = EJECTION_MIN.saturating_mul(1 << self.ejections.min(10));
        let until = now + doubled.min(EJECTION_MAX);
        self.ejections = self.ejections.saturating_add(1);
        self.out_until = Some(until);
        self.since = now;
        self.unanswered = 0;
        self.begin_window(until);
    }

    fn note_response(&mut self, is_gateway_error: bool, now: Instant) {
        if now.saturating_duration_since(self.window_began) >= WINDOW {
            self.begin_window(now);
        }
        self.unanswered = 0;
        self.responses = self.responses.saturating_add(1);
        self.gateway_errors = self
            .gateway_errors
            .saturating_add(u32::from(is_gateway_error));
    }

    fn begin_window(&mut self, at: Instant) {
        self.window_began = at;
        self.responses = 0;
        self.gateway_errors = 0;
    }

    fn age_began(&self, now: Instant) -> Instant {
        now.checked_sub(self.age(now)).unwrap_or(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLDS: CheckThresholds = CheckThresholds {
        healthy_after: 2,
        unhealthy_after: 3,
    };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn checks_in_a_row_change_the_verdict_and_the_first_decides_alone() {
        let now = Instant::now();
        let check = |checks: &str, expected| {
            let mut health = Health::new(now);
            for check in checks.chars() {
                health.handle_check(check == '+', THRESHOLDS, now);
            }
            assert_eq!(health.condition(now), expected, "{checks}");
        };
        check("", Condition::Up);
        check("-", Condition::Unhealthy);
        check("-+", Condition::Unhealthy);
        check("-++", Condition::Up);
        check("-+-+", Condition::Unhealthy);
        check("+--", Condition::Up);
        check("+---", Condition::Unhealthy);
        check("+--+--", Condition::Up);
    }

    const UNANSWERED: bool = true;
    const GATEWAY_ERROR: bool = false;

    fn fail(health: &mut Health, times: u32, is_unanswered: bool, now: Instant) {
        for _ in 0..times {
            health.handle_failure(is_unanswered, true, now);
        }
    }

    #[test]
    fn five_unanswered_requests_eject_an_origin_for_a_while() {
        let now = Instant::now();
        let mut health = Health::new(now);
        fail(&mut health, 4, UNANSWERED, now);
        health.handle_good(now);
        fail(&mut health, 4, UNANSWERED, now);
        // A response, even if it is not a good one.
        fail(&mut health, 1, GATEWAY_ERROR, now);
        fail(&mut health, 4, UNANSWERED, now);
        assert_eq!(health.condition(now), Condition::Up);
        fail(&mut health, 1, UNANSWERED, now);
        assert_eq!(health.condition(now), Condition::Out);
        assert_eq!(health.condition(now + seconds(9)), Condition::Out);
        assert_eq!(health.condition(now + seconds(10)), Condition::Up);
        assert_eq!(health.age(now + seconds(12)), seconds(2));
    }

    #[test]
    fn ten_5xx_answers_eject_an_origin_if_they_are_most() {
        let now = Instant::now();
        let check = |good: u32, gateway_errors: u32, later: u64, expected| {
            let mut health = Health::new(now);
            for _ in 0..good {
                health.handle_good(now);
            }
            fail(&mut health, gateway_errors - 1, GATEWAY_ERROR, now);
            fail(&mut health, 1, GATEWAY_ERROR, now + seconds(later));
            let condition = health.condition(now + seconds(later));
            assert_eq!(condition, expected, "{good} {gateway_errors} {later}");
        };
        check(0, 9, 0, Condition::Up);
        check(0, 10, 9, Condition::Out);
        check(0, 10, 10, Condition::Up);
        check(9, 10, 0, Condition::Out);
        check(10, 10, 0, Condition::Up);
        // Repeated requests for one page are not the majority.
        check(100, 100, 0, Condition::Up);
    }

    #[test]
    fn on_probation_less_ejects_and_each_ejection_lasts_twice_as_long() {
        for (is_unanswered, first, on_trial) in [(UNANSWERED, 5, 2), (GATEWAY_ERROR, 10, 3)] {
            let mut now = Instant::now();
            let mut health = Health::new(now);
            fail(&mut health, first, is_unanswered, now);
            for away in [10, 20, 40, 80, 160, 160] {
                assert_eq!(health.back_at(), Some(now + seconds(away)));
                // Requests that were in flight say nothing new.
                fail(&mut health, 20, is_unanswered, now + seconds(1));
                health.handle_good(now + seconds(2));
                now += seconds(away);
                assert!(health.is_on_trial(now));
                fail(&mut health, on_trial - 1, is_unanswered, now);
                assert_eq!(health.condition(now), Condition::Up);
                fail(&mut health, 1, is_unanswered, now);
                assert_eq!(health.condition(now), Condition::Out);
            }
        }
    }

    #[test]
    fn a_good_answer_on_trial_ends_it() {
        let now = Instant::now();
        let mut health = Health::new(now);
        fail(&mut health, 5, UNANSWERED, now);
        let back = now + seconds(10);
        health.handle_good(back);
        assert!(!health.is_on_trial(back));
        fail(&mut health, 4, UNANSWERED, back);
        assert_eq!(health.condition(back), Condition::Up);
        fail(&mut health, 1, UNANSWERED, back);
        assert_eq!(
            health.back_at(),
            Some(back + seconds(10)),
            "as if for the first time"
        );
    }

    #[test]
    fn an_indispensable_origin_is_not_ejected_and_checks_outlast_ejections() {
        let now = Instant::now();
        let mut health = Health::new(now);
        for _ in 0..50 {
            health.handle_failure(UNANSWERED, false, now);
            health.handle_failure(GATEWAY_ERROR, false, now);
        }
        assert_eq!(health.condition(now), Condition::Up);
        health.handle_check(false, THRESHOLDS, now);
        health.handle_failure(UNANSWERED, true, now);
        assert_eq!(health.condition(now + seconds(60)), Condition::Unhealthy);
        health.forget_checks(now + seconds(60));
        assert_eq!(health.condition(now + seconds(60)), Condition::Up);
    }
}
