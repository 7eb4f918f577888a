//! Probation: the time after a store came back as another server, until all children have reported.
//!
//! The store kept the record, but perhaps not its newest writes. Versions that live nodes have seen
//! could prove a loss; they never prove that nothing was lost. What proves it: everybody who can
//! have written has reported again, in absolute figures. Until then no seats and no admissions are
//! granted. Reports are taken, leases are extended, and children go on with what they have.
//!
//! # Who can have written
//!
//! Every child that was granted anything is in the record, because it is granted nothing before its
//! name is safe there ([`crate::record_view`]). A child that does not report before its lease ends
//! may have used more than the record shows. Then the ledger starts over: at the root with a
//! [`Reserve`](super::Reserve), and below it with a new incarnation, whose leases the root knows.
//! Where the store keeps all writes, the record shows all that such a child was granted, and the
//! probation ends without it.
//!
//! # A store that breaks its promise
//!
//! An operator may restore an older backup, start an old replica as the master, or switch the log
//! off for a while. A promise says nothing about that, but a live node can tell: it knows how far
//! the record had come longer ago than the store can forget. If the record that came back is older,
//! the ledger starts over.
//!
//! # Which reports count
//!
//! Only one that was made after the child learned the store's new identity. An older one may be
//! late, of a child that died together with the store.
//!
//! # Below the root
//!
//! The pool of a data center is the one part of a record that is no sum of reports. It is dropped,
//! and the root gets it back with the next request. While the probation runs the ledger sends no
//! request to the root and applies no reply: neither would be of the present record.

use super::{LEASE_TTL, LeaseTerms, Ledger};
use crate::id::Incarnation;
use crate::store::{Durability, StoreFacts};
use crate::sync::{LeaseBalance, SyncRequest};
use crate::time::{DurationMs, Timestamp};

/// Longest time between two requests of any children while their store is there: an idle node sends
/// one every three seconds.
const LONGEST_SILENCE: DurationMs = DurationMs(5_000);

/// Time until all children have reported again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Probation {
    /// Time at which the other server was first seen, in record time.
    pub began_at: Timestamp,
    /// Whether the record has all grants to a child that does not report.
    pub keeps_all: bool,
    /// Time of the record as the store brought it back.
    pub kept_through: Timestamp,
}

impl Ledger {
    /// Returns the store of the record.
    #[must_use]
    pub fn store(&self) -> StoreFacts {
        self.store
    }

    /// Returns the probation, while there is one.
    #[must_use]
    pub fn probation(&self) -> Option<Probation> {
        self.probation
    }

    /// Returns the number of children that have not reported since the store came back.
    #[must_use]
    pub fn missing_reports(&self) -> usize {
        let children = self.children.values();
        children.filter(|child| !child.has_reported).count()
    }

    /// Whether the ledger may grant seats and admissions: it knows of all earlier grants.
    pub(super) fn is_open(&self) -> bool {
        self.reserve.is_none() && self.probation.is_none()
    }

    /// Notes the store that the record is in, before it handles a request there. Of one server, the
    /// weakest promise that any writer saw counts: that writer granted what it promised.
    pub fn note_store(&mut self, store: StoreFacts) {
        let is_same = self.store.identity == store.identity;
        let durability = if is_same {
            self.store.durability.weaker(store.durability)
        } else {
            store.durability
        };
        self.store = StoreFacts {
            durability,
            ..store
        };
    }

    /// Begins a probation, because the store came back as another server and may lack its newest
    /// writes. The incarnation stays.
    pub fn begin_probation(&mut self, store: StoreFacts, lease_terms: LeaseTerms) {
        let kept_all = self.probation.is_none_or(|earlier| earlier.keeps_all);
        // Both promises count: that of the lost server, and that of this one.
        let promises = self.store.durability.weaker(store.durability);
        self.probation = Some(Probation {
            began_at: self.as_of,
            keeps_all: kept_all && promises == Durability::KeepsAll,
            kept_through: self.as_of,
        });
        self.store = store;
        // How long the store was away is unknown, so each lease gets its whole length.
        let ends_at = self.as_of + lease_terms.ttl;
        for child in self.children.values_mut() {
            child.has_reported = false;
            child.ends_at = child.ends_at.max(ends_at);
        }
        self.sums.next_end = self.sums.next_end.min(ends_at);
        // Its newest version may be lost, and children know it.
        self.revoked.raise_version();
        self.drop_pool();
        self.assert_sound();
    }

    /// Moves all ends on by the time in which the store was away. Nobody could extend a lease
    /// meanwhile. The first report of a child shows that time. So does a later silence that is
    /// longer than any child keeps.
    pub(super) fn skip_absence(&mut self, request: &SyncRequest, now: Timestamp) {
        let child = self.children.get(&request.child);
        let is_first_report = child.is_none_or(|child| !child.has_reported);
        let Some(probation) = self.probation.as_mut() else {
            return;
        };
        let silence = now.since(self.as_of);
        let away = if is_first_report {
            silence
        } else {
            silence.less(LONGEST_SILENCE)
        };
        probation.began_at = probation.began_at + away;
        for child in self.children.values_mut() {
            child.ends_at = child.ends_at + away;
            if child.quiet_at != Timestamp::NEVER {
                child.quiet_at = child.quiet_at + away;
            }
        }
        let later = |at: Timestamp| {
            if at == Timestamp::NEVER {
                at
            } else {
                at + away
            }
        };
        self.sums.next_end = later(self.sums.next_end);
        self.sums.next_quiet = later(self.sums.next_quiet);
    }

    /// Whether a lease has ended of a child that may have used more than the record shows.
    pub(super) fn is_report_missing(&self, now: Timestamp) -> bool {
        self.probation.is_some_and(|probation| !probation.keeps_all)
            && self
                .children
                .values()
                .any(|child| !child.has_reported && child.ends_at <= now)
    }

    /// Whether the request shows that another incarnation followed this one: the record is an older
    /// copy. A child names a later one. Or, in a probation, one that has a lease here names another
    /// incarnation that is as late, under which it started over.
    pub(super) fn is_succeeded(&self, request: &SyncRequest) -> bool {
        let known = self.children.get(&request.child);
        let is_newer = known.is_some_and(|known| request.number > known.number);
        match request.parent.or(request.voided_by) {
            None => false,
            Some(other) if other == self.incarnation => false,
            Some(other) if other.ordinal() == self.incarnation.ordinal() => {
                self.probation.is_some() && is_newer
            }
            Some(other) => other.ordinal() > self.incarnation.ordinal(),
        }
    }

    /// Whether the request shows that the store broke its promise: the record is older than any
    /// that it may bring back. Then it may lack the names of children that have died since.
    pub(super) fn is_promise_broken(&self, request: &SyncRequest) -> bool {
        let names_this = request.parent == Some(self.incarnation);
        let (Some(probation), Some(kept)) = (self.probation, request.stamp.kept) else {
            return false;
        };
        // What this server wrote itself came after the copy.
        let is_of_earlier = kept.store != self.store.identity;
        names_this && is_of_earlier && kept.through > probation.kept_through
    }

    /// Whether the request shows that the record lost a grant: it names a lease of this incarnation
    /// that was never given, and may use it. What the child used under earlier leases is no such
    /// claim, and its next report has all of it.
    pub(super) fn lost_a_grant(&self, request: &SyncRequest) -> bool {
        let names_this = request.parent == Some(self.incarnation);
        let is_unknown = request.generation > Some(self.generation);
        names_this && is_unknown && !request.balance.is_nothing() && !request.is_final
    }

    /// Ends the probation when it is known what everybody has.
    pub(super) fn end_probation(&mut self) {
        let Some(probation) = self.probation else {
            return;
        };
        let is_over = probation.keeps_all && self.as_of >= probation.began_at + LEASE_TTL;
        if is_over || self.missing_reports() == 0 {
            self.probation = None;
            self.drop_pool();
        }
    }

    /// Starts over, because earlier grants are not known. `above` is an incarnation that a child
    /// named, if it was a later one.
    pub(super) fn start_over(&mut self, lease_terms: LeaseTerms, above: Option<Incarnation>) {
        let latest = above.map_or(self.incarnation, |other| other.max(self.incarnation));
        // A store may lose its record twice while children name the same earlier incarnation. With
        // one name for both ledgers the root would take the grants of one for those of the other.
        let incarnation = latest.next(self.store.identity.0 ^ self.incarnation.0);
        self.probation = None;
        if self.upstream.is_some() {
            self.begin_incarnation_below(incarnation);
        } else {
            self.begin_epoch(incarnation, lease_terms);
        }
    }

    /// Returns when the probation ends at the latest, by the clocks that write tickets.
    pub(super) fn probation_ends_at(&self) -> Option<Timestamp> {
        let probation = self.probation?;
        let missing = self.children.values().filter(|child| !child.has_reported);
        let latest = missing.map(|child| child.ends_at).max()?;
        let latest = if probation.keeps_all {
            latest.min(probation.began_at + LEASE_TTL)
        } else {
            latest
        };
        Some(self.clock_at + latest.since(self.as_of))
    }

    /// Drops what the ledger could grant. Requests that are under way count no more: what they
    /// return was lost.
    fn drop_pool(&mut self) {
        if let Some(upstream) = self.upstream.as_deref_mut() {
            upstream.lease.give_back(LeaseBalance::default());
        }
    }
}
