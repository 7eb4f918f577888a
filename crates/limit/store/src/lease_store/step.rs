//! Grant of a lease in one step at the store.
//!
//! A load and a swap are two round trips, and concurrent nodes conflict at the swap. A store that
//! can run the common case of [`grant`] itself does both in one. It leaves unusual cases to the
//! node: another epoch or limit than the node knows, a clock that was set back, nothing left to
//! grant. Then it writes nothing, and returns what a load would return.
//!
//! [`Step::take`] defines what the store must do. The node computes the reply itself, from the
//! earlier record and by the same function.

use anteroom_limit::leases::epoch::{Epoch, StoreIdentity};
use anteroom_limit::leases::message::Request;
use anteroom_limit::leases::parent::{GrantOutcome, grant};
use anteroom_limit::leases::record::Record;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::record;
use super::{Loaded, Token};

/// Request for a step.
#[derive(Clone, Copy, Debug)]
pub struct Step<'s> {
    /// Epoch in force when the node last read it; its identity is the store's.
    pub epoch: &'s Epoch,
    /// Token of the epoch's record.
    pub epoch_token: Token,
    /// Token of this write.
    pub token: Token,
    /// Limit to grant from.
    pub leased_limit: &'s LeasedLimit,
    /// Lease request.
    pub request: &'s Request,
}

/// Outcome of a step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stepped {
    /// The lease was granted and written.
    Granted(StepGrant),
    /// Current records, as a load would return them; nothing was granted or written.
    NotTaken(Loaded),
    /// The store is not that of the epoch.
    OtherStore,
}

/// Lease that a step granted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StepGrant {
    /// Cost that was granted; never zero.
    pub granted: u32,
    /// Client's record before the step; `None` if it was absent.
    pub record: Option<Vec<u8>>,
    /// Time of the grant by the store's clock.
    pub now: TimestampUs,
}

/// Effects of a step on the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StepEffects {
    /// Reply to the node.
    pub grant: StepGrant,
    /// New record of the client.
    pub value: Vec<u8>,
    /// Shortest time for which the record is kept.
    pub keep_for: DurationUs,
}

impl Step<'_> {
    /// Computes the step from the records found; `None` if nothing is granted. For stores that can
    /// run it atomically, and as the oracle for those that reimplement it.
    #[must_use]
    pub fn take(&self, found: &Loaded) -> Option<StepEffects> {
        let epoch = found.epoch.as_ref()?;
        let is_known = epoch.token == self.epoch_token && found.identity == self.store();
        let kept = found.client.as_ref().map(|kept| kept.value.as_slice());
        let record = match kept {
            None => self.for_new_client(),
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
        let GrantOutcome { write, reply } = grant(
            self.leased_limit,
            self.epoch,
            Some(&record),
            self.request,
            now,
        );
        let write = write.filter(|_| reply.granted > 0)?;
        Some(StepEffects {
            grant: StepGrant {
                granted: reply.granted,
                record: kept.map(<[u8]>::to_vec),
                now,
            },
            value: record::encode(&write.record),
            keep_for: write.forget_after,
        })
    }

    /// Returns the identity of the only store that may take it.
    #[must_use]
    pub fn store(&self) -> StoreIdentity {
        self.epoch.identity
    }

    /// Returns the head that the client's record must have.
    #[must_use]
    pub fn head(&self) -> String {
        record::head(self.epoch.id, self.leased_limit)
    }

    /// Returns the record to assume if there is none.
    #[must_use]
    pub fn for_new_client(&self) -> Record {
        Record::unknown_client(self.leased_limit, self.epoch)
    }
}
