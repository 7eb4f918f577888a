//! How children come, report, fall silent and leave.

use alloc::vec::Vec;
use core::mem::take;

use super::{Child, DepartedChild, LEASE_TTL, LeaseTerms, Ledger};
use crate::estimate::ASK_AFTER_LAST;
use crate::id::{DataCenterId, Incarnation, NodeId};
use crate::seats::SeatRow;
use crate::sync::{LeaseBalance, LeaseDemand, MINUTES_KEPT, SyncRequest};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::waiting::OVERDUE;
use crate::watermark::WaitingCounts;

/// How far a newcomer's clock may be ahead of those of the others, beside the time since they
/// spoke; further ahead, it says nothing about the time.
const CLOCKS_AGREE: DurationMs = DurationMs(5_000);

impl Ledger {
    /// Learns the time from a child. Returns whether its clock is trusted.
    ///
    /// A clock is judged by those of the other children, which have spoken within two leases: a
    /// store's own may be hours off, or be stepped.
    pub(super) fn hear(&mut self, request: &SyncRequest, lending: LeaseTerms) -> bool {
        let known = self.children.get(&request.child);
        let was_trusted = known.is_some_and(|child| child.is_clock_trusted);
        let is_trusted = was_trusted || {
            let others = self
                .children
                .values()
                .filter(|child| child.is_clock_trusted);
            let newest = others.map(|child| child.sent_at).max();
            let latest = newest.map(|at| at + lending.ttl.times(2) + CLOCKS_AGREE);
            latest.is_none_or(|latest| request.sent_at <= latest)
        };
        if is_trusted {
            self.heard_at = self.heard_at.max(request.sent_at);
        }
        // What does not name this life may have been written long before it, and be late.
        if is_trusted && request.parent == Some(self.incarnation) {
            self.began_at.get_or_insert(self.heard_at);
        }
        if let Some(upstream) = self.upstream.as_deref_mut() {
            let epoch = upstream.parent.map(Incarnation::epoch);
            upstream.is_read_under_parent |=
                is_trusted && epoch.is_some() && request.witnessed == epoch;
        }
        is_trusted
    }

    /// Takes over what a child says of itself, in absolute figures; its lists are taken out of the
    /// request.
    pub(super) fn handle_report(&mut self, request: &mut SyncRequest, is_clock_trusted: bool) {
        self.take_back_handed(request);
        // A child that came back after its lease had been given up, and says that its row is
        // complete: what it really did replaces what it might have done.
        self.drop_departed(request.child);
        let old = self.children.get(&request.child);
        if old.is_none_or(|old| old.quiet_at == Timestamp::NEVER) {
            self.take_out_returned(&request.waiting);
        }
        let old = self.children.get(&request.child);
        let generation = match old {
            Some(old) => old.generation,
            None => {
                self.generation += 1;
                self.generation
            }
        };
        let held = if request.is_final {
            LeaseBalance::default()
        } else {
            request.held
        };
        let mut row = take(&mut request.row);
        row.drop_through(self.closed_through(request.data_center));
        let holds_nothing = held.seats == 0 && held.admissions == 0 && held.ahead == 0;
        let before = old.filter(|_| !holds_nothing);
        let terms_version = before.map_or(self.terms_version, |old| old.terms_version);
        self.logouts.note_return(request);
        let child = Child {
            process: request.process,
            data_center: request.data_center,
            generation,
            number: request.number,
            held,
            used: request.used,
            ends_at: Timestamp::ZERO,
            quiet_at: Timestamp::NEVER,
            ends_there_at: request.sent_at,
            longest_seat: request.longest_seat,
            row,
            admitted: take(&mut request.admitted),
            closed_through: request.closed_through,
            sent_at: request.sent_at,
            is_clock_trusted,
            nodes: request.nodes,
            waiting: take(&mut request.waiting),
            handed: WaitingCounts::new(),
            wants: request.wants,
            // Versions of another life are not comparable.
            refuses_through: request
                .parent
                .filter(|incarnation| *incarnation == self.incarnation)
                .map_or(0, |_| request.refuses_through),
            terms: request.terms,
            terms_version,
        };
        if let (Some(upstream), Some(old)) = (&mut self.upstream, old) {
            upstream.handle_use(old, &child, self.terms_version);
        }
        self.insert_child(request.child, child);
        self.agree_on_terms();
        if let Some(child) = self
            .children
            .get_mut(&request.child)
            .filter(|_| holds_nothing)
        {
            child.terms_version = self.terms_version;
        }
        self.handle_revocations(request);
    }

    /// A child that has just reported says that it will do nothing more.
    pub(super) fn handle_goodbye(&mut self, request: &SyncRequest, now: Timestamp) {
        let node = request.child;
        if let Some(before) = self.children.get(&node) {
            let mut child = before.clone();
            child.held = LeaseBalance::default();
            if let Some(upstream) = &mut self.upstream {
                upstream.handle_use(before, &child, self.terms_version);
            }
            let drained_by = child.ends_there_at + self.longest_seat;
            self.insert_child(node, child);
            self.logouts.note_goodbye(drained_by);
        }
        self.give_up(node, now);
        self.logouts.note_return(request);
    }

    /// Waiting visitors who were handed over with an answer that never arrived.
    fn take_back_handed(&mut self, request: &SyncRequest) {
        let old = self.children.get(&request.child);
        let lost = old.filter(|old| request.answered != Some(old.number) && !old.handed.is_empty());
        if let Some(handed) = lost.map(|old| old.handed.clone()) {
            let until = self.left_waiting.until;
            self.add_left_waiting(&handed, until);
        }
    }

    /// Ends a lease: what was lent and not reported counts as used until it cannot be any more.
    pub(super) fn give_up(&mut self, node: NodeId, now: Timestamp) {
        let Some(child) = self.remove_child(node) else {
            return;
        };
        self.leave_waiting(&child, now);
        if !self.is_known_to_all() {
            self.logouts
                .note_silence(child.process, child.ends_there_at);
        }
        let ends_at = child.ends_there_at + child.longest_seat;
        let mut phantoms = child.held.seats;
        let mut row = child.row;
        let credits = child.held.credits;
        if !self.knows_all_seats() {
            // A seat of a life before this one that it has prolonged is counted nowhere.
            phantoms = phantoms.saturating_add(credits);
        } else if self.is_alone(child.data_center) {
            row.prolong_first(credits, ends_at);
        } else {
            // Seats that it has prolonged without a word count twice: where they were, and here.
            let most = self.seats_of(child.data_center, &row);
            phantoms = phantoms.saturating_add(credits.min(most));
        }
        let mut admitted = child.admitted;
        for (minute, count) in child.held.by_minute() {
            add_admissions(&mut admitted, minute, count);
        }
        self.push_departed(DepartedChild {
            node,
            data_center: child.data_center,
            generation: child.generation,
            number: child.number,
            row,
            phantoms,
            ends_at,
            admitted,
        });
    }

    /// Whether no seat runs of which this life of the ledger was never told: those that were given
    /// before it are counted above it, or in a reserve.
    fn knows_all_seats(&self) -> bool {
        let is_over = |began_at| self.agreed_now() >= began_at + LEASE_TTL + self.longest_seat;
        match self.upstream {
            None => self.reserve.is_none(),
            Some(_) => self.began_at.is_some_and(is_over),
        }
    }

    /// Whether the seats of a data center are those of one child alone, which has just been taken
    /// out: then every seat that moved is in its row.
    fn is_alone(&self, data_center: DataCenterId) -> bool {
        let settled = self.groups.get(&data_center);
        let mut departed = self.departed.iter();
        !self.sums.has_members(data_center)
            && settled.is_none_or(|group| group.settled.is_empty())
            && !departed.any(|gone| gone.data_center == data_center)
    }

    /// How many seats a data center may have, `row` included: no child can have prolonged more.
    /// Those of which nobody has told yet are among what others hold, or are phantoms of others.
    fn seats_of(&self, data_center: DataCenterId, row: &SeatRow) -> u32 {
        let members = self.sums.members(data_center).iter();
        let live = members.filter_map(|member| self.children.get(&member.node));
        let here = |gone: &&DepartedChild| gone.data_center == data_center;
        let departed = self.departed.iter().filter(here);
        let held = live.clone().map(|child| i64::from(child.held.seats));
        let untold = held.chain(departed.clone().map(|gone| gone.phantoms.into()));
        let untold: i64 = untold.sum();
        let settled = self.groups.get(&data_center).map(|group| &group.settled);
        let rows = live.map(|child| &child.row);
        let rows = rows.chain(departed.map(|gone| &gone.row));
        let rows = rows.chain(settled).chain([row]);
        let told: i64 = rows.map(|row| row.total_after(Timestamp::ZERO)).sum();
        u32::try_from((told + untold).max(0)).unwrap_or(u32::MAX)
    }

    /// Forgets departed children of whom nothing counts any more: no phantom, no seat, no admission
    /// of a minute that may still run. Until then they may come back with what they really did.
    ///
    /// Phantoms end, like all seats, when every live child treats them as over; a clock alone would
    /// let one end before the move that another node made of it.
    pub(super) fn forget_departed(&mut self) {
        let running = self.agreed_now().minute();
        let is_forgotten = |gone: &DepartedChild| {
            let newest_minute = gone.admitted.iter().map(|(minute, _)| *minute).max();
            let is_past = newest_minute.is_none_or(|minute| minute < running);
            gone.ends_at <= self.closed_through(gone.data_center) && gone.row.is_empty() && is_past
        };
        let over = self.departed.iter().filter(|gone| is_forgotten(gone));
        let over: Vec<NodeId> = over.map(|gone| gone.node).collect();
        for node in over {
            if let Some(at) = self.departed.iter().position(|gone| gone.node == node) {
                // Sums stay as they are: the admissions only change their place.
                let gone = self.departed.remove(at);
                for (minute, count) in gone.admitted {
                    *self.settled_minutes.entry(minute).or_insert(0) += count;
                }
            }
        }
        let oldest = self.oldest_minute();
        for minutes in [&mut self.settled_minutes, &mut self.sums.admitted] {
            while minutes.first_key_value().is_some_and(|(m, _)| *m <= oldest) {
                minutes.pop_first();
            }
        }
    }

    /// Nobody asks for the admissions of this minute any more, nor for those before it.
    pub(super) fn oldest_minute(&self) -> Minute {
        let running = self.agreed_now().minute();
        Minute(running.0.saturating_sub(MINUTES_KEPT as u64))
    }

    /// Children that have not spoken for a while: what they may have done counts as before, but
    /// nobody waits for them. Those who wait there ask elsewhere, or are served from what they
    /// have.
    pub(super) fn hush(&mut self, now: Timestamp) {
        if now < self.sums.next_quiet {
            return;
        }
        let is_quiet = |child: &Child| child.quiet_at <= now;
        let quiet = self.children.iter().filter(|(_, child)| is_quiet(child));
        let quiet: Vec<(NodeId, Child)> =
            quiet.map(|(&node, child)| (node, child.clone())).collect();
        for (node, child) in quiet {
            self.leave_waiting(&child, now);
            let hushed = Child {
                quiet_at: Timestamp::NEVER,
                wants: LeaseDemand::default(),
                waiting: WaitingCounts::new(),
                handed: WaitingCounts::new(),
                ..child
            };
            self.insert_child(node, hushed);
        }
        let next = self.children.values().map(|child| child.quiet_at).min();
        self.sums.next_quiet = next.unwrap_or(Timestamp::NEVER);
    }

    /// Those who wait at a child that is new, or speaks again, are among those who were left
    /// behind: it was silent, or they went there.
    fn take_out_returned(&mut self, waiting: &WaitingCounts) {
        if self.left_waiting.counts.is_empty() {
            return;
        }
        let mut left = self.take_left_waiting();
        left.subtract(waiting);
        self.add_left_waiting(&left, self.left_waiting.until);
    }

    fn leave_waiting(&mut self, child: &Child, now: Timestamp) {
        if child.waiting.is_empty() {
            return;
        }
        // Slots that it held count as used, and then by those who were first in line: counted on,
        // they would hold up everybody behind them although nobody is left to ask for their place.
        // Whoever still waits is counted again with its next ask.
        let mut used = child.held.seats;
        let left = child.waiting.iter().filter_map(|(rank, count)| {
            let gone = count.min(used);
            used -= gone;
            (count > gone).then_some((rank, count - gone))
        });
        let counts: WaitingCounts = left.collect();
        self.add_left_waiting(&counts, now + LATEST_ASK);
    }
}

/// How long a child may be silent while people wait at it. As long as a data center believes what
/// the world said last; after that it goes by what it has itself.
pub(super) const QUIET_AFTER: DurationMs = DurationMs(5_000);

/// How long those who wait at a node that is gone may take until they have asked elsewhere.
pub(super) const LATEST_ASK: DurationMs = DurationMs(2 * ASK_AFTER_LAST.0 + OVERDUE.0);

/// Counts admissions that were lent as used.
pub(super) fn add_admissions(admitted: &mut Vec<(Minute, u32)>, minute: Minute, count: u32) {
    if count == 0 {
        return;
    }
    match admitted.iter_mut().find(|(known, _)| *known == minute) {
        Some((_, sum)) => *sum += count,
        None => admitted.push((minute, count)),
    }
}
