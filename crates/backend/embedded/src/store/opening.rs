//! Opening of the journal's file, and its replacement if it is not the newest one.
//!
//! A file that is empty, damaged or older than [`Progress`] lacks seats that were granted. It is
//! kept under another name, and a new journal with a [`JournalLoss`] replaces it.
//!
//! # Order
//!
//! The progress file is created before the journal, and the journal gets its name when it is
//! complete. So if a process ends in between, the next one reaches the same decision.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anteroom_room::time::DurationMs;
use anteroom_store::wire::ledger as record;
use redb::Database;

use super::journal::{About, Content, Journal, Opener, commit, content, display_name, put_records};
use super::loss::{JournalLoss, LossKind};
use super::progress::{Found, Progress, ProgressFile, sync_folder};
use crate::damage::is_damage;
use crate::data_dir::DataDir;
use anteroom_store::is_overrides;
use anteroom_store::{Clock, Record, RecordKey, StoreError};

/// Extension of a journal until it is complete.
const DRAFT: &str = "redb.new";

/// Location of the journal, and how to open it.
pub(super) struct Location<'a> {
    pub(super) dir: &'a DataDir,
    pub(super) opener: &'a Opener,
    pub(super) clock: &'a Arc<dyn Clock>,
    /// Metadata of the journal, if this process has granted leases and no other process has since.
    /// Then its memory wins over the disk.
    pub(super) own: Option<About>,
}

/// Result of checking the journal's file.
enum Checked {
    Absent,
    Lost(LossKind, String),
    Good(Database, Content),
}

/// Way in which a complete journal gets its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Naming {
    /// Fails if there is a journal.
    IfNone,
    /// Replaces the present journal, which is kept under another name.
    Replace,
}

type Records = BTreeMap<RecordKey, Record>;

impl Location<'_> {
    /// Opens the journal, or creates one.
    pub(super) fn open(&self) -> Result<(Journal, Content), StoreError> {
        let found = ProgressFile::open(&self.progress_path()).map_err(self.failed("open"))?;
        if let Found::Good(progress) = &found {
            self.clock.never_before(progress.content.as_of);
        }
        match self.check()? {
            Checked::Good(database, content) => self.compare(database, content, found),
            Checked::Lost(kind, why) => {
                let newest = Records::new();
                self.begin_after(kind, &why, found, &newest, Naming::Replace)
            }
            Checked::Absent => match &found {
                Found::Absent => self.begin(None, found, Records::new(), Naming::IfNone),
                // The journal was never written, or is rewritten from memory.
                Found::Good(progress) if progress.content.count == 0 || self.own.is_some() => {
                    self.begin(None, found, Records::new(), Naming::IfNone)
                }
                _ => {
                    let newest = Records::new();
                    self.begin_after(LossKind::Deleted, "", found, &newest, Naming::IfNone)
                }
            },
        }
    }

    /// Compares a readable journal with the progress file, and replaces one that is not the newest.
    fn compare(
        &self,
        database: Database,
        content: Content,
        found: Found,
    ) -> Result<(Journal, Content), StoreError> {
        let lost = match (&content.about, &found) {
            _ if self.own.is_some() => None,
            // The journal is of a version that did not count.
            (None, Found::Absent) => None,
            (None, Found::Good(progress)) if progress.content.count == 0 => None,
            (Some(about), Found::Good(progress)) => {
                let noted = progress.content;
                let is_newest = about.id == noted.id && about.count >= noted.count;
                (!is_newest).then_some(LossKind::Older)
            }
            (None, Found::Good(_)) => Some(LossKind::Older),
            (_, Found::Absent | Found::Damaged) => Some(LossKind::Uncounted),
        };
        if let Some(kind) = lost {
            drop(database);
            return self.begin_after(kind, "", found, &content.records, Naming::Replace);
        }
        let progress = self.progress(found)?;
        let known: Vec<About> = [self.own, content.about].into_iter().flatten().collect();
        let about = About {
            id: progress.content.id,
            count: known.iter().map(|about| about.count).max().unwrap_or(0),
            loss: known.into_iter().find_map(|about| about.loss),
        };
        Ok((self.journal(database, about, progress), content))
    }

    /// Creates a journal after a loss. Overrides are kept as far as they can be read, ledgers are
    /// not.
    fn begin_after(
        &self,
        kind: LossKind,
        why: &str,
        found: Found,
        left: &Records,
        naming: Naming,
    ) -> Result<(Journal, Content), StoreError> {
        let loss = self.loss(kind, &found, left);
        if self.own.is_some() {
            tracing::error!(why, "the journal is damaged: rewriting it from memory");
            return self.begin(Some(loss), found, Records::new(), naming);
        }
        let overrides = left.iter().filter(|(key, _)| is_overrides(key));
        let overrides = overrides.map(|(key, record)| (key.clone(), record.clone()));
        let created = self.begin(Some(loss), found, overrides.collect(), naming)?;
        tracing::error!(
            folder = %self.dir.path().display(),
            why,
            "{loss}: nobody is admitted until all earlier seats have ended; `anteroom status` \
             shows when; if there are no active visitors, `anteroom room assume-empty NAME` ends \
             the wait"
        );
        Ok(created)
    }

    fn loss(&self, kind: LossKind, found: &Found, left: &Records) -> JournalLoss {
        let ledgers = left.iter().filter(|(key, _)| !is_overrides(key));
        let seats = ledgers.filter_map(|(_, found)| record::decode(&found.value).ok());
        let longest = seats.map(|ledger| ledger.longest_seat()).max();
        let noted = match found {
            Found::Good(progress) => progress.content.longest_seat,
            Found::Absent | Found::Damaged => DurationMs::ZERO,
        };
        JournalLoss {
            kind,
            at: self.clock.now(),
            longest_seat: noted.max(longest.unwrap_or_default()),
        }
    }

    /// Creates a journal with some records.
    fn begin(
        &self,
        loss: Option<JournalLoss>,
        found: Found,
        records: Records,
        naming: Naming,
    ) -> Result<(Journal, Content), StoreError> {
        let mut progress = self.progress(found)?;
        let own = self.own.map_or(0, |own| own.count);
        let about = About {
            id: progress.content.id,
            count: progress.content.count.max(own) + 1,
            // A journal from memory has only earlier losses.
            loss: self.own.map_or(loss, |own| own.loss),
        };
        let draft = self.dir.journal().with_extension(DRAFT);
        // A process that was killed while it created a journal leaves a draft.
        let _ = fs::remove_file(&draft);
        let created = self.create(
            &draft,
            about,
            &records,
            loss.filter(|_| naming == Naming::Replace),
        );
        let _ = fs::remove_file(&draft);
        let database = created?;
        let noted = Progress {
            count: about.count,
            ..progress.content
        };
        progress.note(noted).map_err(self.failed("write"))?;
        let content = Content {
            about: Some(about),
            records,
            ..Content::default()
        };
        Ok((self.journal(database, about, progress), content))
    }

    /// Creates a journal under another name, and then gives it its own. With `replaced`, the
    /// present journal is kept under the name of that loss.
    fn create(
        &self,
        draft: &Path,
        about: About,
        records: &Records,
        replaced: Option<JournalLoss>,
    ) -> Result<Database, StoreError> {
        let path = self.dir.journal();
        let database = (self.opener)(draft).map_err(self.failed("create"))?;
        let filled = commit(&database, about, |write| put_records(write, records));
        filled.map_err(self.failed("create"))?;
        let named = match replaced {
            None => fs::hard_link(draft, &path),
            Some(loss) => match fs::hard_link(&path, loss.kept_as(&path)) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => fs::rename(draft, &path),
            },
        };
        let named = named.and_then(|()| sync_folder(&path));
        named.map_err(self.failed("create"))?;
        Ok(database)
    }

    /// Returns the progress file, and creates one if there is none.
    fn progress(&self, found: Found) -> Result<ProgressFile, StoreError> {
        if let Found::Good(progress) = found {
            return Ok(progress);
        }
        let id = match self.own {
            Some(own) => own.id,
            None => getrandom::u64().map_err(self.failed("draw random numbers for"))?,
        };
        let content = Progress {
            id,
            ..Progress::default()
        };
        let created = ProgressFile::create(&self.progress_path(), content);
        created.map_err(self.failed("create"))
    }

    fn check(&self) -> Result<Checked, StoreError> {
        let path = self.dir.journal();
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Checked::Absent),
            Err(error) => return Err(self.failed("open")(error)),
            // redb would create a new database in it.
            Ok(metadata) if metadata.is_file() && metadata.len() == 0 => {
                return Ok(Checked::Lost(LossKind::Empty, String::new()));
            }
            Ok(_) => {}
        }
        let lost = |why: String| Ok(Checked::Lost(LossKind::Damaged, why));
        // redb checks what it reads, but may still panic on a file that it did not write.
        let checked = catch_unwind(AssertUnwindSafe(|| {
            let mut database = (self.opener)(&path)?;
            // The file may have been damaged since it was closed. Later reads are checked one by
            // one.
            let is_sound = database.check_integrity()?;
            let content = content(&database)?;
            Ok::<_, redb::Error>((database, content, is_sound))
        }));
        match checked {
            Ok(Ok((database, content, true))) => Ok(Checked::Good(database, content)),
            Ok(Ok((_, _, false))) => lost("its checksums are wrong".to_owned()),
            Ok(Err(redb::Error::DatabaseAlreadyOpen)) => Err(StoreError::Held {
                path: path.display().to_string(),
            }),
            Ok(Err(error)) if is_damage(&error) => lost(error.to_string()),
            Ok(Err(error)) => Err(self.failed("open")(error)),
            Err(_) => lost("it cannot be read".to_owned()),
        }
    }

    fn journal(&self, database: Database, about: About, progress: ProgressFile) -> Journal {
        let store_name = display_name(&self.dir.journal());
        Journal::new(
            (database, about),
            progress,
            store_name,
            Arc::clone(self.clock),
        )
    }

    fn progress_path(&self) -> PathBuf {
        self.dir.journal().with_extension("progress")
    }

    fn failed<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        doing: &'static str,
    ) -> impl FnOnce(E) -> StoreError {
        let store_name = display_name(&self.dir.journal());
        move |source| StoreError::Unavailable {
            doing,
            store_name,
            source: source.into(),
        }
    }
}
