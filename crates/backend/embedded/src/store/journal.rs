//! Tables of the journal. Every write is one transaction, which has reached the disk when it
//! returns. [`ProgressFile`] counts it as well.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use anteroom_room::allocation::{CounterKey, CounterScope};
use anteroom_room::id::DataCenterId;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    TableDefinition, TableError, WriteTransaction,
};

use super::loss::{JournalLoss, LossKind};
use super::progress::{Progress, ProgressFile};
use anteroom_store::{Clock, CounterName, Record, RecordKey, RecordVersion, StoreError};

/// Key of a record -> (version, record).
const LEDGERS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("ledgers");
/// Key of a record -> time at which it ends, in ms; none for a record that stays.
const ENDS: TableDefinition<'_, &str, u64> = TableDefinition::new("ends");
/// (Minute, scope, data center, room) -> numbers reserved. Minute first: old ones are dropped.
const COUNTERS: TableDefinition<'_, (u64, u8, u32, &str), u64> = TableDefinition::new("counters");

/// Metadata of the journal, by name.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");

const SCOPE_DATA_CENTER: u8 = 0;
const SCOPE_ANYWHERE: u8 = 1;

/// Function that opens the journal's file.
pub(super) type Opener = Box<dyn Fn(&Path) -> Result<Database, DatabaseError> + Send + Sync>;

/// Opens a journal on a real file, which only its owner may read.
pub(super) fn open_file(path: &Path) -> Result<Database, DatabaseError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    Database::create(path)
}

/// Metadata of a journal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct About {
    /// Id of the journal.
    pub(super) id: u64,
    /// Number of commits to it and to its predecessors in the same folder.
    pub(super) count: u64,
    /// Loss of its predecessor, if there was one.
    pub(super) loss: Option<JournalLoss>,
}

/// End of a record that is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// No end, neither before nor now.
    None,
    /// No end any more: the record stays.
    Removed,
    /// End at this time.
    At(Timestamp),
}

/// Content of a journal.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Metadata; `None` in a journal of a version that did not count commits.
    pub(super) about: Option<About>,
    pub(super) records: BTreeMap<RecordKey, Record>,
    /// Ends of records that do not stay.
    pub(super) ends: BTreeMap<RecordKey, Timestamp>,
    /// Number of reserved numbers of each counter.
    pub(super) counters: BTreeMap<CounterName, u64>,
}

/// Open journal.
pub(super) struct Journal {
    database: Database,
    store_name: String,
    about: About,
    progress: ProgressFile,
    clock: Arc<dyn Clock>,
}

impl Journal {
    /// Returns a journal that continues the counts of `about` and `progress`.
    pub(super) fn new(
        (database, about): (Database, About),
        progress: ProgressFile,
        store_name: String,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let count = about.count.max(progress.content.count);
        Self {
            database,
            store_name,
            about: About { count, ..about },
            progress,
            clock,
        }
    }

    /// Returns the metadata of the journal.
    pub(super) fn about(&self) -> About {
        self.about
    }

    /// Records that a ledger grants seats of this length.
    pub(super) fn note_longest_seat(&mut self, longest: DurationMs) {
        let content = &mut self.progress.content;
        content.longest_seat = content.longest_seat.max(longest);
    }

    /// Writes one record.
    pub(super) fn write(
        &mut self,
        key: &RecordKey,
        record: &Record,
        end: End,
    ) -> Result<(), StoreError> {
        self.commit(|write| {
            let mut table = write.open_table(LEDGERS)?;
            table.insert(key.0.as_str(), (record.version.0, record.value.as_slice()))?;
            match end {
                End::None => {}
                End::At(at) => {
                    write.open_table(ENDS)?.insert(key.0.as_str(), at.0)?;
                }
                End::Removed => {
                    write.open_table(ENDS)?.remove(key.0.as_str())?;
                }
            }
            Ok(())
        })
    }

    /// Removes records.
    pub(super) fn remove(&mut self, keys: &[RecordKey]) -> Result<(), StoreError> {
        self.commit(|write| {
            let mut table = write.open_table(LEDGERS)?;
            let mut ends = write.open_table(ENDS)?;
            for key in keys {
                table.remove(key.0.as_str())?;
                ends.remove(key.0.as_str())?;
            }
            Ok(())
        })
    }

    /// Writes all records with their ends, and counters, in one transaction.
    pub(super) fn write_all(
        &mut self,
        records: &BTreeMap<RecordKey, Record>,
        record_ends: &BTreeMap<RecordKey, Timestamp>,
        counters: &BTreeMap<CounterName, u64>,
    ) -> Result<(), StoreError> {
        self.commit(|write| {
            put_records(write, records)?;
            let mut ends = write.open_table(ENDS)?;
            ends.retain(|_, _| false)?;
            for (key, at) in record_ends {
                ends.insert(key.0.as_str(), at.0)?;
            }
            let mut table = write.open_table(COUNTERS)?;
            for (name, reserved) in counters {
                table.insert(counter_key(name), reserved)?;
            }
            Ok(())
        })
    }

    /// Records that numbers of a counter below `reserved` may have been taken, and removes counters
    /// of minutes before `oldest`.
    pub(super) fn reserve(
        &mut self,
        name: &CounterName,
        reserved: u64,
        oldest: Minute,
    ) -> Result<(), StoreError> {
        self.commit(|write| {
            let mut table = write.open_table(COUNTERS)?;
            table.insert(counter_key(name), reserved)?;
            table.retain(|(minute, ..), _| minute >= oldest.0)?;
            Ok(())
        })
    }

    /// Syncs the count of commits to the disk.
    pub(super) fn sync_progress(&mut self) {
        if let Err(error) = self.progress.sync() {
            tracing::warn!(%error, "cannot sync the count of the journal's commits");
        }
    }

    /// Commits a transaction, counted in the journal first and outside of it afterwards. If the
    /// process ends in between, the journal is ahead by a commit that was not confirmed.
    fn commit(
        &mut self,
        fill: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        let about = About {
            count: self.about.count + 1,
            ..self.about
        };
        let written = commit(&self.database, about, fill);
        written.map_err(|error| self.unwritten(Box::new(error)))?;
        let content = Progress {
            id: about.id,
            count: about.count,
            as_of: self.clock.now(),
            ..self.progress.content
        };
        let noted = self.progress.note(content);
        noted.map_err(|error| self.unwritten(Box::new(error)))?;
        self.about = about;
        Ok(())
    }

    fn unwritten(&self, source: Box<dyn Error + Send + Sync>) -> StoreError {
        StoreError::Unavailable {
            doing: "write",
            store_name: self.store_name.clone(),
            source,
        }
    }
}

/// Commits a transaction together with the journal's metadata.
pub(super) fn commit(
    database: &Database,
    about: About,
    fill: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    fill(&write)?;
    {
        let mut table = write.open_table(ABOUT)?;
        table.insert("id", about.id)?;
        table.insert("count", about.count)?;
        if let Some(loss) = about.loss {
            table.insert("loss", loss.kind.code())?;
            table.insert("lost_at", loss.at.0)?;
            table.insert("longest_lost", loss.longest_seat.0)?;
        }
    }
    Ok(write.commit()?)
}

/// Writes records in a transaction.
pub(super) fn put_records(
    write: &WriteTransaction,
    records: &BTreeMap<RecordKey, Record>,
) -> Result<(), redb::Error> {
    let mut table = write.open_table(LEDGERS)?;
    for (key, record) in records {
        table.insert(key.0.as_str(), (record.version.0, record.value.as_slice()))?;
    }
    Ok(())
}

/// Reads the content of a journal.
pub(super) fn content(database: &Database) -> Result<Content, redb::Error> {
    let read = database.begin_read()?;
    Ok(Content {
        about: read_about(&read)?,
        records: read_records(&read)?,
        ends: read_ends(&read)?,
        counters: read_counters(&read)?,
    })
}

fn read_about(read: &ReadTransaction) -> Result<Option<About>, redb::Error> {
    let table = match read.open_table(ABOUT) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        table => table?,
    };
    let value = |name: &str| -> Result<Option<u64>, redb::Error> {
        Ok(table.get(name)?.map(|found| found.value()))
    };
    let incomplete = || redb::Error::Corrupted("its metadata is incomplete".to_owned());
    let loss = match value("loss")? {
        Some(code) => Some(JournalLoss {
            kind: LossKind::of_code(code),
            at: Timestamp(value("lost_at")?.ok_or_else(incomplete)?),
            longest_seat: DurationMs(value("longest_lost")?.ok_or_else(incomplete)?),
        }),
        None => None,
    };
    Ok(Some(About {
        id: value("id")?.ok_or_else(incomplete)?,
        count: value("count")?.ok_or_else(incomplete)?,
        loss,
    }))
}

fn read_records(read: &ReadTransaction) -> Result<BTreeMap<RecordKey, Record>, redb::Error> {
    let table = match read.open_table(LEDGERS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
        table => table?,
    };
    let mut records = BTreeMap::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        let (version, bytes) = value.value();
        let record = Record {
            version: RecordVersion(version),
            value: bytes.to_vec(),
        };
        records.insert(RecordKey(key.value().to_owned()), record);
    }
    Ok(records)
}

fn read_ends(read: &ReadTransaction) -> Result<BTreeMap<RecordKey, Timestamp>, redb::Error> {
    let table = match read.open_table(ENDS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
        table => table?,
    };
    let mut ends = BTreeMap::new();
    for entry in table.iter()? {
        let (key, at) = entry?;
        ends.insert(RecordKey(key.value().to_owned()), Timestamp(at.value()));
    }
    Ok(ends)
}

fn read_counters(read: &ReadTransaction) -> Result<BTreeMap<CounterName, u64>, redb::Error> {
    let table = match read.open_table(COUNTERS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
        table => table?,
    };
    let mut counters = BTreeMap::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        let (minute, scope, data_center, room) = key.value();
        let scope = match scope {
            SCOPE_ANYWHERE => CounterScope::Anywhere,
            _ => CounterScope::DataCenter(DataCenterId(data_center)),
        };
        let key = CounterKey {
            scope,
            minute: Minute(minute),
        };
        let room = room.to_owned();
        counters.insert(CounterName { room, key }, value.value());
    }
    Ok(counters)
}

/// Returns the name of a journal for errors.
pub(super) fn display_name(journal: &Path) -> String {
    format!("the journal {}", journal.display())
}

fn counter_key(name: &CounterName) -> (u64, u8, u32, &str) {
    let (scope, data_center) = match name.key.scope {
        CounterScope::DataCenter(id) => (SCOPE_DATA_CENTER, id.0),
        CounterScope::Anywhere => (SCOPE_ANYWHERE, 0),
    };
    (name.key.minute.0, scope, data_center, name.room.as_str())
}
