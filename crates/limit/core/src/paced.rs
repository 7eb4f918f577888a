//! Arithmetic of [`crate::gcra`] and [`crate::leaky_bucket`]: one point in time for each client.
//!
//! At that point everything taken is paid off, if requests come one by one. A request fits if the
//! point lies no more than a set number of requests ahead of now. Deliberately absent: what each of
//! the two promises, and which settings they reject.

use crate::cost::Cost;
use crate::exact::{div_floor, saturate_u32};
use crate::fine::{FineTimestamp, Pace};
use crate::rate::Rate;
use crate::time::TimestampUs;
use crate::verdict::{Standing, Verdict};

/// State of one client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct State {
    /// Time at which everything taken is paid off (in the literature the theoretical arrival time).
    pub free_at: FineTimestamp,
}

/// Rate, and how far ahead of it requests may come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Paced {
    pace: Pace,
    ahead: Ahead,
}

/// Requests that may come ahead of the rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ahead {
    /// This many at once; each goes on when it comes.
    Burst(u32),
    /// This many wait behind the one that goes on; each goes on at its turn.
    Queue(u32),
}

impl Paced {
    pub(crate) fn new(rate: Rate, ahead: Ahead) -> Self {
        let pace = Pace::new(rate);
        Self { pace, ahead }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.pace.rate
    }

    pub(crate) fn ahead(&self) -> Ahead {
        self.ahead
    }

    pub(crate) fn step(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        match cost {
            Cost::Take(taken) => self.take(state, now, Some(taken.get())),
            Cost::Peek => self.take(state, now, None),
            Cost::Refund(back) => {
                let free_at = self.pace.read(state.free_at);
                state.free_at = self.pace.before(free_at, back.get(), now);
                self.standing(state.free_at, now).admit()
            }
        }
    }

    fn take(&self, state: &mut State, now: TimestampUs, taken: Option<u32>) -> Verdict {
        let free_at = self.pace.read(state.free_at);
        let Some(may_be_ahead) = self.may_be_ahead(taken.unwrap_or(1)) else {
            return self.standing(free_at, now).reject(None);
        };
        let ahead = self.pace.parts_after(now, free_at);
        let may_be_ahead = self.pace.parts(may_be_ahead.into());
        if ahead > may_be_ahead {
            let retry_at = now + self.pace.span(ahead - may_be_ahead);
            return self.standing(free_at, now).reject(Some(retry_at));
        }
        // The cost counts from now on, and not in the past.
        let starts_at = free_at.max(FineTimestamp {
            micros: now,
            fraction: 0,
        });
        if let Some(taken) = taken {
            state.free_at = self.pace.after(starts_at, taken);
        }
        let standing = self.standing(self.pace.read(state.free_at), now);
        match self.ahead {
            Ahead::Burst(_) => standing.admit(),
            Ahead::Queue(_) => standing.admit_at(starts_at.ceil()),
        }
    }

    /// Returns how many requests ahead the point may lie before one of cost `wanted`; `None` if
    /// such a request is never allowed.
    fn may_be_ahead(&self, wanted: u32) -> Option<u32> {
        let calls = self.pace.rate.requests();
        match self.ahead {
            Ahead::Burst(burst) => burst.checked_sub(wanted).filter(|_| calls > 0),
            Ahead::Queue(queue) => (wanted <= calls).then_some(queue),
        }
    }

    fn standing(&self, free_at: FineTimestamp, now: TimestampUs) -> Standing {
        let at_once = match self.ahead {
            Ahead::Burst(burst) => u64::from(burst),
            Ahead::Queue(queue) => u64::from(queue) + 1,
        };
        let ahead = self.pace.parts_after(now, free_at);
        let left = self.pace.parts(at_once).saturating_sub(ahead);
        Standing {
            now,
            remaining: match self.pace.rate.requests() {
                0 => 0,
                _ => saturate_u32(div_floor(left, self.pace.rate.window().0)),
            },
            full_at: free_at.ceil(),
        }
    }
}

impl State {
    pub(crate) fn is_idle(&self, now: TimestampUs) -> bool {
        self.free_at.ceil() <= now
    }

    /// Writes the point and the fraction of a microsecond.
    pub(crate) fn write_numbers(&self, put: &mut dyn FnMut(u64)) {
        [self.free_at.micros.0, self.free_at.fraction.into()]
            .into_iter()
            .for_each(put);
    }

    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let &[micros, fraction] = numbers else {
            return None;
        };
        let free_at = FineTimestamp {
            micros: TimestampUs(micros),
            fraction: u32::try_from(fraction).ok()?,
        };
        Some(Self { free_at })
    }
}
