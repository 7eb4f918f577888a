//! What does a caller do who wants a connection: use the one that there is, make one, or wait?
//!
//! A state machine that connects to nothing: time and random numbers are arguments.

use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::circuit::{Circuit, Pauses};

/// Where a link stands. `C` is a connection, `F` why there is none.
#[derive(Debug)]
pub(super) struct LinkState<C, F> {
    phase: Phase<C, F>,
    circuit: Circuit,
}

#[derive(Debug)]
enum Phase<C, F> {
    /// Nobody connects.
    Idle {
        /// How the last attempt failed, if it did.
        last: Option<F>,
    },
    /// Somebody connects.
    Connecting {
        /// Why this is not the first attempt.
        last: Option<F>,
    },
    Connected(C),
    /// The last attempt, or the last connection, has failed.
    Down(F),
    Closed,
}

/// What a caller does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Next<C, F> {
    /// Uses this connection.
    Use(C),
    /// Gives up: nothing is tried at present, or somebody else tries.
    Fail(F),
    /// Waits for the attempt of somebody else.
    Wait,
    /// Connects. Everybody else waits, or gives up.
    Connect,
    /// Gives up for good.
    Closed,
}

impl<C: Clone, F: Clone> LinkState<C, F> {
    pub(super) const fn new(pauses: Pauses) -> Self {
        Self {
            phase: Phase::Idle { last: None },
            circuit: Circuit::new(pauses),
        }
    }

    /// What somebody does who calls now.
    pub(super) fn next(&mut self, now: TimestampUs) -> Next<C, F> {
        let last = match &self.phase {
            Phase::Closed => return Next::Closed,
            Phase::Connected(connection) => return Next::Use(connection.clone()),
            Phase::Down(failure) if self.circuit.is_open(now) => {
                return Next::Fail(failure.clone());
            }
            // One probes; nobody else waits for a server that was unavailable.
            Phase::Connecting { last: Some(last) } => return Next::Fail(last.clone()),
            Phase::Connecting { last: None } => return Next::Wait,
            Phase::Down(failure) => Some(failure.clone()),
            Phase::Idle { last } => last.clone(),
        };
        self.phase = Phase::Connecting { last };
        Next::Connect
    }

    /// Takes note of how an attempt ended. Returns for how long nobody tries again.
    pub(super) fn handle_attempt(
        &mut self,
        now: TimestampUs,
        outcome: Result<C, F>,
        random: u64,
    ) -> Option<DurationUs> {
        if matches!(self.phase, Phase::Closed) {
            return None;
        }
        match outcome {
            Ok(connection) => {
                self.phase = Phase::Connected(connection);
                None
            }
            Err(failure) => Some(self.open(now, failure, random)),
        }
    }

    /// Takes note that whoever was connecting is gone without an outcome: the next one tries.
    pub(super) fn handle_abandoned(&mut self) {
        if let Phase::Connecting { last } = &mut self.phase {
            let last = last.take();
            self.phase = Phase::Idle { last };
        }
    }

    /// Takes note that a call failed in a way that makes its connection useless. Another one may
    /// have taken its place already; then nothing happens. Returns for how long nobody tries again.
    pub(super) fn handle_lost(
        &mut self,
        now: TimestampUs,
        is_it: impl FnOnce(&C) -> bool,
        failure: F,
        random: u64,
    ) -> Option<DurationUs> {
        match &self.phase {
            Phase::Connected(held) if is_it(held) => Some(self.open(now, failure, random)),
            _ => None,
        }
    }

    /// Takes note that the connection has ended by itself, after it was of use: the next one who
    /// calls connects at once.
    pub(super) fn handle_over(&mut self) {
        if let Phase::Connected(_) = self.phase {
            self.circuit.handle_answer();
            self.phase = Phase::Idle { last: None };
        }
    }

    /// Takes note that the server answered: the next failure is the first one again.
    pub(super) const fn handle_answer(&mut self) {
        if let Phase::Connected(_) = self.phase {
            self.circuit.handle_answer();
        }
    }

    /// Ends the connection; nobody gets another one.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    pub(super) const fn is_connected(&self) -> bool {
        matches!(self.phase, Phase::Connected(_))
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    fn open(&mut self, now: TimestampUs, failure: F, random: u64) -> DurationUs {
        self.circuit.handle_failure(now, random);
        self.phase = Phase::Down(failure);
        self.circuit.left(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type State = LinkState<u32, &'static str>;

    /// The pauses of links in milliseconds, without chance.
    const PAUSES: [u64; 4] = [50, 100, 200, 400];

    fn ms(ms: u64) -> TimestampUs {
        TimestampUs(ms * 1_000)
    }

    fn new() -> State {
        LinkState::new(Pauses::CONNECTING)
    }

    fn connected() -> State {
        let mut state = new();
        assert_eq!(state.next(ms(0)), Next::Connect);
        assert_eq!(state.handle_attempt(ms(0), Ok(1), 0), None);
        state
    }

    #[test]
    fn one_connects_and_all_others_wait_for_the_first_attempt() {
        let mut state = new();
        assert_eq!(state.next(ms(0)), Next::Connect);
        assert_eq!(state.next(ms(1)), Next::Wait);
        state.handle_attempt(ms(2), Ok(1), 0);
        assert!(state.is_connected());
        assert_eq!(state.next(ms(3)), Next::Use(1));
    }

    #[test]
    fn while_a_server_is_left_alone_callers_get_the_reason_and_then_one_tries() {
        let (mut state, mut now) = (new(), 0);
        for pause in PAUSES {
            assert_eq!(state.next(ms(now)), Next::Connect);
            now += 1;
            let left_alone = state.handle_attempt(ms(now), Err("gone"), 0);
            assert_eq!(left_alone, Some(DurationUs(pause * 1_000)));
            assert_eq!(state.next(ms(now)), Next::Fail("gone"));
            now += pause;
            assert_eq!(state.next(ms(now - 1)), Next::Fail("gone"));
        }
        assert_eq!(state.next(ms(now)), Next::Connect);
        assert_eq!(state.next(ms(now)), Next::Fail("gone"), "nobody waits");
        assert_eq!(state.next(ms(now + 60_000)), Next::Fail("gone"));
    }

    #[test]
    fn a_connection_that_never_answered_makes_the_next_pause_longer() {
        let lose = |state: &mut State, now: u64| {
            let left_alone = state.handle_lost(ms(now), |held| *held == 1, "broken", 0);
            left_alone.map(|span| span.0 / 1_000)
        };
        let mut state = connected();
        assert_eq!(lose(&mut state, 0), Some(50));
        assert_eq!(state.next(ms(49)), Next::Fail("broken"));
        assert_eq!(state.next(ms(50)), Next::Connect);
        state.handle_attempt(ms(50), Ok(1), 0);
        assert_eq!(lose(&mut state, 50), Some(100));
        assert_eq!(state.next(ms(150)), Next::Connect);
        state.handle_attempt(ms(150), Ok(1), 0);
        state.handle_answer();
        assert_eq!(lose(&mut state, 150), Some(50), "it had answered");
    }

    #[test]
    fn a_call_that_fails_on_an_earlier_connection_does_not_end_the_one_after_it() {
        let mut state = connected();
        let left_alone = state.handle_lost(ms(0), |held| *held == 7, "broken", 0);
        assert_eq!(left_alone, None);
        assert_eq!(state.next(ms(0)), Next::Use(1));
        state.handle_lost(ms(0), |held| *held == 1, "broken", 0);
        let again = state.handle_lost(ms(0), |held| *held == 1, "broken", 0);
        assert_eq!(again, None, "those that fail together count once");
        state.handle_answer();
        assert_eq!(state.next(ms(0)), Next::Fail("broken"), "it came too late");
    }

    #[test]
    fn after_an_attempt_without_an_outcome_the_next_one_tries() {
        let mut state = new();
        assert_eq!(state.next(ms(0)), Next::Connect);
        state.handle_abandoned();
        assert_eq!(state.next(ms(0)), Next::Connect);
        state.handle_attempt(ms(0), Err("gone"), 0);
        assert_eq!(state.next(ms(50)), Next::Connect);
        state.handle_abandoned();
        assert_eq!(state.next(ms(50)), Next::Connect);
        assert_eq!(state.next(ms(50)), Next::Fail("gone"));
    }

    #[test]
    fn a_connection_that_ends_by_itself_is_made_anew_at_once() {
        let mut state = new();
        for now in [0, 50] {
            assert_eq!(state.next(ms(now)), Next::Connect);
            state.handle_attempt(ms(now), Err("gone"), 0);
        }
        assert_eq!(state.next(ms(150)), Next::Connect);
        state.handle_attempt(ms(150), Ok(1), 0);
        state.handle_over();
        assert_eq!(state.next(ms(150)), Next::Connect);
        assert_eq!(state.next(ms(150)), Next::Wait, "it was of use");
        let left_alone = state.handle_attempt(ms(150), Err("gone"), 0);
        assert_eq!(left_alone, Some(DurationUs(50_000)), "the first failure");
    }

    #[test]
    fn a_closed_link_stays_closed_whatever_was_under_way() {
        let mut state = new();
        assert_eq!(state.next(ms(0)), Next::Connect);
        state.close();
        assert_eq!(state.handle_attempt(ms(0), Ok(1), 0), None);
        assert_eq!(state.handle_attempt(ms(0), Err("gone"), 0), None);
        state.handle_over();
        state.handle_abandoned();
        state.handle_answer();
        assert_eq!(state.next(ms(9_000)), Next::Closed);
    }
}
