//! Is an origin well? What checks and requests say about it, as a state machine.
//!
//! Checks decide for good: after so many bad ones in a row an origin is unhealthy until as many
//! good ones. Requests decide for a while: an origin that does not answer several in a row, or says
//! of most that it cannot, is out, and comes back by itself, on trial; each time it fails again it
//! stays away twice as long. The clock is brought as an argument; whether an origin may be spared
//! at all is for the group to say.
//!
//! # Why not every 5xx, and not in a row
//!
//! Visitors choose what they ask for. If any 5xx counted, whoever knows a broken page could put out
//! origins with five clicks. So a 500 is an answer like any other (as with nginx, where no status
//! counts unless it is named, and with Envoy's gateway errors); 502, 503 and 504, which say that
//! the origin or what stands behind it is not well, count by their share among all answers of a
//! while (as with Envoy's failure percentage); and only what is no answer at all counts in a row.
//! What is left to whoever makes an origin fall silent is bounded by the group: half of its
//! origins.

use std::time::Duration;

use tokio::time::Instant;

/// Requests in a row without an answer that put an origin out. One may be a restart of a worker.
const SILENT_MAX: u32 = 5;
/// The same on trial: it has failed before, and yet one may be a single odd page.
const SILENT_ON_TRIAL_MAX: u32 = 2;
/// Over how long answers are judged by their share; begun anew after it, as for admissions.
const WINDOW: Duration = Duration::from_secs(10);
/// And only if so many were 502, 503 or 504: fewer are what a limit of requests for one visitor
/// gives.
const UNFIT_MIN: u32 = 10;
/// The same on trial, where the first good answer ends the trial.
const UNFIT_ON_TRIAL_MIN: u32 = 3;
/// How long for the first time: a restart takes about so long.
const OUT_MIN: Duration = Duration::from_secs(10);
/// And at most: an origin that was repaired should not stand idle for longer than this.
const OUT_MAX: Duration = Duration::from_secs(160);

/// How many checks in a row change what is believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Patience {
    pub(crate) healthy_after: u32,
    pub(crate) unhealthy_after: u32,
}

/// What an origin is taken for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Condition {
    /// Takes requests.
    Up,
    /// Failed requests again and again; comes back by itself.
    Out,
    /// Failed its checks.
    Unhealthy,
}

impl Condition {
    /// Stable word for JSON, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Out => "out",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// One origin's health.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    since: Instant,
    /// Whether any check has been made.
    is_known: bool,
    is_unhealthy: bool,
    /// Checks in a row that speak against what is believed.
    contrary_checks: u32,
    /// Requests in a row without an answer.
    silent: u32,
    window_began: Instant,
    /// In the window.
    answers: u32,
    /// Those of them that were 502, 503 or 504.
    unfit: u32,
    out_until: Option<Instant>,
    /// How often it went out without a good answer in between.
    times_out: u32,
}

impl Health {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            is_known: false,
            is_unhealthy: false,
            contrary_checks: 0,
            silent: 0,
            window_began: now,
            answers: 0,
            unfit: 0,
            out_until: None,
            times_out: 0,
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

    /// Whether checks say that it is not well.
    pub(crate) const fn is_unhealthy(&self) -> bool {
        self.is_unhealthy
    }

    /// How long it is in its present condition.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        let since = self.out_until.filter(|until| *until <= now);
        now.saturating_duration_since(since.unwrap_or(self.since).max(self.since))
    }

    /// When it comes back by itself.
    pub(crate) const fn back_at(&self) -> Option<Instant> {
        self.out_until
    }

    /// Nobody checks any more: what checks said is forgotten.
    pub(crate) fn forget_checks(&mut self, now: Instant) {
        if self.is_unhealthy {
            self.since = now;
        }
        self.is_known = false;
        self.is_unhealthy = false;
        self.contrary_checks = 0;
    }

    /// A check was made. The first one ever decides alone: an origin that was not there at the
    /// start should not get requests until its third check.
    pub(crate) fn handle_check(&mut self, is_good: bool, patience: Patience, now: Instant) {
        let is_first = !std::mem::replace(&mut self.is_known, true);
        if is_good != self.is_unhealthy {
            self.contrary_checks = 0;
            return;
        }
        self.contrary_checks += 1;
        let needed = if is_good {
            patience.healthy_after
        } else {
            patience.unhealthy_after
        };
        if is_first || self.contrary_checks >= needed {
            self.is_unhealthy = !is_good;
            self.contrary_checks = 0;
            self.since = now;
        }
    }

    /// Whether it was out, and nobody knows yet whether it is well again.
    pub(crate) fn is_on_trial(&self, now: Instant) -> bool {
        self.out_until.is_some_and(|until| until <= now)
    }

    /// A request was answered as it should be.
    pub(crate) fn handle_good(&mut self, now: Instant) {
        // One that was sent before it went out says nothing about what happened since.
        if self.is_out(now) {
            return;
        }
        if self.is_on_trial(now) {
            self.since = self.age_began(now);
            self.out_until = None;
            self.times_out = 0;
            self.begin_window(now);
        }
        self.note_answer(false, now);
    }

    /// A request failed: without an answer (`is_silent`), or with 502, 503 or 504. Puts the origin
    /// out if it was one too many and it may be spared.
    pub(crate) fn handle_failure(&mut self, is_silent: bool, may_spare: bool, now: Instant) {
        if self.is_out(now) {
            return;
        }
        let is_on_trial = self.is_on_trial(now);
        let is_enough = if is_silent {
            self.silent = self.silent.saturating_add(1);
            let most = if is_on_trial {
                SILENT_ON_TRIAL_MAX
            } else {
                SILENT_MAX
            };
            self.silent >= most
        } else {
            self.note_answer(true, now);
            let least = if is_on_trial {
                UNFIT_ON_TRIAL_MIN
            } else {
                UNFIT_MIN
            };
            self.unfit >= least && self.unfit > self.answers / 2
        };
        if is_enough && may_spare {
            self.put_out(now);
        }
    }

    fn is_out(&self, now: Instant) -> bool {
        self.out_until.is_some_and(|until| now < until)
    }

    fn put_out(&mut self, now: Instant) {
        let doubled = OUT_MIN.saturating_mul(1 << self.times_out.min(10));
        let until = now + doubled.min(OUT_MAX);
        self.times_out = self.times_out.saturating_add(1);
        self.out_until = Some(until);
        self.since = now;
        self.silent = 0;
        self.begin_window(until);
    }

    fn note_answer(&mut self, is_unfit: bool, now: Instant) {
        if now.saturating_duration_since(self.window_began) >= WINDOW {
            self.begin_window(now);
        }
        self.silent = 0;
        self.answers = self.answers.saturating_add(1);
        self.unfit = self.unfit.saturating_add(u32::from(is_unfit));
    }

    fn begin_window(&mut self, at: Instant) {
        self.window_began = at;
        self.answers = 0;
        self.unfit = 0;
    }

    fn age_began(&self, now: Instant) -> Instant {
        now.checked_sub(self.age(now)).unwrap_or(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
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
                health.handle_check(check == '+', PATIENCE, now);
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

    const SILENT: bool = true;
    const UNFIT: bool = false;

    fn fail(health: &mut Health, times: u32, is_silent: bool, now: Instant) {
        for _ in 0..times {
            health.handle_failure(is_silent, true, now);
        }
    }

    #[test]
    fn five_unanswered_requests_eject_an_origin_for_a_while() {
        let now = Instant::now();
        let mut health = Health::new(now);
        fail(&mut health, 4, SILENT, now);
        health.handle_good(now);
        fail(&mut health, 4, SILENT, now);
        // An answer, if not a good one.
        fail(&mut health, 1, UNFIT, now);
        fail(&mut health, 4, SILENT, now);
        assert_eq!(health.condition(now), Condition::Up);
        fail(&mut health, 1, SILENT, now);
        assert_eq!(health.condition(now), Condition::Out);
        assert_eq!(health.condition(now + seconds(9)), Condition::Out);
        assert_eq!(health.condition(now + seconds(10)), Condition::Up);
        assert_eq!(health.age(now + seconds(12)), seconds(2));
    }

    #[test]
    fn ten_5xx_answers_eject_an_origin_if_they_are_most() {
        let now = Instant::now();
        let check = |good: u32, unfit: u32, later: u64, expected| {
            let mut health = Health::new(now);
            for _ in 0..good {
                health.handle_good(now);
            }
            fail(&mut health, unfit - 1, UNFIT, now);
            fail(&mut health, 1, UNFIT, now + seconds(later));
            let condition = health.condition(now + seconds(later));
            assert_eq!(condition, expected, "{good} {unfit} {later}");
        };
        check(0, 9, 0, Condition::Up);
        check(0, 10, 9, Condition::Out);
        check(0, 10, 10, Condition::Up);
        check(9, 10, 0, Condition::Out);
        check(10, 10, 0, Condition::Up);
        // Whoever asks for the same page again and again is not most of those who ask.
        check(100, 100, 0, Condition::Up);
    }

    #[test]
    fn on_probation_less_ejects_and_each_ejection_lasts_twice_as_long() {
        for (is_silent, first, on_trial) in [(SILENT, 5, 2), (UNFIT, 10, 3)] {
            let mut now = Instant::now();
            let mut health = Health::new(now);
            fail(&mut health, first, is_silent, now);
            for away in [10, 20, 40, 80, 160, 160] {
                assert_eq!(health.back_at(), Some(now + seconds(away)));
                // Requests that were on their way say nothing new.
                fail(&mut health, 20, is_silent, now + seconds(1));
                health.handle_good(now + seconds(2));
                now += seconds(away);
                assert!(health.is_on_trial(now));
                fail(&mut health, on_trial - 1, is_silent, now);
                assert_eq!(health.condition(now), Condition::Up);
                fail(&mut health, 1, is_silent, now);
                assert_eq!(health.condition(now), Condition::Out);
            }
        }
    }

    #[test]
    fn a_good_answer_on_trial_ends_it() {
        let now = Instant::now();
        let mut health = Health::new(now);
        fail(&mut health, 5, SILENT, now);
        let back = now + seconds(10);
        health.handle_good(back);
        assert!(!health.is_on_trial(back));
        fail(&mut health, 4, SILENT, back);
        assert_eq!(health.condition(back), Condition::Up);
        fail(&mut health, 1, SILENT, back);
        assert_eq!(
            health.back_at(),
            Some(back + seconds(10)),
            "as if for the first time"
        );
    }

    #[test]
    fn who_cannot_be_spared_stays_and_checks_outlast_a_while() {
        let now = Instant::now();
        let mut health = Health::new(now);
        for _ in 0..50 {
            health.handle_failure(SILENT, false, now);
            health.handle_failure(UNFIT, false, now);
        }
        assert_eq!(health.condition(now), Condition::Up);
        health.handle_check(false, PATIENCE, now);
        health.handle_failure(SILENT, true, now);
        assert_eq!(health.condition(now + seconds(60)), Condition::Unhealthy);
        health.forget_checks(now + seconds(60));
        assert_eq!(health.condition(now + seconds(60)), Condition::Up);
    }
}
