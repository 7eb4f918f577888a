//! Decisions about client requests from leases, and what a request waits for.
//!
//! All limits of a request are decided under their locks. If all admit, the request acquires from
//! all. Otherwise the state is as if those that admit had not decided. While a request waits, it
//! has acquired nothing.

use std::sync::Arc;

use crate::ClientKey;
use crate::shared::SharedAcquire;
use anteroom_limit::cost::Cost;
use anteroom_limit::leases::holding::{Decision, Holding, Turn};
use anteroom_limit::leases::message::RequestId;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use tokio::sync::futures::OwnedNotified;

use crate::leases::clients::Locked;
use crate::leases::error::LeaseError;
use crate::leases::inner::Inner;
use crate::leases::lease_request::{InFlightRequest, PendingRequest};

/// One client request against several limits.
pub(crate) struct ClientRequest<'c> {
    acquires: &'c [SharedAcquire<'c>],
    /// Keys of the clients in this process, one per limit.
    keys: Vec<ClientKey>,
    /// Turn that each limit waits for, with the client's incarnation here; `None` before the first
    /// decision.
    turns: Vec<Option<(u64, Turn)>>,
    /// Upper bound of the age of what is refunded; `None` if unknown.
    pub(crate) age: Option<DurationUs>,
}

/// Permission to send requests to the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StoreAccess {
    Allowed,
    Denied,
}

/// Progress of a client request.
pub(crate) enum Progress {
    /// Verdicts are complete, one per limit.
    Decided,
    /// Error instead of verdicts. Nothing was acquired.
    Failed(LeaseError),
    /// Wakeups to wait for, all of them, before it is decided again. Nothing was acquired. Empty if
    /// no request may be sent: then the state is as before.
    Wait(Vec<OwnedNotified>),
}

/// Acquisition with the client's key in this process.
type KeyedAcquire<'c> = (ClientKey, &'c SharedAcquire<'c>);

struct Step {
    before: Holding,
    decision: Decision,
}

impl Step {
    fn verdict(&self) -> Option<Verdict> {
        match self.decision {
            Decision::Decided(verdict) => Some(verdict),
            Decision::Wait(_) | Decision::Uncertain(_) | Decision::Unavailable => None,
        }
    }

    fn rejects(&self) -> bool {
        self.verdict().is_some_and(|verdict| !verdict.is_allowed())
    }
}

impl<'c> ClientRequest<'c> {
    /// Requires one key per acquisition.
    pub(crate) fn new(acquires: &'c [SharedAcquire<'c>], keys: Vec<ClientKey>) -> Self {
        let turns = vec![None; acquires.len()];
        Self {
            acquires,
            keys,
            turns,
            age: None,
        }
    }

    fn each(
        &self,
    ) -> impl DoubleEndedIterator<Item = KeyedAcquire<'c>> + ExactSizeIterator + use<'_, 'c> {
        self.keys.iter().copied().zip(self.acquires)
    }
}

impl Inner {
    /// Decides about a request as far as that is possible now.
    pub(crate) fn decide(
        self: &Arc<Self>,
        request: &mut ClientRequest<'_>,
        verdicts: &mut Vec<Verdict>,
        access: StoreAccess,
    ) -> Progress {
        let now = self.clock.now();
        let mut locked = self.clients.lock(&request.keys);
        for (key, acquire) in request.each() {
            if let Err(error) = locked.shard(key).ensure(key, acquire.policy, now) {
                let is_full = matches!(error, LeaseError::NoRoom);
                self.counters.overflows.add(u32::from(is_full));
                return Progress::Failed(error);
            }
        }
        let is_first = request.turns.iter().all(Option::is_none);
        let steps = decide_each(request, &mut locked, now);
        let progress = if steps.iter().any(Step::rejects) {
            reject(request, &mut locked, now, &steps, verdicts);
            Progress::Decided
        } else if let Some(error) = self.outage(request, &mut locked, &steps, now) {
            restore(request, &mut locked, &steps);
            Progress::Failed(error)
        } else if steps.iter().all(|step| step.verdict().is_some()) {
            self.commit(request, &mut locked, now, &steps, verdicts);
            Progress::Decided
        } else if access == StoreAccess::Denied {
            restore(request, &mut locked, &steps);
            return Progress::Wait(Vec::new());
        } else {
            undo_takes(request, &mut locked, now, &steps);
            match self.request_leases(request, &mut locked, now, &steps) {
                Ok(wakeups) => return Progress::Wait(wakeups),
                Err(error) => Progress::Failed(error),
            }
        };
        if is_first && matches!(progress, Progress::Decided) {
            self.counters.decided_here.add(1);
        }
        for key in &request.keys {
            locked.shard(*key).remove_guest(*key);
        }
        progress
    }

    /// Returns an error if a request to the store is needed and the store is unavailable, or if it
    /// does not know what was granted.
    fn outage(
        &self,
        request: &ClientRequest<'_>,
        locked: &mut Locked<'_>,
        steps: &[Step],
        now: TimestampUs,
    ) -> Option<LeaseError> {
        let mut both = request.each().zip(steps);
        both.find_map(|((key, acquire), step)| match step.decision {
            Decision::Decided(_) => None,
            Decision::Uncertain(span) => Some(LeaseError::Uncertain(span)),
            Decision::Unavailable => Some(locked.client(key).error()),
            Decision::Wait(_) => self.unavailable(self.partition(acquire.key), now),
        })
    }

    /// Acquires from all limits.
    fn commit(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        locked: &mut Locked<'_>,
        now: TimestampUs,
        steps: &[Step],
        verdicts: &mut Vec<Verdict>,
    ) {
        for ((key, acquire), step) in request.each().zip(steps) {
            let client = locked.client(key);
            match acquire.cost {
                Cost::Take(taken) => {
                    client.handle_take(now);
                    self.counters.spent.add(taken.get());
                    verdicts.extend(step.verdict());
                }
                Cost::Peek => verdicts.extend(step.verdict()),
                Cost::Refund(back) => {
                    let before = client.holding.balance(now);
                    let spent_at = match request.age {
                        Some(age) => Some(TimestampUs(now.0.saturating_sub(age.0))),
                        None => client.refunds_since(now),
                    };
                    let back = spent_at.map_or(0, |_| back.get());
                    let spent_at = spent_at.unwrap_or(now);
                    verdicts.push(client.holding.undo(now, spent_at, back));
                    let undone = client.holding.balance(now).saturating_sub(before);
                    self.counters.undone.add(undone);
                }
            }
        }
        for (key, acquire) in request.each() {
            if self.unavailable(self.partition(acquire.key), now).is_none() {
                // This is ahead of demand: no caller waits for it, so an error is dropped.
                let _ = self.poll(locked, key, acquire, now);
            }
        }
    }

    /// Requests leases for limits without a verdict.
    fn request_leases(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        locked: &mut Locked<'_>,
        now: TimestampUs,
        steps: &[Step],
    ) -> Result<Vec<OwnedNotified>, LeaseError> {
        let mut wakeups = Vec::new();
        for ((key, acquire), step) in request.each().zip(steps) {
            if step.verdict().is_some() {
                continue;
            }
            self.poll(locked, key, acquire, now)?;
            let client = locked.client(key);
            if !client.is_in_flight {
                // The last request failed just now.
                return Err(client.error());
            }
            wakeups.push(client.wakeup());
        }
        Ok(wakeups)
    }

    /// Sends a lease request for a client, if one is due.
    fn poll(
        self: &Arc<Self>,
        locked: &mut Locked<'_>,
        key: ClientKey,
        acquire: &SharedAcquire<'_>,
        now: TimestampUs,
    ) -> Result<(), LeaseError> {
        let shard = locked.shard(key);
        let id = RequestId {
            incarnation: self.incarnation,
            number: shard.next_number(),
        };
        let client = locked.client(key);
        let leased_limit = Arc::clone(&client.leased_limit);
        let Some(request) = client.holding.poll_request(now, id, &leased_limit) else {
            return Ok(());
        };
        let Some(permit) = self.permits.take(client.had_grant) else {
            client.holding.handle_failure(now, id);
            client.last_error = Some(LeaseError::TooManyInFlight);
            return Err(LeaseError::TooManyInFlight);
        };
        client.is_in_flight = true;
        let pending = PendingRequest {
            client: key,
            incarnation: client.incarnation,
            partition: self.partition(acquire.key),
            limit: acquire.limit.to_owned(),
            key: acquire.key,
            leased_limit,
            request,
        };
        self.handle_request(pending.partition, now);
        self.counters.requests.add(1);
        self.send(InFlightRequest::new(pending, permit));
        Ok(())
    }
}

/// Decides for each limit, in order.
fn decide_each(
    request: &mut ClientRequest<'_>,
    locked: &mut Locked<'_>,
    now: TimestampUs,
) -> Vec<Step> {
    let mut steps = Vec::with_capacity(request.acquires.len());
    let each = request
        .keys
        .iter()
        .zip(request.acquires)
        .zip(&mut request.turns);
    for ((key, acquire), turn) in each {
        let client = locked.client(*key);
        let before = client.holding;
        let waited = turn.filter(|(incarnation, _)| *incarnation == client.incarnation);
        let decision = match waited {
            None => client.holding.decide(now, acquire.cost),
            Some((_, turn)) => client.holding.decide_again(now, acquire.cost, turn),
        };
        let next = match decision {
            Decision::Wait(turn) => turn,
            Decision::Decided(_) | Decision::Uncertain(_) | Decision::Unavailable => {
                Turn::default()
            }
        };
        *turn = Some((client.incarnation, next));
        steps.push(Step { before, decision });
    }
    steps
}

/// Restores the state before the decisions. In reverse order, as one client may be listed twice.
fn restore(request: &ClientRequest<'_>, locked: &mut Locked<'_>, steps: &[Step]) {
    for ((key, _), step) in request.each().zip(steps).rev() {
        locked.client(key).holding = step.before;
    }
}

/// Rejects the request: limits that admit report their state without it.
fn reject(
    request: &ClientRequest<'_>,
    locked: &mut Locked<'_>,
    now: TimestampUs,
    steps: &[Step],
    verdicts: &mut Vec<Verdict>,
) {
    for ((key, _), step) in request.each().zip(steps).rev() {
        if !step.rejects() {
            locked.client(key).holding = step.before;
        }
    }
    for ((key, _), step) in request.each().zip(steps) {
        let verdict = match step.verdict().filter(|_| step.rejects()) {
            Some(verdict) => verdict,
            // Undoes nothing; it only reads the state.
            None => locked.client(key).holding.undo(now, now, 0),
        };
        verdicts.push(verdict);
    }
}

/// Undoes acquisitions, as other limits must wait.
fn undo_takes(
    request: &ClientRequest<'_>,
    locked: &mut Locked<'_>,
    now: TimestampUs,
    steps: &[Step],
) {
    for ((key, acquire), step) in request.each().zip(steps) {
        if let (Cost::Take(taken), Some(_)) = (acquire.cost, step.verdict()) {
            locked.client(key).holding.undo(now, now, taken.get());
        }
    }
}
