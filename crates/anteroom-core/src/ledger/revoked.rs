//! Which sessions did the origin end? A bounded list, shared by all nodes, until no ticket of
//! theirs can run any more.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Ledger;
use crate::id::{Life, VisitorId};
use crate::planted::{Bug, is_planted};
use crate::sync::{Revocation, SyncRequest};
use crate::time::Millis;

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
    pub fn drop_through(&mut self, now: Millis) {
        if self.entries.is_empty() {
            return;
        }
        // A shorter list is no news to those who have the longer one.
        self.entries.retain(|_, (entry, _)| entry.until > now);
    }
}

impl Ledger {
    /// Whether whoever may still let somebody pass knows of a logout that has just been told: the one
    /// that told it, alone. Others hear of it with their next answers, or not at all while they are
    /// cut off; until then a copy of the ticket passes at them, and its seat must not be somebody
    /// else's. There the seat runs out by itself.
    fn is_known_to_all(&self) -> bool {
        self.upstream.is_none() && self.life == Life::ALONE
    }

    /// Takes over a child's revocations and frees the seat of each new one.
    ///
    /// An entry stays for the longest seat ever given: the ticket that was presented need not be
    /// the visitor's newest, and a node that started anew cannot tell. One that is over already came
    /// late; it was on the list, and must not free a second seat.
    pub(super) fn handle_revocations(&mut self, request: &SyncRequest) {
        let agreed = self.agreed_now();
        let running = request
            .revocations
            .iter()
            .filter(|entry| entry.until > agreed);
        let may_free = self.is_known_to_all() || is_planted(Bug::LogoutsFreeAtOnce);
        for &entry in running {
            let until = entry.until.max(self.heard_at + self.longest_seat);
            let is_new = self.revoked.insert(Revocation { until, ..entry });
            if (is_new && may_free) || is_planted(Bug::LogoutsFreeTwice) {
                self.free_seat(request.data_center, entry.seat_ends_at);
            }
            if let Some(upstream) = self.upstream.as_deref_mut().filter(|_| is_new) {
                // Its seat is freed here, and the row says so.
                let entry = Revocation { until, ..entry };
                upstream.unconfirmed.push(entry.without_seat());
            }
        }
    }
}
