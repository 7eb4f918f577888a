//! The conversation with the parent: when to speak, what to say, what to make of the answer.

use alloc::collections::BTreeMap;

use super::Room;
use crate::id::Epoch;
use crate::ledger::LEASE_TTL;
use crate::seats::SeatRow;
use crate::sync::{LeaseBalance, LeaseDemand, LeaseUsage, Reply, RoomFacts, Snapshot, SyncRequest};
use crate::time::{DurationMs, Timestamp};
use crate::watermark::{WaitingCounts, compact};

/// Time between requests while something happens: what a position or a freed seat is late by.
pub const SYNC_PERIOD: DurationMs = DurationMs(250);
/// Time between requests while visitors are inside and nothing happens.
const SYNC_PERIOD_CALM: DurationMs = DurationMs(1_000);
/// Time between requests of an idle room: often enough that the lease never ends.
const SYNC_PERIOD_IDLE: DurationMs = DurationMs(LEASE_TTL.0 / 3);

/// How long before a minute begins admissions of it are fetched: time for two rounds before it, and
/// one that is lost.
const LENT_AHEAD: DurationMs = DurationMs(1_000);

/// All nodes together hold at most one part in so many of what is left over for chance alone.
const PARTS_LEFT: u32 = 8;

impl Room {
    /// How long after the last request the next one is due. Somebody who was told
    /// [`super::Verdict::AskParent`] is a reason to send it at once.
    #[must_use]
    pub fn sync_period(&self) -> DurationMs {
        let holds = self.lease.held();
        let is_busy = self.demand.has_news()
            || !self.moving.is_empty()
            || self.waiting.eligible_total() > 0
            || !self.telling_waiting.is_empty()
            || holds.seats > 0
            || !self.revoked.unconfirmed().is_empty();
        if is_busy {
            SYNC_PERIOD
        } else if self.snapshot.inside > 0 {
            SYNC_PERIOD_CALM
        } else {
            SYNC_PERIOD_IDLE
        }
    }

    /// Makes the next request. Answers to earlier ones no longer count.
    pub fn poll_sync(&mut self, now: Timestamp) -> SyncRequest {
        let inside = self
            .snapshot
            .inside
            .saturating_add(self.demand.unreported_admissions());
        // What a far root says of it may be older than those who were let in here.
        let own = self.row.total_after(self.snapshot.closed_through);
        let inside = inside.max(u32::try_from(own.max(0)).unwrap_or(u32::MAX));
        let plenty = self.plenty();
        let mut wants = self.demand.begin_request(inside, plenty, now);
        let (asking, expected) = self.moving.begin_request(now);
        wants.later = expected;
        if now.until_next_minute() <= LENT_AHEAD {
            wants.ahead = wants.slots;
        }
        let wants = if self.uses_leases() {
            wants
        } else {
            LeaseDemand::default()
        };
        // Whoever it was fetched for may ask at another node: that one must find it.
        let seats = self.lease.held().seats;
        let own = wants.slots.min(seats.saturating_sub(self.moving.held()));
        self.lease.give_back(LeaseBalance {
            seats: own.saturating_add(asking),
            admissions: wants.slots,
            ahead: wants.ahead,
            credits: wants.credits,
            minute: now.minute(),
        });
        let mut request = self.request(wants, false, now);
        request.wants.kept = asking.min(request.held.seats);
        request.wants.first = asking - request.wants.kept;
        self.moving
            .note_request(request.wants.kept, request.wants.first);
        request
    }

    /// How many slots this node may hold for chance alone: a small part of what is left over when
    /// everybody who waits has got one, so that all nodes together leave most of it.
    fn plenty(&self) -> u32 {
        let nodes = self.snapshot.nodes.max(1);
        self.snapshot.slots_to_spare / nodes.saturating_mul(PARTS_LEFT)
    }

    /// Makes the last request of this life: everything is given back.
    pub fn poll_goodbye(&mut self, now: Timestamp) -> SyncRequest {
        self.has_left = true;
        self.demand.begin_goodbye();
        self.moving.note_request(0, 0);
        self.lease.give_back(LeaseBalance::default());
        self.request(LeaseDemand::default(), true, now)
    }

    fn request(&mut self, wants: LeaseDemand, is_leaving: bool, now: Timestamp) -> SyncRequest {
        let number = self.lease.begin_request(now);
        self.assert_sound();
        self.revoked.drop_through(now);
        self.row.drop_through(self.snapshot.closed_through);
        let longest_seat = self.seat_terms.longest_seat();
        self.longest_known = self.longest_known.max(longest_seat);
        self.lease.lower_longest_seat(longest_seat);
        let waiting = compact(&self.waiting.counts(now));
        self.telling_waiting.clone_from(&waiting);
        SyncRequest {
            child: self.identity.node,
            process: self.identity.process,
            replaces: self.replaces.clone(),
            data_center: self.identity.data_center,
            sent_at: now,
            is_read_under_parent: self.parent.is_some(),
            parent: self.parent,
            witnessed: self.witnessed,
            number,
            answered: self.answered,
            generation: self.lease.generation(),
            is_final: !self.lease.is_live(now),
            held: self.lease.held(),
            wants,
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
            refuses_through: self.revoked.version(),
            terms: RoomFacts {
                limits: self.rules.limits,
                longest_seat: self.rules.longest_seat(),
                pacing: self.rules.pacing,
                needs_traffic: !self.uses_leases(),
            },
            is_leaving,
        }
    }

    /// Applies a reply. Returns whether it was to the newest request.
    pub fn handle_reply(&mut self, reply: Reply, now: Timestamp) -> bool {
        let is_newest = self.hear(reply, now);
        self.assert_sound();
        is_newest
    }

    fn hear(&mut self, reply: Reply, now: Timestamp) -> bool {
        match reply {
            Reply::Stale => false,
            Reply::Void { child, .. } if child != self.identity.node => false,
            Reply::Granted(answer) if answer.child != self.identity.node => false,
            Reply::Void {
                number,
                incarnation,
                ..
            } => {
                let is_newest = self.lease.handle_void(number);
                if is_newest && self.parent.is_some_and(|known| known != incarnation) {
                    self.begin_row();
                }
                is_newest
            }
            Reply::Granted(answer) => {
                if !self.lease.handle_answer(&answer) {
                    return false;
                }
                self.demand.handle_answer();
                self.moving.handle_granted(answer.granted.seats);
                self.replaces.clear();
                self.in_touch_until = self.lease.ends_at();
                self.answered = Some(answer.number);
                self.parent = Some(answer.incarnation);
                if let Some(list) = answer.revoked {
                    self.revoked.handle_news(list);
                }
                let snapshot = answer.snapshot;
                self.told_waiting.clone_from(&self.telling_waiting);
                self.note_admissions(&snapshot, now);
                self.longest_known = self.longest_known.max(snapshot.longest_known);
                self.witnessed = Some(snapshot.epoch).filter(|epoch| *epoch != Epoch::ALONE);
                self.lottery
                    .advance(snapshot.slots_in_round, snapshot.waiting, now);
                self.newcomer_slots = snapshot.slots_to_spare;
                self.snapshot = snapshot;
                self.inherit(&answer.inherited, now);
                self.adopt_seat_terms();
                true
            }
        }
    }
}

impl Room {
    /// Learns how fast the whole line moves, wherever people go in.
    fn note_admissions(&mut self, next: &Snapshot, now: Timestamp) {
        if self.snapshot.as_of == Timestamp::ZERO {
            // Whatever was before the first word is no rate.
            self.throughput.handle_admissions(0, now);
            return;
        }
        let more = next.admitted.iter().map(|&(minute, count)| {
            let known = self.snapshot.admitted_in(minute);
            count.saturating_sub(known)
        });
        self.throughput.handle_admissions(more.sum(), now);
    }

    /// Takes over those who waited at a node that is gone.
    fn inherit(&mut self, counts: &WaitingCounts, now: Timestamp) {
        if counts.is_empty() {
            return;
        }
        let latest = counts
            .iter()
            .map(|(rank, _)| (rank, self.latest_ask(rank, now)));
        let latest: BTreeMap<Timestamp, Timestamp> = latest.collect();
        self.waiting.inherit(counts, |rank| latest[&rank]);
    }

    /// The ledger is another one than before: what was done under the old one is counted above it,
    /// or covered by its reserve. From here on everything is counted anew.
    fn begin_row(&mut self) {
        self.parent = None;
        self.answered = None;
        self.lease.begin_anew();
        self.adopt_seat_terms();
        self.used = LeaseUsage::default();
        self.row = SeatRow::default();
        self.admitted.clear();
        self.revoked.begin_row();
    }
}
