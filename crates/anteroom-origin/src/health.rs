//! Is an origin well? What checks and requests say about it, as a state machine.
//!
//! Checks decide for good: after so many bad ones in a row an origin is unhealthy until as many good
//! ones. Requests decide for a while: after so many failures in a row an origin is out, and comes back
//! by itself, on trial; each time it fails again it stays away twice as long. The clock is brought as an
//! argument; whether an origin may be spared at all is for the group to say.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that put an origin out. One may be a restart of a worker, and a page that is
/// broken fails for everybody who asks for it.
const FAILURES_MAX: u32 = 5;
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
    failures: u32,
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
            failures: 0,
            out_until: None,
            times_out: 0,
        }
    }

    pub(crate) fn condition(&self, now: Instant) -> Condition {
        if self.is_unhealthy {
            Condition::Unhealthy
        } else if self.out_until.is_some_and(|until| now < until) {
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

    /// A request was answered as it should be.
    pub(crate) fn handle_good(&mut self, now: Instant) {
        self.failures = 0;
        // One that was sent before says nothing about what happened since.
        if self.out_until.is_some_and(|until| until <= now) {
            self.since = self.age_began(now);
            self.out_until = None;
            self.times_out = 0;
        }
    }

    /// A request failed. Puts the origin out if it was one too many and it may be spared.
    pub(crate) fn handle_failure(&mut self, may_spare: bool, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        match self.out_until {
            Some(until) if now < until => return,
            // On trial.
            Some(_) => {}
            None if self.failures < FAILURES_MAX => return,
            None => {}
        }
        if !may_spare {
            return;
        }
        let doubled = OUT_MIN.saturating_mul(1 << self.times_out.min(10));
        self.times_out = self.times_out.saturating_add(1);
        self.out_until = Some(now + doubled.min(OUT_MAX));
        self.since = now;
        self.failures = 0;
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
    fn so_many_checks_in_a_row_change_what_is_believed_and_the_first_decides_alone() {
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

    #[test]
    fn five_failures_in_a_row_put_an_origin_out_and_it_comes_back_by_itself() {
        let now = Instant::now();
        let mut health = Health::new(now);
        for _ in 0..4 {
            health.handle_failure(true, now);
        }
        health.handle_good(now);
        for _ in 0..4 {
            health.handle_failure(true, now);
            assert_eq!(health.condition(now), Condition::Up);
        }
        health.handle_failure(true, now);
        assert_eq!(health.condition(now), Condition::Out);
        assert_eq!(health.condition(now + seconds(9)), Condition::Out);
        assert_eq!(health.condition(now + seconds(10)), Condition::Up);
        assert_eq!(health.age(now + seconds(12)), seconds(2));
    }

    #[test]
    fn on_trial_one_failure_is_enough_and_each_time_it_stays_away_twice_as_long() {
        let mut now = Instant::now();
        let mut health = Health::new(now);
        for _ in 0..5 {
            health.handle_failure(true, now);
        }
        for away in [10, 20, 40, 80, 160, 160] {
            assert_eq!(health.back_at(), Some(now + seconds(away)));
            // Requests that were on their way say nothing new.
            health.handle_failure(true, now + seconds(1));
            health.handle_good(now + seconds(2));
            now += seconds(away);
            assert_eq!(health.condition(now), Condition::Up);
            health.handle_failure(true, now);
            assert_eq!(health.condition(now), Condition::Out);
        }
    }

    #[test]
    fn a_good_answer_on_trial_ends_it() {
        let now = Instant::now();
        let mut health = Health::new(now);
        for _ in 0..5 {
            health.handle_failure(true, now);
        }
        let back = now + seconds(10);
        health.handle_good(back);
        for _ in 0..4 {
            health.handle_failure(true, back);
        }
        assert_eq!(health.condition(back), Condition::Up);
        health.handle_failure(true, back);
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
            health.handle_failure(false, now);
        }
        assert_eq!(health.condition(now), Condition::Up);
        health.handle_check(false, PATIENCE, now);
        health.handle_failure(true, now);
        assert_eq!(health.condition(now + seconds(60)), Condition::Unhealthy);
        health.forget_checks(now + seconds(60));
        assert_eq!(health.condition(now + seconds(60)), Condition::Up);
    }
}
