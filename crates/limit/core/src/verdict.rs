//! Verdict of a limit about a request.

use crate::time::{DurationUs, TimestampUs};

/// Verdict about one request, and how much of the limit is left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// Whether the request is allowed.
    pub outcome: Outcome,
    /// Requests of cost one that would be allowed right now, after this one.
    pub remaining: u32,
    /// Time until the limit is fully free again, if no request comes.
    pub full_after: DurationUs,
}

/// Decision about a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Allowed; its cost was taken.
    Allow {
        /// Time to wait first. Zero in all algorithms but the leaky bucket.
        delay: DurationUs,
    },
    /// Rejected; nothing was taken.
    Reject {
        /// Time after which the same request would be allowed if no other comes, exact to the
        /// microsecond. `None` if it never would be, as when it costs more than the limit.
        retry_after: Option<DurationUs>,
    },
}

impl Verdict {
    /// Whether the request is allowed, at once or later.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allow { .. })
    }
}

/// State of a limit at one point in time, without the decision about a request.
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

    /// Allows a request that goes on at `departs_at`.
    pub(crate) fn admit_at(self, departs_at: TimestampUs) -> Verdict {
        let delay = departs_at.since(self.now);
        self.verdict(Outcome::Allow { delay })
    }

    pub(crate) fn reject(self, retry_at: Option<TimestampUs>) -> Verdict {
        let retry_after = retry_at.map(|retry_at| retry_at.since(self.now));
        self.verdict(Outcome::Reject { retry_after })
    }

    fn verdict(self, outcome: Outcome) -> Verdict {
        Verdict {
            outcome,
            remaining: self.remaining,
            full_after: self.full_at.since(self.now),
        }
    }
}
