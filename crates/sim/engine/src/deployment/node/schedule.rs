//! Settings of a node's room with events, and what the node knows of the record with their phases.
//!
//! The gateway's code decides: this keeps its state. When it is asked, and how the record travels,
//! `run` decides.

use std::sync::Arc;

use anteroom_config::overrides::{Record as _, RoomOverrides};
use anteroom_config::schedule::{Clocks, Evaluation, LOOK_EVERY, Phases, TOLERANCE};
use anteroom_config::{Effective, RoomConfig};
use anteroom_room::room::Room;
use anteroom_room::rules::Rules;
use anteroom_room::time::{DurationMs, Timestamp};

/// Timeout of a read of the record, as in the gateway.
const TIMEOUT: DurationMs = DurationMs(1_000);

/// Settings of a room with events at a node.
#[derive(Debug)]
pub(crate) struct NodeSchedule {
    /// The node's configuration file.
    pub(crate) file: RoomConfig,
    /// Newest record that this process knows.
    pub(crate) stored: Arc<RoomOverrides>,
    phases: Phases,
    evaluation: Evaluation,
    first_rules: Rules,
    /// Whether the data center keeps a copy of the record.
    has_copy: bool,
    was_copy_read: bool,
    was_read: bool,
    /// Time at which this process first asked for the main record.
    asked_at: Option<Timestamp>,
    /// Time since which this process has known the record.
    known_since: Option<Timestamp>,
    /// Time of its next read.
    reads_at: Timestamp,
}

impl NodeSchedule {
    pub(crate) fn new(file: RoomConfig, has_copy: bool, clocks: Clocks) -> Self {
        let mut phases = Phases::default();
        let (evaluation, first_rules) = phases.begin(&file, clocks);
        Self {
            file,
            stored: Arc::default(),
            phases,
            evaluation,
            first_rules,
            has_copy,
            was_copy_read: !has_copy,
            was_read: false,
            asked_at: None,
            known_since: None,
            reads_at: Timestamp::ZERO,
        }
    }

    /// Starts a new process, which knows nothing but its file. Returns its first rules.
    pub(crate) fn start(&mut self, clocks: Clocks, now: Timestamp) -> Rules {
        *self = Self::new(self.file.clone(), self.has_copy, clocks);
        self.asked_at = Some(now);
        self.first_rules
    }

    /// Returns the rules that a process begins with.
    pub(crate) fn first_rules(&self) -> Rules {
        self.first_rules
    }

    /// Returns the settings as they were evaluated last.
    pub(crate) fn effective(&self) -> &Effective {
        &self.evaluation.effective
    }

    /// Whether this process knows the record, without which it may not sync.
    pub(crate) fn is_known(&self) -> bool {
        self.known_since.is_some()
    }

    /// Returns the time since which this process has known the record.
    pub(crate) fn known_since(&self) -> Option<Timestamp> {
        self.known_since
    }

    /// Whether the copy must be read first.
    pub(crate) fn must_read_copy(&self) -> bool {
        !self.was_copy_read
    }

    /// Notes a read of the copy or of the main record. `None`: time has passed. While the root's
    /// store is unavailable, the copy suffices.
    pub(crate) fn note_read(&mut self, source: Option<RecordSource>, now: Timestamp) {
        match source {
            Some(RecordSource::Copy) => {
                self.was_copy_read = true;
                self.asked_at = Some(now);
            }
            Some(RecordSource::Main) => self.was_read = true,
            None => {}
        }
        let asked_at = self.asked_at.unwrap_or(now);
        let gives_up = self.has_copy && asked_at + TIMEOUT <= now;
        if self.was_copy_read && (self.was_read || gives_up) {
            self.known_since.get_or_insert(now);
        }
    }

    /// Takes over a record that has something that the known one lacks. Returns whether it has.
    pub(crate) fn adopt(&mut self, found: &RoomOverrides) -> bool {
        let is_news = found.is_newer_than(&self.stored);
        if is_news {
            self.stored = Arc::new(found.clone());
        }
        is_news
    }

    /// Returns the record with phases that it lacks; `None` if it lacks none, or if the clocks are
    /// wrong: a phase never goes back, so a wrong clock must not decide for all nodes.
    pub(crate) fn with_phases(
        &self,
        found: &RoomOverrides,
        clocks: Clocks,
        store_ahead_ms: i64,
    ) -> Option<RoomOverrides> {
        if !clocks.are_steady() || store_ahead_ms.unsigned_abs() > TOLERANCE.0 {
            return None;
        }
        let latches = self.phases.lacking_in(&self.stored.events)?;
        let before = self.stored.merged(found);
        before.with_phases(latches, clocks.wall)
    }

    /// Whether the settings change by themselves, or the room applies other rules than it should.
    pub(crate) fn must_evaluate(&mut self, room: &Room, clocks: Clocks) -> bool {
        self.phases.must_evaluate(&self.evaluation, room, clocks)
    }

    /// Evaluates the settings. Returns the rules that the room is to apply.
    pub(crate) fn evaluate(&mut self, room: &Room, clocks: Clocks) -> Rules {
        let overrides = (RoomOverrides::clone(&self.stored), &self.stored.events);
        let before = &self.evaluation.effective;
        let evaluation = self.phases.evaluate(&self.file, overrides, before, clocks);
        self.evaluation = evaluation;
        self.phases.rules(&self.evaluation, room, clocks).in_force
    }

    /// Whether a second has passed since the process last asked for the record. It asks now then.
    pub(crate) fn takes_turn_to_read(&mut self, now: Timestamp) -> bool {
        let is_due = self.reads_at <= now;
        if is_due {
            self.reads_at = now + LOOK_EVERY;
        }
        is_due
    }

    /// Returns the time until the next evaluation.
    pub(crate) fn next_look_after(&self, clocks: Clocks) -> DurationMs {
        let next_at = self.evaluation.effective.next_change_at;
        let after = next_at.map_or(LOOK_EVERY, |at| at.since(clocks.wall).min(LOOK_EVERY));
        after.max(DurationMs(1))
    }
}

/// Record with the phases of events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RecordSource {
    /// Record in the store of the root's ledger.
    Main,
    /// Copy in the data center's own store.
    Copy,
}
