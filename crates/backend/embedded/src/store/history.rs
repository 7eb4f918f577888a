//! File of the history of rooms, beside the journal.
//!
//! # Why a file of its own
//!
//! A start checks all of the journal, and each write of a ledger waits for the one before. Neither
//! may take longer because of what is for people alone. A damaged file costs the history and
//! nothing else.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anteroom_room::id::NodeId;
use anteroom_room::time::Minute;
use anteroom_store::{
    HistoryBound, HistoryGrain, HistoryName, HistoryRow, HistoryRows, HistorySpan, StoreError,
    history_bytes_of, history_kept_from,
};
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, Table,
    TableDefinition, TableError, WriteTransaction,
};

use super::journal::Opener;
use crate::damage::is_damage;

/// Grain, first minute, name of the history and process of a row: the oldest row of a grain is its
/// first one.
type Key<'a> = (u8, u64, &'a str, u64);

/// Rows.
const ROWS: TableDefinition<'_, Key<'_>, &[u8]> = TableDefinition::new("rows");

/// Name of the file in the data folder.
const NAME: &str = "history.redb";
/// Name of a damaged file; it replaces an earlier one.
const ASIDE: &str = "history.redb.damaged";
/// Size of the cache in memory: rows are written once a minute, and read by a person now and then.
const CACHE_BYTES: usize = 4 << 20;

/// Opens a database on a real file, which only its owner may read.
pub(super) fn open_file(path: &Path) -> Result<Database, DatabaseError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(0o600).open(path)?;
    Builder::new().set_cache_size(CACHE_BYTES).create_file(file)
}

/// File of the history; opened by its first use.
pub(super) struct HistoryFile {
    path: PathBuf,
    opener: Opener,
    open: Option<Open>,
}

struct Open {
    database: Database,
    /// Bytes of all rows.
    bytes: u64,
}

impl HistoryFile {
    /// Returns the file in `folder`.
    pub(super) fn new(folder: &Path, opener: Opener) -> Self {
        Self {
            path: folder.join(NAME),
            opener,
            open: None,
        }
    }

    /// Writes rows, and drops those that are too old or too many.
    pub(super) fn put(
        &mut self,
        rows: &[HistoryRows],
        bound: HistoryBound,
    ) -> Result<(), StoreError> {
        let open = self.open()?;
        match open.put(rows, bound) {
            Ok(bytes) => {
                open.bytes = bytes;
                Ok(())
            }
            Err(error) => Err(self.failed("write", error)),
        }
    }

    /// Reads rows.
    pub(super) fn read(
        &mut self,
        name: &HistoryName,
        span: HistorySpan,
    ) -> Result<Vec<HistoryRow>, StoreError> {
        let read = read(&self.open()?.database, name, span);
        read.map_err(|error| self.failed("read", error))
    }

    /// Closes the file. The next use opens it again.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    fn open(&mut self) -> Result<&mut Open, StoreError> {
        if !self.path.exists() {
            self.close();
        }
        if self.open.is_none() {
            self.open = Some(self.open_or_replace()?);
        }
        self.open.as_mut().ok_or(StoreError::Closed)
    }

    fn open_or_replace(&self) -> Result<Open, StoreError> {
        // redb checks what it reads, but may still panic on a file that it did not write.
        let opened = catch_unwind(AssertUnwindSafe(|| self.try_open()));
        let why = match opened {
            Ok(Ok(open)) => return Ok(open),
            Ok(Err(error)) if is_damage(&error) => error.to_string(),
            Ok(Err(error)) => return Err(self.unavailable("open", error)),
            Err(_) => "it cannot be read".to_owned(),
        };
        let aside = self.path.with_file_name(ASIDE);
        tracing::error!(
            why,
            file = %self.path.display(),
            moved_to = %aside.display(),
            "the history of rooms is damaged: it begins anew"
        );
        let moved = fs::rename(&self.path, &aside);
        moved.map_err(|error| self.unavailable("move aside", error.into()))?;
        self.try_open()
            .map_err(|error| self.unavailable("create", error))
    }

    fn try_open(&self) -> Result<Open, redb::Error> {
        let database = (self.opener)(&self.path)?;
        let bytes = bytes(&database)?;
        Ok(Open { database, bytes })
    }

    fn failed(&mut self, doing: &'static str, error: redb::Error) -> StoreError {
        // It is not known what is on the disk, and a damaged file is replaced when it is opened.
        self.close();
        self.unavailable(doing, error)
    }

    fn unavailable(&self, doing: &'static str, error: redb::Error) -> StoreError {
        StoreError::Unavailable {
            doing,
            store_name: format!("the history {}", self.path.display()),
            source: Box::new(error),
        }
    }
}

impl Open {
    /// Writes rows and returns the bytes of all rows afterwards.
    fn put(&self, all: &[HistoryRows], bound: HistoryBound) -> Result<u64, redb::Error> {
        let write = self.database.begin_write()?;
        let bytes = put(&write, self.bytes, all, bound)?;
        write.commit()?;
        Ok(bytes)
    }
}

fn put(
    write: &WriteTransaction,
    mut bytes: u64,
    all: &[HistoryRows],
    bound: HistoryBound,
) -> Result<u64, redb::Error> {
    let mut table = write.open_table(ROWS)?;
    for HistoryRows { name, rows } in all {
        for row in rows {
            let key = (code(row.grain), row.begins.0, name.0.as_str(), row.node.0);
            bytes += history_bytes_of(name, &row.value);
            if let Some(replaced) = table.insert(key, row.value.as_slice())? {
                bytes = bytes.saturating_sub(history_bytes_of(name, replaced.value()));
            }
        }
    }
    let newest = all.iter().flat_map(|all| &all.rows).map(|row| row.begins);
    let Some(newest) = newest.max() else {
        return Ok(bytes);
    };
    for grain in HistoryGrain::ALL {
        let from = history_kept_from(grain, newest);
        while oldest(&table, grain)?.is_some_and(|begins| begins < from) {
            bytes = bytes.saturating_sub(drop_first(&mut table, grain)?);
        }
    }
    while bytes > bound.bytes {
        let [minute, quarter] = HistoryGrain::ALL;
        let grain = match (oldest(&table, minute)?, oldest(&table, quarter)?) {
            (None, None) => break,
            (Some(_), None) => minute,
            (None, Some(_)) => quarter,
            (Some(one), Some(other)) if one < other => minute,
            _ => quarter,
        };
        bytes = bytes.saturating_sub(drop_first(&mut table, grain)?);
    }
    Ok(bytes)
}

/// Returns the first minute of a grain's oldest row.
fn oldest(
    table: &Table<'_, Key<'static>, &'static [u8]>,
    grain: HistoryGrain,
) -> Result<Option<Minute>, redb::Error> {
    let grain = code(grain);
    let mut rows = table.range((grain, 0, "", 0)..(grain + 1, 0, "", 0))?;
    let first = rows.next().transpose()?;
    Ok(first.map(|(key, _)| Minute(key.value().1)))
}

/// Removes a grain's oldest row and returns its bytes.
fn drop_first(
    table: &mut Table<'_, Key<'static>, &'static [u8]>,
    grain: HistoryGrain,
) -> Result<u64, redb::Error> {
    let grain = code(grain);
    let range = (grain, 0, "", 0)..(grain + 1, 0, "", 0);
    let mut rows = table.extract_from_if(range, |_, _| true)?;
    let first = rows.next().transpose()?;
    Ok(first.map_or(0, |(key, value)| bytes_of(key.value(), value.value())))
}

fn read(
    database: &Database,
    name: &HistoryName,
    span: HistorySpan,
) -> Result<Vec<HistoryRow>, redb::Error> {
    let read = database.begin_read()?;
    let table = match read.open_table(ROWS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        table => table?,
    };
    let grain = code(span.grain);
    let mut found = Vec::new();
    for entry in table.range((grain, span.from.0, "", 0)..(grain, span.until.0, "", 0))? {
        let (key, value) = entry?;
        let (_, begins, of, node) = key.value();
        if of == name.0 {
            found.push(HistoryRow {
                grain: span.grain,
                begins: Minute(begins),
                node: NodeId(node),
                value: value.value().to_vec(),
            });
        }
    }
    Ok(found)
}

fn bytes(database: &Database) -> Result<u64, redb::Error> {
    let read = database.begin_read()?;
    let table = match read.open_table(ROWS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(0),
        table => table?,
    };
    let mut bytes = 0;
    for entry in table.iter()? {
        let (key, value) = entry?;
        bytes += bytes_of(key.value(), value.value());
    }
    Ok(bytes)
}

fn bytes_of((_, _, name, _): Key<'_>, value: &[u8]) -> u64 {
    history_bytes_of(&HistoryName(name.to_owned()), value)
}

const fn code(grain: HistoryGrain) -> u8 {
    match grain {
        HistoryGrain::Minute => 0,
        HistoryGrain::Quarter => 1,
    }
}
