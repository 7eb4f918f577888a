//! Store with a limited counter.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::{Needs, Policy, State};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::{
    BoxFuture, CountsError, SharedAcquire, SharedCounts, UnfitError,
};

/// Store to which every client is new, and which can count up to `calls_max` requests.
#[derive(Debug)]
pub(crate) struct Small {
    pub(crate) calls_max: u32,
}

impl SharedCounts for Small {
    fn kind(&self) -> &'static str {
        "small"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        if policy.rate().requests() <= self.calls_max {
            return Ok(());
        }
        Err(UnfitError::NeedsMore {
            limit: limit.to_owned(),
            algorithm: "counting far",
            needs: Needs::Transaction,
            store: self.kind(),
            offers: Needs::AtomicAdd,
        })
    }

    fn acquire<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        let now = TimestampUs(0);
        let step = |charge: &SharedAcquire<'_>| {
            let mut state = State::default();
            charge.policy.step(&mut state, now, charge.cost)
        };
        let verdicts = charges.iter().map(step).collect();
        Box::pin(async move { Ok(verdicts) })
    }
}
