//! One message to a ledger in a store: load, decide, and write unless somebody else wrote first.
//!
//! A store offers a record with a version, its clock and its identity. Here is what becomes of a
//! record that is not there, of one that another server wrote, and of a race that is lost; the
//! caller carries the messages. Production and the simulator drive the same steps.

use alloc::boxed::Box;

use crate::id::{DataCenterId, Incarnation};
use crate::ledger::{LeaseTerms, Ledger};
use crate::sync::{Reply, SyncRequest};
use crate::time::{DurationMs, Timestamp};

/// How often a lost race is tried again before the caller waits for its next period. With tens of
/// writers more tries would only add to the crowd.
pub const TRIES: u32 = 8;
/// After so many lost races a writer steps aside for a moment, where that is longer than a message
/// takes.
const PATIENT_TRIES: u32 = 2;
/// For how long at most: longer than a write takes next door.
pub const STEP_ASIDE_MAX: DurationMs = DurationMs(8);

/// Whose memory a ledger is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LedgerRole {
    /// Alone in the journal of its process, which is lost as a whole or not at all.
    Alone,
    /// Lends what the limits allow, in a store that may lose what it has.
    Root(LeaseTerms),
    /// Lends what the root lends to this data center.
    Below(DataCenterId),
}

impl LedgerRole {
    /// For how long it lends.
    #[must_use]
    pub fn lending(self) -> LeaseTerms {
        match self {
            Self::Root(lending) => lending,
            Self::Alone | Self::Below(_) => LeaseTerms::default(),
        }
    }
}

/// Rises with every write of a record, from [`RecordVersion::ABSENT`] on.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct RecordVersion(pub u64);

impl RecordVersion {
    /// Of a record that is not there.
    pub const ABSENT: Self = Self(0);
}

/// Who a store is: another value after it may have lost writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity(pub u64);

/// What a write must find, or else nothing is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// The record's version; [`RecordVersion::ABSENT`] if there is none yet.
    pub version: RecordVersion,
    /// The store's identity. Another one may have lost what was read, and what others did since:
    /// two children would be lent the same.
    pub identity: Identity,
}

/// What a store says of a record, beside the record itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Seen {
    /// What a write that follows from this must find.
    pub expected: Expected,
    /// The store's clock.
    pub now: Timestamp,
    /// Who the store was when the record was written; `None` if there is no record.
    pub keeper: Option<Identity>,
}

/// Where the record of the deployment itself is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kept {
    /// The store in which it is.
    pub keeper: Identity,
    /// Since when it is there, by that store's clock.
    pub since: Timestamp,
    /// Whether the deployment began there.
    pub is_first: bool,
}

/// Whether a ledger that is not in a store was never in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstStart {
    /// It was not, or nothing that it had lent can run any more.
    Yes,
    /// It may have been lost.
    No,
    /// It may have been lost, and the deployment's record is kept by another store from now on:
    /// write this down.
    Moved(Kept),
}

impl FirstStart {
    /// After a loss, whoever was lent something has `ttl` to say so.
    #[must_use]
    pub fn of(kept: Kept, identity: Identity, now: Timestamp, ttl: DurationMs) -> Self {
        if kept.keeper != identity {
            return Self::Moved(Kept {
                keeper: identity,
                since: now,
                is_first: false,
            });
        }
        if kept.is_first || now >= kept.since + ttl {
            Self::Yes
        } else {
            Self::No
        }
    }
}

/// With which ledger a message begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opening {
    /// As it was left.
    AsLeft,
    /// A first one, in the journal of one process.
    Alone,
    /// A new one in a data center: what a lost one had done is known to the root.
    Below(Incarnation, DataCenterId),
    /// A new epoch of the one that is there: the store may have lost its newest writes.
    Epoch(Incarnation, LeaseTerms),
    /// A new one that is known to be the first.
    First(Incarnation),
    /// A new one where another may have been lost.
    FoundEmpty(Incarnation, LeaseTerms),
}

impl Opening {
    /// What becomes of what is seen. `incarnation`: drawn for a ledger that begins.
    /// `is_first_start` is asked only where that matters.
    #[must_use]
    pub fn of(
        role: LedgerRole,
        seen: Seen,
        incarnation: Incarnation,
        is_first_start: bool,
    ) -> Self {
        let identity = seen.expected.identity;
        match (role, seen.keeper) {
            (LedgerRole::Alone, Some(_)) => Self::AsLeft,
            (LedgerRole::Alone, None) => Self::Alone,
            (_, Some(keeper)) if keeper == identity => Self::AsLeft,
            (LedgerRole::Below(data_center), _) => Self::Below(incarnation, data_center),
            (LedgerRole::Root(lending), Some(_)) => Self::Epoch(incarnation, lending),
            (LedgerRole::Root(_), None) if is_first_start => Self::First(incarnation),
            (LedgerRole::Root(lending), None) => Self::FoundEmpty(incarnation, lending),
        }
    }

    /// Whether it must be known first if this is a first start.
    #[must_use]
    pub fn needs_first_start(role: LedgerRole, seen: Seen) -> bool {
        matches!(role, LedgerRole::Root(_)) && seen.keeper.is_none()
    }

    /// The ledger to begin with, at `now` by the store's clock.
    #[must_use]
    pub fn open(self, left: Option<Ledger>, now: Timestamp) -> Ledger {
        match self {
            Self::AsLeft => left.unwrap_or_default(),
            Self::Alone => Ledger::new(),
            Self::Below(incarnation, data_center) => Ledger::below_root(incarnation, data_center),
            Self::Epoch(incarnation, lending) => {
                let mut ledger = left.unwrap_or_default();
                ledger.begin_epoch(incarnation, lending, now);
                ledger
            }
            Self::First(incarnation) => Ledger::first_start(incarnation),
            Self::FoundEmpty(incarnation, lending) => {
                Ledger::found_empty(incarnation, lending, now)
            }
        }
    }
}

/// What came of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Written {
    /// It is written.
    Yes,
    /// Somebody else wrote first; what is there now came with the refusal.
    Conflict,
    /// The store is another one than before.
    OtherStore,
}

/// What to do after a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// Nothing: it is done.
    Done,
    /// Decide anew on what is there.
    Decide,
    /// Load again.
    Load,
    /// Wait for a moment of at most [`STEP_ASIDE_MAX`], and load again.
    StepAside,
    /// Give up: others wrote first every time.
    GiveUp,
}

/// The tries of one message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tries {
    lost: u32,
}

impl Tries {
    /// What to do after a write that took so long.
    pub fn handle_written(&mut self, written: Written, took: DurationMs) -> Next {
        if written == Written::Yes {
            return Next::Done;
        }
        self.lost += 1;
        let is_far = took > STEP_ASIDE_MAX;
        match written {
            _ if self.lost >= TRIES => Next::GiveUp,
            _ if self.lost >= PATIENT_TRIES && !is_far => Next::StepAside,
            Written::Conflict => Next::Decide,
            Written::OtherStore | Written::Yes => Next::Load,
        }
    }
}

/// What is done to a ledger by one message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LedgerOperation {
    /// A child speaks. With it comes what the root said to this ledger, if anything.
    Sync {
        /// What the child says.
        request: Box<SyncRequest>,
        /// What the root said.
        news: Option<Reply>,
        /// Whether somebody waits for more than is here.
        is_wanted: bool,
    },
    /// What the root said, and nothing else.
    Deliver(Reply),
    /// The operator says that nobody is inside.
    AssumeEmpty,
}

/// What came of a message to a ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exchange {
    /// What it said to the child.
    pub reply: Reply,
    /// A request to the root's ledger. Whoever made the exchange carries it there, and what the
    /// root says back to this ledger.
    pub upstream_sync: Option<SyncRequest>,
    /// Somebody else is on such an errand, and is expected back after so long.
    pub others_back_after: Option<DurationMs>,
}

impl LedgerOperation {
    /// Does it, at `now` by the store's clock. `None` where there is nothing to answer.
    pub fn perform(
        &self,
        ledger: &mut Ledger,
        lending: LeaseTerms,
        now: Timestamp,
    ) -> Option<Exchange> {
        match self {
            Self::Sync {
                request,
                news,
                is_wanted,
            } => {
                if let Some(news) = news {
                    ledger.handle_upstream(news.clone(), now);
                }
                let reply = ledger.handle_sync(SyncRequest::clone(request), lending, now);
                let is_due = ledger.is_upstream_due(*is_wanted, now);
                let upstream_sync = is_due.then(|| ledger.poll_upstream(now)).flatten();
                let upstream = ledger.upstream().filter(|_| upstream_sync.is_none());
                Some(Exchange {
                    reply,
                    others_back_after: upstream.and_then(|upstream| upstream.back_after(now)),
                    upstream_sync,
                })
            }
            Self::Deliver(news) => {
                ledger.handle_upstream(news.clone(), now);
                None
            }
            Self::AssumeEmpty => {
                ledger.assume_empty();
                None
            }
        }
    }
}
