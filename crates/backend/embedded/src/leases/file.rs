//! Opening, checking and creating the file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{DataDir, is_damage};
use anteroom_limit::leases::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit_store::lease_store::{StoredRecord, Token};
use anteroom_limit_store::leases::record::encode_epoch;
use redb::{Builder, Database, DatabaseError, ReadableDatabase as _};

use crate::leases::failure::{Failure, cause};
use crate::leases::mark::Mark;
use crate::leases::tables::{About, FORMAT, Tables, about, begin};
use crate::leases::time::FileClock;

/// Size of the cache in memory: a few thousand busy clients. The system's page cache has the
/// others.
const CACHE_BYTES: usize = 16 << 20;

/// Name of the file in the data folder.
const NAME: &str = "lent.redb";
/// Name of a file until it is complete, followed by a random number.
const DRAFT: &str = "lent.redb.new-";
/// Name of a damaged file; it replaces an earlier one.
const ASIDE: &str = "lent.redb.damaged";

/// Function that opens a database on a file.
pub(crate) type Opener = Box<dyn Fn(File) -> Result<Database, DatabaseError> + Send + Sync>;

/// Opens a database on a file, with our cache size.
pub(crate) fn open_file(file: File) -> Result<Database, DatabaseError> {
    Builder::new().set_cache_size(CACHE_BYTES).create_file(file)
}

/// Location of the file, and how to open it.
pub(crate) struct Location {
    pub(crate) dir: DataDir,
    pub(crate) clock: Arc<dyn FileClock>,
    pub(crate) opener: Opener,
}

/// Open file.
pub(crate) struct Open {
    pub(crate) database: Database,
    pub(crate) identity: StoreIdentity,
    /// Size of all clients' records.
    pub(crate) bytes: u64,
    /// Device and inode of the file.
    inode: (u64, u64),
}

/// Way in which a complete file gets its name.
#[derive(Clone, Copy, Debug)]
enum Naming {
    /// Fails if there is a file.
    IfNone,
    /// Replaces the present file.
    Replace,
}

/// Result of checking a file.
enum Checked {
    Good(Open),
    Damaged(redb::Error),
}

impl Location {
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join(NAME)
    }

    /// Opens the file, or creates one. `has_known` says that this process has had one before, so
    /// that a new one means a loss.
    pub(crate) fn open(&self, has_known: bool) -> Result<Open, Failure> {
        let restored = self.dir.restore();
        restored.map_err(|source| Failure::Disk {
            doing: "create the folder of",
            source: Arc::new(source),
        })?;
        let path = self.path();
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let before = if has_known {
                    tracing::error!(
                        file = %path.display(),
                        "lease file deleted under the running process: everything counts as spent"
                    );
                    Before::Lost
                } else {
                    Before::Nothing
                };
                return self.create(before, Naming::IfNone);
            }
            Err(error) => return Err(Failure::of_disk("open")(error)),
        };
        let metadata = file.metadata().map_err(Failure::of_disk("open"))?;
        match self.check(file, &metadata)? {
            Checked::Good(open) => Ok(open),
            Checked::Damaged(error) => {
                let aside = self.dir.path().join(ASIDE);
                tracing::error!(
                    %error,
                    file = %path.display(),
                    moved_to = %aside.display(),
                    "lease file damaged: everything counts as spent"
                );
                // The damaged file stays until the new one replaces it. If this process ends in
                // between, the next one must not find no file and take that for a first start.
                let _ = fs::remove_file(&aside);
                fs::hard_link(&path, &aside).map_err(Failure::of_disk("move aside"))?;
                self.create(Before::Lost, Naming::Replace)
            }
        }
    }

    /// Whether the open file is still in the folder, and was not deleted.
    pub(crate) fn is_current(&self, open: &Open) -> bool {
        fs::metadata(self.path()).is_ok_and(|metadata| inode_of(&metadata) == open.inode)
    }

    fn check(&self, file: File, metadata: &Metadata) -> Result<Checked, Failure> {
        if metadata.len() == 0 {
            // redb would create a new database in it.
            let error = redb::Error::Corrupted("it is empty".to_owned());
            return Ok(Checked::Damaged(error));
        }
        // redb checks what it reads, but may still panic on a file that it did not write.
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut database = (self.opener)(file)?;
            // The file may have been damaged since it was closed. Later reads are checked one by
            // one.
            let is_sound = database.check_integrity()?;
            let (about, bytes) = about(&database.begin_read()?)?;
            Ok::<_, redb::Error>((database, is_sound, about, bytes))
        }));
        let (database, is_sound, about, bytes) = match checked {
            Ok(Ok(found)) => found,
            Ok(Err(redb::Error::DatabaseAlreadyOpen)) => return Err(Failure::Held),
            Ok(Err(error)) if is_damage(&error) => return Ok(Checked::Damaged(error)),
            Ok(Err(error)) => {
                return Err(Failure::Disk {
                    doing: "open",
                    source: cause(error),
                });
            }
            Err(_) => {
                let error = redb::Error::Corrupted("it cannot be read".to_owned());
                return Ok(Checked::Damaged(error));
            }
        };
        if about.format != FORMAT {
            let (found, known) = (about.format, FORMAT);
            return Err(Failure::Later { found, known });
        }
        self.clock.never_before(about.as_of);
        let mut open = Open {
            database,
            identity: about.identity,
            bytes,
            inode: inode_of(metadata),
        };
        let mark = Mark::of(metadata);
        if !is_sound || !about.mark.may_be(mark) {
            tracing::error!(
                file = %self.path().display(),
                is_sound,
                "lease file is a copy or was repaired: everything counts as spent; if no client \
                 has spent anything, run `anteroom limits assume-empty`"
            );
            open.identity = StoreIdentity(random()?);
        }
        let about = About {
            identity: open.identity,
            mark,
            ..about
        };
        let noted = write(&open.database, |tables| tables.put_about(&about));
        noted.map_err(|error| Failure::Disk {
            doing: "write",
            source: cause(error),
        })?;
        Ok(Checked::Good(open))
    }

    /// Creates a file, with the epoch that says what was before it. It gets its name when it is
    /// complete.
    fn create(&self, before: Before, naming: Naming) -> Result<Open, Failure> {
        self.remove_drafts();
        let draft = format!("{DRAFT}{:016x}", random()?);
        let draft = self.dir.path().join(draft);
        let created = self.create_draft(&draft, before).and_then(|open| {
            let named = match naming {
                Naming::IfNone => fs::hard_link(&draft, self.path()),
                Naming::Replace => fs::rename(&draft, self.path()),
            };
            match named {
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Failure::Held),
                named => named.map(|()| open).map_err(Failure::of_disk("create")),
            }
        });
        // The draft is not needed any more. If it cannot be removed now, the next start does it.
        let _ = fs::remove_file(&draft);
        let open = created?;
        let folder = File::open(self.dir.path()).and_then(|folder| folder.sync_all());
        folder.map_err(Failure::of_disk("create"))?;
        let may_have_granted = before == Before::Lost;
        let file = self.path().display().to_string();
        tracing::info!(file, may_have_granted, "lease file created");
        Ok(open)
    }

    fn create_draft(&self, path: &Path, before: Before) -> Result<Open, Failure> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(Failure::of_disk("create"))?;
        let metadata = file.metadata().map_err(Failure::of_disk("create"))?;
        let identity = StoreIdentity(random()?);
        let now = self.clock.now();
        let epoch = Epoch {
            id: EpochId {
                number: 1,
                random: random()?,
            },
            identity,
            began_at: now,
            before,
            longest_loss: None,
        };
        let kept = StoredRecord {
            token: Token((u128::from(random()?) << 64 | u128::from(random()?)).max(1)),
            value: encode_epoch(&epoch),
        };
        let about = About {
            format: FORMAT,
            identity,
            mark: Mark::of(&metadata),
            as_of: now,
        };
        let created = (self.opener)(file).map_err(redb::Error::from);
        let created = created.and_then(|database| {
            write(&database, |tables| {
                tables.put_about(&about)?;
                tables.put_epoch(&kept)
            })?;
            Ok(database)
        });
        let database = created.map_err(|error| Failure::Disk {
            doing: "create",
            source: cause(error),
        })?;
        Ok(Open {
            database,
            identity,
            bytes: 0,
            inode: inode_of(&metadata),
        })
    }

    /// Removes drafts of processes that were killed while they created a file.
    fn remove_drafts(&self) {
        let Ok(entries) = fs::read_dir(self.dir.path()) else {
            return;
        };
        let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_draft = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(DRAFT))
        };
        for draft in names.filter(is_draft) {
            // A process that creates one at this moment will try again.
            let _ = fs::remove_file(draft);
        }
    }
}

fn inode_of(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn write(
    database: &Database,
    work: impl FnOnce(&mut Tables<'_>) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let write = begin(database)?;
    work(&mut Tables::open(&write)?)?;
    Ok(write.commit()?)
}

fn random() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| Failure::Disk {
        doing: "draw random numbers for",
        source: Arc::new(error),
    })
}
