//! Revoked sessions, which the origin ended: a bounded list that all nodes share, until all their
//! tickets have expired.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::Ledger;
use crate::id::{DataCenterId, Incarnation, NodeId, VisitorId};
use crate::sync::{Revocation, SyncRequest};
use crate::time::{DurationMs, Timestamp};

/// Most sessions on the list: 10 000 logouts within one session length. When it is full, a seat
/// ends at its normal end, and the visitor's cookie is still deleted.
pub const REVOKED_MAX: usize = 10_000;

/// List of revoked sessions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RevokedList {
    /// Entries by visitor, with the version at which each came.
    entries: BTreeMap<VisitorId, (Revocation, u64)>,
    version: u64,
}

impl RevokedList {
    /// Makes a list from its entries and the versions at which they came.
    #[must_use]
    pub fn from_parts(version: u64, entries: impl IntoIterator<Item = (Revocation, u64)>) -> Self {
        let entries = entries.into_iter();
        Self {
            entries: entries
                .map(|(entry, came_at)| (entry.visitor, (entry, came_at)))
                .collect(),
            version,
        }
    }

    /// Raises the version above all that a lost record may have had, so that children get all
    /// entries again.
    pub(super) fn raise_version(&mut self) {
        self.version += 1 << 32;
        for (_, came_at) in self.entries.values_mut() {
            *came_at = self.version;
        }
    }

    /// Iterates over all entries, with the versions at which they came.
    pub fn iter(&self) -> impl Iterator<Item = (Revocation, u64)> + '_ {
        self.entries.values().copied()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the version, which rises with every entry.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns all entries.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Revocation> {
        self.entries.values().map(|(entry, _)| *entry).collect()
    }

    /// Returns the entries that came after `version`, and the `requested` ones on the list.
    #[must_use]
    pub fn since(&self, version: u64, requested: &[Revocation]) -> Vec<Revocation> {
        let mut update: Vec<Revocation> = Vec::new();
        if version != self.version {
            let later = self
                .entries
                .values()
                .filter(|(_, came_at)| *came_at > version);
            update.extend(later.map(|(entry, _)| *entry));
        }
        let requested = requested
            .iter()
            .filter_map(|entry| self.entries.get(&entry.visitor));
        let requested = requested.filter(|(_, came_at)| *came_at <= version);
        update.extend(requested.map(|(entry, _)| *entry));
        update
    }

    /// Whether tickets of this visitor are rejected.
    #[must_use]
    pub fn contains(&self, visitor: VisitorId) -> bool {
        self.entries.contains_key(&visitor)
    }

    /// Adds a session. Returns whether it is new; only then is a seat freed, or a repeated logout
    /// would free the seats of others.
    pub fn insert(&mut self, entry: Revocation) -> bool {
        if self.entries.contains_key(&entry.visitor) || self.entries.len() >= REVOKED_MAX {
            return false;
        }
        self.version += 1;
        self.entries.insert(entry.visitor, (entry, self.version));
        true
    }

    /// Removes entries whose tickets have all expired.
    pub fn drop_through(&mut self, now: Timestamp) {
        if self.entries.is_empty() {
            return;
        }
        // A node that has the longer list needs no update.
        self.entries.retain(|_, (entry, _)| entry.until > now);
    }
}

/// Seats of revoked sessions, until other visitors may have them.
///
/// A node that does not know of a logout still admits a copy of the ticket, and its visitor is
/// active. So the seat is freed when all nodes have reported that they reject the ticket. A node
/// that stopped reporting may never learn of it. Until it reports again, or its successor does, no
/// seat is freed early: each ends at its normal end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Logouts {
    /// Seats that are not freed yet.
    pub unfreed: Vec<UnreleasedSeat>,
    /// Version of the list up to which all children reject tickets.
    pub rejected_through: u64,
    /// Time until which a departed child, or one that only a lost record knew, may still admit.
    pub missing_until: Timestamp,
    /// Processes that stopped reporting and may still admit, and the time until which each counts.
    pub missing_processes: BTreeMap<NodeId, Timestamp>,
}

/// Time after which a process that is cut off accepts no ticket any more, and does not count.
/// Longer than the longest seat, which is a day and two intervals, so that being cut off ends no
/// session.
pub const FORGOTTEN_AFTER: DurationMs = DurationMs::from_secs(48 * 3_600);

/// Most processes in `missing`. Above it, all count until the last one does.
const MISSING_MAX: usize = 1_000;

/// Seat of a revoked session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnreleasedSeat {
    /// Visitor of the session.
    pub visitor: VisitorId,
    /// Data center that counts the seat.
    pub data_center: DataCenterId,
    /// End of the seat.
    pub seat_ends_at: Timestamp,
    /// Version of the root's list that has the session; `None` if the root does not know of it yet.
    pub listed_at: Option<u64>,
}

impl Logouts {
    /// Records the goodbye of a child: while it drains, it may still admit visitors.
    pub(super) fn note_goodbye(&mut self, drained_by: Timestamp) {
        self.missing_until = self.missing_until.max(drained_by);
    }

    /// Records a child that stopped reporting; its lease ended at `ended_at` by its own clock.
    pub(super) fn note_missing(&mut self, process: NodeId, ended_at: Timestamp) {
        let until = ended_at + FORGOTTEN_AFTER;
        if self.missing_processes.len() < MISSING_MAX
            || self.missing_processes.contains_key(&process)
        {
            self.missing_processes.insert(process, until);
        } else {
            self.missing_until = self.missing_until.max(until);
        }
    }

    /// Records the report of a process: from now on it gets the list, and its predecessors have
    /// ended.
    pub(super) fn note_return(&mut self, request: &SyncRequest) {
        if self.missing_processes.is_empty() {
            return;
        }
        for process in request.replaces.iter().chain([&request.process]) {
            self.missing_processes.remove(process);
        }
    }

    /// Whether a process that does not report which tickets it rejects may still admit.
    pub(super) fn may_missing_admit(&self, agreed: Timestamp) -> bool {
        agreed < self.missing_until || self.missing_processes.values().any(|until| *until > agreed)
    }

    /// Forgets the versions at which the root listed entries: they were versions of a list that it
    /// may have lost.
    pub(super) fn forget_listed(&mut self) {
        for seat in &mut self.unfreed {
            seat.listed_at = None;
        }
    }

    /// Records that these entries are in this version of the root's list.
    pub(super) fn note_listed(&mut self, entries: &BTreeSet<VisitorId>, version: u64) {
        let unlisted = self
            .unfreed
            .iter_mut()
            .filter(|seat| seat.listed_at.is_none());
        for seat in unlisted.filter(|seat| entries.contains(&seat.visitor)) {
            seat.listed_at = Some(version);
        }
    }
}

impl Ledger {
    /// Whether only the node that reported a logout could admit a copy of its ticket.
    pub(super) fn is_single_process(&self) -> bool {
        self.upstream.is_none() && self.incarnation == Incarnation::ALONE
    }

    /// Updates the version of the list up to which all children reject tickets.
    pub(super) fn note_rejections(&mut self) {
        let agreed = self.agreed_now();
        self.logouts
            .missing_processes
            .retain(|_, until| *until > agreed);
        if self.revoked.version() == 0 || self.logouts.may_missing_admit(agreed) {
            return;
        }
        let known = self.children.values().map(|child| child.rejects_through);
        self.logouts.rejected_through = known.min().unwrap_or(0);
    }

    /// Frees the seats of sessions whose tickets all nodes reject.
    pub(super) fn free_revoked_seats(&mut self) {
        self.note_rejections();
        if self.logouts.unfreed.is_empty() {
            return;
        }
        let rejected = match &self.upstream {
            Some(upstream) => upstream.snapshot.rejected_through,
            None => self.logouts.rejected_through,
        };
        let agreed = self.agreed_now();
        let unfreed = core::mem::take(&mut self.logouts.unfreed);
        for seat in unfreed {
            if seat.listed_at.is_some_and(|version| version <= rejected) {
                self.free_seat(seat.data_center, seat.seat_ends_at);
                if let Some(upstream) = &mut self.upstream {
                    upstream.has_freed = true;
                }
            } else if seat.seat_ends_at > agreed {
                self.logouts.unfreed.push(seat);
            }
        }
    }

    /// Records a child's revocations and frees the seat of each new one.
    ///
    /// An entry stays for the longest seat ever given: the ticket of the logout need not be the
    /// visitor's newest, and a restarted node cannot tell. An entry that is over already came late;
    /// it was on the list, and must not free a second seat.
    pub(super) fn handle_revocations(&mut self, request: &SyncRequest) {
        let agreed = self.agreed_now();
        let running = request
            .revocations
            .iter()
            .filter(|entry| entry.until > agreed);
        let frees_at_once = self.is_single_process();
        let is_root = self.upstream.is_none();
        for &entry in running {
            let until = entry.until.max(self.clock_at + self.longest_seat);
            let is_new = self.revoked.insert(Revocation { until, ..entry });
            if let Some(seat_ends_at) = entry.seat_ends_at.filter(|_| is_new) {
                if frees_at_once {
                    self.free_seat(request.data_center, seat_ends_at);
                } else if seat_ends_at > agreed {
                    self.logouts.unfreed.push(UnreleasedSeat {
                        visitor: entry.visitor,
                        data_center: request.data_center,
                        seat_ends_at,
                        listed_at: is_root.then_some(self.revoked.version()),
                    });
                }
            }
            if let Some(upstream) = self.upstream.as_deref_mut().filter(|_| is_new) {
                // Its seat is freed here, and the row shows that.
                let entry = Revocation { until, ..entry };
                upstream.unconfirmed.push(entry.without_seat());
            }
        }
    }
}
