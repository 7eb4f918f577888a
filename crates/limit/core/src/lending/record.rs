//! What is written down of one client, and what is believed of it later?
//!
//! The state of the widened limit, charged with whole batches at the moments at which they were
//! lent by the store's clock. Who holds them is not written down: a lease is prepaid, so nobody
//! ever asks.
//!
//! # What is not believed
//!
//! - A record of another epoch, or none in an epoch that began with a loss: all that the limit
//!   allows counts as spent when the epoch began.
//! - A record whose time lies further ahead than the limit reaches: the clock was set back. Before
//!   that it stands still, as in all algorithms.
//! - A state that another window made: what it counted is counted as spent at once, as late as it
//!   can have been. One that another algorithm made: all counts as spent when it was written.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::Oldest;
use crate::lending::epoch::{Before, Epoch, EpochId};
use crate::lending::widened::{LeasedLimit, TTL_LONGEST};
use crate::policy::{Policy, State};
use crate::registry::Remembers;
use crate::time::{DurationUs, TimestampUs};
use crate::token_bucket;
use crate::verdict::Verdict;

/// What a store keeps of one client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// The epoch in which it was written.
    pub epoch: EpochId,
    /// The latest time of the store's clock that it knows.
    pub as_of: TimestampUs,
    /// Nothing is lent before.
    pub nothing_until: TimestampUs,
    /// The widened limit and the length of leases by which it was lent last.
    pub lent_by: LeasedLimit,
    /// What was charged.
    pub state: State,
}

impl Record {
    /// What is believed of a client at `now`.
    pub(super) fn believed(
        record: Option<&Self>,
        lending: &LeasedLimit,
        epoch: &Epoch,
        now: TimestampUs,
    ) -> Self {
        match record.filter(|record| record.epoch == epoch.id) {
            None => Self::unheard_of(lending, epoch),
            Some(record) if record.is_ahead(lending, now) => {
                Self::all_spent(lending, epoch.id, now)
            }
            Some(record) => record.read_by(lending),
        }
    }

    /// A client of whom the epoch knows nothing, as if it had been written down when the epoch
    /// began.
    #[must_use]
    pub fn unheard_of(lending: &LeasedLimit, epoch: &Epoch) -> Self {
        match epoch.before {
            Before::Lost => Self::all_spent(lending, epoch.id, epoch.began_at),
            Before::Unknown | Before::Nothing => Self {
                epoch: epoch.id,
                as_of: epoch.began_at,
                nothing_until: epoch.unknown_until(),
                lent_by: *lending,
                state: State::New,
            },
        }
    }

    /// A client that has spent at `at` whatever it may.
    fn all_spent(lending: &LeasedLimit, epoch: EpochId, at: TimestampUs) -> Self {
        let (nothing_until, state) = match emptied(lending.widened(), at) {
            Some(state) => (TimestampUs(0), state),
            None => (over_at(lending, at), State::New),
        };
        Self {
            epoch,
            as_of: at,
            nothing_until,
            lent_by: *lending,
            state,
        }
    }

    /// Whether waiting for the clock to catch up takes longer than waiting until all is over.
    fn is_ahead(&self, lending: &LeasedLimit, now: TimestampUs) -> bool {
        let over_after = lending.widened().rate().window();
        self.as_of.max(self.nothing_until).since(now) > over_after.times(2)
    }

    /// This record as a limit reads it that may be another than the one that wrote it.
    fn read_by(&self, lending: &LeasedLimit) -> Self {
        let (old, new) = (self.lent_by.widened(), lending.widened());
        // Leases that were longer end later than the new limit reckons.
        let longer = self.lent_by.ttl().0.saturating_sub(lending.ttl().0);
        let at = self.as_of + DurationUs(longer);
        let left = |policy: &Policy, state: &State| peek(policy, state, self.as_of).remaining;
        let mut nothing_until = self.nothing_until;
        let state = match Change::between(old, new) {
            Change::None => self.state.clone(),
            Change::Reading => {
                let spent = left(old, &State::New).saturating_sub(left(old, &self.state));
                charged(new, spent, at)
            }
            Change::Level => {
                let whole = left(new, &State::New);
                charged(new, whole.saturating_sub(left(old, &self.state)), at)
            }
            Change::Guess | Change::Algorithm => {
                nothing_until = nothing_until.max(over_at(lending, at));
                State::New
            }
        };
        Self {
            nothing_until,
            lent_by: *lending,
            state,
            ..self.clone()
        }
    }

    /// In how long the record may be forgotten, if nothing more is lent: one who never called would
    /// be told the same from then on. Never sooner than [`LeasedLimit::kept_for`] says.
    pub(super) fn forget_after(&self, now: TimestampUs) -> DurationUs {
        let full_after = peek(self.lent_by.widened(), &self.state, now).full_after;
        let kept_until = (self.as_of + self.lent_by.kept_for()).max(self.nothing_until);
        full_after.max(kept_until.since(now))
    }
}

/// From when on nothing matters any more that was lent at `at` or before, whatever it was.
fn over_at(lending: &LeasedLimit, at: TimestampUs) -> TimestampUs {
    let window = lending.widened().rate().window();
    // A lease that another clock measured may run into the next window of this one.
    let last = at + TTL_LONGEST;
    if let Some(left) = lending.promised().begins_anew_after(last) {
        return last + left;
    }
    at + window.max(lending.promised().rate().window() + lending.ttl())
}

/// How a limit stands.
pub(super) fn peek(policy: &Policy, state: &State, now: TimestampUs) -> Verdict {
    policy.step(&mut state.clone(), now, Cost::Peek)
}

/// The state of a client who is new at `at` and takes so much, or all that it may.
fn charged(policy: &Policy, calls: u32, at: TimestampUs) -> State {
    let mut state = State::New;
    let most = peek(policy, &state, at).remaining;
    policy.step(&mut state, at, Cost::take(calls.min(most)));
    state
}

/// The state of a client who has just spent all that there is, where it comes back little by
/// little.
fn emptied(policy: &Policy, at: TimestampUs) -> Option<State> {
    match policy.row().remembers {
        Remembers::Tokens => Some(State::TokenBucket(token_bucket::State::empty(at))),
        Remembers::Time => {
            let comes_back = policy.rate().calls() > 0;
            comes_back.then(|| charged(policy, u32::MAX, at))
        }
        Remembers::Calls | Remembers::Counts => None,
    }
}

/// How differently two limits read the same state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    /// Not at all, but for the number of calls.
    None,
    /// The counters lie elsewhere. What they counted is counted in one of the new ones.
    Reading,
    /// What is left is kept, and fills up as the new rate says. As time (which is how the algorithm
    /// keeps it) it would be worth more calls to whoever has the slower rate, and two nodes with
    /// different rates would lend more together than either may.
    Level,
    /// The counters lie elsewhere, and the oldest is guessed. Edges that lie elsewhere guess low
    /// once more, and with two limits that take turns again and again. All counts as spent.
    Guess,
    /// What one counted says nothing to the other. All counts as spent, and buckets begin after
    /// that: one that fills up meanwhile would come on top of another limit's burst.
    Algorithm,
}

impl Change {
    fn between(old: &Policy, new: &Policy) -> Self {
        if old.kind() != new.kind() {
            return Self::Algorithm;
        }
        match new.row().remembers {
            Remembers::Tokens => Self::None,
            Remembers::Time if old == new => Self::None,
            Remembers::Time => Self::Level,
            Remembers::Calls | Remembers::Counts => Self::between_windows(old, new),
        }
    }

    fn between_windows(old: &Policy, new: &Policy) -> Self {
        let lie = |policy: &Policy| {
            let count = policy.counters().map(|counters| counters.count());
            (policy.rate().window(), count)
        };
        if lie(old) == lie(new) {
            return Self::None;
        }
        match old.counters().map(|counters| counters.oldest()) {
            Some(Oldest::Falling) => Self::Guess,
            Some(Oldest::Whole) | None => Self::Reading,
        }
    }
}
