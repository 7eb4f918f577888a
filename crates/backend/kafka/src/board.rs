//! What does a node know of all clients, and what of that has it still to tell?
//!
//! Everything that comes in is joined: this node's own calls, what others told, totals. How it came
//! does not matter, nor how often, so there is nothing to be kept in step: what is known here is at
//! least every figure that was heard.
//!
//! Its own figure is this node's, and whatever comes back of it says only how much others know by
//! now.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use anteroom_limit::rate::WINDOW_LONGEST;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::stats::{NodeCount, NodeId, STATS_MAX, SlotId, SlotReport, total};

/// Stretches of time that are known at most, of all clients together; each takes some 200 bytes and
/// 16 for each node that counted there. Those of a client's window are 2 for most algorithms.
pub(crate) const SLOTS_MAX: usize = 500_000;
/// After how long is told again what has not come back. Longer than a total takes, some tenths of a
/// second; and it comes before a lost message would be missed for a large part of a minute.
pub(crate) const TELL_AGAIN_AFTER: Duration = Duration::from_secs(3);
/// What matters for longer than any window of any algorithm was not written by a node.
const MATTERS_LONGEST: DurationUs = WINDOW_LONGEST.times(3);
/// Stretches that are looked at in one go, so that nobody waits for long meanwhile: each takes
/// about a microsecond.
const PORTION: usize = 500;

/// Messages without place that wait to be told on at most: more than come in a tenth of a second.
const PASSED_ON_MAX: usize = 10_000;

/// All that a node knows.
#[derive(Debug)]
pub(crate) struct CounterTable {
    own: NodeId,
    slots_max: usize,
    slots: HashMap<SlotId, Slot>,
    ends: BTreeSet<(TimestampUs, SlotId)>,
    to_tell: VecDeque<SlotId>,
    to_publish: VecDeque<SlotId>,
    to_pass_on: VecDeque<SlotReport>,
    awaited: VecDeque<Awaited>,
    told_again: u64,
    without_place: u64,
    /// Until when calls matter that were counted together for want of place.
    crowded_until: TimestampUs,
    is_crowded: bool,
}

/// One stretch of time of one client.
#[derive(Debug, Default)]
struct Slot {
    until: TimestampUs,
    own: NodeCount,
    /// How much of that was in totals.
    heard_of_own: NodeCount,
    /// By node.
    others: Vec<(NodeId, NodeCount)>,
    is_to_tell: bool,
    is_to_publish: bool,
    is_awaited: bool,
    /// It was made while calls of clients without place mattered: those of this client may be among
    /// them.
    is_of_crowd: bool,
}

/// Something that was told and must come back.
#[derive(Debug)]
struct Awaited {
    id: SlotId,
    told_at: Duration,
    figure: NodeCount,
}

/// From where something was heard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReportSource {
    /// From a node, for whoever aggregates.
    Call,
    /// From whoever aggregates.
    Total,
}

impl Slot {
    fn total(&self) -> u32 {
        let others = self.others.iter().map(|(_, figure)| *figure);
        total(others.chain([self.own]))
    }

    /// Whether it says nothing, and waits for nothing.
    fn is_blank(&self) -> bool {
        let own = [self.own, self.heard_of_own];
        let is_waiting = self.is_to_tell || self.is_to_publish || self.is_awaited;
        own == [NodeCount::default(); 2] && self.others.is_empty() && !is_waiting
    }

    /// `false` if there is no place for one more.
    fn join(&mut self, node: NodeId, figure: NodeCount) -> bool {
        match self.others.binary_search_by_key(&node, |(other, _)| *other) {
            Ok(at) => self.others[at].1 = self.others[at].1.join(figure),
            // One place is this node's own.
            Err(_) if self.others.len() + 1 >= STATS_MAX => return false,
            Err(at) => self.others.insert(at, (node, figure)),
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
            to_tell: VecDeque::new(),
            to_publish: VecDeque::new(),
            to_pass_on: VecDeque::new(),
            awaited: VecDeque::new(),
            told_again: 0,
            without_place: 0,
            crowded_until: TimestampUs(0),
            is_crowded: false,
        }
    }

    /// What counts in a stretch of time, as far as is known here.
    pub(crate) fn total(&self, id: SlotId) -> u32 {
        self.slots.get(&id).map_or(0, Slot::total)
    }

    /// Whether calls can be counted there.
    pub(crate) fn has_place_for(&self, id: SlotId) -> bool {
        self.slots.len() < self.slots_max || self.slots.contains_key(&id)
    }

    /// A client without place is counted together with others, which matters until then.
    pub(crate) fn note_crowd(&mut self, until: TimestampUs) {
        self.crowded_until = self.crowded_until.max(until);
        self.is_crowded = true;
    }

    /// Whether calls of a client may have been counted together with those of others before it had
    /// this place.
    pub(crate) fn may_be_of_crowd(&mut self, id: SlotId, now: TimestampUs) -> bool {
        self.is_crowded = now < self.crowded_until;
        let slot = self.slots.get(&id);
        self.is_crowded && slot.is_none_or(|slot| slot.is_of_crowd)
    }

    /// Whether clients that are new find no place.
    pub(crate) fn is_full(&self) -> bool {
        self.slots.len() >= self.slots_max
    }

    /// This node has admitted so many, unless another limit rejects them: it is [told](Self::tell)
    /// when that is known. There is always a place: callers see to it.
    pub(crate) fn take(&mut self, id: SlotId, until: TimestampUs, calls: u32) {
        let slot = self.slot(id, until);
        slot.own.taken = slot.own.taken.saturating_add(calls);
    }

    /// What was taken a moment ago, and not told, is not admitted after all. Nothing is left of
    /// whoever is not known otherwise: clients that are rejected must not fill the board.
    pub(crate) fn take_back(&mut self, id: SlotId, calls: u32) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        slot.own.taken = slot.own.taken.saturating_sub(calls);
        if slot.is_blank() {
            self.ends.remove(&(slot.until, id));
            self.slots.remove(&id);
        }
    }

    /// So many of all that count there do so no more.
    pub(crate) fn give_back(&mut self, id: SlotId, until: TimestampUs, calls: u32) {
        self.change(id, until, |own| {
            own.given_back = own.given_back.saturating_add(calls);
        });
    }

    /// This node's figure is this.
    pub(crate) fn put(&mut self, id: SlotId, until: TimestampUs, figure: NodeCount) {
        self.change(id, until, |own| *own = figure);
    }

    fn change(&mut self, id: SlotId, until: TimestampUs, change: impl FnOnce(&mut NodeCount)) {
        let slot = self.slot(id, until);
        change(&mut slot.own);
        self.tell(id);
    }

    /// Joins what was heard. What matters no more is left out, and so is what would matter for
    /// longer than anything can. `false` in the latter case: no node wrote that. For what there is
    /// no place is published as it was told: so whoever told it hears that it lives, and who has a
    /// place knows it.
    pub(crate) fn hear(
        &mut self,
        told: &SlotReport,
        heard: ReportSource,
        now: TimestampUs,
    ) -> bool {
        let SlotReport { id, until, .. } = *told;
        if until <= now {
            return true;
        }
        if until > now + MATTERS_LONGEST {
            return false;
        }
        if !self.has_place_for(id) {
            self.without_place += 1;
            if heard == ReportSource::Call && self.to_pass_on.len() < PASSED_ON_MAX {
                self.to_pass_on.push_back(told.clone());
            }
            return true;
        }
        let own = self.own;
        let slot = self.slot(id, until);
        let mut without_place = 0;
        for (node, figure) in told.stats.iter().copied() {
            if node != own {
                without_place += u64::from(!slot.join(node, figure));
            } else if heard == ReportSource::Total {
                slot.heard_of_own = slot.heard_of_own.join(figure);
            }
        }
        self.without_place += without_place;
        // Also if it brought nothing new: whoever tells something again waits for a total.
        if heard == ReportSource::Call {
            self.publish(id);
        }
        true
    }

    /// Something of this node's own that others do not know yet; what has been told by that is
    /// awaited.
    pub(crate) fn next_to_tell(&mut self, at: Duration) -> Option<SlotReport> {
        while let Some(id) = self.to_tell.pop_front() {
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            slot.is_to_tell = false;
            if !slot.is_awaited {
                slot.is_awaited = true;
                self.awaited.push_back(Awaited {
                    id,
                    told_at: at,
                    figure: slot.own,
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

    /// A total that changed, or that somebody waits for.
    pub(crate) fn next_to_publish(&mut self) -> Option<SlotReport> {
        if let Some(told) = self.to_pass_on.pop_front() {
            return Some(told);
        }
        while let Some(id) = self.to_publish.pop_front() {
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            slot.is_to_publish = false;
            let stats = slot.stats(self.own);
            // All that there was of it may have been this node's own, and forgotten.
            if !stats.is_empty() {
                let until = slot.until;
                return Some(SlotReport { id, until, stats });
            }
        }
        None
    }

    /// It is told with the next ones.
    pub(crate) fn tell(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(&id)
            && !slot.is_to_tell
        {
            slot.is_to_tell = true;
            self.to_tell.push_back(id);
        }
    }

    /// It is published with the next ones.
    pub(crate) fn publish(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(&id)
            && !slot.is_to_publish
        {
            slot.is_to_publish = true;
            self.to_publish.push_back(id);
        }
    }

    /// Tells again what should have come back by now, a portion of it. Says whether there is more.
    pub(crate) fn look_after_awaited(&mut self, at: Duration) -> bool {
        for _ in 0..PORTION {
            let is_due = |first: &Awaited| first.told_at + TELL_AGAIN_AFTER <= at;
            let Some(Awaited { id, figure, .. }) = pop_front_if(&mut self.awaited, is_due) else {
                return false;
            };
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            if !slot.heard_of_own.contains(figure) {
                slot.is_awaited = false;
                self.told_again += 1;
                self.tell(id);
            } else if slot.heard_of_own.contains(slot.own) {
                slot.is_awaited = false;
            } else {
                // More was told since.
                let figure = slot.own;
                self.awaited.push_back(Awaited {
                    id,
                    told_at: at,
                    figure,
                });
            }
        }
        true
    }

    /// Forgets what matters no more, a portion of it. Says whether there is more.
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

    /// The slot, which is made if it is not there, and is kept until then at least.
    fn slot(&mut self, id: SlotId, until: TimestampUs) -> &mut Slot {
        let slot = self.slots.entry(id).or_insert_with(|| Slot {
            is_of_crowd: self.is_crowded,
            ..Slot::default()
        });
        if slot.until < until {
            self.ends.remove(&(slot.until, id));
            self.ends.insert((until, id));
            slot.until = until;
        }
        slot
    }

    /// Whether all has been told and published that is to be, and whatever was told has come back.
    #[cfg(test)]
    pub(crate) fn is_quiet(&self) -> bool {
        let is_heard = |slot: &Slot| slot.heard_of_own.contains(slot.own);
        self.to_tell.is_empty() && self.to_publish.is_empty() && self.slots.values().all(is_heard)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn told_again(&self) -> u64 {
        self.told_again
    }

    pub(crate) fn without_place(&self) -> u64 {
        self.without_place
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
