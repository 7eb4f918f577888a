//! Counts of all clients that a node knows, and those of them that it has still to send.
//!
//! The table joins this node's own requests, reports of others and totals. Order and duplicates do
//! not matter, so nothing needs to be kept in step. Each known count is at least every value
//! received.
//!
//! A node's own count is authoritative. A total that contains it only shows how much of it the
//! others know by now.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use anteroom_limit::rate::WINDOW_LONGEST;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::stats::{NodeCount, NodeId, STATS_MAX, SlotId, SlotReport, total};

/// Most slots that are known, of all clients together. A slot takes some 200 bytes and 16 for each
/// node that counted there. Most algorithms need 2 per client.
pub(crate) const SLOTS_MAX: usize = 500_000;
/// Time after which an unconfirmed report is sent again. Longer than the round trip of a total
/// (some tenths of a second), and short enough to repair a lost message within a small part of a
/// minute.
pub(crate) const RESEND_AFTER: Duration = Duration::from_secs(3);
/// Longest validity of a slot: three of the longest windows. No node writes a longer one.
const VALIDITY_LONGEST: DurationUs = WINDOW_LONGEST.times(3);
/// Slots that are processed at once, at about a microsecond each, so that requests do not wait long
/// for the lock.
const PORTION: usize = 500;

/// Most reports without room in the table that wait to be forwarded: more than arrive in a tenth of
/// a second.
const FORWARDED_MAX: usize = 10_000;

/// Table of all counts that a node knows.
#[derive(Debug)]
pub(crate) struct CounterTable {
    own: NodeId,
    slots_max: usize,
    slots: HashMap<SlotId, Slot>,
    ends: BTreeSet<(TimestampUs, SlotId)>,
    to_send: VecDeque<SlotId>,
    to_publish: VecDeque<SlotId>,
    to_forward: VecDeque<SlotReport>,
    awaited: VecDeque<Awaited>,
    resent: u64,
    without_room: u64,
    /// Time until which counts of overflow entries matter.
    overflow_until: TimestampUs,
    has_overflow: bool,
}

/// Counts of one client in one sub-window.
#[derive(Debug, Default)]
struct Slot {
    until: TimestampUs,
    own: NodeCount,
    /// Part of `own` that was in totals.
    confirmed: NodeCount,
    /// Counts of other nodes, sorted by node.
    others: Vec<(NodeId, NodeCount)>,
    is_to_send: bool,
    is_to_publish: bool,
    is_awaited: bool,
    /// Set if the slot was created while overflow entries mattered: requests of this client may be
    /// counted there.
    may_be_in_overflow: bool,
}

/// Report that was sent and must come back.
#[derive(Debug)]
struct Awaited {
    id: SlotId,
    sent_at: Duration,
    count: NodeCount,
}

/// Source of a received report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReportSource {
    /// A node, for the aggregator.
    Call,
    /// The aggregator.
    Total,
}

impl Slot {
    fn total(&self) -> u32 {
        let others = self.others.iter().map(|(_, count)| *count);
        total(others.chain([self.own]))
    }

    /// Returns whether the slot is empty and not queued anywhere.
    fn is_blank(&self) -> bool {
        let own = [self.own, self.confirmed];
        let is_waiting = self.is_to_send || self.is_to_publish || self.is_awaited;
        own == [NodeCount::default(); 2] && self.others.is_empty() && !is_waiting
    }

    /// Joins a node's count; returns `false` if there is no room for another node.
    fn join(&mut self, node: NodeId, count: NodeCount) -> bool {
        match self.others.binary_search_by_key(&node, |(other, _)| *other) {
            Ok(at) => self.others[at].1 = self.others[at].1.join(count),
            // One entry is reserved for this node.
            Err(_) if self.others.len() + 1 >= STATS_MAX => return false,
            Err(at) => self.others.insert(at, (node, count)),
        }
        true
    }

    fn stats(&self, own: NodeId) -> Vec<(NodeId, NodeCount)> {
        let others = self.others.iter().copied();
        let own = (self.own != NodeCount::default()).then_some((own, self.own));
        others.chain(own).collect()
    }
}

impl CounterTable {
    pub(crate) fn new(own: NodeId, slots_max: usize) -> Self {
        Self {
            own,
            slots_max,
            slots: HashMap::new(),
            ends: BTreeSet::new(),
            to_send: VecDeque::new(),
            to_publish: VecDeque::new(),
            to_forward: VecDeque::new(),
            awaited: VecDeque::new(),
            resent: 0,
            without_room: 0,
            overflow_until: TimestampUs(0),
            has_overflow: false,
        }
    }

    /// Returns the known total of a slot.
    pub(crate) fn total(&self, id: SlotId) -> u32 {
        self.slots.get(&id).map_or(0, Slot::total)
    }

    /// Returns whether the table has or can create this slot.
    pub(crate) fn has_room_for(&self, id: SlotId) -> bool {
        self.slots.len() < self.slots_max || self.slots.contains_key(&id)
    }

    /// Records that a client is counted in an overflow entry, which matters until then.
    pub(crate) fn note_overflow(&mut self, until: TimestampUs) {
        self.overflow_until = self.overflow_until.max(until);
        self.has_overflow = true;
    }

    /// Returns whether requests of a client may have been counted in an overflow entry before it
    /// had this slot.
    pub(crate) fn may_be_in_overflow(&mut self, id: SlotId, now: TimestampUs) -> bool {
        self.has_overflow = now < self.overflow_until;
        let slot = self.slots.get(&id);
        self.has_overflow && slot.is_none_or(|slot| slot.may_be_in_overflow)
    }

    /// Returns whether new clients get no slot.
    pub(crate) fn is_full(&self) -> bool {
        self.slots.len() >= self.slots_max
    }

    /// Adds admitted requests to this node's count. They are [sent](Self::queue_report) once no
    /// other limit rejects them. Callers check first that there is room.
    pub(crate) fn take(&mut self, id: SlotId, until: TimestampUs, requests: u32) {
        let slot = self.slot(id, until);
        slot.own.taken = slot.own.taken.saturating_add(requests);
    }

    /// Undoes requests that were added and not sent, because another limit rejected them. An empty
    /// slot is removed: rejected clients must not fill the table.
    pub(crate) fn undo_take(&mut self, id: SlotId, requests: u32) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        slot.own.taken = slot.own.taken.saturating_sub(requests);
        if slot.is_blank() {
            self.ends.remove(&(slot.until, id));
            self.slots.remove(&id);
        }
    }

    /// Refunds requests of a slot.
    pub(crate) fn refund(&mut self, id: SlotId, until: TimestampUs, requests: u32) {
        self.change(id, until, |own| {
            own.refunded = own.refunded.saturating_add(requests);
        });
    }

    /// Sets this node's count.
    pub(crate) fn put(&mut self, id: SlotId, until: TimestampUs, count: NodeCount) {
        self.change(id, until, |own| *own = count);
    }

    fn change(&mut self, id: SlotId, until: TimestampUs, change: impl FnOnce(&mut NodeCount)) {
        let slot = self.slot(id, until);
        change(&mut slot.own);
        self.queue_report(id);
    }

    /// Joins a received report. Expired reports are ignored. Returns `false` for a report that is
    /// valid for longer than any window: no node wrote it. A report without room is forwarded
    /// unchanged, so its sender gets it back, and nodes with room learn of it.
    pub(crate) fn receive(
        &mut self,
        report: &SlotReport,
        source: ReportSource,
        now: TimestampUs,
    ) -> bool {
        let SlotReport { id, until, .. } = *report;
        if until <= now {
            return true;
        }
        if until > now + VALIDITY_LONGEST {
            return false;
        }
        if !self.has_room_for(id) {
            self.without_room += 1;
            if source == ReportSource::Call && self.to_forward.len() < FORWARDED_MAX {
                self.to_forward.push_back(report.clone());
            }
            return true;
        }
        let own = self.own;
        let slot = self.slot(id, until);
        let mut without_room = 0;
        for (node, count) in report.stats.iter().copied() {
            if node != own {
                without_room += u64::from(!slot.join(node, count));
            } else if source == ReportSource::Total {
                slot.confirmed = slot.confirmed.join(count);
            }
        }
        self.without_room += without_room;
        // Even without news: a sender that repeats a report waits for a total.
        if source == ReportSource::Call {
            self.queue_total(id);
        }
        true
    }

    /// Returns the next report of this node's own counts, and waits for it to come back.
    pub(crate) fn next_to_send(&mut self, at: Duration) -> Option<SlotReport> {
        while let Some(id) = self.to_send.pop_front() {
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            slot.is_to_send = false;
            if !slot.is_awaited {
                slot.is_awaited = true;
                self.awaited.push_back(Awaited {
                    id,
                    sent_at: at,
                    count: slot.own,
                });
            }
            return Some(SlotReport {
                id,
                until: slot.until,
                stats: vec![(self.own, slot.own)],
            });
        }
        None
    }

    /// Returns the next total that changed, or that a node waits for.
    pub(crate) fn next_to_publish(&mut self) -> Option<SlotReport> {
        if let Some(report) = self.to_forward.pop_front() {
            return Some(report);
        }
        while let Some(id) = self.to_publish.pop_front() {
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            slot.is_to_publish = false;
            let stats = slot.stats(self.own);
            // The slot may have held only this node's own count, which was undone.
            if !stats.is_empty() {
                let until = slot.until;
                return Some(SlotReport { id, until, stats });
            }
        }
        None
    }

    /// Queues a slot to be sent.
    pub(crate) fn queue_report(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(&id)
            && !slot.is_to_send
        {
            slot.is_to_send = true;
            self.to_send.push_back(id);
        }
    }

    /// Queues a slot to be published.
    pub(crate) fn queue_total(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(&id)
            && !slot.is_to_publish
        {
            slot.is_to_publish = true;
            self.to_publish.push_back(id);
        }
    }

    /// Queues overdue reports to be sent again, up to a portion. Returns whether more are left.
    pub(crate) fn resend_overdue(&mut self, at: Duration) -> bool {
        for _ in 0..PORTION {
            let is_due = |first: &Awaited| first.sent_at + RESEND_AFTER <= at;
            let Some(Awaited { id, count, .. }) = pop_front_if(&mut self.awaited, is_due) else {
                return false;
            };
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            if !slot.confirmed.contains(count) {
                slot.is_awaited = false;
                self.resent += 1;
                self.queue_report(id);
            } else if slot.confirmed.contains(slot.own) {
                slot.is_awaited = false;
            } else {
                // The count has grown since.
                let count = slot.own;
                self.awaited.push_back(Awaited {
                    id,
                    sent_at: at,
                    count,
                });
            }
        }
        true
    }

    /// Forgets expired slots, up to a portion. Returns whether more are left.
    pub(crate) fn sweep(&mut self, now: TimestampUs) -> bool {
        for _ in 0..PORTION {
            match self.ends.first() {
                Some((until, id)) if *until <= now => {
                    self.slots.remove(id);
                    self.ends.pop_first();
                }
                _ => return false,
            }
        }
        true
    }

    /// Returns the slot, creating it if necessary; it is kept at least until `until`.
    fn slot(&mut self, id: SlotId, until: TimestampUs) -> &mut Slot {
        let slot = self.slots.entry(id).or_insert_with(|| Slot {
            may_be_in_overflow: self.has_overflow,
            ..Slot::default()
        });
        if slot.until < until {
            self.ends.remove(&(slot.until, id));
            self.ends.insert((until, id));
            slot.until = until;
        }
        slot
    }

    /// Returns whether nothing is queued and every report has come back.
    #[cfg(test)]
    pub(crate) fn is_quiet(&self) -> bool {
        let is_confirmed = |slot: &Slot| slot.confirmed.contains(slot.own);
        self.to_send.is_empty()
            && self.to_publish.is_empty()
            && self.slots.values().all(is_confirmed)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn resent(&self) -> u64 {
        self.resent
    }

    pub(crate) fn without_room(&self) -> u64 {
        self.without_room
    }
}

fn pop_front_if<T>(queue: &mut VecDeque<T>, is_right: impl Fn(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(is_right) {
        return queue.pop_front();
    }
    None
}

#[cfg(test)]
mod tests;
