//! Children of a ledger: how they join, report, stop reporting and leave.

use alloc::vec::Vec;
use core::mem::take;

use super::{Child, DepartedChild, LEASE_TTL, LeaseTerms, Ledger};
use crate::id::{DataCenterId, Incarnation, NodeId};
use crate::seats::SeatRow;
use crate::sync::{LeaseBalance, LeaseDemand, MINUTES_KEPT, SyncRequest};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::waiting::{COUNT_GRAIN, ReportedWaiting};

/// Most by which a newcomer's clock may be ahead of the others', besides the time since their
/// requests. A clock further ahead is not trusted.
const CLOCKS_AGREE: DurationMs = DurationMs(5_000);

impl Ledger {
    /// Updates the time from a child's clock. Returns whether the clock is trusted.
    ///
    /// The clocks of the other children decide, which have synced within two leases. A store's own
    /// clock may be hours off, or be stepped.
    pub(super) fn note_clock(&mut self, request: &SyncRequest, lease_terms: LeaseTerms) -> bool {
        let known = self.children.get(&request.child);
        let was_trusted = known.is_some_and(|child| child.is_clock_trusted);
        let is_trusted = was_trusted || {
            let others = self
                .children
                .values()
                .filter(|child| child.is_clock_trusted);
            let newest = others.map(|child| child.sent_at).max();
            let latest = newest.map(|at| at + lease_terms.ttl.times(2) + CLOCKS_AGREE);
            latest.is_none_or(|latest| request.sent_at <= latest)
        };
        if is_trusted {
            let step = request.sent_at.since(self.clock_at);
            self.clock_at = self.clock_at.max(request.sent_at);
            if !was_trusted {
                self.catch_up(step);
            }
        }
        // A request that does not name this incarnation may be old and late.
        if is_trusted && request.parent == Some(self.incarnation) {
            self.began_at.get_or_insert(self.clock_at);
        }
        if let Some(upstream) = self.upstream.as_deref_mut() {
            let epoch = upstream.parent.map(Incarnation::epoch);
            upstream.is_read_under_parent |=
                is_trusted && epoch.is_some() && request.witnessed_epoch == epoch;
        }
        is_trusted
    }

    /// Makes up for a time in which the clock stood still because no child had a trusted one: those
    /// who reported meanwhile were not ahead.
    fn catch_up(&mut self, step: DurationMs) {
        let children = self.children.values_mut().map(|child| &mut child.waiting);
        let departed = self.departed.iter_mut().map(|gone| &mut gone.waiting);
        for waiting in children.chain(departed) {
            waiting.catch_up(step);
        }
    }

    /// Records a child's report, in absolute counts; takes the lists out of the request.
    pub(super) fn handle_report(&mut self, request: &mut SyncRequest, is_clock_trusted: bool) {
        self.replace_departed(request);
        let old = self.children.get(&request.child);
        let generation = match old {
            Some(old) => old.generation,
            None => {
                self.generation += 1;
                self.generation
            }
        };
        let balance = if request.is_final {
            LeaseBalance::default()
        } else {
            request.balance
        };
        let mut row = take(&mut request.row);
        row.drop_through(self.closed_through(request.data_center));
        let has_no_slots =
            balance.seats == 0 && balance.admissions == 0 && balance.next_minute == 0;
        let before = old.filter(|_| !has_no_slots);
        let terms_version = before.map_or(self.terms_version, |old| old.terms_version);
        self.logouts.note_return(request);
        let (has_reported, is_safe) = self.standing_of(request, old);
        // A new lease may end before the one that the child still uses: that of a data center below
        // it ends soon, or the request was under way for long.
        let used_until = old.filter(|_| !request.is_final);
        let used_until = used_until.map_or(Timestamp::ZERO, |old| old.ends_at_child_at);
        let ends_at_child_at = request.sent_at.max(used_until);
        let waiting = self.reported(request, old.is_some());
        let child = Child {
            process: request.process,
            data_center: request.data_center,
            generation,
            number: request.number,
            balance,
            granted: LeaseBalance::default(),
            used: request.used,
            ends_at: Timestamp::ZERO,
            quiet_at: Timestamp::NEVER,
            ends_at_child_at,
            longest_seat: longest_seat_of(request, old),
            row,
            admitted: take(&mut request.admitted),
            closed_through: request.closed_through,
            sent_at: request.sent_at,
            is_clock_trusted,
            nodes: request.nodes,
            waiting,
            demand: request.demand,
            rejects_through: self.rejects_through(request),
            settings: request.settings,
            terms_version,
            has_reported,
            is_safe,
        };
        let version = self.returnable_version();
        if let (Some(upstream), Some(old)) = (&mut self.upstream, old) {
            upstream.handle_use(old, &child, version);
        }
        self.insert_child(request.child, child);
        self.agree_on_terms();
        if let Some(child) = self
            .children
            .get_mut(&request.child)
            .filter(|_| has_no_slots)
        {
            child.terms_version = self.terms_version;
        }
        self.handle_revocations(request);
        self.drop_waiting_before(request);
    }

    /// Drops what counts for a child whose lease had been given up. It reports a complete row,
    /// which replaces its possible seats.
    fn replace_departed(&mut self, request: &SyncRequest) {
        let returned = self.drop_departed(request.child);
        self.count_used(request, returned.as_ref());
        if let Some(returned) = &returned {
            self.keep_counted(returned, request);
        }
    }

    /// Keeps what a child that returns was thought to have used and had not, below the root. The
    /// root has counted these admissions, in a second that is over. If the sum fell, the next ones
    /// would be hidden from it.
    fn keep_counted(&mut self, returned: &DepartedChild, request: &SyncRequest) {
        if self.upstream.is_none() {
            return;
        }
        for &(minute, count) in &returned.admitted {
            let used = request.admitted.iter().find(|(of, _)| *of == minute);
            let unused = count.saturating_sub(used.map_or(0, |(_, count)| *count));
            if unused > 0 {
                *self.settled_minutes.entry(minute).or_insert(0) += unused;
                self.sums.keep_admitted(minute, unused);
            }
        }
    }

    /// Returns the waiting visitors of a report, and takes the list out of it.
    ///
    /// An unknown child with another time may be one that has ended, whose message is late: it
    /// counts nobody. One that is there counts with its next report.
    fn reported(&self, request: &mut SyncRequest, is_known: bool) -> ReportedWaiting {
        let forecast = take(&mut request.waiting);
        let waiting = ReportedWaiting::new(forecast, request.sent_at, self.clock_at);
        if is_known || waiting.agrees() {
            waiting
        } else {
            ReportedWaiting::default()
        }
    }

    /// Forgets the waiting visitors in the reports of an earlier ledger of a data center that has
    /// another one: the same nodes count them. A message of an earlier ledger may be late.
    fn drop_waiting_before(&mut self, request: &SyncRequest) {
        if !request.is_of_ledger {
            return;
        }
        let (name, data_center) = (request.child, request.data_center);
        let here = |child: &Child| child.data_center == data_center;
        let ledgers = self.children.iter().filter(|(_, child)| here(child));
        let newest = ledgers.max_by_key(|(node, child)| (child.sent_at, **node == name));
        let newest = newest.map(|(node, _)| *node);
        let children = self.children.iter_mut();
        let children = children.filter(|(node, child)| Some(**node) != newest && here(child));
        let departed = self.departed.iter_mut();
        let departed =
            departed.filter(|gone| Some(gone.node) != newest && gone.data_center == data_center);
        let before = children.map(|(_, child)| &mut child.waiting);
        for waiting in before.chain(departed.map(|gone| &mut gone.waiting)) {
            self.sums.drop_waiting(waiting);
        }
    }

    /// Returns the version of the list of revocations up to which a child rejects tickets. Versions
    /// of another incarnation, or from before the store came back, are not comparable.
    fn rejects_through(&self, request: &SyncRequest) -> u64 {
        let names_this = request.parent == Some(self.incarnation);
        let store = request.stamp.store;
        let is_present = store.is_none_or(|identity| identity == self.store.identity);
        if names_this && is_present {
            request.rejects_through
        } else {
            0
        }
    }

    /// Returns whether a child counts as having reported to the present store, and whether its name
    /// is safe there, after this request. `old` is its record before.
    fn standing_of(&self, request: &SyncRequest, old: Option<&Child>) -> (bool, bool) {
        let names_store = request.stamp.store == Some(self.store.identity);
        let vouches =
            |old: &Child| names_store && request.stamp.safe_generation == Some(old.generation);
        // A child that the record does not know was granted nothing that the record may lack.
        let has_reported = self.probation.is_none() || old.is_none_or(|old| old.has_reported);
        let is_safe = self.store.safe_after() == DurationMs::ZERO
            || old.is_some_and(|old| old.is_safe || vouches(old));
        (has_reported || names_store, is_safe)
    }

    /// Returns the version of the settings whose grants return to the pool; `None` while nothing
    /// does, because the pool was dropped.
    fn returnable_version(&self) -> Option<u32> {
        Some(self.terms_version).filter(|_| self.probation.is_none())
    }

    /// Handles the goodbye of a child that has just reported.
    pub(super) fn handle_goodbye(&mut self, request: &SyncRequest) {
        let node = request.child;
        if let Some(before) = self.children.get(&node) {
            let mut child = before.clone();
            child.balance = LeaseBalance::default();
            let version = self.returnable_version();
            if let Some(upstream) = &mut self.upstream {
                upstream.handle_use(before, &child, version);
            }
            let drained_by = child.ends_at_child_at + self.longest_seat;
            self.insert_child(node, child);
            self.logouts.note_goodbye(drained_by);
        }
        self.give_up(node);
        self.logouts.note_return(request);
    }

    /// Ends a lease: grants without a report count as used until they cannot be any more.
    pub(super) fn give_up(&mut self, node: NodeId) {
        let Some(child) = self.remove_child(node) else {
            return;
        };
        self.hold_admissions(&child);
        if !self.is_single_process() {
            self.logouts
                .note_missing(child.process, child.ends_at_child_at);
        }
        let ends_at = child.ends_at_child_at + child.longest_seat;
        let mut phantoms = child.balance.seats;
        let mut row = child.row;
        let credits = child.balance.credits;
        if !self.knows_all_seats() {
            // It may have extended a seat of an earlier incarnation, which is counted nowhere.
            phantoms = phantoms.saturating_add(credits);
        } else if self.is_alone(child.data_center) {
            row.extend_first(credits, ends_at);
        } else {
            // Seats that it may have extended without a report count twice: in their row, and here.
            let most = self.seats_of(child.data_center, &row);
            phantoms = phantoms.saturating_add(credits.min(most));
        }
        let mut admitted = child.admitted;
        for (minute, count) in child.balance.by_minute() {
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
            waiting: child.waiting,
        });
    }

    /// Whether this incarnation of the ledger knows of all running seats. Seats of an earlier one
    /// are counted at the root, or in a reserve.
    fn knows_all_seats(&self) -> bool {
        let is_over = |began_at| self.agreed_now() >= began_at + LEASE_TTL + self.longest_seat;
        match self.upstream {
            None => self.reserve.is_none(),
            Some(_) => self.began_at.is_some_and(is_over),
        }
    }

    /// Whether one child alone has the seats of a data center; it was just removed. Then its row
    /// has every seat that moved.
    fn is_alone(&self, data_center: DataCenterId) -> bool {
        let settled = self.groups.get(&data_center);
        let mut departed = self.departed.iter();
        !self.sums.has_members(data_center)
            && settled.is_none_or(|group| group.settled.is_empty())
            && !departed.any(|gone| gone.data_center == data_center)
    }

    /// Returns how many seats a data center may have, `row` included: no child can have extended
    /// more. Unreported seats are among the balances of other children, or are their phantoms.
    fn seats_of(&self, data_center: DataCenterId, row: &SeatRow) -> u32 {
        let members = self.sums.members(data_center).iter();
        let live = members.filter_map(|member| self.children.get(&member.node));
        let here = |gone: &&DepartedChild| gone.data_center == data_center;
        let departed = self.departed.iter().filter(here);
        let held = live.clone().map(|child| i64::from(child.balance.seats));
        let unreported = held.chain(departed.clone().map(|gone| gone.phantoms.into()));
        let unreported: i64 = unreported.sum();
        let settled = self.groups.get(&data_center).map(|group| &group.settled);
        let rows = live.map(|child| &child.row);
        let rows = rows.chain(departed.map(|gone| &gone.row));
        let rows = rows.chain(settled).chain([row]);
        let reported: i64 = rows.map(|row| row.total_after(Timestamp::ZERO)).sum();
        u32::try_from((reported + unreported).max(0)).unwrap_or(u32::MAX)
    }

    /// Forgets departed children of which nothing counts any more: no phantom, no seat, no
    /// admission of a minute that may still run, no waiting visitor. Until then they may return
    /// with a final report.
    ///
    /// Phantoms end, like all seats, when every live child treats them as over. By the clock alone,
    /// one could end before the move that another node made of it.
    pub(super) fn forget_departed(&mut self) {
        let running = self.agreed_now().minute();
        let is_forgotten = |gone: &DepartedChild| {
            let newest_minute = gone.admitted.iter().map(|(minute, _)| *minute).max();
            let is_past = newest_minute.is_none_or(|minute| minute < running);
            gone.ends_at <= self.closed_through(gone.data_center)
                && gone.row.is_empty()
                && gone.waiting.forecast.is_empty()
                && is_past
        };
        let over = self.departed.iter().filter(|gone| is_forgotten(gone));
        let over: Vec<NodeId> = over.map(|gone| gone.node).collect();
        for node in over {
            if let Some(at) = self.departed.iter().position(|gone| gone.node == node) {
                // Sums stay as they are: the admissions only move to another map.
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

    /// Returns the newest minute that no request needs the admissions of; nor of those before it.
    pub(super) fn oldest_minute(&self) -> Minute {
        let running = self.agreed_now().minute();
        Minute(running.0.saturating_sub(MINUTES_KEPT as u64))
    }

    /// Forgets the demand of children that have not synced for a while. Their possible seats count
    /// as before.
    pub(super) fn mark_quiet(&mut self, now: Timestamp) {
        if now < self.sums.next_quiet {
            return;
        }
        let is_quiet = |child: &Child| child.quiet_at <= now;
        let quiet = self.children.iter().filter(|(_, child)| is_quiet(child));
        let quiet: Vec<(NodeId, Child)> =
            quiet.map(|(&node, child)| (node, child.clone())).collect();
        for (node, child) in quiet {
            let quieted = Child {
                quiet_at: Timestamp::NEVER,
                demand: LeaseDemand::default(),
                ..child
            };
            self.insert_child(node, quieted);
        }
        let next = self.children.values().map(|child| child.quiet_at).min();
        self.sums.next_quiet = next.unwrap_or(Timestamp::NEVER);
    }

    /// Counts the visitors of all children at the same time. Those of silent and of departed
    /// children run out as they would have done there.
    pub(super) fn follow_waiting(&mut self) {
        let edge = self.clock_at.floor_to(COUNT_GRAIN);
        if edge == self.sums.waiting_at {
            return;
        }
        self.sums.waiting_at = edge;
        let children = self.children.values_mut().map(|child| &mut child.waiting);
        let departed = self.departed.iter_mut().map(|gone| &mut gone.waiting);
        for waiting in children.chain(departed) {
            self.sums.follow(waiting, self.clock_at);
        }
    }
}

/// Time without a sync after which a child's demand is forgotten. A data center relies on the
/// root's last reply for as long; after that it goes by its own ledger.
pub(super) const QUIET_AFTER: DurationMs = DurationMs(5_000);

/// Adds granted admissions to the used ones.
pub(super) fn add_admissions(admitted: &mut Vec<(Minute, u32)>, minute: Minute, count: u32) {
    if count == 0 {
        return;
    }
    match admitted.iter_mut().find(|(known, _)| *known == minute) {
        Some((_, sum)) => *sum += count,
        None => admitted.push((minute, count)),
    }
}

/// Returns the longest seat that a child may give after a report. A data center's store may lose
/// its newest writes, and with them that it gives shorter ones. Its lease of before then holds
/// until it ends. So the longest seat gets shorter by the time that passes, and no faster.
fn longest_seat_of(request: &SyncRequest, old: Option<&Child>) -> DurationMs {
    let before = old.filter(|_| request.is_of_ledger && !request.is_final);
    let still = before.map_or(DurationMs::ZERO, |old| {
        old.longest_seat.less(request.sent_at.since(old.sent_at))
    });
    request.longest_seat.max(still)
}
