//! One request to the store: lent in one step where the store can do that and the epoch is known,
//! and otherwise read, lend, write; and again if somebody else was quicker.
//!
//! A step that lends nothing brings what a load would have brought, so what is unusual costs no
//! round trip more.

use std::sync::Arc;
use std::time::Duration;

use crate::CallKey;
use crate::lent::record::{self as client, RecordError};
use crate::lent::step::{Step, StepGrant, Stepped};
use crate::lent::{LeaseKey, Loaded, Shelf, Swapped, Token, Write};
use crate::shared::CountsError;
use anteroom_limit::lending::epoch::{
    self, Before, Epoch, EpochDecision, EpochId, EpochObservation, UNKNOWN_FOR,
};
use anteroom_limit::lending::message::{Answer, Request};
use anteroom_limit::lending::parent::{GrantOutcome, lend};
use anteroom_limit::lending::record::Record;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::State;
use anteroom_limit::time::TimestampUs;
use tokio::time::{sleep, timeout};

use crate::lending::error::AskError;
use crate::lending::inner::{InForce, Inner};
use crate::lending::permits::Permit;
use crate::lending::record;

/// How often a request is tried while others are quicker. With more it would be answered after
/// those who asked have gone.
const TRIES_MAX: u32 = 12;
/// After the first two tries there is a pause, from none to this, and twice as long each time:
/// those who met once would meet again.
const PAUSE_FIRST: Duration = Duration::from_millis(2);
/// The longest pause.
const PAUSE_LONGEST: Duration = Duration::from_millis(64);

/// A request and whose it is.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// As the client is known here.
    pub(crate) client: CallKey,
    pub(crate) birth: u64,
    pub(crate) shelf: Shelf,
    pub(crate) limit: String,
    /// As it is known to all nodes.
    pub(crate) key: CallKey,
    pub(crate) lending: Arc<LeasedLimit>,
    pub(crate) request: Request,
}

/// A request that is on its way.
#[derive(Debug)]
pub(crate) struct Round {
    asked: PendingRequest,
    _permit: Permit,
}

/// Tells those who wait how it ended, also if what runs it was stopped.
struct Telling {
    inner: Arc<Inner>,
    round: Round,
    outcome: Result<Answered, AskError>,
}

/// An answer, and when the read was sent on which it rests.
struct Answered {
    answer: Answer,
    read_at: TimestampUs,
}

/// What has become of the first round trip.
enum Beginning {
    /// It was all.
    GrantOutcome(Answered),
    /// What is there, and when it was asked for.
    Read(Loaded, TimestampUs),
}

/// What a try came to.
enum Try {
    Done(Answered),
    /// Somebody else wrote first; what is there, if that is known, and when it was asked for.
    Again(Option<(Loaded, TimestampUs)>),
}

impl Round {
    pub(crate) fn new(asked: PendingRequest, permit: Permit) -> Self {
        Self {
            asked,
            _permit: permit,
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Err(AskError::Away));
        self.inner.finish(&self.round.asked, outcome);
    }
}

impl Inner {
    /// Sends a request; whoever waits for it is told later.
    pub(crate) fn send(self: &Arc<Self>, round: Round) {
        let inner = Arc::clone(self);
        self.runtime.spawn(async move {
            let outcome = Err(AskError::Away);
            let mut telling = Telling {
                inner,
                round,
                outcome,
            };
            telling.outcome = telling.inner.request(&telling.round.asked).await;
        });
    }

    /// Applies what came of a request.
    fn finish(&self, asked: &PendingRequest, outcome: Result<Answered, AskError>) {
        let now = self.clock.now();
        self.handle_outcome(asked.shelf, now, outcome.as_ref().err());
        let mut shard = self.clients.shard(asked.client);
        let client = shard.find(asked.client);
        let Some(client) = client.filter(|client| client.birth == asked.birth) else {
            return;
        };
        client.is_asking = false;
        match outcome {
            Ok(Answered { answer, read_at }) => {
                client.why = None;
                if client.holding.handle_answer(now, &answer, read_at) {
                    client.was_lent |= answer.held > 0;
                    self.counters.lent.add(answer.held);
                    self.counters.grants.add(u32::from(answer.held > 0));
                }
            }
            Err(error) => {
                client.holding.handle_failure(now, asked.request.id);
                client.why = Some(error.clone());
                self.counters.failures.add(1);
                tracing::debug!(%error, limit = asked.limit, "a request for calls failed");
            }
        }
        client.ring();
    }

    async fn request(&self, asked: &PendingRequest) -> Result<Answered, AskError> {
        let mut read = None;
        for tries in 0..TRIES_MAX {
            self.pause(tries).await;
            let (loaded, read_at) = match read.take() {
                Some(read) => read,
                None => match self.begin_round(asked).await? {
                    Beginning::GrantOutcome(answered) => return Ok(answered),
                    Beginning::Read(loaded, read_at) => (loaded, read_at),
                },
            };
            match self.attempt(asked, loaded, read_at).await? {
                Try::Done(answered) => return Ok(answered),
                // What is there is used at once, or else it is as old as the pause.
                Try::Again(there) => read = there.filter(|_| tries == 0),
            }
        }
        Err(AskError::Contended { times: TRIES_MAX })
    }

    /// Lends in one step, or reads.
    async fn begin_round(&self, asked: &PendingRequest) -> Result<Beginning, AskError> {
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
        asked: &PendingRequest,
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
            Stepped::GrantOutcome(lent) => {
                self.counters.steps.add(1);
                let answer = self.answer(asked, epoch, &lent)?;
                Some(Beginning::GrantOutcome(Answered { answer, read_at }))
            }
            Stepped::Not(loaded) => Some(Beginning::Read(loaded, read_at)),
            Stepped::OtherStore => None,
        })
    }

    /// What is told of calls that were lent in one step. If the store comes to another figure than
    /// [`lend`] itself one of them is wrong; nobody knows which, so the smaller one holds.
    fn answer(
        &self,
        asked: &PendingRequest,
        epoch: &Epoch,
        lent: &StepGrant,
    ) -> Result<Answer, AskError> {
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

    async fn attempt(
        &self,
        asked: &PendingRequest,
        loaded: Loaded,
        read_at: TimestampUs,
    ) -> Result<Try, AskError> {
        let Some(epoch) = self.settle(asked.shelf, &loaded).await? else {
            return Ok(Try::Again(None));
        };
        let kept = loaded.client.as_ref().map(|kept| kept.value.as_slice());
        let record = self.read(asked, &epoch, kept)?;
        let GrantOutcome { write, answer } = lend(
            &asked.lending,
            &epoch,
            record.as_ref(),
            &asked.request,
            loaded.now,
        );
        let answered = Answered { answer, read_at };
        let Some(lent) = write else {
            return Ok(Try::Done(answered));
        };
        let write = Write {
            expected: loaded.expected(),
            token: asked.token(),
            value: &client::encode(&lent.record),
        };
        let sent_at = self.clock.now();
        let swap = self
            .store
            .swap(asked.shelf, asked.client(), write, lent.forget_after);
        match self.within(swap).await? {
            Swapped::Written => Ok(Try::Done(answered)),
            Swapped::Conflict(there) => {
                self.counters.conflicts.add(1);
                Ok(Try::Again(Some((there, sent_at))))
            }
            Swapped::OtherStore => Ok(Try::Again(None)),
        }
    }

    /// The epoch that is in force; `None` if its record had to be written first: then all must be
    /// read again.
    pub(crate) async fn settle(
        &self,
        shelf: Shelf,
        loaded: &Loaded,
    ) -> Result<Option<Epoch>, AskError> {
        let found = match loaded
            .epoch
            .as_ref()
            .map(|kept| record::decode_epoch(&kept.value))
        {
            None => None,
            Some(Ok(found)) => Some(found),
            Some(Err(RecordError::Version { found, known })) if found > known => {
                return Err(AskError::Later);
            }
            Some(Err(error)) => {
                tracing::error!(%error, store = self.store.place(), "the epoch cannot be read");
                None
            }
        };
        // What cannot be read was something: a store that holds it is no new one.
        let was_something = (found.is_none() && loaded.epoch.is_some()).then_some(EpochId {
            number: 0,
            random: 0,
        });
        let sight = EpochObservation {
            record: found.as_ref(),
            identity: loaded.identity,
            now: loaded.now,
            witnessed: self.witnessed(shelf).or(was_something),
            random: self.draws.number(),
        };
        match epoch::judge(sight) {
            EpochDecision::InForce(epoch) => {
                let token = loaded.expected().epoch;
                self.handle_in_force(shelf, InForce { epoch, token });
                Ok(Some(epoch))
            }
            EpochDecision::Write(epoch) => {
                self.begin(shelf, loaded, &epoch).await?;
                Ok(None)
            }
        }
    }

    /// Begins an epoch, unless somebody else was quicker. Returns whether it did.
    pub(crate) async fn begin(
        &self,
        shelf: Shelf,
        loaded: &Loaded,
        epoch: &Epoch,
    ) -> Result<bool, AskError> {
        let write = Write {
            expected: loaded.expected(),
            token: Token(self.draws.token()),
            value: &record::encode_epoch(epoch),
        };
        let swapped = self.within(self.store.swap_epoch(shelf, write)).await?;
        let has_begun = swapped == Swapped::Written;
        if has_begun {
            self.counters.epochs_begun.add(1);
            tracing::warn!(
                store = self.store.place(),
                number = epoch.id.number,
                "an epoch of lent calls begins: {}",
                meaning(epoch.before)
            );
        }
        Ok(has_begun)
    }

    /// What is there of a client. What is damaged, or older than what is read here, is as if it had
    /// spent all; what a later version wrote is left to that.
    fn read(
        &self,
        asked: &PendingRequest,
        epoch: &Epoch,
        kept: Option<&[u8]>,
    ) -> Result<Option<Record>, AskError> {
        let Some(kept) = kept else {
            return Ok(None);
        };
        match client::decode(kept) {
            Ok(record) => Ok(Some(record)),
            Err(RecordError::Version { found, known }) if found > known => Err(AskError::Later),
            Err(error) => {
                self.counters.unreadable.add(1);
                tracing::warn!(%error, limit = asked.limit, "a client counts as having spent all");
                // So far ahead that it is not believed, and written anew.
                Ok(Some(Record {
                    epoch: epoch.id,
                    as_of: TimestampUs(u64::MAX),
                    nothing_until: TimestampUs(0),
                    lent_by: *asked.lending,
                    state: State::New,
                }))
            }
        }
    }

    /// Reads a client's record, if one is named, and the epoch's.
    pub(crate) async fn load(
        &self,
        shelf: Shelf,
        client: Option<LeaseKey<'_>>,
    ) -> Result<Loaded, AskError> {
        self.within(self.store.load(shelf, client)).await
    }

    /// One round trip.
    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, CountsError>>,
    ) -> Result<T, AskError> {
        self.counters.round_trips.add(1);
        let longest = self.settings.round_trip_max;
        match timeout(longest, call).await {
            Ok(answer) => answer.map_err(|error| AskError::Store(Arc::new(error))),
            Err(_) => Err(AskError::Timeout {
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
    fn client(&self) -> LeaseKey<'_> {
        LeaseKey {
            limit: &self.limit,
            key: self.key,
        }
    }

    /// The name of what it writes. Names of requests do not come twice, and only one try of each is
    /// ever carried out.
    fn token(&self) -> Token {
        let id = self.request.id;
        Token(u128::from(id.incarnation) << 64 | u128::from(id.number))
    }
}

/// What an operator sees of an epoch's beginning, and can do about it.
fn meaning(before: Before) -> String {
    match before {
        Before::Unknown => format!(
            "the store was found empty, so nothing is lent for {UNKNOWN_FOR}, in case somebody \
             knows better; if it \
             is new, `anteroom limits assume-empty` lends at once"
        ),
        Before::Lost => "the store may have lost what it lent, so all clients count as having \
                         spent all until that \
                         would be over; `anteroom limits assume-empty` ends that, if hardly \
                         anything was spent"
            .to_owned(),
        Before::Nothing => {
            "an operator said that nothing was spent, so all clients begin anew".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_how_long_a_new_store_lends_nothing() {
        assert!(meaning(Before::Unknown).contains("nothing is lent for 5 s"));
    }
}
