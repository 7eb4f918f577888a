//! Helpers that tests of several files share: times of day, and a client that sends requests.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::rate::Rate;
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Outcome, Verdict};

pub(crate) const MINUTE: DurationUs = DurationUs::from_secs(60);

/// Returns a rate of `requests` requests a minute.
pub(crate) fn a_minute(requests: u32) -> Rate {
    Rate::new(requests, MINUTE).expect("a minute is in range")
}

/// Parses a time of day, as in `07:10:23` or `07:10:23.5`.
pub(crate) fn at(time: &str) -> TimestampUs {
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let digits = 6 - u32::try_from(fraction.len()).expect("it is short");
    let fraction = fraction.parse().unwrap_or(0) * 10u64.pow(digits);
    let seconds = time.split(':').fold(0, |sum, part| {
        sum * 60 + part.parse::<u64>().expect("it is a number")
    });
    TimestampUs(seconds * 1_000_000 + fraction)
}

/// Client under one limit.
#[derive(Clone, Debug)]
pub(crate) struct Client<A: Algorithm> {
    pub(crate) limit: A,
    pub(crate) state: A::State,
}

impl<A: Algorithm> Client<A> {
    pub(crate) fn new(limit: A) -> Self {
        let state = A::State::default();
        Self { limit, state }
    }

    pub(crate) fn step(&mut self, time: &str, cost: Cost) -> Verdict {
        self.limit.step(&mut self.state, at(time), cost)
    }

    /// Sends `requests` requests of cost one and returns how many are allowed.
    pub(crate) fn send(&mut self, time: &str, requests: u32) -> u32 {
        let admitted = (0..requests).filter(|_| self.step(time, Cost::ONE).is_allowed());
        u32::try_from(admitted.count()).expect("`calls` has 32 bits")
    }

    pub(crate) fn takes(&mut self, time: &str, cost: u32) -> bool {
        self.step(time, Cost::take(cost)).is_allowed()
    }

    pub(crate) fn remaining(&mut self, time: &str) -> u32 {
        self.step(time, Cost::Peek).remaining
    }

    /// Returns when a rejected request may come again. `None` if it is allowed, or never will be.
    pub(crate) fn retry_at(&mut self, time: &str, cost: u32) -> Option<TimestampUs> {
        match self.step(time, Cost::take(cost)).outcome {
            Outcome::Reject { retry_after } => retry_after.map(|span| at(time) + span),
            Outcome::Allow { .. } => None,
        }
    }

    pub(crate) fn full_at(&mut self, time: &str) -> TimestampUs {
        at(time) + self.step(time, Cost::Peek).full_after
    }
}
