//! What is a call told?

use crate::time::{DurationUs, TimestampUs};

/// What became of a call, and how its limit stands now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// Whether the call goes through.
    pub outcome: Outcome,
    /// How many calls that count one would be admitted right now, after this one.
    pub remaining: u32,
    /// In how long the limit is wholly free again, if nobody calls.
    pub full_after: DurationUs,
}

/// Whether a call goes through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It does, and was charged.
    Admit {
        /// How long it must wait first. Zero in all algorithms but the leaky bucket.
        delay: DurationUs,
    },
    /// It does not, and nothing was charged.
    Reject {
        /// In how long the same call would be admitted if nobody else calls: not a microsecond
        /// earlier and not one later. `None` if it never would, as when it counts more than the
        /// limit.
        retry_after: Option<DurationUs>,
    },
}

impl Verdict {
    /// Whether the call goes through, at once or later.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self.outcome, Outcome::Admit { .. })
    }
}

/// A limit as it stands at one moment, before it is said whether a call goes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) now: TimestampUs,
    pub(crate) remaining: u32,
    pub(crate) full_at: TimestampUs,
}

impl Standing {
    pub(crate) fn admit(self) -> Verdict {
        self.admit_at(self.now)
    }

    /// Admits a call that goes on at `departs_at`.
    pub(crate) fn admit_at(self, departs_at: TimestampUs) -> Verdict {
        let delay = departs_at.since(self.now);
        self.say(Outcome::Admit { delay })
    }

    pub(crate) fn reject(self, retry_at: Option<TimestampUs>) -> Verdict {
        let retry_after = retry_at.map(|retry_at| retry_at.since(self.now));
        self.say(Outcome::Reject { retry_after })
    }

    fn say(self, outcome: Outcome) -> Verdict {
        Verdict {
            outcome,
            remaining: self.remaining,
            full_after: self.full_at.since(self.now),
        }
    }
}
