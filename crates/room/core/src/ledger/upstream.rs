//! Ledger of a data center as a child of the root's ledger: it grants from its own lease.
//!
//! A node that syncs a data center with the root loads the record, makes a request
//! ([`Ledger::poll_upstream`]), and writes the record. Then it takes the request to the root's
//! ledger and the reply back ([`Ledger::handle_upstream`]). Two nodes that do so at once do no
//! harm: only the reply to the newest request is applied.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::children::QUIET_AFTER;
use super::closing::CLOCKS_APART;
use super::due::{UPSTREAM_PERIOD, UPSTREAM_TIME_OUT_MAX};
use super::grant::saturating_u32;
use super::{Child, Ledger, Logouts, RevokedList};
use crate::id::{DataCenterId, Epoch, Incarnation};
use crate::lease::Lease;
use crate::record_view::RecordedLease;
use crate::store::StoreFacts;
use crate::sync::{
    LeaseBalance, LeaseDemand, LeaseReply, LeaseUsage, RecordStamp, Reply, Revocation, Snapshot,
    SyncRequest,
};
use crate::time::{DurationMs, Timestamp};

/// Interval at which a node looks for a late reply.
const LATE_POLL: DurationMs = DurationMs(20);

/// State of a data center's ledger as a child of the root's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Upstream {
    /// Data center of the ledger.
    pub data_center: DataCenterId,
    /// Lease from the root, without the children's balances; its end is by the clocks that write
    /// tickets.
    pub lease: Lease,
    /// Incarnation of the root's ledger that granted it.
    pub parent: Option<Incarnation>,
    /// Whether a clock was read since then: that of a child that knows the epoch.
    pub is_read_under_parent: bool,
    /// Store of the root's record in the newest reply; `None` before the first.
    pub store: Option<StoreFacts>,
    /// Time of the root's record in that reply.
    pub root_time: Timestamp,
    /// Whether its name is safe in the root's record: before, it is granted nothing.
    pub is_safe: bool,
    /// Newest request whose reply was applied; `None` before the first.
    pub applied_reply: Option<u64>,
    /// Usage of all leases in this incarnation.
    pub used: LeaseUsage,
    /// Newest snapshot of the root.
    pub snapshot: Snapshot,
    /// Time of that reply, in record time.
    pub snapshot_at: Timestamp,
    /// Time of the newest request, in record time.
    pub requested_at: Timestamp,
    /// Recent round trip to the root until its reply is applied; zero before the first.
    pub round_trip: DurationMs,
    /// Whether its reports may be so far apart that a forecast is followed late.
    pub is_far: bool,
    /// Whether the newest request reported waiting visitors or a demand; a later one withdraws it
    /// as soon as it is over.
    pub has_demand: bool,
    /// Nodes in the newest request; other data centers divide by them.
    pub reported_nodes: u32,
    /// End through which the nodes treated tickets as over, in the newest request.
    pub reported_closed: Timestamp,
    /// Whether seats of revoked sessions were freed since the newest request.
    pub has_freed: bool,
    /// Epoch that a child has seen and the root may not know of.
    pub witnessed_epoch: Option<Epoch>,
    /// Logouts that the root has not confirmed.
    pub unconfirmed: Vec<Revocation>,
    /// Version of the root's list of logouts that was merged last.
    pub revoked_version: u64,
    /// Version of the root's list, and the version of the own one that has all of it.
    pub pending_version: (u64, u64),
    /// Newest version of the root's list that all children know.
    pub known_to_children: u64,
    /// Recent grants to children.
    pub demand: UpstreamDemand,
}

/// Permission of a child to carry a request to the root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carrier {
    /// Any request.
    Any,
    /// Only the first request of this ledger. Its name is not safe in the record yet, so that the
    /// record may forget with it that the request was sent.
    OnlyToJoin,
}

/// Grants to children in this upstream period and in the one before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UpstreamDemand {
    /// Number of the period.
    pub index: u64,
    /// Grants in this period.
    pub now: LeaseDemand,
    /// Grants in the period before.
    pub before: LeaseDemand,
    /// Slots per period at the height of recent traffic, in sixteenths; fades by an eighth a
    /// period.
    pub height: u32,
}

impl UpstreamDemand {
    /// Advances by record time. It may jump after a while without requests, which begins a new
    /// period.
    fn advance(&mut self, now: Timestamp) {
        let index = now.0 / UPSTREAM_PERIOD.0;
        if index != self.index {
            let is_next = index == self.index + 1;
            let height = self.now.slots.saturating_mul(16).max(self.height);
            let periods = u32::try_from(index.abs_diff(self.index))
                .unwrap_or(u32::MAX)
                .min(64);
            self.height = (0..periods).fold(height, |height, _| height - height.div_ceil(8));
            self.before = if is_next {
                self.now
            } else {
                LeaseDemand::default()
            };
            self.now = LeaseDemand::default();
            self.index = index;
        }
    }

    pub(super) fn expected(&mut self, now: Timestamp) -> LeaseDemand {
        self.advance(now);
        LeaseDemand {
            slots: self.now.slots.max(self.before.slots),
            credits: self.now.credits.max(self.before.credits),
            ..LeaseDemand::default()
        }
    }
}

impl Upstream {
    fn new(data_center: DataCenterId) -> Self {
        Self {
            data_center,
            lease: Lease::default(),
            parent: None,
            is_read_under_parent: false,
            store: None,
            root_time: Timestamp::ZERO,
            is_safe: false,
            applied_reply: None,
            used: LeaseUsage::default(),
            snapshot: Snapshot::default(),
            snapshot_at: Timestamp::ZERO,
            requested_at: Timestamp::ZERO,
            round_trip: DurationMs::ZERO,
            is_far: false,
            has_demand: false,
            reported_nodes: 0,
            reported_closed: Timestamp::ZERO,
            has_freed: false,
            witnessed_epoch: None,
            unconfirmed: Vec::new(),
            revoked_version: 0,
            pending_version: (0, 0),
            known_to_children: 0,
            demand: UpstreamDemand::default(),
        }
    }

    /// Returns the lease as the root's record has it; `None` before the first reply.
    #[must_use]
    pub fn recorded_lease(&self) -> Option<RecordedLease> {
        Some(RecordedLease {
            generation: self.lease.generation()?,
            incarnation: self.parent?,
            store: self.store?,
            record_time: self.root_time,
        })
    }

    /// Returns the epoch that its children have seen.
    pub(super) fn witness(&self) -> Option<Epoch> {
        let granted_by = self.parent.map(Incarnation::epoch);
        self.witnessed_epoch.or(granted_by)
    }

    /// Returns what the ledger knows of the root's store. The node that carries a request adds what
    /// it knows of the root's record.
    pub(super) fn stamp(&self) -> RecordStamp {
        RecordStamp {
            store: self.store.map(|store| store.identity),
            ..RecordStamp::default()
        }
    }

    /// Returns how long a child may use a grant of now.
    pub(super) fn left(&self, at: Timestamp) -> DurationMs {
        self.lease.ends_at().since(at + CLOCKS_APART)
    }

    pub(super) fn grant(&mut self, granted: LeaseBalance, now: Timestamp) {
        self.lease.grant(granted);
        self.demand.advance(now);
        self.demand.now.slots += granted.seats;
        self.demand.now.credits += granted.credits;
    }

    /// Takes back the part of a child's balance that it neither used nor still has. Grants under
    /// other settings than those of `version` return to the root; all do if it is `None`.
    pub(super) fn handle_use(&mut self, old: &Child, new: &Child, version: Option<u32>) {
        let seats_used = new.used.seats.saturating_sub(old.used.seats);
        let credits_used = new.used.credits.saturating_sub(old.used.credits);
        self.used.seats += seats_used;
        self.used.credits += credits_used;
        if Some(old.terms_version) != version {
            return;
        }
        let left = |old: u32, new: u32, used: u64| {
            u64::from(old)
                .saturating_sub(u64::from(new))
                .saturating_sub(used)
        };
        let [admissions, next_minute] = old.balance.by_minute().map(|(minute, held)| {
            let in_minute = |child: &Child| {
                let known = child.admitted.iter().find(|(m, _)| *m == minute);
                known.map_or(0, |&(_, count)| count)
            };
            let admitted = in_minute(new).saturating_sub(in_minute(old));
            saturating_u32(left(
                held,
                new.balance.admissions_of(minute),
                admitted.into(),
            ))
        });
        self.lease.take_back(LeaseBalance {
            seats: saturating_u32(left(old.balance.seats, new.balance.seats, seats_used)),
            credits: saturating_u32(left(old.balance.credits, new.balance.credits, credits_used)),
            admissions,
            next_minute,
            minute: old.balance.minute,
        });
    }

    /// Returns the balance under the old limits to the root.
    pub(super) fn handle_new_terms(&mut self) {
        let credits = self.lease.balance().credits;
        self.lease.give_back(LeaseBalance {
            credits,
            ..LeaseBalance::default()
        });
    }

    pub(super) fn handle_witness(&mut self, epoch: Epoch) {
        if self
            .parent
            .is_none_or(|incarnation| incarnation.epoch() != epoch)
        {
            self.witnessed_epoch = Some(epoch);
        }
    }

    /// Notes the version of the root's list of logouts that all children know, and the next one.
    pub(super) fn note_children_versions(&mut self, own: &RevokedList, logouts: &Logouts) {
        let (root, here) = self.pending_version;
        if here <= logouts.rejected_through {
            self.known_to_children = root;
            self.pending_version = (self.revoked_version, own.version());
        }
    }

    /// Updates the round trip. A late reply may have been carried late, because no visitor waited
    /// for it: the estimate falls at once and rises slowly.
    fn note_trip(&mut self, now: Timestamp) {
        let took = now.since(self.requested_at).min(UPSTREAM_TIME_OUT_MAX);
        self.round_trip = if self.round_trip == DurationMs::ZERO {
            took
        } else {
            took.min(DurationMs(self.round_trip.0 + self.round_trip.0 / 4 + 1))
        };
    }

    /// Returns the time until the reply to the pending request is expected; `None` if there is
    /// none. A late reply may come at any time.
    #[must_use]
    pub fn back_after(&self, now: Timestamp) -> Option<DurationMs> {
        let is_pending = self.lease.is_waiting_for_reply();
        let left = (self.requested_at + self.round_trip).since(now);
        is_pending.then_some(left.max(LATE_POLL))
    }

    /// Whether the root's last reply is recent, in record time.
    pub(super) fn is_snapshot_fresh(&self, now: Timestamp) -> bool {
        self.applied_reply.is_some() && now.since(self.snapshot_at) < QUIET_AFTER
    }
}

impl Ledger {
    /// Makes an empty ledger of a data center, below the root's. A lost record is replaced by one
    /// with a new `incarnation`; the root knows the leases of the old one.
    #[must_use]
    pub fn below_root(incarnation: Incarnation, data_center: DataCenterId) -> Self {
        Self {
            incarnation,
            upstream: Some(Box::new(Upstream::new(data_center))),
            ..Self::new()
        }
    }

    /// Returns whether the sender of a request may carry one to the root; `None` if not. A child
    /// that leaves carries the returns of its data center.
    #[must_use]
    pub fn carrier(&self, request: &SyncRequest) -> Option<Carrier> {
        let upstream = self.upstream.as_deref()?;
        let child = self.children.get(&request.child);
        if request.is_leaving || child.is_some_and(|child| child.is_safe) {
            return Some(Carrier::Any);
        }
        let is_first = upstream.lease.generation().is_none();
        is_first.then_some(Carrier::OnlyToJoin)
    }

    /// Applies a reply of the root. Returns whether it was to the newest request.
    pub fn handle_upstream(&mut self, reply: Reply, now: Timestamp) -> bool {
        let is_newest = self.apply_root_reply(reply, now);
        self.assert_sound();
        is_newest
    }

    fn apply_root_reply(&mut self, reply: Reply, now: Timestamp) -> bool {
        // A reply to a request before the store came back is not of this record.
        let is_certain = self.probation.is_none();
        let Some(upstream) = self.upstream.as_deref_mut().filter(|_| is_certain) else {
            return false;
        };
        match reply {
            Reply::Stale => false,
            Reply::Void { child, .. } if child.0 != self.incarnation.0 => false,
            Reply::Granted(lease_reply) if lease_reply.child.0 != self.incarnation.0 => false,
            Reply::Void {
                number,
                incarnation,
                store,
                ..
            } => {
                let is_other = upstream.parent.is_some_and(|known| known != incarnation);
                let is_newest = upstream.lease.handle_void(number);
                if is_newest {
                    self.note_root_store(store);
                }
                if is_newest && is_other {
                    let next = self.incarnation.next(incarnation.0);
                    self.begin_incarnation_below(next);
                }
                is_newest
            }
            Reply::Granted(lease_reply) => {
                if !upstream.lease.handle_lease_reply(&lease_reply) {
                    return false;
                }
                self.note_root_store(lease_reply.store);
                self.apply_root_lease(lease_reply, now);
                true
            }
        }
    }

    /// Notes the root's store. If it came back as another server, the root may have forgotten
    /// logouts that it had confirmed, and the versions at which it listed them.
    fn note_root_store(&mut self, store: StoreFacts) {
        let Some(upstream) = self.upstream.as_deref_mut() else {
            return;
        };
        let known = upstream.store.replace(store);
        if known.is_some_and(|known| known.identity != store.identity) {
            let entries = self.revoked.to_vec().into_iter();
            upstream.unconfirmed = entries.map(Revocation::without_seat).collect();
            upstream.revoked_version = 0;
            self.logouts.forget_listed();
        }
    }

    fn apply_root_lease(&mut self, lease_reply: LeaseReply, now: Timestamp) {
        let Some(upstream) = self.upstream.as_deref_mut() else {
            return;
        };
        upstream.is_read_under_parent &= upstream.parent == Some(lease_reply.incarnation);
        upstream.parent = Some(lease_reply.incarnation);
        upstream.root_time = lease_reply.record_time;
        upstream.is_safe = lease_reply.is_safe;
        upstream.applied_reply = Some(lease_reply.number);
        upstream.witnessed_epoch = None;
        upstream.snapshot = lease_reply.snapshot;
        upstream.snapshot_at = now;
        upstream.note_trip(now);
        let data_center = upstream.data_center;
        let closed = upstream.snapshot.closed_through;
        self.longest_seat = self.longest_seat.max(upstream.snapshot.longest_known);
        if let Some((version, entries)) = lease_reply.revoked {
            upstream.revoked_version = version;
            let listed: BTreeSet<_> = entries.iter().map(|entry| entry.visitor).collect();
            self.logouts.note_listed(&listed, version);
            upstream
                .unconfirmed
                .retain(|own| !listed.contains(&own.visitor));
            for entry in entries {
                self.revoked.insert(entry.without_seat());
            }
        }
        upstream.note_children_versions(&self.revoked, &self.logouts);
        self.close_through(data_center, closed);
    }

    /// Starts over after the root lost its record, or this ledger lost grants. The root knows the
    /// earlier leases, or its reserve covers them, and seats are counted anew from here on. The
    /// children see a new incarnation and do so too.
    pub(super) fn begin_incarnation_below(&mut self, incarnation: Incarnation) {
        let Some(old) = self.upstream.take() else {
            return;
        };
        let mut fresh = Self::below_root(incarnation, old.data_center);
        fresh.settings = self.settings;
        fresh.longest_seat = self.longest_seat;
        fresh.clock_at = self.clock_at;
        fresh.as_of = self.as_of;
        fresh.store = self.store;
        fresh.revoked = core::mem::take(&mut self.revoked);
        if let Some(upstream) = fresh.upstream.as_deref_mut() {
            upstream.witnessed_epoch = Some(old.snapshot.epoch);
            let entries = fresh.revoked.to_vec().into_iter();
            upstream.unconfirmed = entries.map(Revocation::without_seat).collect();
        }
        *self = fresh;
    }
}
