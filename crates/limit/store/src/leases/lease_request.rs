//! One lease request to the store.
//!
//! It takes one atomic step where the store supports that and the epoch is known. Otherwise it
//! reads, computes the grant and writes, and retries if another node wrote first.
//!
//! A step that grants nothing returns what a load would have returned, so the unusual case costs no
//! extra round trip.

use std::sync::Arc;
use std::time::Duration;

use crate::ClientKey;
use crate::lease_store::record::{self as client, RecordError};
use crate::lease_store::step::{Step, StepGrant, Stepped};
use crate::lease_store::{LeaseKey, Loaded, Partition, Swapped, Token, Write};
use crate::shared::CountsError;
use anteroom_limit::leases::epoch::{
    self, Before, Epoch, EpochDecision, EpochId, EpochObservation, StoreIdentity, UNKNOWN_FOR,
};
use anteroom_limit::leases::members::{Members, Reports};
use anteroom_limit::leases::message::{LeaseReply, Request};
use anteroom_limit::leases::parent::{self, GrantOutcome, Granted};
use anteroom_limit::leases::record::Record;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::State;
use anteroom_limit::time::{DurationUs, TimestampUs};
use tokio::time::{sleep, timeout};

use crate::leases::error::LeaseError;
use crate::leases::inner::{InForce, Inner};
use crate::leases::members::GrantEntry;
use crate::leases::permits::Permit;
use crate::leases::record;

/// Tries of a request while other nodes write first. With more, the reply would come after its
/// callers' timeouts.
const TRIES_MAX: u32 = 12;
/// Upper bound of the random pause after the first two tries; it doubles each time. The randomness
/// keeps nodes that collided once from colliding again.
const PAUSE_FIRST: Duration = Duration::from_millis(2);
/// Longest pause.
const PAUSE_LONGEST: Duration = Duration::from_millis(64);

/// Lease request with the client it is for.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// Key of the client in this process.
    pub(crate) client: ClientKey,
    pub(crate) incarnation: u64,
    pub(crate) partition: Partition,
    pub(crate) limit: String,
    /// Key of the client on all nodes.
    pub(crate) key: ClientKey,
    pub(crate) leased_limit: Arc<LeasedLimit>,
    pub(crate) request: Request,
}

/// Lease request in flight.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    pending: PendingRequest,
    _permit: Permit,
}

/// Guard that reports the outcome to waiting callers, even if the task is cancelled.
struct Completion {
    inner: Arc<Inner>,
    in_flight: InFlightRequest,
    outcome: Result<DatedReply, LeaseError>,
}

/// Reply of the store, with the time at which the read it rests on was sent.
struct DatedReply {
    answer: LeaseReply,
    read_at: TimestampUs,
    /// Grant to remember, with its store, if the store promises to keep it.
    to_remember: Option<(StoreIdentity, GrantEntry)>,
}

/// Records of a partition as they were read.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'l> {
    pub(crate) loaded: &'l Loaded,
    /// Time at which the read was sent.
    pub(crate) sent_at: TimestampUs,
    pub(crate) members: SeenMembers<'l>,
}

/// Record of the members, as far as it was read.
#[derive(Clone, Copy)]
pub(crate) enum SeenMembers<'l> {
    NotRead,
    Damaged,
    Read(&'l Members),
}

/// Outcome of a look at the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Settled {
    /// The epoch is in force.
    InForce(Epoch),
    /// Written: everything must be read again.
    Written,
    /// The store came back with this epoch, and members must report. Has the promise that counts.
    Reporting(Epoch, DurationUs),
}

/// Outcome of the first round trip.
enum FirstTrip {
    /// The step granted a lease.
    Granted(DatedReply),
    /// Records found, and the time at which they were requested.
    Read(Loaded, TimestampUs),
}

/// Outcome of one try.
enum Attempt {
    Done(DatedReply),
    /// Another node wrote first. Has the records found, if known, and the time at which they were
    /// requested.
    Again(Option<(Loaded, TimestampUs)>),
}

impl InFlightRequest {
    pub(crate) fn new(pending: PendingRequest, permit: Permit) -> Self {
        Self {
            pending,
            _permit: permit,
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Err(LeaseError::Unavailable));
        self.inner.finish(&self.in_flight.pending, outcome);
    }
}

impl Inner {
    /// Sends a request in the background; its callers are woken by its outcome.
    pub(crate) fn send(self: &Arc<Self>, in_flight: InFlightRequest) {
        let inner = Arc::clone(self);
        self.runtime.spawn(async move {
            let outcome = Err(LeaseError::Unavailable);
            let mut completion = Completion {
                inner,
                in_flight,
                outcome,
            };
            completion.outcome = completion
                .inner
                .request(&completion.in_flight.pending)
                .await;
        });
    }

    /// Applies the outcome of a request.
    fn finish(&self, pending: &PendingRequest, outcome: Result<DatedReply, LeaseError>) {
        let now = self.clock.now();
        self.handle_outcome(pending.partition, now, outcome.as_ref().err());
        let outcome = outcome.and_then(|dated| self.remember(pending.partition, now, dated));
        let mut shard = self.clients.shard(pending.client);
        let client = shard.find(pending.client);
        let Some(client) = client.filter(|client| client.incarnation == pending.incarnation) else {
            return;
        };
        client.is_in_flight = false;
        match outcome {
            Ok(DatedReply {
                answer, read_at, ..
            }) => {
                client.last_error = None;
                if client.holding.handle_reply(now, &answer, read_at) {
                    client.had_grant |= answer.granted > 0;
                    self.counters.granted.add(answer.granted);
                    self.counters.grants.add(u32::from(answer.granted > 0));
                }
            }
            Err(error) => {
                client.holding.handle_failure(now, pending.request.id);
                client.last_error = Some(error.clone());
                self.counters.failures.add(1);
                tracing::debug!(%error, limit = pending.limit, "lease request failed");
            }
        }
        client.wake_waiters();
    }

    /// Remembers a grant that its store may forget. If the store has come back as another server
    /// meanwhile, this node may have reported already, and must not use the grant.
    fn remember(
        &self,
        partition: Partition,
        now: TimestampUs,
        mut dated: DatedReply,
    ) -> Result<DatedReply, LeaseError> {
        if let Some((identity, entry)) = dated.to_remember.take() {
            let mut state = self.state(partition).lock();
            if !state.part.handle_store(identity, dated.read_at) {
                return Err(LeaseError::Unavailable);
            }
            state.part.handle_grant(now, entry);
        }
        Ok(dated)
    }

    async fn request(&self, pending: &PendingRequest) -> Result<DatedReply, LeaseError> {
        let mut read = None;
        for tries in 0..TRIES_MAX {
            self.pause(tries).await;
            let (loaded, read_at) = match read.take() {
                Some(read) => read,
                None => match self.first_trip(pending).await? {
                    FirstTrip::Granted(dated) => return Ok(dated),
                    FirstTrip::Read(loaded, read_at) => (loaded, read_at),
                },
            };
            match self.attempt(pending, loaded, read_at).await? {
                Attempt::Done(dated) => return Ok(dated),
                // Records are reused at once only; later they are as old as the pause.
                Attempt::Again(current) => read = current.filter(|_| tries == 0),
            }
        }
        Err(LeaseError::Contended { times: TRIES_MAX })
    }

    /// Grants in one step, or reads.
    async fn first_trip(&self, pending: &PendingRequest) -> Result<FirstTrip, LeaseError> {
        if let Some(in_force) = self.in_force(pending.partition)
            && let Some(outcome) = self.step(pending, &in_force).await?
        {
            return Ok(outcome);
        }
        let read_at = self.clock.now();
        let loaded = self.load(pending.partition, Some(pending.client())).await?;
        Ok(FirstTrip::Read(loaded, read_at))
    }

    /// Takes a step. Returns `None` if the store cannot take it.
    async fn step(
        &self,
        pending: &PendingRequest,
        InForce { epoch, token }: &InForce,
    ) -> Result<Option<FirstTrip>, LeaseError> {
        self.check_member(pending.partition, epoch)?;
        let step = Step {
            epoch,
            epoch_token: *token,
            token: pending.token(),
            leased_limit: &pending.leased_limit,
            request: &pending.request,
        };
        let read_at = self.clock.now();
        let Some(stepped) = self.store.step(pending.partition, pending.client(), step) else {
            return Ok(None);
        };
        Ok(match self.within(stepped).await? {
            Stepped::Granted(grant) => {
                self.counters.steps.add(1);
                Some(FirstTrip::Granted(
                    self.granted_in_step(pending, epoch, &grant, read_at)?,
                ))
            }
            Stepped::NotTaken(loaded) => Some(FirstTrip::Read(loaded, read_at)),
            Stepped::OtherStore => None,
        })
    }

    /// Returns the reply for a lease that was granted in one step. If the store's grant differs
    /// from that of [`parent::grant`], one of the two has a defect; the smaller grant is used.
    fn granted_in_step(
        &self,
        pending: &PendingRequest,
        epoch: &Epoch,
        grant: &StepGrant,
        read_at: TimestampUs,
    ) -> Result<DatedReply, LeaseError> {
        let (limit, leased_limit) = (&pending.limit, &pending.leased_limit);
        let record = self.read(limit, leased_limit, epoch, grant.record.as_deref())?;
        let outcome = parent::grant(
            leased_limit,
            epoch,
            record.as_ref(),
            &pending.request,
            grant.now,
        );
        let as_of = outcome.write.map_or(grant.now, |write| write.record.as_of);
        let mut answer = outcome.reply;
        if answer.granted != grant.granted {
            self.counters.disagreements.add(1);
            let store = self.store.store_name();
            tracing::error!(
                store,
                limit = pending.limit,
                granted_by_store = grant.granted,
                granted_by_rule = answer.granted,
                "store and node disagree on a grant; please report this"
            );
            answer.granted = answer.granted.min(grant.granted);
        }
        let granted = Granted {
            requests: grant.granted,
            as_of,
        };
        Ok(DatedReply {
            answer,
            read_at,
            to_remember: pending.entry(epoch, granted),
        })
    }

    /// Whether leases may be requested in this epoch.
    fn check_member(&self, partition: Partition, epoch: &Epoch) -> Result<(), LeaseError> {
        let Some(longest_loss) = epoch.longest_loss else {
            return Ok(());
        };
        let state = self.state(partition).lock();
        state.part.check(longest_loss, self.clock.now())
    }

    async fn attempt(
        &self,
        pending: &PendingRequest,
        loaded: Loaded,
        read_at: TimestampUs,
    ) -> Result<Attempt, LeaseError> {
        let observed = Observed {
            loaded: &loaded,
            sent_at: read_at,
            members: SeenMembers::NotRead,
        };
        let epoch = match self.settle(pending.partition, observed).await? {
            Settled::InForce(epoch) => epoch,
            Settled::Written => return Ok(Attempt::Again(None)),
            Settled::Reporting(..) => return Err(LeaseError::Reporting),
        };
        let kept = loaded.client.as_ref().map(|kept| kept.value.as_slice());
        let (limit, leased_limit) = (&pending.limit, &pending.leased_limit);
        let record = self.read(limit, leased_limit, &epoch, kept)?;
        let GrantOutcome { write, reply } = parent::grant(
            &pending.leased_limit,
            &epoch,
            record.as_ref(),
            &pending.request,
            loaded.now,
        );
        let mut dated = DatedReply {
            answer: reply,
            read_at,
            to_remember: None,
        };
        let Some(grant) = write else {
            return Ok(Attempt::Done(dated));
        };
        if reply.granted > 0 {
            self.check_member(pending.partition, &epoch)?;
        }
        let granted = Granted {
            requests: reply.granted,
            as_of: grant.record.as_of,
        };
        dated.to_remember = pending.entry(&epoch, granted);
        let write = Write {
            expected: loaded.expected(),
            token: pending.token(),
            value: &client::encode(&grant.record),
        };
        let sent_at = self.clock.now();
        let swap = self.store.swap(
            pending.partition,
            pending.client(),
            write,
            grant.forget_after,
        );
        match self.within(swap).await? {
            Swapped::Written => Ok(Attempt::Done(dated)),
            Swapped::Conflict(current) => {
                self.counters.conflicts.add(1);
                Ok(Attempt::Again(Some((current, sent_at))))
            }
            Swapped::OtherStore => Ok(Attempt::Again(None)),
        }
    }

    /// Decides about the epoch that was read, and writes it if it must change.
    pub(crate) async fn settle(
        &self,
        partition: Partition,
        observed: Observed<'_>,
    ) -> Result<Settled, LeaseError> {
        let loaded = observed.loaded;
        let is_current = {
            let mut state = self.state(partition).lock();
            state.part.handle_store(loaded.identity, observed.sent_at)
        };
        if !is_current {
            return Err(LeaseError::Unavailable);
        }
        let found = match loaded
            .epoch
            .as_ref()
            .map(|kept| record::decode_epoch(&kept.value))
        {
            None => None,
            Some(Ok(found)) => Some(found),
            Some(Err(RecordError::Version { found, known })) if found > known => {
                return Err(LeaseError::NewerRecord);
            }
            Some(Err(error)) => {
                tracing::error!(%error, store = self.store.store_name(), "epoch record unreadable");
                None
            }
        };
        // A store with an unreadable epoch record is not a new store.
        let unreadable_epoch = (found.is_none() && loaded.epoch.is_some()).then_some(EpochId {
            number: 0,
            random: 0,
        });
        let reports = self.reports(partition, found.as_ref(), observed);
        let mut observation = self.observation(partition, found.as_ref(), loaded, reports);
        observation.witnessed = observation.witnessed.or(unreadable_epoch);
        match (epoch::decide(observation), found) {
            (EpochDecision::InForce(epoch), _) => {
                let token = loaded.expected().epoch;
                self.handle_in_force(partition, InForce { epoch, token });
                Ok(Settled::InForce(epoch))
            }
            (EpochDecision::Reporting(epoch, longest_loss), _) => {
                Ok(Settled::Reporting(epoch, longest_loss))
            }
            (EpochDecision::Write(epoch), found) => {
                if let Some(found) = found.filter(|found| found.id == epoch.id) {
                    self.go_on(partition, loaded, (&found, &epoch)).await?;
                } else {
                    self.begin(partition, loaded, &epoch).await?;
                }
                Ok(Settled::Written)
            }
        }
    }

    /// Returns what this node knows about the epoch of a partition.
    pub(crate) fn observation<'l>(
        &self,
        partition: Partition,
        record: Option<&'l Epoch>,
        loaded: &Loaded,
        reports: Reports,
    ) -> EpochObservation<'l> {
        EpochObservation {
            record,
            identity: loaded.identity,
            longest_loss: loaded.longest_loss,
            reports,
            now: loaded.now,
            witnessed: self.witnessed(partition),
            random: self.draws.number(),
        }
    }

    /// Returns the state of the reports to a store that came back, as far as the members were read.
    fn reports(
        &self,
        partition: Partition,
        found: Option<&Epoch>,
        observed: Observed<'_>,
    ) -> Reports {
        let promise =
            found.and_then(|found| epoch::weaker(found.longest_loss, observed.loaded.longest_loss));
        match (promise, observed.members) {
            (Some(longest_loss), SeenMembers::Read(members)) => {
                let state = self.state(partition).lock();
                let membership = &state.part.membership;
                membership.reports(members, longest_loss, self.clock.now())
            }
            (Some(_), SeenMembers::Damaged) => Reports::Lost,
            _ => Reports::Missing,
        }
    }

    /// Writes an epoch that goes on, in a store that came back or with a weaker promise.
    async fn go_on(
        &self,
        partition: Partition,
        loaded: &Loaded,
        (found, epoch): (&Epoch, &Epoch),
    ) -> Result<(), LeaseError> {
        if !self.write_epoch(partition, loaded, epoch).await? {
            return Ok(());
        }
        let (store, number) = (self.store.store_name(), epoch.id.number);
        if found.identity != epoch.identity {
            tracing::info!(store, number, "lease epoch goes on");
        } else if found.longest_loss != epoch.longest_loss {
            tracing::warn!(
                store,
                "this node sees a weaker promise of the store than others; theirs counts no more"
            );
        }
        Ok(())
    }

    async fn write_epoch(
        &self,
        partition: Partition,
        loaded: &Loaded,
        epoch: &Epoch,
    ) -> Result<bool, LeaseError> {
        let write = Write {
            expected: loaded.expected(),
            token: Token(self.draws.token()),
            value: &record::encode_epoch(epoch),
        };
        let swapped = self.within(self.store.swap_epoch(partition, write)).await?;
        Ok(swapped == Swapped::Written)
    }

    /// Begins an epoch, unless another node wrote first. Returns whether it did.
    pub(crate) async fn begin(
        &self,
        partition: Partition,
        loaded: &Loaded,
        epoch: &Epoch,
    ) -> Result<bool, LeaseError> {
        let has_begun = self.write_epoch(partition, loaded, epoch).await?;
        if has_begun {
            self.counters.epochs_begun.add(1);
            tracing::warn!(
                store = self.store.store_name(),
                number = epoch.id.number,
                "lease epoch begins: {}",
                meaning(epoch.before)
            );
        }
        Ok(has_begun)
    }

    /// Decodes a client's record. A damaged or older record counts as used up. A record of a later
    /// version is an error, so that this node does not overwrite it.
    pub(crate) fn read(
        &self,
        limit: &str,
        leased_limit: &LeasedLimit,
        epoch: &Epoch,
        kept: Option<&[u8]>,
    ) -> Result<Option<Record>, LeaseError> {
        let Some(kept) = kept else {
            return Ok(None);
        };
        match client::decode(kept) {
            Ok(record) => Ok(Some(record)),
            Err(RecordError::Version { found, known }) if found > known => {
                Err(LeaseError::NewerRecord)
            }
            Err(error) => {
                self.counters.unreadable.add(1);
                tracing::warn!(
                    %error,
                    limit,
                    "client record unreadable, limit counts as used up"
                );
                // The time lies so far ahead that the rule distrusts the record and rewrites it.
                Ok(Some(Record {
                    epoch: epoch.id,
                    as_of: TimestampUs(u64::MAX),
                    nothing_until: TimestampUs(0),
                    lent_by: *leased_limit,
                    state: State::New,
                }))
            }
        }
    }

    /// Reads the record of a client, if one is given, and that of the epoch.
    pub(crate) async fn load(
        &self,
        partition: Partition,
        client: Option<LeaseKey<'_>>,
    ) -> Result<Loaded, LeaseError> {
        self.within(self.store.load(partition, client)).await
    }

    /// Counts one round trip and limits its time.
    pub(crate) async fn within<T>(
        &self,
        operation: impl Future<Output = Result<T, CountsError>>,
    ) -> Result<T, LeaseError> {
        self.counters.round_trips.add(1);
        let longest = self.settings.round_trip_max;
        match timeout(longest, operation).await {
            Ok(answer) => answer.map_err(|error| LeaseError::Store(Arc::new(error))),
            Err(_) => Err(LeaseError::Timeout {
                ms: longest.as_millis(),
            }),
        }
    }

    async fn pause(&self, tries: u32) {
        let Some(doublings) = tries.checked_sub(2) else {
            return;
        };
        let longest = PAUSE_FIRST.saturating_mul(1 << doublings.min(16));
        let longest = longest.min(PAUSE_LONGEST).as_micros();
        let micros = self.draws.below(u64::try_from(longest).unwrap_or(0));
        sleep(Duration::from_micros(micros)).await;
    }
}

impl PendingRequest {
    /// Returns a grant to remember, if its store promises to keep it.
    fn entry(&self, epoch: &Epoch, granted: Granted) -> Option<(StoreIdentity, GrantEntry)> {
        let is_kept = epoch.longest_loss.is_some() && granted.requests > 0;
        is_kept.then(|| {
            let entry = GrantEntry {
                limit: self.limit.clone(),
                key: self.key,
                leased_limit: Arc::clone(&self.leased_limit),
                granted,
                token: self.token(),
                epoch: epoch.id,
            };
            (epoch.identity, entry)
        })
    }

    fn client(&self) -> LeaseKey<'_> {
        LeaseKey {
            limit: &self.limit,
            key: self.key,
        }
    }

    /// Returns the token of this request's writes. No two requests share one, and at most one try
    /// of a request is written.
    fn token(&self) -> Token {
        let id = self.request.id;
        Token(u128::from(id.incarnation) << 64 | u128::from(id.number))
    }
}

/// Describes why an epoch begins, and what an operator can do about it.
fn meaning(before: Before) -> String {
    match before {
        Before::Unknown => format!(
            "the store is empty, so it grants no leases for {UNKNOWN_FOR}: another node may know \
             its earlier state; if the store is new, `anteroom limits assume-empty` ends \
             the wait"
        ),
        Before::Lost => "the store may have lost leases, so all clients count as having used up \
                         their limits until those leases would be over; if hardly anything was \
                         spent, `anteroom limits assume-empty` ends that"
            .to_owned(),
        Before::Nothing => {
            "an operator confirmed that nothing was spent, so all clients start anew".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_reports_how_long_a_new_store_grants_nothing() {
        assert!(meaning(Before::Unknown).contains("grants no leases for 5 s"));
    }
}
