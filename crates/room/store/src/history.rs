//! Rows of the history of rooms, as stores keep them.
//!
//! A row is opaque to a store, apart from what it is of. Rows are for people: no decision depends
//! on one, so a store drops the oldest ones before it drops anything else.

use std::collections::BTreeMap;

use anteroom_room::id::NodeId;
use anteroom_room::time::Minute;

/// Length of time that a row is about.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum HistoryGrain {
    /// A minute, kept for 48 hours.
    Minute,
    /// Fifteen minutes, kept for 31 days.
    Quarter,
}

impl HistoryGrain {
    /// Both grains.
    pub const ALL: [Self; 2] = [Self::Minute, Self::Quarter];

    /// Returns the minutes of a row.
    #[must_use]
    pub const fn minutes(self) -> u64 {
        match self {
            Self::Minute => 1,
            Self::Quarter => 15,
        }
    }

    /// Returns the minutes for which a row is kept.
    #[must_use]
    pub const fn kept_for(self) -> u64 {
        match self {
            Self::Minute => 48 * 60,
            Self::Quarter => 31 * 24 * 60,
        }
    }

    /// Returns the first minute of the row with this one.
    #[must_use]
    pub const fn begin_of(self, minute: Minute) -> Minute {
        Minute(minute.0 - minute.0 % self.minutes())
    }
}

/// Name of a room's history: that of the room, and in a shared store its deployment, with a slash
/// between them.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HistoryName(pub String);

/// Row of a room's history. A later one of the same grain, minute and node replaces it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HistoryRow {
    /// Length of time.
    pub grain: HistoryGrain,
    /// First minute.
    pub begins: Minute,
    /// Process that wrote it.
    pub node: NodeId,
    /// Content, opaque to the store: at most 512 bytes.
    pub value: Vec<u8>,
}

/// Rows to write, all of one room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HistoryRows {
    /// Name of the history.
    pub name: HistoryName,
    /// Rows.
    pub rows: Vec<HistoryRow>,
}

/// Most bytes of history in a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HistoryBound {
    /// Bytes of the rows of all rooms, with what names them.
    pub bytes: u64,
    /// Number of rooms. A store that does not know all of them keeps to an equal share for each.
    pub rooms: u64,
}

impl HistoryBound {
    /// Returns the bytes of each room.
    #[must_use]
    pub fn bytes_of_room(&self) -> u64 {
        self.bytes / self.rooms.max(1)
    }
}

/// Time that a read of history is about: from the first minute, without the last one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HistorySpan {
    /// Grain of the rows.
    pub grain: HistoryGrain,
    /// First minute.
    pub from: Minute,
    /// First minute that is not read. A row that begins before it is read as a whole.
    pub until: Minute,
}

/// Bytes that a row counts beside its value and its room's name.
const ROW_BYTES: u64 = 17;

/// Returns the bytes of a row, for the bound on all of them.
#[must_use]
pub fn history_bytes_of(name: &HistoryName, value: &[u8]) -> u64 {
    (name.0.len() + value.len()) as u64 + ROW_BYTES
}

/// Returns the first minute of the rows that are kept when a row of this minute is the newest.
#[must_use]
pub fn history_kept_from(grain: HistoryGrain, newest: Minute) -> Minute {
    Minute(newest.0.saturating_sub(grain.kept_for()))
}

/// Histories in memory.
#[derive(Debug, Default)]
pub(crate) struct HistoryTable {
    /// Rows of both grains by time, so that the oldest ones come first.
    rows: BTreeMap<(HistoryGrain, Minute, HistoryName, NodeId), Vec<u8>>,
    bytes: u64,
}

impl HistoryTable {
    pub(crate) fn put(&mut self, all: &[HistoryRows], bound: HistoryBound) {
        for HistoryRows { name, rows } in all {
            for row in rows {
                self.bytes += history_bytes_of(name, &row.value);
                let key = (row.grain, row.begins, name.clone(), row.node);
                if let Some(replaced) = self.rows.insert(key, row.value.clone()) {
                    self.bytes -= history_bytes_of(name, &replaced);
                }
            }
        }
        let newest = all.iter().flat_map(|all| &all.rows).map(|row| row.begins);
        let Some(newest) = newest.max() else { return };
        for grain in HistoryGrain::ALL {
            let from = history_kept_from(grain, newest);
            while let Some(begins) = self.oldest(grain).filter(|begins| *begins < from) {
                self.drop_first(grain, begins);
            }
        }
        while self.bytes > bound.bytes {
            let heads = HistoryGrain::ALL.map(|grain| self.oldest(grain).map(|at| (at, grain)));
            let Some((begins, grain)) = heads.into_iter().flatten().min() else {
                return;
            };
            self.drop_first(grain, begins);
        }
    }

    pub(crate) fn read(&self, name: &HistoryName, span: HistorySpan) -> Vec<HistoryRow> {
        let rows = self.rows.iter();
        let rows = rows.filter(|((grain, begins, of, _), _)| {
            let is_in_time = (span.from..span.until).contains(begins);
            *grain == span.grain && of == name && is_in_time
        });
        let rows = rows.map(|(&(grain, begins, _, node), value)| HistoryRow {
            grain,
            begins,
            node,
            value: value.clone(),
        });
        rows.collect()
    }

    fn oldest(&self, grain: HistoryGrain) -> Option<Minute> {
        let first = (grain, Minute(0), HistoryName(String::new()), NodeId(0));
        let (found, _) = self.rows.range(first..).next()?;
        (found.0 == grain).then_some(found.1)
    }

    fn drop_first(&mut self, grain: HistoryGrain, begins: Minute) {
        let first = (grain, begins, HistoryName(String::new()), NodeId(0));
        let key = self.rows.range(first..).next().map(|(key, _)| key.clone());
        let Some(key) = key else { return };
        if let Some(value) = self.rows.remove(&key) {
            self.bytes -= history_bytes_of(&key.2, &value);
        }
    }
}
