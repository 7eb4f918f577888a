//! Record of overrides in a simulated store: read, compared and swapped like that of the gateway.

use std::sync::Arc;

use anteroom_config::overrides::{Record as _, RoomOverrides};
use anteroom_room::time::Timestamp;

use super::Store;

/// Record of overrides, with its earlier states: a store may lose its last writes.
#[derive(Debug, Default)]
pub(super) struct OverrideRecord {
    versions: u64,
    /// States by the time since which they hold. A schedule writes a few times in its life.
    states: Vec<(Timestamp, Arc<RoomOverrides>)>,
}

/// Record of overrides as a read finds it.
#[derive(Clone, Debug)]
pub(crate) struct FoundOverrides {
    pub(crate) record: Arc<RoomOverrides>,
    /// Version that a write expects.
    pub(crate) version: u64,
    /// Time that the store's clock shows.
    pub(crate) shown_at: Timestamp,
}

impl OverrideRecord {
    fn put(&mut self, record: Arc<RoomOverrides>, now: Timestamp) {
        self.versions += 1;
        self.states.push((now, record));
    }

    pub(super) fn wipe(&mut self, now: Timestamp) {
        self.states.clear();
        self.put(Arc::default(), now);
    }

    pub(super) fn lose_writes(&mut self, after: Timestamp, now: Timestamp) {
        let kept = self.states.iter().rev().find(|(at, _)| *at <= after);
        let kept = kept.map(|(_, record)| Arc::clone(record));
        self.put(kept.unwrap_or_default(), now);
    }
}

impl Store {
    /// Returns the record of overrides in its present state, and the time since which it has it.
    pub(crate) fn present_overrides(&self) -> Option<&(Timestamp, Arc<RoomOverrides>)> {
        self.overrides.states.last()
    }

    /// Reads the record of overrides. Returns `None` if the store is down.
    pub(crate) fn read_overrides(&self, now: Timestamp) -> Option<FoundOverrides> {
        if self.is_down(now) {
            return None;
        }
        let present = self.present_overrides();
        Some(FoundOverrides {
            record: present
                .map(|(_, record)| Arc::clone(record))
                .unwrap_or_default(),
            version: self.overrides.versions,
            shown_at: self.clock(now),
        })
    }

    /// Writes the record, if it is still of the version that a read found. Returns whether it is;
    /// `None` if the store is down.
    pub(crate) fn swap_overrides(
        &mut self,
        record: &Arc<RoomOverrides>,
        version: u64,
        now: Timestamp,
    ) -> Option<bool> {
        if self.is_down(now) {
            return None;
        }
        let is_same = version == self.overrides.versions;
        if is_same {
            self.overrides.put(Arc::clone(record), now);
        }
        Some(is_same)
    }

    /// Writes the record if it is newer than what is there.
    pub(crate) fn restore_overrides(&mut self, record: &Arc<RoomOverrides>, now: Timestamp) {
        if let Some(found) = self.read_overrides(now)
            && record.is_newer_than(&found.record)
        {
            self.overrides.put(Arc::clone(record), now);
        }
    }
}
