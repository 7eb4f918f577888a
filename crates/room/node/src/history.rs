//! History of the rooms of a node: rows of finished minutes, until a store has them.
//!
//! Nothing here is on the path of a request. The room and its origins have counted by then, and
//! once a minute this module asks them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anteroom_history::{NodeFigures, OriginTotals, Query, RoomFigures, Row, Sample};
use anteroom_room::figures::MinuteFigures;
use anteroom_room::time::{Minute, Timestamp};
use anteroom_store::{
    HistoryBound, HistoryGrain, HistoryName, HistoryRow, HistoryRows, HistorySpan, Store,
    StoreError, chain,
};
use parking_lot::Mutex;

/// Most rows that wait for the store: 2 MiB. A node with 30 rooms keeps those of two hours.
const WAITING_MAX: usize = 4_096;
/// Timeout of a write. The next one is a second later.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Minutes of the room's figures that are kept until they are asked for.
const MINUTES_KEPT: usize = 4;

/// Source of what the origins of a room have answered.
pub trait OriginCounts: Send + Sync {
    /// Returns the responses since the start.
    fn totals(&self) -> OriginTotals;
}

/// Part of a room's history that is in no row yet.
#[derive(Default)]
pub(crate) struct Collector {
    /// Figures of the room by minute, oldest first.
    room: VecDeque<(Minute, RoomFigures)>,
    /// Time of the newest reply of the root's ledger.
    root_as_of: Timestamp,
    origin: Option<Arc<dyn OriginCounts>>,
    origin_before: OriginTotals,
    /// Row of the running quarter of an hour.
    quarter: Row,
}

impl Collector {
    /// Sets where the responses of the origins are counted.
    pub(crate) fn set_origin(&mut self, origin: Arc<dyn OriginCounts>) {
        if self.origin.is_none() {
            // A site may have served requests before the room began.
            self.origin_before = origin.totals();
        }
        self.origin = Some(origin);
    }

    /// Notes a reply of the ledger, unless the root's part of it is known already.
    pub(crate) fn note(&mut self, sample: Sample, root_as_of: Timestamp) {
        if root_as_of <= self.root_as_of {
            return;
        }
        self.root_as_of = root_as_of;
        let (minute, figures) = (sample.at.minute(), RoomFigures::of(sample));
        match self.room.back_mut() {
            Some((newest, known)) if *newest >= minute => known.join(&figures),
            _ => self.room.push_back((minute, figures)),
        }
        if self.room.len() > MINUTES_KEPT {
            self.room.pop_front();
        }
    }

    /// Returns the rows of finished minutes, and of the quarters of an hour with them so far.
    pub(crate) fn rows(&mut self, minutes: &[MinuteFigures], node: u64) -> Vec<HistoryRow> {
        let mut rows = Vec::with_capacity(2 * minutes.len());
        for (at, minute) in minutes.iter().enumerate() {
            let is_last = at + 1 == minutes.len();
            // Origins are asked once. If that was late, their responses are of the last minute.
            let origin = if is_last {
                self.origin_since()
            } else {
                OriginTotals::default()
            };
            let row = Row {
                begins: minute.minute,
                minutes: HistoryGrain::Minute.minutes(),
                node,
                figures: NodeFigures::of(minute, origin),
                room: self.room_in(minute.minute),
            };
            let begins = HistoryGrain::Quarter.begin_of(minute.minute);
            if self.quarter.begins != begins {
                self.quarter = Row {
                    begins,
                    minutes: HistoryGrain::Quarter.minutes(),
                    node,
                    ..Row::default()
                };
            }
            self.quarter.join(&row);
            rows.push(stored(HistoryGrain::Minute, &row));
            rows.push(stored(HistoryGrain::Quarter, &self.quarter));
        }
        rows
    }

    fn origin_since(&mut self) -> OriginTotals {
        let Some(origin) = &self.origin else {
            return OriginTotals::default();
        };
        let now = origin.totals();
        now.since(&std::mem::replace(&mut self.origin_before, now))
    }

    fn room_in(&self, minute: Minute) -> RoomFigures {
        let found = self.room.iter().find(|(of, _)| *of == minute);
        found.map(|(_, figures)| *figures).unwrap_or_default()
    }
}

fn stored(grain: HistoryGrain, row: &Row) -> HistoryRow {
    HistoryRow {
        grain,
        begins: row.begins,
        node: anteroom_room::id::NodeId(row.node),
        value: row.encode(),
    }
}

/// Counts of the rows of this node, since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HistoryStats {
    /// Rows that a store has.
    pub written: u64,
    /// Rows that were dropped because no store took them for too long.
    pub dropped: u64,
    /// Writes that failed.
    pub failed_writes: u64,
    /// Rows that wait for the store.
    pub waiting: usize,
}

/// Rows that wait for the store.
pub(crate) struct HistoryBuffer {
    /// Most bytes of history in a store.
    bytes_max: u64,
    rows: Mutex<VecDeque<(HistoryName, HistoryRow)>>,
    /// Locked during a write, so that no older row replaces a newer one.
    writing: tokio::sync::Mutex<()>,
    written: AtomicU64,
    dropped: AtomicU64,
    failed_writes: AtomicU64,
}

impl HistoryBuffer {
    /// Creates a buffer without rows, for a store that keeps this many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            rows: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed_writes: AtomicU64::new(0),
        }
    }

    pub(crate) fn stats(&self) -> HistoryStats {
        HistoryStats {
            written: self.written.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            failed_writes: self.failed_writes.load(Ordering::Relaxed),
            waiting: self.rows.lock().len(),
        }
    }

    /// Adds rows. One of the same time and node replaces a waiting one; the oldest ones are dropped
    /// if there are too many.
    pub(crate) fn add(&self, name: &HistoryName, rows: Vec<HistoryRow>) {
        let mut waiting = self.rows.lock();
        for row in rows {
            let is_same = |(of, other): &(HistoryName, HistoryRow)| {
                let (one, other) = ((row.grain, row.begins), (other.grain, other.begins));
                of == name && one == other
            };
            // A quarter of an hour changes with each minute, so it is among the newest.
            let newest = waiting.iter_mut().rev().take(WAITING_MAX / 4);
            match newest.into_iter().find(|each| is_same(each)) {
                Some((_, waiting)) => *waiting = row,
                None => waiting.push_back((name.clone(), row)),
            }
        }
        while waiting.len() > WAITING_MAX {
            waiting.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes all waiting rows. Those that the store does not take wait for the next time.
    pub(crate) async fn write(&self, store: &dyn Store, rooms: u64) {
        let _writing = self.writing.lock().await;
        // They stay until they are written: whoever waits for this may give up.
        let rows = self.rows.lock().clone();
        if rows.is_empty() {
            return;
        }
        let bound = HistoryBound {
            bytes: self.bytes_max,
            rooms,
        };
        let by_room = by_room(&rows);
        let written = store.put_history(&by_room, bound);
        let why = match tokio::time::timeout(TIMEOUT, written).await {
            Ok(Ok(())) => {
                let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
                self.written.fetch_add(count, Ordering::Relaxed);
                self.remove(&rows);
                return;
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => "no reply in time".to_owned(),
        };
        // The rooms' loops log that a store is unavailable.
        tracing::debug!(
            why,
            rows = rows.len(),
            "cannot write the history of rooms yet"
        );
        self.failed_writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes rows that are written. Those that were replaced meanwhile stay.
    fn remove(&self, written: &VecDeque<(HistoryName, HistoryRow)>) {
        // Both have the same order, and newer rows are at the end.
        let mut written = written.iter();
        self.rows.lock().retain(|(name, row)| {
            let same = written.find(|(of, other)| {
                of == name && (other.grain, other.begins) == (row.grain, row.begins)
            });
            same.is_none_or(|(_, other)| other != row)
        });
    }
}

/// Groups rows by room.
fn by_room(rows: &VecDeque<(HistoryName, HistoryRow)>) -> Vec<HistoryRows> {
    let mut rooms: Vec<HistoryRows> = Vec::new();
    for (name, row) in rows {
        match rooms.iter_mut().find(|room| room.name == *name) {
            Some(room) => room.rows.push(row.clone()),
            None => rooms.push(HistoryRows {
                name: name.clone(),
                rows: vec![row.clone()],
            }),
        }
    }
    rooms
}

/// Reads the rows of a room for a query. Rows that a newer version of the program wrote are left
/// out.
pub(crate) async fn read(
    store: &dyn Store,
    name: &HistoryName,
    query: &Query,
) -> Result<Vec<Row>, StoreError> {
    let grain = HistoryGrain::ALL
        .into_iter()
        .find(|grain| grain.minutes() == query.row_minutes())
        .unwrap_or(HistoryGrain::Quarter);
    let span = HistorySpan {
        grain,
        from: query.from,
        until: query.until,
    };
    let found = store.history(name, span).await?;
    let rows = found.into_iter().filter_map(|found| {
        let decoded = Row::decode(&found.value);
        if let Err(error) = &decoded {
            tracing::debug!(%error, room = name.0, "row of history left out");
        }
        let (figures, room) = decoded.ok()?;
        Some(Row {
            begins: found.begins,
            minutes: grain.minutes(),
            node: found.node.0,
            figures,
            room,
        })
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(minute: u64, value: u8) -> HistoryRow {
        HistoryRow {
            grain: HistoryGrain::Minute,
            begins: Minute(minute),
            node: anteroom_room::id::NodeId(1),
            value: vec![value],
        }
    }

    #[test]
    fn rows_that_were_replaced_or_added_during_a_write_stay() {
        let buffer = HistoryBuffer::new(1 << 20);
        let name = HistoryName("shop".to_owned());
        buffer.add(&name, vec![row(1, 0), row(2, 0), row(3, 0)]);
        let written = buffer.rows.lock().clone();
        buffer.add(&name, vec![row(2, 1), row(4, 0)]);
        buffer.remove(&written);
        let left: Vec<_> = buffer
            .rows
            .lock()
            .iter()
            .map(|(_, row)| row.clone())
            .collect();
        assert_eq!(left, [row(2, 1), row(4, 0)]);
    }

    #[test]
    fn a_full_buffer_drops_the_oldest_rows_and_counts_them() {
        let buffer = HistoryBuffer::new(1 << 20);
        let name = HistoryName("shop".to_owned());
        let most = WAITING_MAX as u64;
        buffer.add(&name, (0..most + 3).map(|at| row(at, 0)).collect());
        buffer.add(&name, vec![row(most + 2, 1)]);
        let stats = buffer.stats();
        assert_eq!((stats.waiting, stats.dropped), (WAITING_MAX, 3));
        let rows = buffer.rows.lock();
        assert_eq!(rows.front().map(|(_, row)| row.begins), Some(Minute(3)));
        assert_eq!(rows.back().map(|(_, row)| row.value.clone()), Some(vec![1]));
    }
}
