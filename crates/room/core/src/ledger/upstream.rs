//! The ledger of a data center as a child of the root's: what it was lent, it lends on.
//!
//! Whoever syncs a data center with the world loads the record, draws a request
//! ([`Ledger::poll_upstream`]), writes the record, brings the request to the root's ledger and
//! the reply back ([`Ledger::handle_upstream`]). Two that do it at once do no harm: only the
//! answer to the newest request is applied.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::children::{LATEST_ASK, QUIET_AFTER};
use super::closing::CLOCKS_APART;
use super::due::{UPSTREAM_PERIOD, UPSTREAM_TIME_OUT_MAX};
use super::lend::saturating_u32;
use super::{Child, Ledger, Logouts, RevokedList};
use crate::id::{DataCenterId, Epoch, Incarnation};
use crate::lease::Lease;
use crate::sync::{Answer, LeaseBalance, LeaseDemand, LeaseUsage, Reply, Revocation, Snapshot};
use crate::time::{DurationMs, Timestamp};

/// What is late is looked for this often.
const LOOK_AGAIN: DurationMs = DurationMs(20);

/// A ledger's place under the root's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Upstream {
    /// Its data center.
    pub data_center: DataCenterId,
    /// What the world lent and no child holds, and until when (by the clocks that write tickets).
    pub lease: Lease,
    /// The life of the root's ledger that lent it.
    pub parent: Option<Incarnation>,
    /// Whether a child's clock was read since that is known: one that has heard of the epoch.
    pub is_read_under_parent: bool,
    /// The newest request whose answer was applied; `None` before the first.
    pub answered: Option<u64>,
    /// What was used of all that was ever lent in this life.
    pub used: LeaseUsage,
    /// The world as it was seen last.
    pub snapshot: Snapshot,
    /// When that was heard, by the ledger's own clock.
    pub snapshot_at: Timestamp,
    /// When the world was asked last, by the same clock.
    pub asked_at: Timestamp,
    /// How long it takes until what the world says is here, as seen lately; zero before.
    pub trip: DurationMs,
    /// By the newest request somebody waits here, or something is wanted: that is to be taken back
    /// as soon as it is over.
    pub has_wished: bool,
    /// How many nodes the newest request spoke for: others divide by them.
    pub told_nodes: u32,
    /// Through which end the nodes treated tickets as over by the newest request.
    pub told_closed: Timestamp,
    /// Seats of sessions that were ended early have been freed since.
    pub has_freed: bool,
    /// An epoch that somebody here has seen and the world may not know of.
    pub witnessed: Option<Epoch>,
    /// Logouts that the world has not confirmed.
    pub unconfirmed: Vec<Revocation>,
    /// The root's list of logouts that was merged last.
    pub revoked_version: u64,
    /// A version of the root's list, and the version of the own one that has all of it.
    pub telling: (u64, u64),
    /// The newest version of the root's list of which all children know.
    pub told: u64,
    /// What was handed on lately.
    pub demand: UpstreamDemand,
}

/// What was handed on in this upstream period and in the one before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UpstreamDemand {
    /// The period.
    pub index: u64,
    /// In it.
    pub now: LeaseDemand,
    /// Before it.
    pub before: LeaseDemand,
    /// Slots a period at the height of recent traffic, in sixteenths; fades by an eighth a period.
    pub height: u32,
}

impl UpstreamDemand {
    /// By the ledger's own clock: where nobody speaks, time passes all the same. A clock that is
    /// stepped begins a new period.
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
            answered: None,
            used: LeaseUsage::default(),
            snapshot: Snapshot::default(),
            snapshot_at: Timestamp::ZERO,
            asked_at: Timestamp::ZERO,
            trip: DurationMs::ZERO,
            has_wished: false,
            told_nodes: 0,
            told_closed: Timestamp::ZERO,
            has_freed: false,
            witnessed: None,
            unconfirmed: Vec::new(),
            revoked_version: 0,
            telling: (0, 0),
            told: 0,
            demand: UpstreamDemand::default(),
        }
    }

    /// How much longer a child may use what it is lent now.
    pub(super) fn left(&self, at: Timestamp) -> DurationMs {
        self.lease.ends_at().since(at + CLOCKS_APART)
    }

    pub(super) fn hand_on(&mut self, granted: LeaseBalance, now: Timestamp) {
        self.lease.hand_on(granted);
        self.demand.advance(now);
        self.demand.now.slots += granted.seats;
        self.demand.now.credits += granted.credits;
    }

    /// Takes back what a child held and neither used nor holds any more. What was lent under other
    /// terms than those of `version` goes back to the world.
    pub(super) fn handle_use(&mut self, old: &Child, new: &Child, version: u32) {
        let seats_used = new.used.seats.saturating_sub(old.used.seats);
        let credits_used = new.used.credits.saturating_sub(old.used.credits);
        self.used.seats += seats_used;
        self.used.credits += credits_used;
        if old.terms_version != version {
            return;
        }
        let left = |old: u32, new: u32, used: u64| {
            u64::from(old)
                .saturating_sub(u64::from(new))
                .saturating_sub(used)
        };
        let [admissions, ahead] = old.held.by_minute().map(|(minute, held)| {
            let in_minute = |child: &Child| {
                let known = child.admitted.iter().find(|(m, _)| *m == minute);
                known.map_or(0, |&(_, count)| count)
            };
            let admitted = in_minute(new).saturating_sub(in_minute(old));
            saturating_u32(left(held, new.held.admissions_of(minute), admitted.into()))
        });
        self.lease.take_back(LeaseBalance {
            seats: saturating_u32(left(old.held.seats, new.held.seats, seats_used)),
            credits: saturating_u32(left(old.held.credits, new.held.credits, credits_used)),
            admissions,
            ahead,
            minute: old.held.minute,
        });
    }

    /// What was lent under the old limits goes back first.
    pub(super) fn handle_new_terms(&mut self) {
        let credits = self.lease.held().credits;
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
            self.witnessed = Some(epoch);
        }
    }

    /// Notes how far the children know the root's list of logouts, and what they are to know next.
    pub(super) fn tell(&mut self, own: &RevokedList, logouts: &Logouts) {
        let (root, here) = self.telling;
        if here <= logouts.refused_through {
            self.told = root;
            self.telling = (self.revoked_version, own.version());
        }
    }

    /// Learns how long trips take. What came late was perhaps only brought late, because nobody
    /// waited for it: the estimate falls at once and rises slowly.
    fn note_trip(&mut self, now: Timestamp) {
        let took = now.since(self.asked_at).min(UPSTREAM_TIME_OUT_MAX);
        self.trip = if self.trip == DurationMs::ZERO {
            took
        } else {
            took.min(DurationMs(self.trip.0 + self.trip.0 / 4 + 1))
        };
    }

    /// How long until what the world says to the request on its way will be here; `None` if there
    /// is none. If it is late, it may come at any time.
    #[must_use]
    pub fn back_after(&self, now: Timestamp) -> Option<DurationMs> {
        let is_asking = self.lease.is_waiting_for_answer();
        let left = (self.asked_at + self.trip).since(now);
        is_asking.then_some(left.max(LOOK_AGAIN))
    }

    /// Whether what the world said is recent, by the ledger's own clock.
    pub(super) fn is_snapshot_fresh(&self, now: Timestamp) -> bool {
        // By a clock that was stepped back since, nothing is known of its age.
        self.answered.is_some()
            && now >= self.snapshot_at
            && now.since(self.snapshot_at) < QUIET_AFTER
    }
}

impl Ledger {
    /// An empty ledger of a data center, below the root's: it lends what it is lent itself. A
    /// record that was lost is replaced by one with a new `incarnation`; what the old one had done
    /// is known to the world.
    #[must_use]
    pub fn below_root(incarnation: Incarnation, data_center: DataCenterId) -> Self {
        Self {
            incarnation,
            upstream: Some(Box::new(Upstream::new(data_center))),
            ..Self::new()
        }
    }

    /// Applies a reply of the world. Returns whether it was to the newest request.
    pub fn handle_upstream(&mut self, reply: Reply, now: Timestamp) -> bool {
        let is_newest = self.hear_root(reply, now);
        self.assert_sound();
        is_newest
    }

    fn hear_root(&mut self, reply: Reply, now: Timestamp) -> bool {
        let Some(upstream) = self.upstream.as_deref_mut() else {
            return false;
        };
        match reply {
            Reply::Stale => false,
            Reply::Void { child, .. } if child.0 != self.incarnation.0 => false,
            Reply::Granted(answer) if answer.child.0 != self.incarnation.0 => false,
            Reply::Void {
                number,
                incarnation,
                ..
            } => {
                let is_other = upstream.parent.is_some_and(|known| known != incarnation);
                let is_newest = upstream.lease.handle_void(number);
                if is_newest && is_other {
                    self.begin_incarnation_under(incarnation);
                }
                is_newest
            }
            Reply::Granted(answer) => {
                if !upstream.lease.handle_answer(&answer) {
                    return false;
                }
                self.handle_upstream_answer(answer, now);
                true
            }
        }
    }

    fn handle_upstream_answer(&mut self, answer: Answer, now: Timestamp) {
        let Some(upstream) = self.upstream.as_deref_mut() else {
            return;
        };
        upstream.is_read_under_parent &= upstream.parent == Some(answer.incarnation);
        upstream.parent = Some(answer.incarnation);
        upstream.answered = Some(answer.number);
        upstream.witnessed = None;
        upstream.snapshot = answer.snapshot;
        upstream.snapshot_at = now;
        upstream.note_trip(now);
        let data_center = upstream.data_center;
        let closed = upstream.snapshot.closed_through;
        self.longest_seat = self.longest_seat.max(upstream.snapshot.longest_known);
        if let Some((version, entries)) = answer.revoked {
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
        upstream.tell(&self.revoked, &self.logouts);
        if !answer.inherited.is_empty() {
            self.add_left_waiting(&answer.inherited, now + LATEST_ASK);
        }
        self.close_as_told(data_center, closed);
    }

    /// The world has lost its memory: what was done under what it lent is covered by its reserve,
    /// and is counted anew from here on. So does every child of this ledger, which sees a new life.
    fn begin_incarnation_under(&mut self, root: Incarnation) {
        let Some(old) = self.upstream.take() else {
            return;
        };
        // Two holders who hear of it at once must come to the same life.
        let incarnation = Incarnation(
            self.incarnation.0.rotate_left(23) ^ root.0.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        let mut anew = Self::below_root(incarnation, old.data_center);
        anew.terms = self.terms;
        anew.longest_seat = self.longest_seat;
        anew.heard_at = self.heard_at;
        anew.as_of = self.as_of;
        anew.revoked = core::mem::take(&mut self.revoked);
        if let Some(upstream) = anew.upstream.as_deref_mut() {
            upstream.witnessed = Some(old.snapshot.epoch);
            let entries = anew.revoked.to_vec().into_iter();
            upstream.unconfirmed = entries.map(Revocation::without_seat).collect();
        }
        *self = anew;
    }
}
