//! Scheduled events at the nodes: each evaluates its settings by its own clock, and shares the
//! phases that events have reached over the record of overrides.
//!
//! A node looks at the time of the next change and once a second. Once a second it also reads the
//! record, adopts what is newer, restores what the store has lost and writes phases that the store
//! lacks. Messages are lost, doubled and late like those of a sync, and a late one still has its
//! effect.

use std::sync::Arc;

use anteroom_config::overrides::{Record as _, RoomOverrides};
use anteroom_config::schedule::LOOK_EVERY;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use super::event::Event;
use super::slab::Key;
use crate::deployment::ledgers::FoundOverrides;
use crate::deployment::network::joined;
use crate::deployment::node::{NodeSchedule, RecordSource};

/// Message about the record between a node and a store.
#[derive(Clone, Debug)]
pub(super) struct RecordMessage {
    node: u32,
    incarnation: u32,
    source: RecordSource,
    sent_at: Timestamp,
    leg: RecordLeg,
}

#[derive(Clone, Debug)]
enum RecordLeg {
    Read,
    Found(FoundOverrides),
    /// Writes the record over this version.
    Swap(Arc<RoomOverrides>, u64),
    Swapped(Arc<RoomOverrides>),
    /// Writes the record if it is newer.
    Restore(Arc<RoomOverrides>),
}

impl Simulation {
    fn schedule_of(&mut self, index: u32) -> Option<&mut NodeSchedule> {
        self.deployment.nodes[index as usize]
            .schedule
            .as_deref_mut()
    }

    /// Plans the first evaluation of a process, and its first read of the record.
    pub(super) fn start_schedule(&mut self, index: u32) {
        let node = &self.deployment.nodes[index as usize];
        if node.schedule.is_some() {
            let incarnation = node.incarnation;
            self.note_schedule(index);
            self.plan(
                self.now,
                Event::LooksAtSchedule {
                    node: index,
                    incarnation,
                },
            );
        }
    }

    /// Evaluates the settings of a node if that is due, and reads the record once a second.
    pub(super) fn handle_look(&mut self, index: u32, incarnation: u32) {
        let now = self.now;
        let node = &mut self.deployment.nodes[index as usize];
        if !node.is_alive() || node.incarnation != incarnation {
            return;
        }
        let look = Event::LooksAtSchedule {
            node: index,
            incarnation,
        };
        if node.paused_until > now {
            let at = node.paused_until;
            self.plan(at, look);
            return;
        }
        let clocks = node.clocks(now);
        let Some(schedule) = node.schedule.as_deref_mut() else {
            return;
        };
        let was_known = schedule.is_known();
        schedule.note_read(None, now);
        let is_known = schedule.is_known();
        let is_due = schedule.must_evaluate(&node.room, clocks);
        let reads = schedule.takes_turn_to_read(now);
        if is_due {
            self.evaluate(index);
        }
        if is_known && !was_known {
            self.drive_soon(index);
        }
        if reads {
            self.read_record(index);
        }
        self.note_schedule(index);
        let node = &mut self.deployment.nodes[index as usize];
        let clocks = node.clocks(now);
        let after = node
            .schedule
            .as_ref()
            .map_or(LOOK_EVERY, |schedule| schedule.next_look_after(clocks));
        self.plan(now + after, look);
    }

    /// Evaluates the settings of a node and applies the rules that follow.
    pub(super) fn evaluate(&mut self, index: u32) {
        let now = self.now;
        let node = &mut self.deployment.nodes[index as usize];
        let is_changed = node.evaluate(now);
        let is_alive = node.is_alive();
        self.note(|deployment| {
            let node = &deployment.nodes[index as usize];
            let rules = node.rules;
            format!(
                "{} evaluates its schedule: {:?}, {:?}, {:?} to {:?}",
                deployment.name_of(index),
                rules.limits,
                rules.queueing_method,
                rules.holds_from,
                rules.opens_at,
            )
        });
        self.note_schedule(index);
        if is_changed {
            self.note_changed_rules();
            if is_alive {
                self.hurry(index);
            }
        }
    }

    /// Tells the checkers that rules have changed at a node by its schedule.
    fn note_changed_rules(&mut self) {
        let now = self.now;
        let effects = self.deployment.stores.longest_lease() + super::faults::MARGIN;
        self.checkers.handle_fault(now + effects, true);
        self.checkers.unsettle_ceiling();
        self.update_ceiling();
        // Ranks or methods may have changed, and everyone counts anew with the next request.
        self.checkers.note_visitors_counted_by_guess(now);
    }

    fn read_record(&mut self, index: u32) {
        let source = match self.schedule_of(index) {
            Some(schedule) if schedule.must_read_copy() => RecordSource::Copy,
            Some(_) => RecordSource::Main,
            None => return,
        };
        self.send_record(index, source, RecordLeg::Read);
    }

    fn send_record(&mut self, index: u32, source: RecordSource, leg: RecordLeg) {
        let message = RecordMessage {
            node: index,
            incarnation: self.deployment.nodes[index as usize].incarnation,
            source,
            sent_at: self.now,
            leg,
        };
        self.forward_record(message);
    }

    /// Sends a message about the record on its next leg.
    fn forward_record(&mut self, message: RecordMessage) {
        let now = self.now;
        let data_center = self.deployment.nodes[message.node as usize].data_center;
        let plan = &self.deployment.data_centers[data_center as usize].plan;
        let is_far =
            message.source == RecordSource::Main && self.deployment.stores.has_two_levels();
        let delay = if is_far {
            joined(plan.to_store, plan.to_global)
        } else {
            plan.to_store
        };
        let is_answer = matches!(message.leg, RecordLeg::Swapped(_));
        if !self
            .deployment
            .is_linked(message.node, is_far, is_answer, now)
        {
            return;
        }
        let copies = self.deployment.network.send(delay, now);
        for after in [copies.second, copies.first].into_iter().flatten() {
            let record = self.records.insert(message.clone());
            self.plan(now + after, Event::Record { record });
        }
    }

    pub(super) fn handle_record(&mut self, key: Key) {
        let now = self.now;
        let Some(message) = self.records.get_mut(key) else {
            return;
        };
        let node = &self.deployment.nodes[message.node as usize];
        let is_at_node = matches!(message.leg, RecordLeg::Found(_) | RecordLeg::Swapped(_));
        let is_for_this_incarnation = node.is_alive() && node.incarnation == message.incarnation;
        if is_at_node && is_for_this_incarnation && node.paused_until > now {
            let at = node.paused_until;
            self.plan(at, Event::Record { record: key });
            return;
        }
        let Some(message) = self.records.remove(key) else {
            return;
        };
        if !is_at_node {
            self.handle_record_at_store(message);
        } else if is_for_this_incarnation {
            self.handle_record_at_node(message);
        }
    }

    fn handle_record_at_store(&mut self, message: RecordMessage) {
        let now = self.now;
        let data_center = self.deployment.nodes[message.node as usize].data_center;
        let stores = &mut self.deployment.stores;
        let store = match message.source {
            RecordSource::Main => stores.global(),
            RecordSource::Copy => stores.local(data_center),
        };
        let leg = match &message.leg {
            RecordLeg::Read => store.read_overrides(now).map(RecordLeg::Found),
            RecordLeg::Swap(record, version) => {
                let is_written = store.swap_overrides(record, *version, now) == Some(true);
                is_written.then(|| RecordLeg::Swapped(Arc::clone(record)))
            }
            RecordLeg::Restore(record) => {
                store.restore_overrides(record, now);
                None
            }
            RecordLeg::Found(_) | RecordLeg::Swapped(_) => None,
        };
        // A write that lost its race is made again with the next read.
        if let Some(leg) = leg {
            self.forward_record(RecordMessage { leg, ..message });
        }
    }

    fn handle_record_at_node(&mut self, message: RecordMessage) {
        let (index, now, source) = (message.node, self.now, message.source);
        let node = &mut self.deployment.nodes[index as usize];
        let clocks = node.clocks(now);
        let Some(schedule) = node.schedule.as_deref_mut() else {
            return;
        };
        let was_known = schedule.is_known();
        let mut replies = Vec::new();
        let record = match message.leg {
            RecordLeg::Found(found) => {
                schedule.note_read(Some(source), now);
                let known = Arc::clone(&schedule.stored);
                if source == RecordSource::Main && known.is_newer_than(&found.record) {
                    replies.push((RecordSource::Main, RecordLeg::Restore(known)));
                }
                if source == RecordSource::Copy && !schedule.is_known() {
                    replies.push((RecordSource::Main, RecordLeg::Read));
                }
                // Its clock was read at some moment in between, so the nearer end is certain.
                let took = now.since(message.sent_at);
                let ahead_ms = ahead_of(found.shown_at, clocks.room, took);
                let next = schedule.with_phases(&found.record, clocks, ahead_ms);
                if let Some(next) = next.filter(|_| source == RecordSource::Main) {
                    let swap = RecordLeg::Swap(Arc::new(next), found.version);
                    replies.push((RecordSource::Main, swap));
                }
                found.record
            }
            RecordLeg::Swapped(record) => record,
            RecordLeg::Read | RecordLeg::Swap(..) | RecordLeg::Restore(_) => return,
        };
        let is_news = schedule.adopt(&record);
        let is_known = schedule.is_known();
        if is_news && source == RecordSource::Main && self.deployment.stores.has_two_levels() {
            replies.push((RecordSource::Copy, RecordLeg::Restore(record)));
        }
        for (source, leg) in replies {
            self.send_record(index, source, leg);
        }
        if is_news {
            self.evaluate(index);
        }
        if is_known && !was_known {
            self.drive_soon(index);
        }
    }
}

/// Returns by how many milliseconds a store's clock is surely ahead of a node's, which shows `now`.
/// The reply took this long.
fn ahead_of(shown: Timestamp, now: Timestamp, took: DurationMs) -> i64 {
    let ahead = |from: Timestamp| {
        let difference = i128::from(shown.0) - i128::from(from.0);
        i64::try_from(difference).unwrap_or(i64::MAX)
    };
    0_i64.clamp(ahead(now), ahead(now - took))
}
