//! How does a request begin? With a step, if the store can take one and the epoch is known; or else
//! with a load.
//!
//! A step that lends nothing brings what a load would have brought, so what is unusual costs no
//! round trip more.

use crate::lent::Loaded;
use crate::lent::step::{LentInStep, Step, Stepped};
use anteroom_limit::lending::epoch::Epoch;
use anteroom_limit::lending::message::Answer;
use anteroom_limit::lending::parent::lend;
use anteroom_limit::time::Micros;

use super::{Answered, Asked};
use crate::lending::error::AskError;
use crate::lending::inner::{InForce, Inner};

/// What has become of the first round trip.
pub(super) enum Beginning {
    /// It was all.
    Lent(Answered),
    /// What is there, and when it was asked for.
    Read(Loaded, Micros),
}

impl Inner {
    /// Lends in one step, or reads.
    pub(super) async fn begin_round(&self, asked: &Asked) -> Result<Beginning, AskError> {
        if let Some(in_force) = self.in_force(asked.shelf)
            && let Some(begun) = self.step(asked, &in_force).await?
        {
            return Ok(begun);
        }
        let read_at = self.clock.now();
        let loaded = self.load(asked.shelf, Some(asked.client())).await?;
        Ok(Beginning::Read(loaded, read_at))
    }

    /// `None` if no step could be taken.
    async fn step(
        &self,
        asked: &Asked,
        InForce { epoch, token }: &InForce,
    ) -> Result<Option<Beginning>, AskError> {
        let step = Step {
            epoch,
            epoch_token: *token,
            token: asked.token(),
            lending: &asked.lending,
            request: &asked.request,
        };
        let read_at = self.clock.now();
        let Some(stepped) = self.store.step(asked.shelf, asked.client(), step) else {
            return Ok(None);
        };
        Ok(match self.within(stepped).await? {
            Stepped::Lent(lent) => {
                self.counters.steps.add(1);
                let answer = self.answer(asked, epoch, &lent)?;
                Some(Beginning::Lent(Answered { answer, read_at }))
            }
            Stepped::Not(loaded) => Some(Beginning::Read(loaded, read_at)),
            Stepped::OtherStore => None,
        })
    }

    /// What is told of calls that were lent in one step. If the store comes to another figure than
    /// [`lend`] itself one of them is wrong; nobody knows which, so the smaller one holds.
    fn answer(&self, asked: &Asked, epoch: &Epoch, lent: &LentInStep) -> Result<Answer, AskError> {
        let record = self.read(asked, epoch, lent.record.as_deref())?;
        let (lending, request) = (&asked.lending, &asked.request);
        let mut answer = lend(lending, epoch, record.as_ref(), request, lent.now).answer;
        if answer.held != lent.held {
            self.counters.disagreements.add(1);
            let store = self.store.place();
            tracing::error!(
                store,
                limit = asked.limit,
                lent_by_store = lent.held,
                lent_by_rule = answer.held,
                "the store lends otherwise; please report this"
            );
            answer.held = answer.held.min(lent.held);
        }
        Ok(answer)
    }
}
