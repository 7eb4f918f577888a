//! Delay, loss and duplication of messages.

use anteroom_room::time::{DurationMs, Timestamp};

use crate::rng::{Draw, Purpose, SimRng};
use crate::scenario::model::{Delay, Scenario};

/// Network between nodes and stores.
#[derive(Debug)]
pub(crate) struct Network {
    rng: SimRng,
    bad: Option<Bad>,
    bad_until: Timestamp,
    global_cuts: Vec<Cuts>,
}

/// Times until which a link is cut, by direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cuts {
    all: Timestamp,
    answers: Timestamp,
}

impl Cuts {
    pub(crate) fn cut(&mut self, replies_only: bool, until: Timestamp) {
        let end = if replies_only {
            &mut self.answers
        } else {
            &mut self.all
        };
        *end = until.max(*end);
    }

    /// Whether a message passes; `is_answer` is set for a reply to a write.
    pub(crate) fn passes(self, is_answer: bool, now: Timestamp) -> bool {
        now >= self.all && !(is_answer && now < self.answers)
    }
}

/// Rates of loss, duplication and added delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bad {
    pub(crate) lost: f64,
    pub(crate) doubled: f64,
    pub(crate) delayed: DurationMs,
}

/// Delays of the copies of one message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copies {
    pub(crate) first: Option<DurationMs>,
    pub(crate) second: Option<DurationMs>,
}

impl Network {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            rng: SimRng::new(scenario.seed, Purpose::Network),
            bad: None,
            bad_until: Timestamp::ZERO,
            global_cuts: vec![Cuts::default(); scenario.data_centers.len()],
        }
    }

    pub(crate) fn make_bad(&mut self, bad: Bad, until: Timestamp) {
        self.bad = Some(bad);
        self.bad_until = until;
    }

    pub(crate) fn cut_global(&mut self, data_center: usize, replies_only: bool, until: Timestamp) {
        if let Some(cuts) = self.global_cuts.get_mut(data_center) {
            cuts.cut(replies_only, until);
        }
    }

    /// Returns the cuts of the link between a data center and the global store.
    pub(crate) fn global_cuts(&self, data_center: u32) -> Cuts {
        self.global_cuts[data_center as usize]
    }

    /// Sends a message over a link that is not cut.
    pub(crate) fn send(&mut self, delay: Delay, now: Timestamp) -> Copies {
        let Some(bad) = self.bad.filter(|_| now < self.bad_until) else {
            return Copies {
                first: Some(self.rng.between(delay.from, delay.to)),
                second: None,
            };
        };
        let is_doubled = self.rng.chance(bad.doubled);
        Copies {
            first: self.one(delay, bad),
            second: is_doubled.then(|| self.one(delay, bad)).flatten(),
        }
    }

    fn one(&mut self, delay: Delay, bad: Bad) -> Option<DurationMs> {
        let travel = self.rng.between(delay.from, delay.to);
        let extra = self.rng.between(DurationMs::ZERO, bad.delayed);
        (!self.rng.chance(bad.lost)).then_some(travel + extra)
    }
}

/// Returns the delay of two links, one after the other.
pub(crate) fn joined(one: Delay, other: Delay) -> Delay {
    Delay {
        from: one.from + other.from,
        to: one.to + other.to,
    }
}
