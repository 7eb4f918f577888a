//! Ledger of the leases of one room at one level: the parent's half of the escrow, as a pure
//! function (ledger, request, now) -> (ledger, reply).
//!
//! Every store runs this same code on a record that it loads, compares and swaps; the store decides
//! nothing. Between two syncs a child is bounded by its lease ([`crate::lease`]). [`LedgerParts`]
//! is the form of the record.
//!
//! The ledger at the root grants what the limits allow. Below it each data center has a ledger,
//! which grants from its own lease ([`Upstream`]).
//!
//! # Invariants
//!
//! - Seats reported + phantom seats + seats leased never exceed `total_active_users` by a grant.
//! - Admissions used + leased in a minute never exceed `new_users_per_minute` by a grant. Nor do
//!   those of any second exceed a tenth of it ([`RecentAdmissions`]).
//! - A child that stops reporting counts as if it had used its whole lease.
//! - A ledger that lost its record counts everything as used until no earlier lease or seat can
//!   run.
//!
//! # Which clock
//!
//! Record time measures the length of leases, and nothing else ([`crate::record_view`]). It rises
//! with the children's requests, and no store's clock is part of it. Ends in tickets and minutes of
//! admissions follow the clocks that write tickets; the children's requests report them.

mod checks;
mod child_sync;
mod children;
mod closing;
mod due;
mod grant;
mod lease_terms;
mod parts;
mod probation;
mod recent;
mod recorded;
mod reserve;
mod revoked;
mod snapshot;
mod sums;
mod upstream;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::{DataCenterId, Epoch, Incarnation, NodeId};
use crate::seats::SeatRow;
use crate::store::StoreFacts;
use crate::sync::{
    ClosedBy, LeaseBalance, LeaseReply, LeaseUsage, OtherClock, Reply, RoomFacts, SyncRequest,
};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::waiting::ReportedWaiting;
use children::QUIET_AFTER;
pub use due::{UPSTREAM_PERIOD, UPSTREAM_TIME_OUT_MAX};
pub use lease_terms::{LEASE_TTL, LeaseTerms};
pub use parts::{LedgerParts, UnsoundLedger};
pub use probation::Probation;
pub use recent::RecentAdmissions;
pub use reserve::{Reserve, ReserveCause};
pub use revoked::{FORGOTTEN_AFTER, Logouts, REVOKED_MAX, RevokedList, UnreleasedSeat};
use sums::Sums;
pub use upstream::{Carrier, Upstream, UpstreamDemand};

/// Longest time, in a quiet room, until a child that is safe in the record has reported so.
const REPORTED_AFTER: DurationMs = DurationMs(2_000);

/// Record of one room at one level.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Incarnation of this record.
    incarnation: Incarnation,
    /// Store that the record was written to last.
    store: StoreFacts,
    /// Probation after that store came back: it grants no slots.
    probation: Option<Probation>,
    /// Lease that it grants from; `None` for the root, which grants what the limits allow.
    upstream: Option<Box<Upstream>>,
    /// Reserve while the ledger may have lost its record: it grants no slots.
    reserve: Option<Reserve>,
    /// Whether this incarnation had a reserve; another witness of the same loss begins no second.
    has_reserved: bool,
    /// Settings of the room; `None` before the first request.
    settings: Option<RoomFacts>,
    /// Number of changes of the settings.
    terms_version: u32,
    /// Longest seat that any settings allowed; a reserve lasts that long.
    longest_seat: DurationMs,
    /// Number of the newest lease.
    generation: u32,
    /// Children with a live lease.
    children: BTreeMap<NodeId, Child>,
    /// Children whose lease ended without a final report, or that left with active visitors.
    departed: Vec<DepartedChild>,
    /// Data centers whose seats are counted here.
    groups: BTreeMap<DataCenterId, Group>,
    /// Admissions of recent minutes by children that are no longer in `departed`.
    settled_minutes: BTreeMap<Minute, u32>,
    /// Admissions of the last seconds; the root's only.
    recent: RecentAdmissions,
    /// Sessions that were ended early.
    revoked: RevokedList,
    /// Seats of those sessions, and the nodes that do not reject their tickets yet.
    logouts: Logouts,
    /// Latest time that the children's clocks have shown. Never falls.
    clock_at: Timestamp,
    /// Value of `clock_at` when a child first synced with this incarnation.
    began_at: Option<Timestamp>,
    /// Record time: the largest that a request has shown. Never falls.
    as_of: Timestamp,
    /// Sums over the records above.
    sums: Sums,
}

/// Child with a lease, as its parent sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Child {
    /// Process of the child.
    pub process: NodeId,
    /// Data center of the child.
    pub data_center: DataCenterId,
    /// Number of its lease.
    pub generation: u32,
    /// Number of the newest request with a reply.
    pub number: u64,
    /// Most that it may have unused: its reported balance, plus the grant in the reply.
    pub balance: LeaseBalance,
    /// Grant in the reply to `number`. A writer that finds its request applied by another one
    /// works the reply out again from it.
    pub granted: LeaseBalance,
    /// Usage of all its leases.
    pub used: LeaseUsage,
    /// End of the lease, in record time.
    pub ends_at: Timestamp,
    /// Record time after which its demand is forgotten, unless it syncs.
    pub quiet_at: Timestamp,
    /// Latest end of the lease by the child's own clock.
    pub ends_at_child_at: Timestamp,
    /// Longest seat that it may give under the lease.
    pub longest_seat: DurationMs,
    /// Changes that it reported to have made to the seats.
    pub row: SeatRow,
    /// Admissions of recent minutes.
    pub admitted: Vec<(Minute, u32)>,
    /// Time by which it treats every ending ticket as over.
    pub closed_through: Timestamp,
    /// Time of its clock in its newest request.
    pub sent_at: Timestamp,
    /// Whether that clock agreed with others when the child came.
    pub is_clock_trusted: bool,
    /// Number of nodes below it, itself included.
    pub nodes: u32,
    /// Waiting visitors below it.
    pub waiting: ReportedWaiting,
    /// Balance that it would like to have.
    pub demand: crate::sync::LeaseDemand,
    /// Version of the list of revocations up to which it rejects tickets, and all nodes below it
    /// do.
    pub rejects_through: u64,
    /// Settings of the room in its configuration.
    pub settings: RoomFacts,
    /// Version of the agreed settings under which its whole balance was granted.
    pub terms_version: u32,
    /// Whether it has reported since the store came back.
    pub has_reported: bool,
    /// Whether its name is safe in the record: before, it is granted nothing.
    pub is_safe: bool,
}

/// Child without a lease, while its possible seats and admissions still count.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DepartedChild {
    /// Identifier of the child.
    pub node: NodeId,
    /// Data center of the child.
    pub data_center: DataCenterId,
    /// Number of the lease that was given up.
    pub generation: u32,
    /// Number of the newest request with a reply.
    pub number: u64,
    /// Changes that it had reported.
    pub row: SeatRow,
    /// Seats that it may have given or extended without a report.
    pub phantoms: u32,
    /// End of the last of those seats.
    pub ends_at: Timestamp,
    /// Admissions of recent minutes; the unused balance of its last minute counts as used.
    pub admitted: Vec<(Minute, u32)>,
    /// Waiting visitors that it counted, until they are overdue.
    pub waiting: ReportedWaiting,
}

/// Seats of a data center that are not in its children's reports.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Group {
    /// Time by which all its live children treat ending tickets as over. Never falls.
    pub ready_through: Timestamp,
    /// Time up to which ended intervals have freed their seats. Never falls.
    pub closed_through: Timestamp,
    /// Seats of children that are no longer in `departed`, and seats freed by a logout.
    pub settled: SeatRow,
}

impl Ledger {
    /// Makes an empty ledger in the journal of one process, without earlier leases.
    #[must_use]
    pub fn new() -> Self {
        Self {
            incarnation: Incarnation::ALONE,
            store: StoreFacts::UNWRITTEN,
            probation: None,
            upstream: None,
            reserve: None,
            has_reserved: false,
            settings: None,
            terms_version: 0,
            longest_seat: DurationMs::ZERO,
            generation: 0,
            children: BTreeMap::new(),
            departed: Vec::new(),
            groups: BTreeMap::new(),
            settled_minutes: BTreeMap::new(),
            recent: RecentAdmissions::default(),
            revoked: RevokedList::default(),
            logouts: Logouts::default(),
            clock_at: Timestamp::ZERO,
            began_at: None,
            as_of: Timestamp::ZERO,
            sums: Sums::default(),
        }
    }

    /// Makes an empty ledger at the root of a deployment that is known to be new.
    #[must_use]
    pub fn first_start(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            ..Self::new()
        }
    }

    /// Returns the epoch under which seats are given: the incarnation of the root.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        match &self.upstream {
            Some(upstream) => upstream.snapshot.epoch,
            None => self.incarnation.epoch(),
        }
    }

    /// Returns the incarnation of this record.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Returns the lease that it grants from; `None` for the root.
    #[must_use]
    pub fn upstream(&self) -> Option<&Upstream> {
        self.upstream.as_deref()
    }

    /// Returns the reserve, while there is one.
    #[must_use]
    pub fn reserve(&self) -> Option<Reserve> {
        self.reserve
    }

    /// Returns the settings of the room; `None` before the first request.
    #[must_use]
    pub fn terms(&self) -> Option<RoomFacts> {
        self.settings
    }

    /// Returns the longest seat that any settings allowed.
    #[must_use]
    pub fn longest_seat(&self) -> DurationMs {
        self.longest_seat
    }

    /// Returns the children with a lease.
    #[must_use]
    pub fn children(&self) -> &BTreeMap<NodeId, Child> {
        &self.children
    }

    /// Returns the departed children whose possible seats and admissions still count.
    #[must_use]
    pub fn departed(&self) -> &[DepartedChild] {
        &self.departed
    }

    /// Returns the latest time that the children's clocks have shown.
    #[must_use]
    pub fn clock_at(&self) -> Timestamp {
        self.clock_at
    }

    /// Returns the time of the record.
    #[must_use]
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// Returns the time of the record when it handles this request. One that names another
    /// incarnation, or none, shows no time.
    #[must_use]
    pub fn time_of(&self, request: &SyncRequest) -> Timestamp {
        let names_this = request.parent == Some(self.incarnation);
        let shown = request.stamp.time.filter(|_| names_this);
        self.as_of.max(shown.unwrap_or_default())
    }

    /// Handles one request at `now` in record time, like [`Self::handle_sync`], for callers
    /// that may have to repeat it on a newer record.
    #[must_use]
    pub fn sync(
        mut self,
        request: &SyncRequest,
        lease_terms: LeaseTerms,
        now: Timestamp,
    ) -> (Self, Reply) {
        let reply = self.handle_sync(request.clone(), lease_terms, now);
        (self, reply)
    }

    /// Handles one request of a child in place, at `now` in record time.
    pub fn handle_sync(
        &mut self,
        mut request: SyncRequest,
        lease_terms: LeaseTerms,
        now: Timestamp,
    ) -> Reply {
        let reply = self.reply_to_sync(&mut request, lease_terms, now);
        self.assert_sound();
        reply
    }

    fn reply_to_sync(
        &mut self,
        request: &mut SyncRequest,
        lease_terms: LeaseTerms,
        now: Timestamp,
    ) -> Reply {
        self.skip_absence(request, now);
        if self.is_report_missing(now) {
            self.start_over(lease_terms, None);
        }
        self.advance(now);
        let is_clock_trusted = self.note_clock(request, lease_terms);
        self.follow_waiting();
        self.handle_witness(request, lease_terms);
        if self.is_succeeded(request) || self.is_promise_broken(request) {
            self.start_over(lease_terms, request.parent);
        }
        let number = request.number;
        match request.parent {
            Some(parent) if parent != self.incarnation => return self.void_reply(request),
            Some(_) => self.note_known(request),
            None => {}
        }
        self.note_passed_windows(request);
        let known = self.children.get(&request.child);
        let newest = known.map(|child| child.number).or_else(|| {
            let gone = self.departed.iter().find(|gone| gone.node == request.child);
            gone.map(|gone| gone.number)
        });
        if newest.is_some_and(|newest| number <= newest) {
            return Reply::Stale;
        }
        if request.is_join && known.is_some() {
            return Reply::Stale;
        }
        if self.lost_a_grant(request) {
            self.start_over(lease_terms, None);
            return self.void_reply(request);
        }
        let is_void = known.map(|child| child.generation) != request.generation;
        if is_void && !request.is_final {
            return self.void_reply(request);
        }
        self.handle_report(request, is_clock_trusted);
        self.count_ended();
        if request.is_leaving {
            self.handle_goodbye(request);
            self.end_probation();
            return self.goodbye_reply(request, now);
        }
        self.end_probation();
        self.free_revoked_seats();
        self.close_intervals(request.data_center);
        self.end_reserve();
        self.forget_departed();
        self.grant_lease(request, lease_terms, now)
    }

    fn void_reply(&self, request: &SyncRequest) -> Reply {
        Reply::Void {
            child: request.child,
            number: request.number,
            incarnation: self.incarnation,
            store: self.store,
        }
    }

    /// Learns what a child of this incarnation knows and the record may have lost.
    fn note_known(&mut self, request: &SyncRequest) {
        let (data_center, closed) = (request.data_center, request.known_closed);
        if closed > self.closed_through(data_center) {
            let group = self.groups.entry(data_center).or_default();
            group.ready_through = group.ready_through.max(closed);
            self.close_through(data_center, closed);
        }
        if let (Some(upstream), Some(carried)) =
            (self.upstream.as_deref_mut(), request.stamp.carried)
        {
            upstream.lease.skip_to(carried);
        }
    }

    /// Gives up all leases at once, because the process that has the journal's lock is alone and
    /// their holders have ended. What these had not reported becomes phantom seats. `now` is by the
    /// clock that writes tickets.
    pub fn give_up_all_leases(&mut self, now: Timestamp) {
        for node in self.children.keys().copied().collect::<Vec<_>>() {
            if let Some(child) = self.children.get_mut(&node) {
                // The clock of the journal is that of its nodes.
                child.ends_at_child_at = child.ends_at_child_at.min(now);
            }
            self.give_up(node);
        }
        self.assert_sound();
    }

    /// Returns the time up to which ended intervals of this data center have freed their seats.
    #[must_use]
    pub fn closed_through(&self, data_center: DataCenterId) -> Timestamp {
        self.groups
            .get(&data_center)
            .map_or(Timestamp::ZERO, |group| group.closed_through)
    }

    /// Updates the agreed settings of the room from its children's. Where they differ, the lower
    /// limit and the longer seat apply.
    fn agree_on_terms(&mut self) {
        if !core::mem::take(&mut self.sums.are_terms_stale) {
            return;
        }
        let terms = self.children.values().map(|child| child.settings);
        let Some(agreed) = terms.reduce(RoomFacts::stricter) else {
            return;
        };
        if self.settings == Some(agreed) {
            return;
        }
        self.longest_seat = self.longest_seat.max(agreed.longest_seat);
        self.settings = Some(agreed);
        self.terms_version = self.terms_version.wrapping_add(1);
        if let Some(upstream) = &mut self.upstream {
            upstream.handle_new_terms();
        }
    }

    /// Ends the leases and counts whose time is over.
    fn advance(&mut self, now: Timestamp) {
        debug_assert!(now >= self.as_of, "record time fell");
        self.as_of = now;
        let is_over = |child: &Child| child.ends_at <= now;
        if self.sums.next_end <= now {
            let ended = self.children.iter().filter(|(_, child)| is_over(child));
            let ended: Vec<_> = ended.map(|(&node, _)| node).collect();
            for node in ended {
                self.give_up(node);
            }
            let next = self.children.values().map(|child| child.ends_at).min();
            self.sums.next_end = next.unwrap_or(Timestamp::NEVER);
        }
        self.mark_quiet(now);
        let agreed = self.agreed_now();
        self.revoked.drop_through(agreed);
        if let Some(upstream) = &mut self.upstream {
            upstream.unconfirmed.retain(|entry| entry.until > agreed);
        }
    }

    /// Returns the latest clock of another child than this one: as its newest request showed it,
    /// and the time since.
    fn other_clock(&self, child: NodeId, now: Timestamp) -> Option<OtherClock> {
        let others = self.children.iter().filter(|(node, _)| **node != child);
        let clocks = others.map(|(_, other)| OtherClock {
            process: other.process,
            // After a long silence the time since is not known.
            at: other.sent_at + now.since(other.quiet_at - QUIET_AFTER),
        });
        clocks.max_by_key(|clock| clock.at)
    }

    fn lease_reply(
        &self,
        request: &SyncRequest,
        granted: LeaseBalance,
        ttl: DurationMs,
        now: Timestamp,
    ) -> LeaseReply {
        // Versions of another incarnation are not comparable.
        let known = if request.parent == Some(self.incarnation) {
            request.revoked_version
        } else {
            0
        };
        let new_entries = self.revoked.since(known, &request.revocations);
        let version = self.revoked.version();
        let has_changed = !new_entries.is_empty() || request.revoked_version != version;
        let child = self.children.get(&request.child);
        let at = self.clock_at.max(request.sent_at);
        let is_safe = child.is_none_or(|child| child.is_safe);
        let mut snapshot = self.snapshot_at(request.data_center, at, now);
        if !is_safe {
            let safe_at = at + self.store.safe_after() + REPORTED_AFTER;
            snapshot.close_until(safe_at, ClosedBy::UnsafeName);
        }
        LeaseReply {
            child: request.child,
            number: request.number,
            incarnation: self.incarnation,
            record_time: self.as_of,
            store: self.store,
            is_safe,
            generation: child.map(|child| child.generation),
            granted,
            ttl,
            longest_seat: self.longest_grantable_seat(),
            revoked: has_changed.then_some((version, new_entries)),
            other_clock: self.other_clock(request.child, now),
            snapshot,
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
pub(crate) mod tests;
