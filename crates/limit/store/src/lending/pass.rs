//! What is a call told from what is held here, and for whom must it wait?
//!
//! All limits of a call are decided under their locks. If all admit, all are charged; otherwise it
//! is as if those that admit had not been asked. While it waits for an answer a call has taken
//! nothing.

use std::sync::Arc;

use crate::CallKey;
use crate::shared::SharedAcquire;
use anteroom_limit::cost::Cost;
use anteroom_limit::lending::holding::{Decision, Holding, Turn};
use anteroom_limit::lending::message::RequestId;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use tokio::sync::futures::OwnedNotified;

use crate::lending::clients::Locked;
use crate::lending::error::AskError;
use crate::lending::inner::Inner;
use crate::lending::round::{PendingRequest, Round};

/// One call against several limits.
pub(crate) struct Call<'c> {
    charges: &'c [SharedAcquire<'c>],
    /// Whom each is charged to, as clients are known here.
    keys: Vec<CallKey>,
    /// For which turn each waits, and in which of the client's lives here; `None` before it was
    /// decided first.
    turns: Vec<Option<(u64, Turn)>>,
    /// How long ago what it gives back was charged, at most; `None` if nobody says it.
    pub(crate) age: Option<DurationUs>,
}

/// Whether the store may be asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum May {
    Ask,
    NotAsk,
}

/// What came of it.
pub(crate) enum Pass {
    /// There is a verdict for each.
    Told,
    /// Nobody knows. Nothing was charged.
    Unknown(AskError),
    /// It must be decided again when all these have rung. Nothing was charged. None, if nobody may
    /// ask: then it is as if the call had not been.
    Wait(Vec<OwnedNotified>),
}

/// One charge, and to whom, as clients are known here.
type Charged<'c> = (CallKey, &'c SharedAcquire<'c>);

struct Step {
    before: Holding,
    decision: Decision,
}

impl Step {
    fn told(&self) -> Option<Verdict> {
        match self.decision {
            Decision::Decided(verdict) => Some(verdict),
            Decision::Ask(_) | Decision::Away => None,
        }
    }

    fn rejects(&self) -> bool {
        self.told().is_some_and(|verdict| !verdict.is_admitted())
    }
}

impl<'c> Call<'c> {
    /// `keys` has one for each charge.
    pub(crate) fn new(charges: &'c [SharedAcquire<'c>], keys: Vec<CallKey>) -> Self {
        let turns = vec![None; charges.len()];
        Self {
            charges,
            keys,
            turns,
            age: None,
        }
    }

    fn each(
        &self,
    ) -> impl DoubleEndedIterator<Item = Charged<'c>> + ExactSizeIterator + use<'_, 'c> {
        self.keys.iter().copied().zip(self.charges)
    }
}

impl Inner {
    /// Decides about a call as far as that can be done now.
    pub(crate) fn pass(
        self: &Arc<Self>,
        call: &mut Call<'_>,
        verdicts: &mut Vec<Verdict>,
        may: May,
    ) -> Pass {
        let now = self.clock.now();
        let mut locked = self.clients.lock(&call.keys);
        for (key, charge) in call.each() {
            if let Err(error) = locked.of(key).make_sure(key, charge.policy, now) {
                let is_crowded = matches!(error, AskError::Crowded);
                self.counters.crowded.add(u32::from(is_crowded));
                return Pass::Unknown(error);
            }
        }
        let is_first = call.turns.iter().all(Option::is_none);
        let steps = decide(call, &mut locked, now);
        let passed = if steps.iter().any(Step::rejects) {
            reject(call, &mut locked, now, &steps, verdicts);
            Pass::Told
        } else if let Some(error) = self.nobody_answers(call, &mut locked, &steps, now) {
            restore(call, &mut locked, &steps);
            Pass::Unknown(error)
        } else if steps.iter().all(|step| step.told().is_some()) {
            self.commit(call, &mut locked, now, &steps, verdicts);
            Pass::Told
        } else if may == May::NotAsk {
            restore(call, &mut locked, &steps);
            return Pass::Wait(Vec::new());
        } else {
            take_back(call, &mut locked, now, &steps);
            match self.ask(call, &mut locked, now, &steps) {
                Ok(bells) => return Pass::Wait(bells),
                Err(error) => Pass::Unknown(error),
            }
        };
        if is_first && matches!(passed, Pass::Told) {
            self.counters.decided_here.add(1);
        }
        for key in &call.keys {
            locked.of(*key).let_go(*key);
        }
        passed
    }

    /// Why it cannot be said, if somebody would have to be asked who is away.
    fn nobody_answers(
        &self,
        call: &Call<'_>,
        locked: &mut Locked<'_>,
        steps: &[Step],
        now: TimestampUs,
    ) -> Option<AskError> {
        let mut both = call.each().zip(steps);
        both.find_map(|((key, charge), step)| match step.decision {
            Decision::Decided(_) => None,
            Decision::Away => Some(locked.client(key).why()),
            Decision::Ask(_) => self.away(self.shelf(charge.key), now),
        })
    }

    /// Charges all.
    fn commit(
        self: &Arc<Self>,
        call: &Call<'_>,
        locked: &mut Locked<'_>,
        now: TimestampUs,
        steps: &[Step],
        verdicts: &mut Vec<Verdict>,
    ) {
        for ((key, charge), step) in call.each().zip(steps) {
            let client = locked.client(key);
            match charge.cost {
                Cost::Take(taken) => {
                    client.handle_take(now);
                    self.counters.spent.add(taken.get());
                    verdicts.extend(step.told());
                }
                Cost::Peek => verdicts.extend(step.told()),
                Cost::Refund(back) => {
                    let before = client.holding.held(now);
                    let spent_at = match call.age {
                        Some(age) => Some(TimestampUs(now.0.saturating_sub(age.0))),
                        None => client.refunds_since(now),
                    };
                    let back = spent_at.map_or(0, |_| back.get());
                    let spent_at = spent_at.unwrap_or(now);
                    verdicts.push(client.holding.undo(now, spent_at, back));
                    let undone = client.holding.held(now).saturating_sub(before);
                    self.counters.undone.add(undone);
                }
            }
        }
        for (key, charge) in call.each() {
            if self.away(self.shelf(charge.key), now).is_none() {
                // Ahead of demand: nobody waits for it, so nobody is told if it cannot be sent.
                let _ = self.poll(locked, key, charge, now);
            }
        }
    }

    /// Sends what is to be sent for those that must wait.
    fn ask(
        self: &Arc<Self>,
        call: &Call<'_>,
        locked: &mut Locked<'_>,
        now: TimestampUs,
        steps: &[Step],
    ) -> Result<Vec<OwnedNotified>, AskError> {
        let mut bells = Vec::new();
        for ((key, charge), step) in call.each().zip(steps) {
            if step.told().is_some() {
                continue;
            }
            self.poll(locked, key, charge, now)?;
            let client = locked.client(key);
            if !client.is_asking {
                // The last request has failed just now.
                return Err(client.why());
            }
            bells.push(client.wait());
        }
        Ok(bells)
    }

    /// Sends a request of a client, if one is to be sent.
    fn poll(
        self: &Arc<Self>,
        locked: &mut Locked<'_>,
        key: CallKey,
        charge: &SharedAcquire<'_>,
        now: TimestampUs,
    ) -> Result<(), AskError> {
        let shard = locked.of(key);
        let id = RequestId {
            incarnation: self.incarnation,
            number: shard.next_number(),
        };
        let client = locked.client(key);
        let lending = Arc::clone(&client.lending);
        let Some(request) = client.holding.poll_request(now, id, &lending) else {
            return Ok(());
        };
        let Some(permit) = self.permits.take(client.was_lent) else {
            client.holding.handle_failure(now, id);
            client.why = Some(AskError::TooMany);
            return Err(AskError::TooMany);
        };
        client.is_asking = true;
        let asked = PendingRequest {
            client: key,
            birth: client.birth,
            shelf: self.shelf(charge.key),
            limit: charge.limit.to_owned(),
            key: charge.key,
            lending,
            request,
        };
        self.handle_request(asked.shelf, now);
        self.counters.requests.add(1);
        self.send(Round::new(asked, permit));
        Ok(())
    }
}

/// Decides each, in order.
fn decide(call: &mut Call<'_>, locked: &mut Locked<'_>, now: TimestampUs) -> Vec<Step> {
    let mut steps = Vec::with_capacity(call.charges.len());
    let each = call.keys.iter().zip(call.charges).zip(&mut call.turns);
    for ((key, charge), turn) in each {
        let client = locked.client(*key);
        let before = client.holding;
        let waited = turn.filter(|(birth, _)| *birth == client.birth);
        let decision = match waited {
            None => client.holding.decide(now, charge.cost),
            Some((_, turn)) => client.holding.decide_again(now, charge.cost, turn),
        };
        let next = match decision {
            Decision::Ask(turn) => turn,
            Decision::Decided(_) | Decision::Away => Turn::default(),
        };
        *turn = Some((client.birth, next));
        steps.push(Step { before, decision });
    }
    steps
}

/// Makes it as if nobody had asked. The last first: one client may stand there twice.
fn restore(call: &Call<'_>, locked: &mut Locked<'_>, steps: &[Step]) {
    for ((key, _), step) in call.each().zip(steps).rev() {
        locked.client(key).holding = step.before;
    }
}

/// Some reject: those that do not say how they stand without this call.
fn reject(
    call: &Call<'_>,
    locked: &mut Locked<'_>,
    now: TimestampUs,
    steps: &[Step],
    verdicts: &mut Vec<Verdict>,
) {
    for ((key, _), step) in call.each().zip(steps).rev() {
        if !step.rejects() {
            locked.client(key).holding = step.before;
        }
    }
    for ((key, _), step) in call.each().zip(steps) {
        let verdict = match step.told().filter(|_| step.rejects()) {
            Some(verdict) => verdict,
            // Nothing is undone by this.
            None => locked.client(key).holding.undo(now, now, 0),
        };
        verdicts.push(verdict);
    }
}

/// Gives back what was taken, because others must wait.
fn take_back(call: &Call<'_>, locked: &mut Locked<'_>, now: TimestampUs, steps: &[Step]) {
    for ((key, charge), step) in call.each().zip(steps) {
        if let (Cost::Take(taken), Some(_)) = (charge.cost, step.told()) {
            locked.client(key).holding.undo(now, now, taken.get());
        }
    }
}
