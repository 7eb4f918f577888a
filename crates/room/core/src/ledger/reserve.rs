//! Reserve: the time after a possible loss in which a ledger grants no slots, until every earlier
//! lease and seat has ended.
//!
//! Meanwhile active visitors keep their sessions. The ledger grants renewal credits, and an
//! extended seat moves from the reserve into the count. At the end of the reserve every active
//! visitor has been counted anew.

use super::Ledger;
use super::child_sync::GRANT_AHEAD;
use super::closing::CLOCKS_APART;
use super::recent::SLIDING_WINDOW;
use crate::id::Incarnation;
use crate::sync::{ClosedBy, SyncRequest};
use crate::time::{DurationMs, Timestamp};

use super::{FORGOTTEN_AFTER, LeaseTerms, Logouts};

/// Time in which all seats and admissions that the limits allow count as used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reserve {
    /// Time at which the loss was noticed, by the clocks that write tickets.
    pub began_at: Timestamp,
    /// Whether such a clock has shown the time since: in a request that names this incarnation of
    /// the ledger, and was made after it began. Before that nothing ends: the time in the record
    /// may be as old as the rest of it, and a message may be late.
    pub is_clock_known: bool,
    /// Longest time for which an earlier lease may still run.
    pub ttl: DurationMs,
    /// Cause, which decides how long it lasts.
    pub cause: ReserveCause,
    /// End of the reserve, unless a longer seat is reported.
    pub ends_at: Timestamp,
}

/// Cause of a reserve, which decides how long it lasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReserveCause {
    /// No child is a witness of an earlier ledger, so this may be a first start: until every
    /// witness has had the time to report.
    MayBeFirstStart,
    /// Certain loss: until every earlier lease and seat has ended.
    Loss,
    /// Loss without active visitors, on the operator's word: until every earlier lease and the
    /// minute of its admissions have ended.
    LossWithoutVisitors,
}

impl From<ReserveCause> for ClosedBy {
    fn from(cause: ReserveCause) -> Self {
        match cause {
            ReserveCause::MayBeFirstStart => Self::MaybeFirstStart,
            ReserveCause::Loss => Self::LostRecord,
            ReserveCause::LossWithoutVisitors => Self::LostRecordWithoutVisitors,
        }
    }
}

impl Ledger {
    /// Makes a ledger at the root whose record was missing, of a deployment that may be an old one.
    /// Children of an earlier ledger have `lease_terms.ttl` to report; a first start costs that
    /// long.
    #[must_use]
    pub fn found_empty(incarnation: Incarnation, lease_terms: LeaseTerms) -> Self {
        let reserve = Reserve {
            began_at: Timestamp::ZERO,
            is_clock_known: false,
            ttl: lease_terms.ttl,
            cause: ReserveCause::MayBeFirstStart,
            ends_at: Timestamp::ZERO,
        };
        Self {
            incarnation,
            reserve: Some(reserve),
            ..Self::new()
        }
    }

    /// Makes a ledger in the journal of one process whose record was lost, as was noticed at `at`.
    ///
    /// That journal's clock is the one that writes tickets, so the reserve is timed at once. The
    /// lost ledger gave seats no longer than `longest_seat`.
    #[must_use]
    pub fn lost_alone(longest_seat: DurationMs, at: Timestamp) -> Self {
        let mut ledger = Self {
            longest_seat,
            ..Self::new()
        };
        ledger.begin_reserve(LeaseTerms::default().ttl, at);
        ledger.time_reserve(at, true);
        ledger
    }

    /// Makes a ledger in the journal of one process that started over at `at` and made all earlier
    /// tickets invalid. No earlier visitor is active; only the admissions of that minute still
    /// count.
    #[must_use]
    pub fn started_over(at: Timestamp) -> Self {
        let reserve = Reserve {
            began_at: at,
            is_clock_known: true,
            ttl: at.until_next_minute(),
            cause: ReserveCause::MayBeFirstStart,
            ends_at: at.minute().next().starts_at(),
        };
        Self {
            reserve: Some(reserve),
            ..Self::new()
        }
    }

    /// Begins a new incarnation at the root, because the store's identity changed: its record may
    /// be old. Settings and logouts are kept; they do no harm.
    pub fn begin_epoch(&mut self, incarnation: Incarnation, lease_terms: LeaseTerms) {
        let mut fresh = Self {
            incarnation,
            settings: self.settings,
            longest_seat: self.longest_seat,
            clock_at: self.clock_at,
            as_of: self.as_of,
            store: self.store,
            ..Self::new()
        };
        fresh.revoked = core::mem::take(&mut self.revoked);
        fresh.revoked.raise_version();
        for (&data_center, group) in &self.groups {
            let kept = fresh.groups.entry(data_center).or_default();
            kept.closed_through = group.closed_through;
            kept.ready_through = group.ready_through;
        }
        *self = fresh;
        self.begin_reserve(lease_terms.ttl, self.clock_at);
        self.assert_sound();
    }

    /// Shortens the time in which nothing is granted on the operator's command: no visitor is
    /// active. After a certain loss, nodes may still have leases and admissions of the minute that
    /// no record knows, so these are waited for.
    pub fn assume_empty(&mut self, lease_terms: LeaseTerms) {
        if self.probation.is_some() {
            self.start_over(lease_terms, None);
        }
        match &mut self.reserve {
            Some(reserve) if reserve.cause == ReserveCause::MayBeFirstStart => self.reserve = None,
            Some(reserve) => {
                reserve.cause = ReserveCause::LossWithoutVisitors;
                reserve.ends_at = reserve.end(DurationMs::ZERO);
            }
            None => {}
        }
        // Without active visitors there is no ticket to reject.
        self.logouts = Logouts::default();
        self.assert_sound();
    }

    /// Handles a child that has seen another epoch than this one.
    pub(super) fn handle_witness(&mut self, request: &SyncRequest, lease_terms: LeaseTerms) {
        self.longest_seat = self.longest_seat.max(request.longest_known);
        let at = self.clock_at.max(request.sent_at);
        let names_this_incarnation = request.parent == Some(self.incarnation);
        self.time_reserve(at, names_this_incarnation && request.is_read_under_parent);
        let Some(epoch) = request.witnessed_epoch else {
            return;
        };
        if let Some(upstream) = &mut self.upstream {
            upstream.handle_witness(epoch);
            return;
        }
        if epoch == self.incarnation.epoch() {
            return;
        }
        if !self.has_reserved && !self.is_loss_certain() {
            self.begin_reserve(lease_terms.ttl, at);
        }
    }

    /// Fixes the start of the reserve by the first clock that was certainly read in it, and extends
    /// the reserve for the longest reported seat.
    fn time_reserve(&mut self, at: Timestamp, is_within: bool) {
        let longest = self.longest_seat;
        let Some(reserve) = &mut self.reserve else {
            return;
        };
        if !reserve.is_clock_known {
            reserve.is_clock_known = is_within;
            reserve.began_at = reserve.began_at.max(at);
            // Only the lost record knew the children that had stopped reporting before the loss.
            self.logouts
                .note_goodbye(reserve.began_at + FORGOTTEN_AFTER);
        }
        reserve.ends_at = reserve.ends_at.max(reserve.end(longest));
    }

    /// Ends the reserve when its time is over by all clocks, and every data center has freed the
    /// intervals that ended in it. Until then a seat that moved out of the reserve is subtracted
    /// twice.
    pub(super) fn end_reserve(&mut self) {
        let is_over = |reserve: Reserve| {
            let is_closed = |group| self.closed_through(group) >= reserve.ends_at;
            let mut groups = self.children.values().map(|child| child.data_center);
            reserve.is_clock_known && reserve.ends_at <= self.agreed_now() && groups.all(is_closed)
        };
        if self.reserve.is_some_and(is_over) {
            self.has_reserved |= self.is_loss_certain();
            // Leases from before may have been used until they ended.
            if self
                .reserve
                .is_some_and(|reserve| !reserve.outlasts_windows())
            {
                self.count_unknown();
            }
            self.reserve = None;
        }
    }

    fn begin_reserve(&mut self, ttl: DurationMs, at: Timestamp) {
        let mut reserve = Reserve {
            began_at: self.clock_at.max(at),
            is_clock_known: false,
            ttl,
            cause: ReserveCause::Loss,
            ends_at: Timestamp::ZERO,
        };
        reserve.ends_at = reserve.end(self.longest_seat);
        self.reserve = Some(reserve);
    }

    fn is_loss_certain(&self) -> bool {
        let cause = self.reserve.map(|reserve| reserve.cause);
        cause.is_some_and(|cause| cause != ReserveCause::MayBeFirstStart)
    }
}

impl Reserve {
    /// Whether all earlier admissions are out of every window when it ends.
    fn outlasts_windows(self) -> bool {
        self.ends_at >= self.began_at + self.ttl + SLIDING_WINDOW
    }

    /// Returns the time by which every earlier lease and seat has ended, and the newest minute of
    /// which admissions were granted, as far as the cause requires it.
    fn end(self, longest_seat: DurationMs) -> Timestamp {
        let newest_minute = (self.began_at + GRANT_AHEAD + CLOCKS_APART).minute();
        let lease_end = self.began_at + self.ttl;
        let minute_end = newest_minute.next().starts_at();
        match self.cause {
            ReserveCause::MayBeFirstStart => lease_end,
            ReserveCause::Loss => (lease_end + longest_seat).max(minute_end),
            ReserveCause::LossWithoutVisitors => lease_end.max(minute_end),
        }
    }
}
