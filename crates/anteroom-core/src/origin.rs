//! Does the origin bear more visitors? While it does not answer, nobody new is let in.
//!
//! Signals: a connection that failed or timed out, and the share of 5xx answers. Those inside are
//! never held back; their requests are also what shows that the origin has recovered. Not a load
//! controller: a slow origin that answers is the operator's business.

use crate::time::{Millis, Span};

/// How one request to the origin went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OriginOutcome {
    /// It answered, with anything below 500.
    Good,
    /// It answered with 500 or above.
    ServerError,
    /// It could not be reached, or did not answer in time.
    Unreachable,
}

/// Failures to connect in a row that mean down. One may be a restart of a worker.
const UNREACHABLE_IN_A_ROW: u32 = 3;
/// 5xx answers are judged over this long.
const WINDOW: Span = Span(10_000);
/// And only if there were so many answers.
const ANSWERS_MIN: u32 = 20;
/// After so long without news somebody is let in to try again.
const RETRY_AFTER: Span = Span(5_000);

/// The origin, as admissions see it.
///
/// `Up -> Down` on enough failures; `Down -> Up` on a good answer, or by itself after
/// [`RETRY_AFTER`], with one more failure leading straight back.
#[derive(Clone, Debug, Default)]
pub struct OriginHealth {
    unreachable_in_a_row: u32,
    window_started_at: Millis,
    answers: u32,
    server_errors: u32,
    down_until: Option<Millis>,
    is_on_probation: bool,
}

impl OriginHealth {
    /// Takes note of one request.
    pub fn handle_outcome(&mut self, outcome: OriginOutcome, now: Millis) {
        if now.since(self.window_started_at) >= WINDOW {
            self.window_started_at = now;
            self.answers = 0;
            self.server_errors = 0;
        }
        match outcome {
            OriginOutcome::Unreachable => self.unreachable_in_a_row += 1,
            OriginOutcome::ServerError => {
                self.unreachable_in_a_row = 0;
                self.answers += 1;
                self.server_errors += 1;
            }
            OriginOutcome::Good => {
                self.unreachable_in_a_row = 0;
                self.answers += 1;
            }
        }
        let piles_up = self.answers >= ANSWERS_MIN && self.server_errors * 2 > self.answers;
        let fails = self.unreachable_in_a_row >= UNREACHABLE_IN_A_ROW || piles_up;
        let relapses = self.is_on_probation && outcome != OriginOutcome::Good;
        if fails || relapses {
            self.down_until = Some(now + RETRY_AFTER);
            self.is_on_probation = false;
        } else if outcome == OriginOutcome::Good {
            self.down_until = None;
            self.is_on_probation = false;
        }
    }

    /// Whether somebody new may be let in.
    pub fn is_up(&mut self, now: Millis) -> bool {
        match self.down_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.down_until = None;
                self.is_on_probation = true;
                self.unreachable_in_a_row = 0;
                self.answers = 0;
                self.server_errors = 0;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failed_connections_in_a_row_stop_admissions_and_a_good_answer_resumes_them() {
        let mut health = OriginHealth::default();
        for _ in 0..2 {
            health.handle_outcome(OriginOutcome::Unreachable, Millis(0));
        }
        assert!(health.is_up(Millis(0)));
        health.handle_outcome(OriginOutcome::Unreachable, Millis(0));
        assert!(!health.is_up(Millis(0)));
        health.handle_outcome(OriginOutcome::Good, Millis(1));
        assert!(health.is_up(Millis(1)));
    }

    #[test]
    fn after_a_while_somebody_may_try_and_one_failure_stops_again() {
        let mut health = OriginHealth::default();
        for _ in 0..3 {
            health.handle_outcome(OriginOutcome::Unreachable, Millis(0));
        }
        assert!(!health.is_up(Millis(4_999)));
        assert!(health.is_up(Millis(5_000)));
        health.handle_outcome(OriginOutcome::Unreachable, Millis(5_001));
        assert!(!health.is_up(Millis(5_002)));
    }

    #[test]
    fn server_errors_stop_admissions_only_when_they_pile_up() {
        let mut health = OriginHealth::default();
        for _ in 0..19 {
            health.handle_outcome(OriginOutcome::ServerError, Millis(0));
        }
        assert!(health.is_up(Millis(0)), "too few to judge");
        health.handle_outcome(OriginOutcome::ServerError, Millis(0));
        assert!(!health.is_up(Millis(0)));
        let mut mixed = OriginHealth::default();
        for n in 0..100 {
            let outcome = if n % 3 == 0 {
                OriginOutcome::ServerError
            } else {
                OriginOutcome::Good
            };
            mixed.handle_outcome(outcome, Millis(0));
        }
        assert!(mixed.is_up(Millis(0)));
    }
}
