//! Syncs with the parent: when to send a request, its content, and how to apply the reply.

use super::Room;
use crate::id::{Epoch, Incarnation};
use crate::ledger::LEASE_TTL;
use crate::seats::SeatRow;
use crate::store::Identity;
use crate::sync::{
    LeaseBalance, LeaseDemand, LeaseUsage, RecordStamp, Reply, RoomFacts, Snapshot, SyncRequest,
};
use crate::time::{DurationMs, Timestamp};

/// Time between requests during activity: the delay of a position or a freed seat.
pub const SYNC_PERIOD: DurationMs = DurationMs(250);
/// Time between requests while visitors are active and nothing happens.
const SYNC_PERIOD_CALM: DurationMs = DurationMs(1_000);
/// Time between requests of an idle room: often enough that the lease never ends.
const SYNC_PERIOD_IDLE: DurationMs = DurationMs(LEASE_TTL.0 / 3);

/// Time before a minute begins at which its admissions are requested: enough for two syncs, and one
/// that is lost.
const GRANT_AHEAD: DurationMs = DurationMs(1_000);

/// Divisor of the spare slots that all nodes together may lease for chance.
const SPARE_DIVISOR: u32 = 8;

impl Room {
    /// Returns the time between the last request and the next one. A
    /// [`super::Verdict::SyncWithParent`] is a reason to send it at once.
    #[must_use]
    pub fn sync_period(&self) -> DurationMs {
        let balance = self.lease.balance();
        let is_busy = self.demand.needs_report()
            || !self.moving.is_empty()
            || !self.waiting.is_empty()
            || self.reports_waiting
            // The next visitor may come here, and be counted here.
            || self.snapshot.waiting > 0
            || balance.seats > 0
            || !self.revoked.unconfirmed().is_empty();
        if is_busy {
            SYNC_PERIOD
        } else if self.snapshot.active > 0 {
            SYNC_PERIOD_CALM
        } else {
            SYNC_PERIOD_IDLE
        }
    }

    /// Makes the next request. Replies to earlier ones no longer count.
    pub fn poll_sync(&mut self, now: Timestamp) -> SyncRequest {
        let inside = self
            .snapshot
            .active
            .saturating_add(self.demand.unreported_admissions());
        // The snapshot of a distant root may be older than admissions here.
        let own = self.row.total_after(self.snapshot.closed_through);
        let inside = inside.max(u32::try_from(own.max(0)).unwrap_or(u32::MAX));
        let spare_slots = self.spare_slots();
        let mut wants = self.demand.begin_request(inside, spare_slots, now);
        let movers = self.moving.begin_request(now);
        wants.movers_expected = movers.later;
        if now.until_next_minute() <= GRANT_AHEAD {
            wants.next_minute = wants.slots;
        }
        let wants = if self.uses_leases() {
            wants
        } else {
            LeaseDemand::default()
        };
        // The visitor of such a seat may come to another node, which must find it.
        let seats = self.lease.balance().seats;
        let own = wants.slots.min(seats.saturating_sub(self.moving.kept()));
        self.lease.give_back(LeaseBalance {
            seats: own.saturating_add(movers.waiting),
            admissions: wants.slots,
            next_minute: wants.next_minute,
            credits: wants.credits,
            minute: now.minute(),
        });
        let mut request = self.request(wants, false, now);
        request.demand.movers_reserved = movers.waiting.min(request.balance.seats);
        request.demand.movers_now = movers.waiting - request.demand.movers_reserved + movers.next;
        self.moving
            .note_request(request.demand.movers_reserved, request.demand.movers_now);
        request
    }

    /// Returns the slots that this node may lease for chance: a small part of what is left over
    /// when all waiting visitors have one, so that all nodes together leave most of it.
    fn spare_slots(&self) -> u32 {
        let nodes = self.snapshot.nodes.max(1);
        self.snapshot.slots_to_spare / nodes.saturating_mul(SPARE_DIVISOR)
    }

    /// Makes the last request of this node: it returns everything.
    pub fn poll_goodbye(&mut self, now: Timestamp) -> SyncRequest {
        self.has_left = true;
        self.demand.begin_goodbye();
        self.moving.note_request(0, 0);
        self.lease.give_back(LeaseBalance::default());
        self.request(LeaseDemand::default(), true, now)
    }

    fn request(&mut self, demand: LeaseDemand, is_leaving: bool, now: Timestamp) -> SyncRequest {
        let number = self.lease.begin_request(now);
        self.assert_sound();
        self.revoked.drop_through(now);
        self.row.drop_through(self.snapshot.closed_through);
        let longest_seat = self.seat_terms.longest_seat();
        self.longest_known = self.longest_known.max(longest_seat);
        self.lease.lower_longest_seat(longest_seat);
        let waiting = self.waiting.forecast(now);
        self.reports_waiting = !waiting.is_empty();
        SyncRequest {
            child: self.identity.node,
            process: self.identity.process,
            replaces: self.replaces.clone(),
            data_center: self.identity.data_center,
            sent_at: now,
            stamp: RecordStamp::default(),
            is_of_ledger: false,
            is_join: false,
            known_closed: self.snapshot.closed_through,
            is_read_under_parent: self.parent.is_some(),
            parent: self.parent,
            voided_by: self.voided_by,
            witnessed_epoch: self.witnessed,
            number,
            applied_reply: self.applied_reply,
            generation: self.lease.generation(),
            is_final: !self.lease.is_live(now),
            balance: self.lease.balance(),
            demand,
            used: self.used,
            admitted: self.admitted.clone(),
            row: self.row.clone(),
            closed_through: now,
            longest_seat,
            longest_known: self.longest_known,
            nodes: 1,
            waiting,
            revocations: self.revoked.unconfirmed().to_vec(),
            revoked_version: self.revoked.version(),
            rejects_through: self.revoked.version(),
            settings: RoomFacts {
                limits: self.rules.limits,
                window: self.rules.new_users_window,
                longest_seat: self.rules.longest_seat(),
                pacing: self.rules.pacing,
                needs_traffic: !self.uses_leases(),
            },
            is_leaving,
        }
    }

    /// Applies a reply. Returns whether it was to the newest request.
    pub fn handle_reply(&mut self, reply: Reply, now: Timestamp) -> bool {
        let is_newest = self.apply_reply(reply, now);
        self.assert_sound();
        is_newest
    }

    fn apply_reply(&mut self, reply: Reply, now: Timestamp) -> bool {
        match reply {
            Reply::Stale => false,
            Reply::Void { child, .. } if child != self.identity.node => false,
            Reply::Granted(lease_reply) if lease_reply.child != self.identity.node => false,
            Reply::Void {
                number,
                incarnation,
                ..
            } => {
                let is_newest = self.lease.handle_void(number);
                if is_newest && self.parent.is_some_and(|known| known != incarnation) {
                    self.begin_row();
                    self.voided_by = Some(incarnation);
                }
                is_newest
            }
            Reply::Granted(lease_reply) => {
                if !self.lease.handle_lease_reply(&lease_reply) {
                    return false;
                }
                self.demand.handle_answer();
                self.moving.handle_granted(lease_reply.granted.seats);
                self.replaces.clear();
                self.in_touch_until = self.lease.ends_at();
                self.applied_reply = Some(lease_reply.number);
                self.note_parent(lease_reply.incarnation, lease_reply.store.identity);
                if let Some(list) = lease_reply.revoked {
                    self.revoked.add_listed(list);
                }
                let snapshot = lease_reply.snapshot;
                self.note_admissions(&snapshot);
                self.longest_known = self.longest_known.max(snapshot.longest_known);
                self.witnessed = Some(snapshot.epoch).filter(|epoch| *epoch != Epoch::ALONE);
                self.lottery
                    .advance(snapshot.slots_in_round, snapshot.waiting, now);
                self.newcomer_slots = snapshot.slots_to_spare;
                self.snapshot = snapshot;
                self.adopt_seat_terms();
                true
            }
        }
    }
}

impl Room {
    /// Notes the admissions of the whole queue, at all nodes.
    fn note_admissions(&mut self, next: &Snapshot) {
        // Admissions before the first reply say nothing about those who wait.
        let is_first = self.snapshot.as_of == Timestamp::ZERO;
        let more = next.admitted.iter().map(|&(minute, count)| {
            let known = self.snapshot.admitted_in(minute);
            count.saturating_sub(known)
        });
        let admitted = if is_first { 0 } else { more.sum() };
        self.habits.giving_up.handle_snapshot(next, admitted);
        self.habits.leaving.handle_snapshot(next, &self.rules);
    }

    /// Notes the ledger that replied. If its store came back as another server, it may have
    /// forgotten revocations that it had confirmed: all are reported again.
    fn note_parent(&mut self, incarnation: Incarnation, store: Identity) {
        let known = self.parent_store.replace(store);
        if self.parent == Some(incarnation) && known.is_some_and(|known| known != store) {
            self.revoked.begin_row();
        }
        self.parent = Some(incarnation);
        self.voided_by = None;
    }

    /// Starts over with another ledger. The old one's parent, or its reserve, covers what was done
    /// under it. From here on everything is counted anew.
    fn begin_row(&mut self) {
        self.parent = None;
        self.applied_reply = None;
        self.lease.begin_anew();
        self.adopt_seat_terms();
        self.used = LeaseUsage::default();
        self.row = SeatRow::default();
        self.admitted.clear();
        self.revoked.begin_row();
    }
}
