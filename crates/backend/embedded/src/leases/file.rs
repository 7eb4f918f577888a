//! The file: opened, found wanting, made anew.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{DataDir, is_damage};
use anteroom_limit::lending::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit_store::lending::record::encode_epoch;
use anteroom_limit_store::lent::{Kept, Token};
use redb::{Builder, Database, DatabaseError, ReadableDatabase as _};

use crate::leases::failure::{Failure, cause};
use crate::leases::mark::Mark;
use crate::leases::tables::{About, FORM, Tables, about, begin};
use crate::leases::time::FileClock;

/// What of the file is kept in memory. A few thousand clients who are busy fit; the others lie in
/// the system's own cache.
const CACHE_BYTES: usize = 16 << 20;

/// The file in the data folder.
const NAME: &str = "lent.redb";
/// How a file is called until it is complete; what chance says follows.
const DRAFT: &str = "lent.redb.new-";
/// How a damaged one is called; an older one gives way to it.
const ASIDE: &str = "lent.redb.damaged";

/// Makes a database of a file.
pub(crate) type Opener = Box<dyn Fn(File) -> Result<Database, DatabaseError> + Send + Sync>;

/// Opens a file as it should be opened.
pub(crate) fn open_file(file: File) -> Result<Database, DatabaseError> {
    Builder::new().set_cache_size(CACHE_BYTES).create_file(file)
}

/// Where the file is, and how it is opened.
pub(crate) struct Place {
    pub(crate) dir: DataDir,
    pub(crate) clock: Arc<dyn FileClock>,
    pub(crate) opener: Opener,
}

/// An open file.
pub(crate) struct Open {
    pub(crate) database: Database,
    pub(crate) identity: StoreIdentity,
    /// How much it keeps of clients.
    pub(crate) bytes: u64,
    /// Where it lies on its disk.
    found: (u64, u64),
}

/// How a file that is complete gets its name.
#[derive(Clone, Copy, Debug)]
enum Naming {
    /// Unless there is one.
    IfNone,
    /// In the place of the one that there is.
    Over,
}

/// What came of a look at a file.
enum Looked {
    Good(Open),
    Damaged(redb::Error),
}

impl Place {
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join(NAME)
    }

    /// Opens the file, or makes one. `has_known`: this process has had one, so a new one has lost
    /// something.
    pub(crate) fn open(&self, has_known: bool) -> Result<Open, Failure> {
        let restored = self.dir.restore();
        restored.map_err(|source| Failure::Disk {
            doing: "make the folder of",
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
                        "what was lent of calls was deleted under the running process: all counts \
                         as spent"
                    );
                    Before::Lost
                } else {
                    Before::Nothing
                };
                return self.make(before, Naming::IfNone);
            }
            Err(error) => return Err(Failure::of_disk("open")(error)),
        };
        let metadata = file.metadata().map_err(Failure::of_disk("open"))?;
        match self.look(file, &metadata)? {
            Looked::Good(open) => Ok(open),
            Looked::Damaged(error) => {
                let aside = self.dir.path().join(ASIDE);
                tracing::error!(
                    %error,
                    file = %path.display(),
                    moved_to = %aside.display(),
                    "what was lent of calls is damaged: all counts as spent"
                );
                // The damaged one stays until another takes its place: if this process ends in
                // between, or the disk is full, nobody must find nothing and believe that it is a
                // first start.
                let _ = fs::remove_file(&aside);
                fs::hard_link(&path, &aside).map_err(Failure::of_disk("move aside"))?;
                self.make(Before::Lost, Naming::Over)
            }
        }
    }

    /// Whether the file is still the one that is open: somebody may have deleted it.
    pub(crate) fn has(&self, open: &Open) -> bool {
        fs::metadata(self.path()).is_ok_and(|metadata| place_of(&metadata) == open.found)
    }

    fn look(&self, file: File, metadata: &Metadata) -> Result<Looked, Failure> {
        if metadata.len() == 0 {
            // redb would begin a new one in it.
            let error = redb::Error::Corrupted("it is empty".to_owned());
            return Ok(Looked::Damaged(error));
        }
        // redb is careful with what it reads, and still may panic over a file that somebody else
        // wrote.
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut database = (self.opener)(file)?;
            // What lay there for a while may have rotted; afterwards nothing is read unseen.
            let is_sound = database.check_integrity()?;
            let (about, bytes) = about(&database.begin_read()?)?;
            Ok::<_, redb::Error>((database, is_sound, about, bytes))
        }));
        let (database, is_sound, about, bytes) = match looked {
            Ok(Ok(found)) => found,
            Ok(Err(redb::Error::DatabaseAlreadyOpen)) => return Err(Failure::Held),
            Ok(Err(error)) if is_damage(&error) => return Ok(Looked::Damaged(error)),
            Ok(Err(error)) => {
                return Err(Failure::Disk {
                    doing: "open",
                    source: cause(error),
                });
            }
            Err(_) => {
                let error = redb::Error::Corrupted("it cannot be read".to_owned());
                return Ok(Looked::Damaged(error));
            }
        };
        if about.form != FORM {
            let (found, known) = (about.form, FORM);
            return Err(Failure::Later { found, known });
        }
        self.clock.never_before(about.as_of);
        let mut open = Open {
            database,
            identity: about.identity,
            bytes,
            found: place_of(metadata),
        };
        let mark = Mark::of(metadata);
        if !is_sound || !about.mark.may_be(mark) {
            tracing::error!(
                file = %self.path().display(),
                is_sound,
                "what was lent of calls is a copy, or was mended: all counts as spent; if nobody \
                 has spent anything, \
                 say `anteroom limits assume-empty`"
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
        Ok(Looked::Good(open))
    }

    /// Makes a file that says what was before it. It gets its name when it is complete.
    fn make(&self, before: Before, naming: Naming) -> Result<Open, Failure> {
        self.remove_drafts();
        let draft = format!("{DRAFT}{:016x}", random()?);
        let draft = self.dir.path().join(draft);
        let made = self.make_draft(&draft, before).and_then(|open| {
            let named = match naming {
                Naming::IfNone => fs::hard_link(&draft, self.path()),
                Naming::Over => fs::rename(&draft, self.path()),
            };
            match named {
                // Another process was quicker.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Failure::Held),
                named => named.map(|()| open).map_err(Failure::of_disk("make")),
            }
        });
        // It has served, or must not stay; what cannot be removed now is with the next one.
        let _ = fs::remove_file(&draft);
        let open = made?;
        let folder = File::open(self.dir.path()).and_then(|folder| folder.sync_all());
        folder.map_err(Failure::of_disk("make"))?;
        let may_have_lent = before == Before::Lost;
        let file = self.path().display().to_string();
        tracing::info!(
            file,
            may_have_lent,
            "lease file made: it holds what is leased of requests"
        );
        Ok(open)
    }

    fn make_draft(&self, path: &Path, before: Before) -> Result<Open, Failure> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(Failure::of_disk("make"))?;
        let metadata = file.metadata().map_err(Failure::of_disk("make"))?;
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
        };
        let kept = Kept {
            token: Token((u128::from(random()?) << 64 | u128::from(random()?)).max(1)),
            value: encode_epoch(&epoch),
        };
        let about = About {
            form: FORM,
            identity,
            mark: Mark::of(&metadata),
            as_of: now,
        };
        let made = (self.opener)(file).map_err(redb::Error::from);
        let made = made.and_then(|database| {
            write(&database, |tables| {
                tables.put_about(&about)?;
                tables.put_epoch(&kept)
            })?;
            Ok(database)
        });
        let database = made.map_err(|error| Failure::Disk {
            doing: "make",
            source: cause(error),
        })?;
        Ok(Open {
            database,
            identity,
            bytes: 0,
            found: place_of(&metadata),
        })
    }

    /// Removes what processes left that were killed while they made a file.
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
            // Whoever makes it at this very moment tries again.
            let _ = fs::remove_file(draft);
        }
    }
}

fn place_of(metadata: &Metadata) -> (u64, u64) {
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
