//! What does a store offer from which calls are lent to nodes?
//!
//! It keeps small records, brings them together with its clock and its identity, and writes one
//! over what was read or not at all. It decides nothing: [`anteroom_limit::lending`] does; a store
//! that can run the usual way of that by itself offers it as one [`step`]. What it must do is
//! written down as [`crate::conformance::lent`].
//!
//! # Shelves
//!
//! A client's record lies on a shelf, together with the epoch that says what the memory of this
//! shelf is worth. All that lies on one is kept by one server, so both are read in one piece, and a
//! write is refused if either has changed. A store of one server has one shelf; one of many has
//! more, so that each server has some.
//!
//! A store is empty at first. One that knows what was before it may begin with an epoch that says
//! so.
//!
//! # Tokens
//!
//! Records expire, so a version that counts up would begin anew and come to the same number again;
//! whoever was late would write over what it never saw. Each write brings a token of its own that
//! nobody ever brings again.

pub mod record;
pub mod step;

use std::fmt;

use anteroom_limit::lending::epoch::StoreIdentity;
use anteroom_limit::time::{DurationUs, TimestampUs};

use self::step::{Step, Stepped};
use crate::key::CallKey;
use crate::shared::{BoxFuture, CountsError};

/// A store of records from which calls are lent.
pub trait LeaseRecords: fmt::Debug + Send + Sync + 'static {
    /// Where it is, without secrets.
    fn place(&self) -> &str;

    /// How many shelves there are: at least one, and always the same number.
    fn shelves(&self) -> u32;

    /// Lets go of what a successor on this machine waits for, such as a file. Nothing is lent from
    /// here any more where there is something of the kind.
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Reads the record of a client, if one is named, and then that of the shelf's epoch. The time
    /// is that of the first read, or before.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the store cannot be read.
    fn load<'a>(
        &'a self,
        shelf: Shelf,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>>;

    /// Writes a client's record if it is still the one that was read, in the epoch that was read,
    /// in the store that was read. It is forgotten after `keep_for`, or later.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if it is not known to have been written. It may have been.
    fn swap<'a>(
        &'a self,
        shelf: Shelf,
        client: LeaseKey<'a>,
        write: Write<'a>,
        keep_for: DurationUs,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>>;

    /// The same with the epoch's record, which is never forgotten. What is expected of a client's
    /// is not looked at.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if it is not known to have been written. It may have been.
    fn swap_epoch<'a>(
        &'a self,
        shelf: Shelf,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>>;

    /// Lends to a client in one step; `None` if this store cannot, or not by this limit.
    ///
    /// It is carried out once at most, whatever is lost. One that was carried out and whose answer
    /// was lost has lent to nobody: its calls are free again when their charge is over.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if it is not known what became of it.
    fn step<'a>(
        &'a self,
        shelf: Shelf,
        client: LeaseKey<'a>,
        step: Step<'a>,
    ) -> Option<BoxFuture<'a, Result<Stepped, CountsError>>> {
        let _ = (shelf, client, step);
        None
    }
}

/// Which shelf, from zero.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Shelf(pub u32);

/// A client of one limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseKey<'n> {
    /// The limit's name.
    pub limit: &'n str,
    /// Who calls.
    pub key: CallKey,
}

/// Names one write. Zero stands for a record that is not there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Token(pub u128);

/// A record as it was written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kept {
    /// By which write.
    pub token: Token,
    /// Its bytes.
    pub value: Vec<u8>,
}

/// What was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loaded {
    /// The client's record; `None` if there is none, or nobody asked.
    pub client: Option<Kept>,
    /// That of the epoch.
    pub epoch: Option<Kept>,
    /// The store's clock.
    pub now: TimestampUs,
    /// The store's identity.
    pub identity: StoreIdentity,
}

/// What a write must find, or else nothing is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// The client's record.
    pub client: Token,
    /// That of the epoch.
    pub epoch: Token,
    /// The store.
    pub identity: StoreIdentity,
}

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Write<'w> {
    /// What must be found.
    pub expected: Expected,
    /// The name of this write.
    pub token: Token,
    /// The bytes.
    pub value: &'w [u8],
}

/// What became of a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Swapped {
    /// Written.
    Written,
    /// Something has changed: what is there, as a load would bring it.
    Conflict(Loaded),
    /// The store is another one than was read; load again.
    OtherStore,
}

impl Loaded {
    /// What a write that follows from this must find.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let token = |kept: &Option<Kept>| kept.as_ref().map_or(Token(0), |kept| kept.token);
        Expected {
            client: token(&self.client),
            epoch: token(&self.epoch),
            identity: self.identity,
        }
    }
}

impl Shelf {
    /// On which of `shelves` the record of a client lies.
    #[must_use]
    pub fn of(key: CallKey, shelves: u32) -> Self {
        let below = key.0 % u128::from(shelves.max(1));
        Self(u32::try_from(below).unwrap_or(0))
    }
}
