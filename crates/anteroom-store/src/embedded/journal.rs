//! The journal's tables on disk. Every write is one transaction that has reached the disk when it
//! returns.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use anteroom_core::allocation::{CounterKey, CounterScope};
use anteroom_core::id::DataCenterId;
use anteroom_core::time::Minute;
use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::store::{CounterName, Record, RecordKey, RecordVersion, StoreError};

/// Room -> (version, ledger).
const LEDGERS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("ledgers");
/// (Minute, scope, data center, room) -> numbers reserved. Minute first: old ones are dropped.
const COUNTERS: TableDefinition<'_, (u64, u8, u32, &str), u64> = TableDefinition::new("counters");

const SCOPE_DATA_CENTER: u8 = 0;
const SCOPE_ANYWHERE: u8 = 1;

/// Opens the journal's file.
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

/// An open journal.
pub(super) struct Journal {
    database: Database,
    place: String,
}

impl Journal {
    pub(super) fn open(opener: &Opener, path: &Path) -> Result<Self, StoreError> {
        match opener(path) {
            Ok(database) => Ok(Self {
                database,
                place: place_of(path),
            }),
            Err(DatabaseError::DatabaseAlreadyOpen) => Err(StoreError::Held {
                path: path.display().to_string(),
            }),
            Err(source) => Err(StoreError::Unavailable {
                doing: "open",
                place: place_of(path),
                source: Box::new(source),
            }),
        }
    }

    /// All ledgers.
    pub(super) fn records(&self) -> Result<BTreeMap<RecordKey, Record>, StoreError> {
        self.attempt("read", || {
            let read = self.database.begin_read()?;
            let table = match read.open_table(LEDGERS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
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
        })
    }

    /// All counters: how many numbers of each are reserved.
    pub(super) fn counters(&self) -> Result<BTreeMap<CounterName, u64>, StoreError> {
        self.attempt("read", || {
            let read = self.database.begin_read()?;
            let table = match read.open_table(COUNTERS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
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
        })
    }

    /// Writes one ledger.
    pub(super) fn write(&mut self, key: &RecordKey, record: &Record) -> Result<(), StoreError> {
        self.attempt("write", || {
            let write = self.database.begin_write()?;
            {
                let mut table = write.open_table(LEDGERS)?;
                table.insert(key.0.as_str(), (record.version.0, record.value.as_slice()))?;
            }
            Ok(write.commit()?)
        })
    }

    /// Writes everything, in one transaction.
    pub(super) fn write_all(
        &mut self,
        records: &BTreeMap<RecordKey, Record>,
        counters: &BTreeMap<CounterName, u64>,
    ) -> Result<(), StoreError> {
        self.attempt("write", || {
            let write = self.database.begin_write()?;
            {
                let mut table = write.open_table(LEDGERS)?;
                for (key, record) in records {
                    table.insert(key.0.as_str(), (record.version.0, record.value.as_slice()))?;
                }
                let mut table = write.open_table(COUNTERS)?;
                for (name, reserved) in counters {
                    table.insert(counter_key(name), reserved)?;
                }
            }
            Ok(write.commit()?)
        })
    }

    /// Writes down that numbers of a counter below `reserved` may have been handed out, and forgets
    /// counters of minutes before `oldest`.
    pub(super) fn reserve(
        &mut self,
        name: &CounterName,
        reserved: u64,
        oldest: Minute,
    ) -> Result<(), StoreError> {
        self.attempt("write", || {
            let write = self.database.begin_write()?;
            {
                let mut table = write.open_table(COUNTERS)?;
                table.insert(counter_key(name), reserved)?;
                table.retain(|(minute, ..), _| minute >= oldest.0)?;
            }
            Ok(write.commit()?)
        })
    }

    fn attempt<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>>,
    ) -> Result<T, StoreError> {
        work().map_err(|source| StoreError::Unavailable {
            doing,
            place: self.place.clone(),
            source,
        })
    }
}

/// How a journal is called in errors.
pub(super) fn place_of(journal: &Path) -> String {
    format!("the journal {}", journal.display())
}

fn counter_key(name: &CounterName) -> (u64, u8, u32, &str) {
    let (scope, data_center) = match name.key.scope {
        CounterScope::DataCenter(id) => (SCOPE_DATA_CENTER, id.0),
        CounterScope::Anywhere => (SCOPE_ANYWHERE, 0),
    };
    (name.key.minute.0, scope, data_center, name.room.as_str())
}
