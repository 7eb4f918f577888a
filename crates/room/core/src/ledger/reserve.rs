//! What does a ledger do that may have lost its memory? It lends nothing until everything that it
//! may have lent before has ended.
//!
//! Meanwhile nobody inside is thrown out: renewal credits are lent, and a seat that is prolonged
//! moves out of the reserve into the count, so that at its end every active visitor has been
//! counted anew.

use super::Ledger;
use super::asking::LENT_AHEAD;
use super::closing::CLOCKS_APART;
use crate::id::Incarnation;
use crate::sync::SyncRequest;
use crate::time::{DurationMs, Timestamp};

use super::{FORGOTTEN_AFTER, LeaseTerms, Logouts, RevokedList};

/// All that the limits allow counts as used while this lasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reserve {
    /// When the loss was noticed, by the clocks that write tickets.
    pub began_at: Timestamp,
    /// Whether such a clock was heard since: in a request that names this life of the ledger, and
    /// was made after it began. Before that nothing ends, for what the record says of the time may
    /// be as old as the rest of it, and a message may be late.
    pub is_timed: bool,
    /// How long a lease given before may still run.
    pub ttl: DurationMs,
    /// Whether anybody has seen what came before. Until then it may be a first start, and only
    /// the time in which a witness must have spoken is waited for.
    pub is_certain: bool,
    /// When it ends, if nothing longer is heard of.
    pub ends_at: Timestamp,
}

impl Ledger {
    /// A ledger at the root whose record was not there, of a deployment that may be an old one.
    /// Whoever has lived before it has `lending.ttl` to say so; a first start costs that long.
    #[must_use]
    pub fn found_empty(incarnation: Incarnation, lending: LeaseTerms, now: Timestamp) -> Self {
        let reserve = Reserve {
            began_at: Timestamp::ZERO,
            is_timed: false,
            ttl: lending.ttl,
            is_certain: false,
            ends_at: Timestamp::ZERO,
        };
        Self {
            incarnation,
            as_of: now,
            reserve: Some(reserve),
            ..Self::new()
        }
    }

    /// A ledger in the journal of one process whose record was lost, as was noticed `at`.
    ///
    /// That journal's clock is the one that writes tickets, so the reserve is timed at once. The
    /// lost ledger gave seats no longer than `longest_seat`.
    #[must_use]
    pub fn lost_alone(longest_seat: DurationMs, at: Timestamp) -> Self {
        let mut ledger = Self {
            longest_seat,
            as_of: at,
            ..Self::new()
        };
        ledger.begin_reserve(LeaseTerms::default().ttl, at);
        ledger.time_reserve(at, true);
        ledger
    }

    /// A ledger in the journal of one process that began anew `at`, and made all earlier tickets
    /// worthless. Nobody of before is inside; only the admissions of that minute still count.
    #[must_use]
    pub fn begun_anew(at: Timestamp) -> Self {
        let reserve = Reserve {
            began_at: at,
            is_timed: true,
            ttl: at.until_next_minute(),
            is_certain: false,
            ends_at: at.minute().next().starts_at(),
        };
        Self {
            as_of: at,
            reserve: Some(reserve),
            ..Self::new()
        }
    }

    /// Starts a new life at the root, because the store is another one than before: what it has may
    /// be old. Rules and logouts are kept; they do no harm.
    pub fn begin_epoch(&mut self, incarnation: Incarnation, lending: LeaseTerms, now: Timestamp) {
        let mut anew = Self {
            incarnation,
            terms: self.terms,
            longest_seat: self.longest_seat,
            heard_at: self.heard_at,
            as_of: self.as_of.max(now),
            ..Self::new()
        };
        let version = self.revoked.version() + (1 << 32);
        let kept = self.revoked.iter().map(|(entry, _)| (entry, version));
        anew.revoked = RevokedList::from_parts(version, kept);
        for (&data_center, group) in &self.groups {
            let kept = anew.groups.entry(data_center).or_default();
            kept.closed_through = group.closed_through;
            kept.ready_through = group.ready_through;
        }
        *self = anew;
        self.begin_reserve(lending.ttl, self.heard_at);
        self.assert_sound();
    }

    /// Ends the reserve on the operator's word that nobody is inside.
    pub fn assume_empty(&mut self) {
        self.reserve = None;
        self.has_reserved = true;
        // Where nobody is inside, nobody has a ticket that should be refused.
        self.logouts = Logouts::default();
        self.assert_sound();
    }

    /// Takes note of a child that has seen another epoch than this one.
    pub(super) fn handle_witness(&mut self, request: &SyncRequest, lending: LeaseTerms) {
        self.longest_seat = self.longest_seat.max(request.longest_known);
        let at = self.heard_at.max(request.sent_at);
        let names_this_incarnation = request.parent == Some(self.incarnation);
        self.time_reserve(at, names_this_incarnation && request.is_read_under_parent);
        let Some(epoch) = request.witnessed else {
            return;
        };
        if let Some(upstream) = &mut self.upstream {
            upstream.handle_witness(epoch);
            return;
        }
        if epoch == self.incarnation.epoch() {
            return;
        }
        let is_certain = self.reserve.is_some_and(|reserve| reserve.is_certain);
        if !self.has_reserved && !is_certain {
            self.begin_reserve(lending.ttl, at);
        }
    }

    /// Fixes when the reserve began, by the first clock that certainly was heard in it, and
    /// lengthens it for the longest seat that is heard of.
    fn time_reserve(&mut self, at: Timestamp, is_in_it: bool) {
        let longest = self.longest_seat;
        let Some(reserve) = &mut self.reserve else {
            return;
        };
        if !reserve.is_timed {
            reserve.is_timed = is_in_it;
            reserve.began_at = reserve.began_at.max(at);
            // Who fell silent before the loss, only the lost record knew.
            self.logouts
                .note_goodbye(reserve.began_at + FORGOTTEN_AFTER);
        }
        let ends_at = if reserve.is_certain {
            end_of(reserve.began_at, reserve.ttl, longest)
        } else {
            reserve.began_at + reserve.ttl
        };
        reserve.ends_at = reserve.ends_at.max(ends_at);
    }

    /// Ends the reserve when its time is over by all clocks, and every data center has given back
    /// what ended in it: until then a seat that moved out of the reserve is taken out of it twice.
    pub(super) fn end_reserve(&mut self) {
        let is_over = |reserve: Reserve| {
            let is_closed = |group| self.closed_through(group) >= reserve.ends_at;
            let mut groups = self.children.values().map(|child| child.data_center);
            reserve.is_timed && reserve.ends_at <= self.agreed_now() && groups.all(is_closed)
        };
        if self.reserve.is_some_and(is_over) {
            self.has_reserved |= self.reserve.is_some_and(|reserve| reserve.is_certain);
            self.reserve = None;
        }
    }

    fn begin_reserve(&mut self, ttl: DurationMs, at: Timestamp) {
        let began_at = self.heard_at.max(at);
        self.reserve = Some(Reserve {
            began_at,
            is_timed: false,
            ttl,
            is_certain: true,
            ends_at: end_of(began_at, ttl, self.longest_seat),
        });
    }
}

/// By then every lease has ended, every seat given under one, and the newest minute of which
/// admissions were lent.
fn end_of(began_at: Timestamp, ttl: DurationMs, longest_seat: DurationMs) -> Timestamp {
    let newest_minute = (began_at + LENT_AHEAD + CLOCKS_APART).minute();
    (began_at + ttl + longest_seat).max(newest_minute.next().starts_at())
}
