//! Interface of a store that grants leases to nodes.
//!
//! The store keeps small records, returns them with its clock and its identity, and writes by
//! compare-and-swap. It decides nothing: [`anteroom_limit::leases`] does. A store that can run the
//! common case of that rule itself offers it as one [`step`]. [`crate::conformance::lease_store`]
//! defines what it must do.
//!
//! # Partitions
//!
//! A partition is a part of the store. It holds the records of some clients, together with the
//! epoch that tells how far its data can be trusted. One server keeps all of a partition. So both
//! records are read atomically, and a write fails if either has changed. A store of one server has
//! one partition; a cluster has several, so that each server has some.
//!
//! A store is empty at first. One that knows what was before it may start with an epoch that
//! records this.
//!
//! The members of a partition have a record beside those of clients, under an empty name.
//!
//! # Tokens
//!
//! Records expire, so a version that counts up would start again and repeat; a late writer could
//! then overwrite a record that it never read. Instead, each write has a token that is never used
//! again.

pub mod record;
pub mod step;

use std::fmt;

use anteroom_limit::leases::epoch::StoreIdentity;
use anteroom_limit::time::{DurationUs, TimestampUs};

use self::step::{Step, Stepped};
use crate::key::ClientKey;
use crate::shared::{BoxFuture, CountsError};

/// Store of the records behind leases.
pub trait LeaseRecords: fmt::Debug + Send + Sync + 'static {
    /// Returns its name, such as an address, without secrets.
    fn store_name(&self) -> &str;

    /// Returns the number of partitions: at least one, and constant.
    fn partitions(&self) -> u32;

    /// Releases what a successor process on this machine waits for, such as a file. A store with
    /// such a resource grants nothing afterwards.
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Reads the record of a client, if one is given, and then that of the partition's epoch. The
    /// time is that of the first read, or before.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the store cannot be read.
    fn load<'a>(
        &'a self,
        partition: Partition,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>>;

    /// Writes a client's record if that record, the epoch and the store are still those that were
    /// read. The record is deleted after `keep_for`, or later.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the outcome is unknown. The record may have been written.
    fn swap<'a>(
        &'a self,
        partition: Partition,
        client: LeaseKey<'a>,
        write: Write<'a>,
        keep_for: DurationUs,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>>;

    /// Writes the epoch's record in the same way. It is never deleted. The expected client record
    /// is ignored.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the outcome is unknown. The record may have been written.
    fn swap_epoch<'a>(
        &'a self,
        partition: Partition,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>>;

    /// Grants a lease to a client in one step. Returns `None` if this store cannot, or not for this
    /// limit.
    ///
    /// A step is carried out at most once, whatever is lost. If its reply is lost, its grant counts
    /// as spent until the limit's window has passed.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the outcome is unknown.
    fn step<'a>(
        &'a self,
        partition: Partition,
        client: LeaseKey<'a>,
        step: Step<'a>,
    ) -> Option<BoxFuture<'a, Result<Stepped, CountsError>>> {
        let _ = (partition, client, step);
        None
    }
}

/// Number of a partition, from zero.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Partition(pub u32);

/// A client of one limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseKey<'n> {
    /// Name of the limit.
    pub limit: &'n str,
    /// Key of the client.
    pub key: ClientKey,
}

impl LeaseKey<'static> {
    /// Key of the record of a partition's members. No limit has an empty name.
    pub const MEMBERS: Self = Self {
        limit: "",
        key: ClientKey(0),
    };
}

/// Name of one write. Zero stands for an absent record.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Token(pub u128);

/// Record as it is in the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredRecord {
    /// Token of the write that made it.
    pub token: Token,
    /// Bytes of the record.
    pub value: Vec<u8>,
}

/// Records that were read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loaded {
    /// Client's record; `None` if it is absent or was not requested.
    pub client: Option<StoredRecord>,
    /// Epoch's record.
    pub epoch: Option<StoredRecord>,
    /// Time by the store's clock.
    pub now: TimestampUs,
    /// Identity of the store.
    pub identity: StoreIdentity,
    /// Promise of the store: longest time of acknowledged writes that it may lack when it comes
    /// back as another server. `None`: of any length.
    pub longest_loss: Option<DurationUs>,
}

/// Condition of a write; if it does not hold, nothing is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// Token of the client's record.
    pub client: Token,
    /// Token of the epoch's record.
    pub epoch: Token,
    /// Identity of the store.
    pub identity: StoreIdentity,
}

/// Conditional write of a record.
#[derive(Clone, Copy, Debug)]
pub struct Write<'w> {
    /// Condition.
    pub expected: Expected,
    /// Token of this write.
    pub token: Token,
    /// New bytes of the record.
    pub value: &'w [u8],
}

/// Outcome of a conditional write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Swapped {
    /// Written.
    Written,
    /// A record has changed; has the current ones, as a load would return them.
    Conflict(Loaded),
    /// The store is not the one that was read; load again.
    OtherStore,
}

impl Loaded {
    /// Returns the condition of a write that follows from these records.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let token = |kept: &Option<StoredRecord>| kept.as_ref().map_or(Token(0), |kept| kept.token);
        Expected {
            client: token(&self.client),
            epoch: token(&self.epoch),
            identity: self.identity,
        }
    }
}

impl Partition {
    /// Returns the one of `partitions` that holds the record of a client.
    #[must_use]
    pub fn of(key: ClientKey, partitions: u32) -> Self {
        let below = key.0 % u128::from(partitions.max(1));
        Self(u32::try_from(below).unwrap_or(0))
    }
}
