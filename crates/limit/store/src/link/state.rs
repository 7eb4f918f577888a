//! State machine of a link: whether a caller uses the connection, makes one, or waits.
//!
//! It does no I/O; time and random numbers are arguments.

use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::circuit::{Circuit, Pauses};

/// State of a link. `C` is a connection, `F` the failure of an attempt.
#[derive(Debug)]
pub(super) struct LinkState<C, F> {
    phase: Phase<C, F>,
    circuit: Circuit,
}

#[derive(Debug)]
enum Phase<C, F> {
    /// Phase without an attempt.
    Idle {
        /// Failure of the last attempt, if it failed.
        last: Option<F>,
    },
    /// An attempt is under way.
    Connecting {
        /// Failure of the attempt before, if there was one.
        last: Option<F>,
    },
    Connected(C),
    /// The last attempt failed, or the last connection broke.
    Down(F),
    Closed,
}

/// Action of a caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Next<C, F> {
    /// Uses this connection.
    Use(C),
    /// Gives up: the link pauses, or another caller probes.
    Fail(F),
    /// Waits for another caller's attempt.
    Wait,
    /// Connects, while all other callers wait or give up.
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

    /// Returns the action of a caller that needs a connection now.
    pub(super) fn next(&mut self, now: TimestampUs) -> Next<C, F> {
        let last = match &self.phase {
            Phase::Closed => return Next::Closed,
            Phase::Connected(connection) => return Next::Use(connection.clone()),
            Phase::Down(failure) if self.circuit.is_open(now) => {
                return Next::Fail(failure.clone());
            }
            // One caller probes; the others do not wait for a server that was unavailable.
            Phase::Connecting { last: Some(last) } => return Next::Fail(last.clone()),
            Phase::Connecting { last: None } => return Next::Wait,
            Phase::Down(failure) => Some(failure.clone()),
            Phase::Idle { last } => last.clone(),
        };
        self.phase = Phase::Connecting { last };
        Next::Connect
    }

    /// Takes note of the outcome of an attempt. Returns the pause after a failure.
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

    /// Takes note that the attempt was cancelled: the next caller tries.
    pub(super) fn handle_abandoned(&mut self) {
        if let Phase::Connecting { last } = &mut self.phase {
            let last = last.take();
            self.phase = Phase::Idle { last };
        }
    }

    /// Takes note that a request failed in a way that makes its connection useless. Does nothing if
    /// another connection has replaced that one. Returns the pause that follows.
    pub(super) fn handle_lost(
        &mut self,
        now: TimestampUs,
        is_same: impl FnOnce(&C) -> bool,
        failure: F,
        random: u64,
    ) -> Option<DurationUs> {
        match &self.phase {
            Phase::Connected(current) if is_same(current) => Some(self.open(now, failure, random)),
            _ => None,
        }
    }

    /// Takes note that the peer closed a connection that worked: the next caller connects at once.
    pub(super) fn handle_over(&mut self) {
        if let Phase::Connected(_) = self.phase {
            self.circuit.handle_reply();
            self.phase = Phase::Idle { last: None };
        }
    }

    /// Takes note of a reply: the next failure counts as the first one.
    pub(super) const fn handle_answer(&mut self) {
        if let Phase::Connected(_) = self.phase {
            self.circuit.handle_reply();
        }
    }

    /// Closes the link for good.
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

    /// Pauses of links in milliseconds, without randomness.
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
    fn callers_fail_during_a_pause_and_then_one_tries() {
        let (mut state, mut now) = (new(), 0);
        for pause in PAUSES {
            assert_eq!(state.next(ms(now)), Next::Connect);
            now += 1;
            let returned = state.handle_attempt(ms(now), Err("gone"), 0);
            assert_eq!(returned, Some(DurationUs(pause * 1_000)));
            assert_eq!(state.next(ms(now)), Next::Fail("gone"));
            now += pause;
            assert_eq!(state.next(ms(now - 1)), Next::Fail("gone"));
        }
        assert_eq!(state.next(ms(now)), Next::Connect);
        assert_eq!(
            state.next(ms(now)),
            Next::Fail("gone"),
            "others do not wait"
        );
        assert_eq!(state.next(ms(now + 60_000)), Next::Fail("gone"));
    }

    #[test]
    fn a_connection_that_never_answered_makes_the_next_pause_longer() {
        let lose = |state: &mut State, now: u64| {
            let pause = state.handle_lost(ms(now), |current| *current == 1, "broken", 0);
            pause.map(|span| span.0 / 1_000)
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
        assert_eq!(lose(&mut state, 150), Some(50), "a reply came before");
    }

    #[test]
    fn a_failure_on_an_earlier_connection_keeps_the_current_one() {
        let mut state = connected();
        let pause = state.handle_lost(ms(0), |current| *current == 7, "broken", 0);
        assert_eq!(pause, None);
        assert_eq!(state.next(ms(0)), Next::Use(1));
        state.handle_lost(ms(0), |current| *current == 1, "broken", 0);
        let again = state.handle_lost(ms(0), |current| *current == 1, "broken", 0);
        assert_eq!(again, None, "those that fail together count once");
        state.handle_answer();
        assert_eq!(state.next(ms(0)), Next::Fail("broken"), "it came too late");
    }

    #[test]
    fn after_a_cancelled_attempt_the_next_caller_tries() {
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
    fn a_connection_that_the_peer_closed_is_replaced_at_once() {
        let mut state = new();
        for now in [0, 50] {
            assert_eq!(state.next(ms(now)), Next::Connect);
            state.handle_attempt(ms(now), Err("gone"), 0);
        }
        assert_eq!(state.next(ms(150)), Next::Connect);
        state.handle_attempt(ms(150), Ok(1), 0);
        state.handle_over();
        assert_eq!(state.next(ms(150)), Next::Connect);
        assert_eq!(state.next(ms(150)), Next::Wait, "the connection worked");
        let pause = state.handle_attempt(ms(150), Err("gone"), 0);
        assert_eq!(pause, Some(DurationUs(50_000)), "the first failure");
    }

    #[test]
    fn a_link_closed_during_an_attempt_stays_closed() {
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
