//! Health of the origin: while it does not respond, nobody new is admitted.
//!
//! The signals are connections that fail or time out, and the share of 5xx responses. Active
//! visitors are never held back; their requests also show that the origin has recovered. This is no
//! load controller: a slow origin is the operator's business.

use crate::time::{DurationMs, Timestamp};

/// Outcome of one request to the origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OriginOutcome {
    /// Response below 500.
    Good,
    /// Response of 500 or above.
    ServerError,
    /// Failed connection, or no response in time.
    Unreachable,
}

/// Failed connections in a row that mean down. One may be a restart of a worker.
pub const UNREACHABLE_IN_A_ROW: u32 = 3;
/// Window of the share of 5xx responses.
const WINDOW: DurationMs = DurationMs(10_000);
/// Fewest responses in a window that decide.
const RESPONSES_MIN: u32 = 20;
/// Time after the last failure, or trial, until one visitor is admitted to try again.
const RETRY_AFTER: DurationMs = DurationMs(5_000);

/// The origin, as admissions see it.
///
/// `Up -> Down` on enough failures; `Down -> Trial` with the first admission after five seconds;
/// `Trial | Down -> Up` on a good response, `Trial -> Down` on a failure.
#[derive(Clone, Debug, Default)]
pub struct OriginHealth {
    state: State,
    unreachable_in_a_row: u32,
    window_started_at: Timestamp,
    responses: u32,
    server_errors: u32,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    #[default]
    Up,
    /// Admissions stop until `until`; then one visitor is admitted.
    Down { until: Timestamp },
    /// One was admitted to try. Without an outcome, another one is at `next_at`.
    Trial { next_at: Timestamp },
}

impl OriginHealth {
    /// Records the outcome of one request.
    pub fn handle_outcome(&mut self, outcome: OriginOutcome, now: Timestamp) {
        if outcome == OriginOutcome::Good {
            self.handle_good_responses(1, now);
            return;
        }
        self.begin_window(now);
        if outcome == OriginOutcome::Unreachable {
            self.unreachable_in_a_row += 1;
        } else {
            self.unreachable_in_a_row = 0;
            self.responses = self.responses.saturating_add(1);
            self.server_errors = self.server_errors.saturating_add(1);
        }
        let errors_pile_up =
            self.responses >= RESPONSES_MIN && self.server_errors > self.responses / 2;
        let fails = self.unreachable_in_a_row >= UNREACHABLE_IN_A_ROW || errors_pile_up;
        if fails || matches!(self.state, State::Trial { .. }) {
            self.state = State::Down {
                until: now + RETRY_AFTER,
            };
        }
    }

    /// Records several good responses.
    pub fn handle_good_responses(&mut self, count: u32, now: Timestamp) {
        self.begin_window(now);
        self.unreachable_in_a_row = 0;
        self.responses = self.responses.saturating_add(count);
        if self.is_down() {
            self.state = State::Up;
            self.responses = 0;
            self.server_errors = 0;
        }
    }

    /// Whether a new visitor may be admitted.
    #[must_use]
    pub fn may_admit(&self, now: Timestamp) -> bool {
        match self.state {
            State::Up => true,
            State::Down { until: at } | State::Trial { next_at: at } => now >= at,
        }
    }

    /// Records an admission: while the origin is down, it is the trial.
    pub fn handle_admission(&mut self, now: Timestamp) {
        if self.is_down() {
            self.state = State::Trial {
                next_at: now + RETRY_AFTER,
            };
        }
    }

    /// Whether admissions are held back.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.state != State::Up
    }

    fn begin_window(&mut self, now: Timestamp) {
        if now.since(self.window_started_at) >= WINDOW {
            self.window_started_at = now;
            self.responses = 0;
            self.server_errors = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down_at(now: Timestamp) -> OriginHealth {
        let mut health = OriginHealth::default();
        for _ in 0..UNREACHABLE_IN_A_ROW {
            health.handle_outcome(OriginOutcome::Unreachable, now);
        }
        health
    }

    #[test]
    fn three_failed_connections_stop_admissions_until_a_good_response() {
        let mut health = OriginHealth::default();
        for _ in 0..2 {
            health.handle_outcome(OriginOutcome::Unreachable, Timestamp(0));
        }
        assert!(health.may_admit(Timestamp(0)));
        health.handle_outcome(OriginOutcome::Unreachable, Timestamp(0));
        assert!(health.is_down() && !health.may_admit(Timestamp(0)));
        health.handle_outcome(OriginOutcome::Good, Timestamp(1));
        assert!(!health.is_down() && health.may_admit(Timestamp(1)));
    }

    #[test]
    fn after_a_while_one_visitor_tries_and_its_failure_stops_again() {
        let mut health = down_at(Timestamp(0));
        assert!(!health.may_admit(Timestamp(4_999)));
        assert!(health.may_admit(Timestamp(5_000)));
        health.handle_admission(Timestamp(5_000));
        assert!(!health.may_admit(Timestamp(5_001)), "one is enough");
        health.handle_outcome(OriginOutcome::Unreachable, Timestamp(6_000));
        assert!(!health.may_admit(Timestamp(10_999)));
        assert!(health.may_admit(Timestamp(11_000)));
    }

    #[test]
    fn a_trial_without_an_outcome_is_repeated() {
        let mut health = down_at(Timestamp(0));
        health.handle_admission(Timestamp(5_000));
        assert!(health.may_admit(Timestamp(10_000)));
    }

    #[test]
    fn server_errors_stop_admissions_only_when_they_pile_up() {
        let mut health = OriginHealth::default();
        for _ in 0..19 {
            health.handle_outcome(OriginOutcome::ServerError, Timestamp(0));
        }
        assert!(!health.is_down(), "too few to decide");
        health.handle_outcome(OriginOutcome::ServerError, Timestamp(0));
        assert!(health.is_down());
        let mut mixed = OriginHealth::default();
        mixed.handle_good_responses(40, Timestamp(0));
        for _ in 0..39 {
            mixed.handle_outcome(OriginOutcome::ServerError, Timestamp(0));
        }
        assert!(!mixed.is_down());
    }
}
