//! Message to a ledger in a store: load, decide, and write unless another node wrote first.
//!
//! A store offers a record with a version and its identity. This module decides about a
//! record that is missing, one that another server wrote, and a write that lost a race. The caller
//! carries the messages. Production and the simulator run the same steps.
//!
//! # Requests that others left
//!
//! With many distant writers nearly every write loses its race. So a writer that lost one leaves
//! its request beside the root's record. Every other writer loads it along with the record, and
//! applies it before its own ([`apply_left`]): one write is then a step for all of them. A writer
//! that finds its request applied works the reply out again from the record
//! ([`Ledger::recorded_reply`]). [`Leaving`] says when a request is left.
//!
//! A left request is a message that arrives late. Its sender may have ended, may have sent it
//! twice, or may have applied it itself; a ledger copes with all of these.
//!
//! A writer loses at most two races after it left its request. A lost race shows a write that was
//! based on a version older than the one which the loser read later. So the second lost race shows
//! a write by one that loaded after the request was left, and had it.

use alloc::boxed::Box;

use crate::id::{DataCenterId, Incarnation, NodeId};
use crate::ledger::{Carrier, LeaseTerms, Ledger, Upstream};
use crate::record_view::RecordedLease;
use crate::store::{Durability, Identity, StoreFacts};
use crate::sync::{Reply, SyncRequest};
use crate::time::{DurationMs, Timestamp};

/// Writes that a message tries before the caller waits for its next period. With tens of writers
/// more tries would only add contention.
pub const TRIES: u32 = 8;
/// Lost races after which a writer pauses for a moment, where that is longer than a message takes.
const PAUSE_AFTER_TRIES: u32 = 2;
/// Longest pause: longer than a write takes within a data center.
pub const PAUSE_MAX: DurationMs = DurationMs(8);

/// Role of a ledger among the levels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LedgerRole {
    /// Ledger in the journal of its process, which is lost as a whole or not at all.
    Alone,
    /// Ledger that grants what the limits allow, in a store that may lose its data.
    Root(LeaseTerms),
    /// Ledger of this data center, which grants what the root grants to it.
    DataCenter(DataCenterId),
}

impl LedgerRole {
    /// Returns the terms of its leases.
    #[must_use]
    pub fn lease_terms(self) -> LeaseTerms {
        match self {
            Self::Root(lease_terms) => lease_terms,
            Self::Alone | Self::DataCenter(_) => LeaseTerms::default(),
        }
    }

    /// Whether requests may be left beside its record. Only a root has distant writers.
    #[must_use]
    pub fn has_left_requests(self) -> bool {
        matches!(self, Self::Root(_))
    }
}

/// Version of a record: rises with every write, from [`RecordVersion::ABSENT`] on.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct RecordVersion(pub u64);

impl RecordVersion {
    /// Version of a missing record.
    pub const ABSENT: Self = Self(0);
}

/// Condition of a write: if it does not hold, nothing is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// Version of the record; [`RecordVersion::ABSENT`] if there is none yet.
    pub version: RecordVersion,
    /// Identity of the store. Another one may have lost the record that was read, and later grants:
    /// two children would get the same slots.
    pub identity: Identity,
}

/// State of a record in its store, without the record itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecordState {
    /// Condition of a write that follows from this.
    pub expected: Expected,
    /// The store.
    pub store: StoreFacts,
    /// Store that the record was written to, as the record has it; `None` if there is no record.
    pub written_to: Option<StoreFacts>,
}

/// Location of the deployment's own record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecordLocation {
    /// Identity of its store.
    pub store: Identity,
    /// Time since which it is there, by the clocks that write tickets.
    pub since: Timestamp,
    /// Whether the deployment began there.
    pub is_first: bool,
}

/// Whether a ledger that is missing in a store was never there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstStart {
    /// First start: it was never there, or all its leases have ended.
    Yes,
    /// Possible loss: it may have been there.
    No,
    /// Possible loss, and from now on another store keeps the deployment's record: write this
    /// location down.
    Moved(RecordLocation),
}

impl FirstStart {
    /// Decides from the deployment's record, at `now` by a clock that writes tickets; `None` if no
    /// such clock was read. After a loss, children have `ttl` to report their leases.
    #[must_use]
    pub fn of(
        kept: RecordLocation,
        identity: Identity,
        now: Option<Timestamp>,
        ttl: DurationMs,
    ) -> Self {
        if kept.store != identity {
            return Self::Moved(RecordLocation {
                store: identity,
                since: now.unwrap_or(Timestamp::NEVER),
                is_first: false,
            });
        }
        if kept.is_first || now.is_some_and(|now| now >= kept.since + ttl) {
            Self::Yes
        } else {
            Self::No
        }
    }
}

/// Ledger that a message starts with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InitialLedger {
    /// Ledger as the record has it.
    AsLeft,
    /// First ledger in the journal of one process.
    Alone,
    /// New ledger of a data center; the root knows the leases of a lost one.
    DataCenter(Incarnation, DataCenterId),
    /// Recorded ledger on probation: the store may have lost its newest writes, but not more than
    /// it promises.
    Probation(LeaseTerms),
    /// New epoch of the recorded ledger: the store may have lost more.
    Epoch(Incarnation, LeaseTerms),
    /// New ledger that is known to be the first.
    First(Incarnation),
    /// New ledger where another may have been lost.
    FoundEmpty(Incarnation, LeaseTerms),
}

impl InitialLedger {
    /// Decides from the state of the record. `incarnation` is a random one for a new ledger;
    /// `is_first_start` matters only if [`Self::needs_first_start`].
    #[must_use]
    pub fn of(
        role: LedgerRole,
        seen: RecordState,
        incarnation: Incarnation,
        is_first_start: bool,
    ) -> Self {
        match (role, seen.written_to) {
            (LedgerRole::Alone, Some(_)) => Self::AsLeft,
            (LedgerRole::Alone, None) => Self::Alone,
            (_, Some(before)) if before.identity == seen.store.identity => Self::AsLeft,
            // Both promises count: the one of the lost server, and the one of this server.
            (_, Some(before))
                if before.durability.weaker(seen.store.durability) != Durability::Unknown =>
            {
                Self::Probation(role.lease_terms())
            }
            (LedgerRole::DataCenter(data_center), _) => Self::DataCenter(incarnation, data_center),
            (LedgerRole::Root(lease_terms), Some(_)) => Self::Epoch(incarnation, lease_terms),
            (LedgerRole::Root(_), None) if is_first_start => Self::First(incarnation),
            (LedgerRole::Root(lease_terms), None) => Self::FoundEmpty(incarnation, lease_terms),
        }
    }

    /// Whether [`Self::of`] needs to know if this is a first start.
    #[must_use]
    pub fn needs_first_start(role: LedgerRole, seen: RecordState) -> bool {
        matches!(role, LedgerRole::Root(_)) && seen.written_to.is_none()
    }

    /// Returns the ledger to start with in this store.
    #[must_use]
    pub fn open(self, left: Option<Ledger>, store: StoreFacts) -> Ledger {
        let mut ledger = match self {
            Self::AsLeft => left.unwrap_or_default(),
            Self::Alone => Ledger::new(),
            Self::DataCenter(incarnation, data_center) => {
                let next = |lost: &Ledger| lost.incarnation().next(incarnation.0);
                let incarnation = left.as_ref().map_or(incarnation, next);
                Ledger::below_root(incarnation, data_center)
            }
            Self::Probation(lease_terms) => {
                let mut ledger = left.unwrap_or_default();
                ledger.begin_probation(store, lease_terms);
                ledger
            }
            Self::Epoch(incarnation, lease_terms) => {
                let mut ledger = left.unwrap_or_default();
                let next = ledger.incarnation().next(incarnation.0);
                ledger.begin_epoch(next, lease_terms);
                ledger
            }
            Self::First(incarnation) => Ledger::first_start(incarnation),
            Self::FoundEmpty(incarnation, lease_terms) => {
                Ledger::found_empty(incarnation, lease_terms)
            }
        };
        ledger.note_store(store);
        ledger
    }
}

/// Result of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteOutcome {
    /// The record is written.
    Yes,
    /// Another node wrote first; the store returned its record.
    Conflict,
    /// The store has another identity than before.
    OtherStore,
}

/// Next step after a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextStep {
    /// Finish: the record is written.
    Done,
    /// Decide again on the returned record.
    Decide,
    /// Load again.
    Load,
    /// Wait for a moment of at most [`PAUSE_MAX`], and load again.
    Pause,
    /// Give up: others wrote first every time.
    GiveUp,
}

/// Lost writes of one message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tries {
    lost: u32,
}

impl Tries {
    /// Whether any write was lost.
    #[must_use]
    pub fn has_lost(self) -> bool {
        self.lost > 0
    }

    /// Returns the next step after a write that took `took`.
    pub fn handle_written(&mut self, written: WriteOutcome, took: DurationMs) -> NextStep {
        if written == WriteOutcome::Yes {
            return NextStep::Done;
        }
        self.lost += 1;
        let is_far = took > PAUSE_MAX;
        match written {
            _ if self.lost >= TRIES => NextStep::GiveUp,
            _ if self.lost >= PAUSE_AFTER_TRIES && !is_far => NextStep::Pause,
            WriteOutcome::Conflict => NextStep::Decide,
            WriteOutcome::OtherStore | WriteOutcome::Yes => NextStep::Load,
        }
    }
}

/// Most requests that are left beside one record. A writer that finds as many leaves none, and
/// writes as if it had nothing to leave. As many data centers wait in one round trip of the nearest
/// one, where hundreds send a request a second.
pub const LEFT_MAX: usize = 128;
/// Longest request that is left, in bytes: twice the longest of a busy data center. Longer
/// ones, with hundreds of ended sessions, are rare.
pub const LEFT_BYTES_MAX: usize = 8_192;
/// Time after the newest request was left until a store may forget all that are: longer than any
/// sender waits.
pub const LEFT_FOR: DurationMs = DurationMs(10_000);

/// Decides when a message leaves its request beside the record.
///
/// A load that leaves something is a write. So the first load of a writer leaves nothing, unless
/// its message before met other writers.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// Whether the operation may be left at all.
    is_possible: bool,
    /// Whether this message, or the one before, met other writers.
    is_contended: bool,
    /// Whether this message met other writers.
    has_met_others: bool,
    is_left: bool,
}

impl Leaving {
    /// Begins with a message. `is_possible`: it has a request that may be left, and that is not too
    /// long. `was_contended`: the message before to the same record met other writers.
    #[must_use]
    pub fn new(is_possible: bool, was_contended: bool) -> Self {
        Self {
            is_possible,
            is_contended: was_contended,
            has_met_others: false,
            is_left: false,
        }
    }

    /// Whether the next load leaves the request.
    #[must_use]
    pub fn is_due_at_load(&self) -> bool {
        self.is_possible && self.is_contended && !self.is_left
    }

    /// Whether the next write leaves the request, if it loses its race.
    #[must_use]
    pub fn is_due_at_conflict(&self) -> bool {
        self.is_possible && !self.is_left
    }

    /// Whether another writer has taken the own request away since it was left.
    #[must_use]
    pub fn is_taken(&self, is_own_left: bool) -> bool {
        self.is_left && !is_own_left
    }

    /// Notes a loaded record: whether the own request is left beside it, and whether those of
    /// others are.
    pub fn handle_loaded(&mut self, is_own_left: bool, are_others_left: bool) {
        self.note_others(are_others_left);
        self.is_left |= is_own_left;
    }

    /// Notes the result of a write.
    pub fn handle_written(&mut self, written: WriteOutcome) {
        match written {
            WriteOutcome::Yes => {}
            WriteOutcome::Conflict => self.note_others(true),
            // That server may not have what was left.
            WriteOutcome::OtherStore => self.is_left = false,
        }
    }

    fn note_others(&mut self, are_others: bool) {
        self.has_met_others |= are_others;
        self.is_contended |= are_others;
    }

    /// Whether this message met other writers.
    #[must_use]
    pub fn has_met_others(&self) -> bool {
        self.has_met_others
    }
}

/// Operation on a ledger by one message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LedgerOperation {
    /// Sync of a child. It may bring a reply of the root to this ledger.
    Sync {
        /// Request of the child.
        request: Box<SyncRequest>,
        /// Reply of the root.
        root_reply: Option<Reply>,
        /// Whether a visitor waits for more than this ledger has.
        is_wanted: bool,
    },
    /// Reply of the root, and nothing else.
    Deliver(Delivery),
    /// Command of the operator: assume that nobody is active.
    AssumeEmpty,
}

/// Reply of the root on its way to a data center's ledger, without a request of a child.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// The reply.
    pub reply: Reply,
    /// Incarnation and time of the data center's record, as the sender estimates them.
    pub record_time: Option<(Incarnation, Timestamp)>,
}

/// Result of a sync with a ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exchange {
    /// Reply to the child.
    pub reply: Reply,
    /// Request to the root's ledger. The child that made the exchange carries it there, and brings
    /// the root's reply back to this ledger.
    pub upstream_sync: Option<SyncRequest>,
    /// Time until another node is expected back from such an upstream sync.
    pub other_sync_back_after: Option<DurationMs>,
    /// Lease of this ledger in the root's record, as the newest reply showed it.
    pub root_lease: Option<RecordedLease>,
}

impl Exchange {
    /// Returns the result of a sync with the root's ledger.
    fn of_root(reply: Reply) -> Self {
        Self {
            reply,
            upstream_sync: None,
            other_sync_back_after: None,
            root_lease: None,
        }
    }
}

/// Returns by what left requests are sorted: the oldest is applied first.
#[must_use]
pub fn left_order(request: &SyncRequest) -> (Timestamp, NodeId, u64) {
    (request.sent_at, request.child, request.number)
}

/// Applies a request that another writer left beside the record of a root. That writer works the
/// reply out again, and does not get this one.
pub fn apply_left(request: &SyncRequest, ledger: &mut Ledger, lease_terms: LeaseTerms) -> Exchange {
    let now = ledger.time_of(request);
    Exchange::of_root(ledger.handle_sync(request.clone(), lease_terms, now))
}

impl LedgerOperation {
    /// Returns the time of its request by the clocks that write tickets; `None` without a request.
    #[must_use]
    pub fn sent_at(&self) -> Option<Timestamp> {
        match self {
            Self::Sync { request, .. } => Some(request.sent_at),
            Self::Deliver(_) | Self::AssumeEmpty => None,
        }
    }

    /// Returns the request that other writers may apply; `None` if there is none.
    #[must_use]
    pub fn request_to_leave(&self, role: LedgerRole) -> Option<&SyncRequest> {
        match self {
            Self::Sync { request, .. } if role.has_left_requests() => Some(request),
            _ => None,
        }
    }

    /// Returns the result, if another writer has applied the request; `ledger` is the record after
    /// a lost race. `was_taken`: the request was left, and is not any more.
    ///
    /// Such a request may have been void or stale. It is so again, and that needs no write.
    #[must_use]
    pub fn applied_by_another(
        &self,
        ledger: &Ledger,
        lease_terms: LeaseTerms,
        was_taken: bool,
    ) -> Option<Exchange> {
        let Self::Sync { request, .. } = self else {
            return None;
        };
        let recorded = ledger.recorded_reply(request);
        let reply = recorded.or_else(|| {
            if !was_taken {
                return None;
            }
            let mut again = ledger.clone();
            let now = again.time_of(request);
            let reply = again.handle_sync(SyncRequest::clone(request), lease_terms, now);
            let is_rejected = !matches!(reply, Reply::Granted(_));
            let is_same = again.incarnation() == ledger.incarnation();
            (is_rejected && is_same).then_some(reply)
        });
        reply.map(Exchange::of_root)
    }

    /// Performs it. Returns `None` if there is no reply.
    pub fn perform(&self, ledger: &mut Ledger, lease_terms: LeaseTerms) -> Option<Exchange> {
        match self {
            Self::Sync {
                request,
                root_reply,
                is_wanted,
            } => {
                let now = ledger.time_of(request);
                if let Some(news) = root_reply {
                    ledger.handle_upstream(news.clone(), now);
                }
                let reply = ledger.handle_sync(SyncRequest::clone(request), lease_terms, now);
                // Nobody waits for the reply to an old message: its sender would carry no request,
                // and the others would wait for that until it times out. A sender whose lease is
                // void asks again at once.
                let is_current = matches!(reply, Reply::Granted(_));
                let carrier = ledger.carrier(request).filter(|_| is_current);
                let carrier = carrier.filter(|_| ledger.is_upstream_due(*is_wanted, now));
                let upstream_sync = carrier.and_then(|carrier| {
                    let request = ledger.poll_upstream(now)?;
                    Some(SyncRequest {
                        is_join: carrier == Carrier::OnlyToJoin,
                        ..request
                    })
                });
                let root_lease = ledger.upstream().and_then(Upstream::recorded_lease);
                let upstream = ledger.upstream().filter(|_| upstream_sync.is_none());
                Some(Exchange {
                    reply,
                    other_sync_back_after: upstream.and_then(|upstream| upstream.back_after(now)),
                    upstream_sync,
                    root_lease,
                })
            }
            Self::Deliver(delivery) => {
                let shown = delivery
                    .record_time
                    .filter(|(incarnation, _)| *incarnation == ledger.incarnation());
                let now = shown.map_or(ledger.as_of(), |(_, at)| at.max(ledger.as_of()));
                ledger.handle_upstream(delivery.reply.clone(), now);
                None
            }
            Self::AssumeEmpty => {
                ledger.assume_empty(lease_terms);
                None
            }
        }
    }
}
