//! Which sessions did the origin end? A bounded list, shared by all nodes, until no ticket of
//! theirs can run any more.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::Ledger;
use crate::id::{DataCenterId, Incarnation, NodeId, VisitorId};
use crate::sync::{Revocation, SyncRequest};
use crate::time::{DurationMs, Timestamp};

/// Most sessions on the list; 10 000 logouts within one session length. When it is full a seat
/// runs out by itself, and the visitor's cookie is deleted all the same.
pub const REVOKED_MAX: usize = 10_000;

/// Sessions that were ended early.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RevokedList {
    /// With the version at which each came.
    entries: BTreeMap<VisitorId, (Revocation, u64)>,
    version: u64,
}

impl RevokedList {
    /// A list as it was written down: entries with the versions at which they came.
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

    /// All entries, with the versions at which they came.
    pub fn iter(&self) -> impl Iterator<Item = (Revocation, u64)> + '_ {
        self.entries.values().copied()
    }

    /// How many are on it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nobody is on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Rises with every entry that is added.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All entries.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Revocation> {
        self.entries.values().map(|(entry, _)| *entry).collect()
    }

    /// What somebody lacks who has the list of an earlier version, and what it asks about.
    #[must_use]
    pub fn since(&self, version: u64, asked: &[Revocation]) -> Vec<Revocation> {
        let mut news: Vec<Revocation> = Vec::new();
        if version != self.version {
            let later = self
                .entries
                .values()
                .filter(|(_, came_at)| *came_at > version);
            news.extend(later.map(|(entry, _)| *entry));
        }
        let asked = asked
            .iter()
            .filter_map(|entry| self.entries.get(&entry.visitor));
        let asked = asked.filter(|(_, came_at)| *came_at <= version);
        news.extend(asked.map(|(entry, _)| *entry));
        news
    }

    /// Whether tickets of this visitor are refused.
    #[must_use]
    pub fn contains(&self, visitor: VisitorId) -> bool {
        self.entries.contains_key(&visitor)
    }

    /// Puts a session on the list. Returns whether it is new there; only then is a seat freed, or
    /// a logout that is sent again would free the seats of others.
    pub fn insert(&mut self, entry: Revocation) -> bool {
        if self.entries.contains_key(&entry.visitor) || self.entries.len() >= REVOKED_MAX {
            return false;
        }
        self.version += 1;
        self.entries.insert(entry.visitor, (entry, self.version));
        true
    }

    /// Forgets those of whom no ticket can run any more.
    pub fn drop_through(&mut self, now: Timestamp) {
        if self.entries.is_empty() {
            return;
        }
        // A shorter list is no news to those who have the longer one.
        self.entries.retain(|_, (entry, _)| entry.until > now);
    }
}

/// Seats of sessions that were ended, until they may be somebody else's.
///
/// A node that has not heard of a logout lets a copy of the ticket pass. Its holder is inside, so
/// the seat is freed when all nodes have said that they refuse the ticket. A node that fell silent
/// may never hear of it: until it is heard again, or a process that takes its place is, no seat is
/// freed early. They run out by themselves, as all seats do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Logouts {
    /// Not freed yet.
    pub unfreed: Vec<UnreleasedSeat>,
    /// Up to which version of the list all children refuse tickets.
    pub refused_through: u64,
    /// Until then somebody may pass tickets who said goodbye, or of whom a lost record knew.
    pub heed_until: Timestamp,
    /// Processes that fell silent and may still pass tickets, and until when each is waited for.
    pub missing: BTreeMap<NodeId, Timestamp>,
}

/// A process that has been cut off for so long believes no ticket any more, and is waited for no
/// longer. Longer than the longest seat there can be, which is a day and two intervals: whoever is
/// inside when a process is cut off is never put out by it.
pub const FORGOTTEN_AFTER: DurationMs = DurationMs::from_secs(48 * 3_600);

/// Most processes that are waited for one by one. Beyond it all are waited for as long as the last.
const MISSING_MAX: usize = 1_000;

/// A seat whose session was ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnreleasedSeat {
    /// Whose.
    pub visitor: VisitorId,
    /// Where it is counted.
    pub data_center: DataCenterId,
    /// Its end.
    pub seat_ends_at: Timestamp,
    /// The version of the root's list in which it is; `None` if the root does not know of it yet.
    pub listed_at: Option<u64>,
}

impl Logouts {
    /// A child said goodbye. Until it has answered its last visitor it may let some pass.
    pub(super) fn note_goodbye(&mut self, drained_by: Timestamp) {
        self.heed_until = self.heed_until.max(drained_by);
    }

    /// A child fell silent whose lease ended at `ended_at` by its own clock.
    pub(super) fn note_silence(&mut self, process: NodeId, ended_at: Timestamp) {
        let until = ended_at + FORGOTTEN_AFTER;
        if self.missing.len() < MISSING_MAX || self.missing.contains_key(&process) {
            self.missing.insert(process, until);
        } else {
            self.heed_until = self.heed_until.max(until);
        }
    }

    /// A process is heard, which knows what it has missed from now on, and whose predecessors are
    /// dead.
    pub(super) fn note_return(&mut self, request: &SyncRequest) {
        if self.missing.is_empty() {
            return;
        }
        for process in request.replaces.iter().chain([&request.process]) {
            self.missing.remove(process);
        }
    }

    /// Whether a process may pass tickets that does not say which ones it refuses.
    pub(super) fn may_others_pass(&self, agreed: Timestamp) -> bool {
        agreed < self.heed_until || self.missing.values().any(|until| *until > agreed)
    }

    /// The root has these entries, in this version of its list.
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
    /// Whether there is nobody but the node that told of a logout who could let a copy of its
    /// ticket pass.
    pub(super) fn is_known_to_all(&self) -> bool {
        self.upstream.is_none() && self.incarnation == Incarnation::ALONE
    }

    /// Learns up to which version of the list all children refuse tickets.
    pub(super) fn hear_refusals(&mut self) {
        let agreed = self.agreed_now();
        self.logouts.missing.retain(|_, until| *until > agreed);
        if self.revoked.version() == 0 || self.logouts.may_others_pass(agreed) {
            return;
        }
        let known = self.children.values().map(|child| child.refuses_through);
        self.logouts.refused_through = known.min().unwrap_or(0);
    }

    /// Frees the seats of sessions whose tickets all nodes refuse.
    pub(super) fn free_logged_out(&mut self) {
        self.hear_refusals();
        if self.logouts.unfreed.is_empty() {
            return;
        }
        let refused = match &self.upstream {
            Some(upstream) => upstream.snapshot.refused_through,
            None => self.logouts.refused_through,
        };
        let agreed = self.agreed_now();
        let unfreed = core::mem::take(&mut self.logouts.unfreed);
        for seat in unfreed {
            if seat.listed_at.is_some_and(|version| version <= refused) {
                self.free_seat(seat.data_center, seat.seat_ends_at);
                if let Some(upstream) = &mut self.upstream {
                    upstream.has_freed = true;
                }
            } else if seat.seat_ends_at > agreed {
                self.logouts.unfreed.push(seat);
            }
        }
    }

    /// Takes over a child's revocations and frees the seat of each new one.
    ///
    /// An entry stays for the longest seat ever given: the ticket that was presented need not be
    /// the visitor's newest, and a node that started anew cannot tell. One that is over already
    /// came late; it was on the list, and must not free a second seat.
    pub(super) fn handle_revocations(&mut self, request: &SyncRequest) {
        let agreed = self.agreed_now();
        let running = request
            .revocations
            .iter()
            .filter(|entry| entry.until > agreed);
        let may_free = self.is_known_to_all();
        let is_root = self.upstream.is_none();
        for &entry in running {
            let until = entry.until.max(self.heard_at + self.longest_seat);
            let is_new = self.revoked.insert(Revocation { until, ..entry });
            if let Some(seat_ends_at) = entry.seat_ends_at.filter(|_| is_new) {
                if may_free {
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
                // Its seat is freed here, and the row says so.
                let entry = Revocation { until, ..entry };
                upstream.unconfirmed.push(entry.without_seat());
            }
        }
    }
}
