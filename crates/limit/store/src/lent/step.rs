//! What is lent in one step at a store?
//!
//! A load and a swap are two round trips, and nodes that ask for one client at once meet at the
//! swap. A store that can run the usual way of [`lend`] itself does both in one. What is unusual
//! (another epoch or limit than the node knows, a clock that was set back, nothing to be had) it
//! leaves to the node: it writes nothing, and brings what a load would bring.
//!
//! [`Step::take`] is what it must do. What the node is told it works out itself, from the record
//! that was there, by the same function.

use anteroom_limit::lending::epoch::{Epoch, StoreIdentity};
use anteroom_limit::lending::message::Request;
use anteroom_limit::lending::parent::{GrantOutcome, lend};
use anteroom_limit::lending::record::Record;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::record;
use super::{Loaded, Token};

/// What is to be done in one step.
#[derive(Clone, Copy, Debug)]
pub struct Step<'s> {
    /// The epoch that was in force when the node last looked; its identity is that of the store.
    pub epoch: &'s Epoch,
    /// The write that made its record.
    pub epoch_token: Token,
    /// The name of this write.
    pub token: Token,
    /// By which limit is lent.
    pub lending: &'s LeasedLimit,
    /// How many calls.
    pub request: &'s Request,
}

/// What became of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stepped {
    /// This was lent, and written.
    GrantOutcome(StepGrant),
    /// Nothing was lent, and nothing written: what is there, as a load would bring it.
    Not(Loaded),
    /// The store is another one than that of the epoch.
    OtherStore,
}

/// What was lent in one step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StepGrant {
    /// How many calls; never none.
    pub held: u32,
    /// The client's record before; `None` if there was none.
    pub record: Option<Vec<u8>>,
    /// When, by the store's clock.
    pub now: TimestampUs,
}

/// What a store that takes a step writes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Taken {
    /// What it says.
    pub lent: StepGrant,
    /// The record.
    pub value: Vec<u8>,
    /// For how long it is kept, or longer.
    pub keep_for: DurationUs,
}

impl Step<'_> {
    /// What a store does that has found this; `None` if it lends nothing. For stores that can run
    /// it while nothing changes, and for tests of those that have written it anew.
    #[must_use]
    pub fn take(&self, found: &Loaded) -> Option<Taken> {
        let epoch = found.epoch.as_ref()?;
        let is_known = epoch.token == self.epoch_token && found.identity == self.meant_for();
        let kept = found.client.as_ref().map(|kept| kept.value.as_slice());
        let record = match kept {
            None => self.unheard_of(),
            Some(value) if value.starts_with(self.head().as_bytes()) => {
                record::decode(value).ok()?
            }
            Some(_) => return None,
        };
        let now = found.now;
        let is_open = now >= record.as_of && now >= record.nothing_until;
        if !is_known || !is_open || now < self.epoch.began_at {
            return None;
        }
        let GrantOutcome { write, answer } =
            lend(self.lending, self.epoch, Some(&record), self.request, now);
        let write = write.filter(|_| answer.held > 0)?;
        Some(Taken {
            lent: StepGrant {
                held: answer.held,
                record: kept.map(<[u8]>::to_vec),
                now,
            },
            value: record::encode(&write.record),
            keep_for: write.forget_after,
        })
    }

    /// The store in which it may be taken, and no other.
    #[must_use]
    pub fn meant_for(&self) -> StoreIdentity {
        self.epoch.identity
    }

    /// What the client's record must begin with.
    #[must_use]
    pub fn head(&self) -> String {
        record::head(self.epoch.id, self.lending)
    }

    /// What takes the place of a record that is not there.
    #[must_use]
    pub fn unheard_of(&self) -> Record {
        Record::unheard_of(self.lending, self.epoch)
    }
}
