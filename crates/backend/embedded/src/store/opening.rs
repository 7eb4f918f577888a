//! Opens the journal's file: is it the newest one, and what becomes of one that is not?
//!
//! A file that is empty, damaged or older than [`Progress`] says has forgotten seats that were
//! given. It is kept under another name, and a journal takes its place that says what was lost.
//!
//! # Order
//!
//! The count outside is made before the journal, and the journal gets its name when it is complete.
//! So a process that ends in between leaves what the next one judges as this one did.

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

use super::journal::{About, Content, Journal, Opener, commit, content, place_of, put_records};
use super::loss::{JournalLoss, LossKind};
use super::progress::{Found, Progress, ProgressFile, sync_folder};
use crate::damage::is_damage;
use crate::data_dir::DataDir;
use anteroom_store::is_overrides;
use anteroom_store::{Clock, Record, RecordKey, StoreError};

/// How a journal is called until it is complete.
const DRAFT: &str = "redb.new";

/// Where the journal is, and how it is opened.
pub(super) struct Place<'a> {
    pub(super) dir: &'a DataDir,
    pub(super) opener: &'a Opener,
    pub(super) clock: &'a Arc<dyn Clock>,
    /// This process has lent, and nobody else since: what it has in memory counts, whatever is on
    /// the disk. What the journal said of itself then.
    pub(super) own: Option<About>,
}

/// What came of a look at the journal's file.
enum Looked {
    Absent,
    Lost(LossKind, String),
    Good(Database, Content),
}

/// How a journal that is complete gets its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Naming {
    /// Unless there is one.
    IfNone,
    /// In the place of the one that there is, which is kept under another name.
    Over,
}

type Records = BTreeMap<RecordKey, Record>;

impl Place<'_> {
    /// Opens the journal, or makes one.
    pub(super) fn open(&self) -> Result<(Journal, Content), StoreError> {
        let found = ProgressFile::open(&self.progress_path()).map_err(self.failed("open"))?;
        if let Found::Good(progress) = &found {
            self.clock.never_before(progress.says.as_of);
        }
        match self.look()? {
            Looked::Good(database, content) => self.judge(database, content, found),
            Looked::Lost(kind, why) => {
                let newest = Records::new();
                self.begin_after(kind, &why, found, &newest, Naming::Over)
            }
            Looked::Absent => match &found {
                Found::Absent => self.begin(None, found, Records::new(), Naming::IfNone),
                // It was never written to, or is written anew from memory.
                Found::Good(progress) if progress.says.count == 0 || self.own.is_some() => {
                    self.begin(None, found, Records::new(), Naming::IfNone)
                }
                _ => {
                    let newest = Records::new();
                    self.begin_after(LossKind::Deleted, "", found, &newest, Naming::IfNone)
                }
            },
        }
    }

    /// Whether a journal that can be read is the newest one.
    fn judge(
        &self,
        database: Database,
        content: Content,
        found: Found,
    ) -> Result<(Journal, Content), StoreError> {
        let lost = match (&content.about, &found) {
            _ if self.own.is_some() => None,
            // A journal of a version that did not count.
            (None, Found::Absent) => None,
            (None, Found::Good(progress)) if progress.says.count == 0 => None,
            (Some(about), Found::Good(progress)) => {
                let says = progress.says;
                let is_newest = about.id == says.id && about.count >= says.count;
                (!is_newest).then_some(LossKind::Older)
            }
            (None, Found::Good(_)) => Some(LossKind::Older),
            (_, Found::Absent | Found::Damaged) => Some(LossKind::Uncounted),
        };
        if let Some(kind) = lost {
            drop(database);
            return self.begin_after(kind, "", found, &content.records, Naming::Over);
        }
        let progress = self.progress(found)?;
        let said: Vec<About> = [self.own, content.about].into_iter().flatten().collect();
        let about = About {
            id: progress.says.id,
            count: said.iter().map(|about| about.count).max().unwrap_or(0),
            loss: said.into_iter().find_map(|about| about.loss),
        };
        Ok((self.journal(database, about, progress), content))
    }

    /// Begins a journal in the place of one that has lost its memory: what operators said is kept
    /// as far as it can be read, ledgers are not.
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
            tracing::error!(why, "the journal is damaged; writing it anew from memory");
            return self.begin(Some(loss), found, Records::new(), naming);
        }
        let said = left.iter().filter(|(key, _)| is_overrides(key));
        let said = said.map(|(key, record)| (key.clone(), record.clone()));
        let begun = self.begin(Some(loss), found, said.collect(), naming)?;
        tracing::error!(
            folder = %self.dir.path().display(),
            why,
            "{loss}: nobody is admitted until all that may have been given before has ended; \
             `anteroom status` states until when, and if nobody is inside, \
             `anteroom room NAME assume-empty` ends it"
        );
        Ok(begun)
    }

    fn loss(&self, kind: LossKind, found: &Found, left: &Records) -> JournalLoss {
        let ledgers = left.iter().filter(|(key, _)| !is_overrides(key));
        let seats = ledgers.filter_map(|(_, found)| record::decode(&found.value).ok());
        let longest = seats.map(|ledger| ledger.longest_seat()).max();
        let noted = match found {
            Found::Good(progress) => progress.says.longest_seat,
            Found::Absent | Found::Damaged => DurationMs::ZERO,
        };
        JournalLoss {
            kind,
            at: self.clock.now(),
            longest_seat: noted.max(longest.unwrap_or_default()),
        }
    }

    /// Makes a journal.
    fn begin(
        &self,
        loss: Option<JournalLoss>,
        found: Found,
        said: Records,
        naming: Naming,
    ) -> Result<(Journal, Content), StoreError> {
        let mut progress = self.progress(found)?;
        let own = self.own.map_or(0, |own| own.count);
        let about = About {
            id: progress.says.id,
            count: progress.says.count.max(own) + 1,
            // From memory nothing is lost, but what was lost before.
            loss: self.own.map_or(loss, |own| own.loss),
        };
        let draft = self.dir.journal().with_extension(DRAFT);
        // What a process left that was killed while it made one.
        let _ = fs::remove_file(&draft);
        let made = self.make(
            &draft,
            about,
            &said,
            loss.filter(|_| naming == Naming::Over),
        );
        let _ = fs::remove_file(&draft);
        let database = made?;
        let says = Progress {
            count: about.count,
            ..progress.says
        };
        progress.note(says).map_err(self.failed("write"))?;
        let content = Content {
            about: Some(about),
            records: said,
            ..Content::default()
        };
        Ok((self.journal(database, about, progress), content))
    }

    /// Makes a journal under another name, and gives it its own. `over`: what is there is kept
    /// under the name that this says.
    fn make(
        &self,
        draft: &Path,
        about: About,
        said: &Records,
        over: Option<JournalLoss>,
    ) -> Result<Database, StoreError> {
        let path = self.dir.journal();
        let database = (self.opener)(draft).map_err(self.failed("make"))?;
        let filled = commit(&database, about, |write| put_records(write, said));
        filled.map_err(self.failed("make"))?;
        let named = match over {
            None => fs::hard_link(draft, &path),
            Some(loss) => match fs::hard_link(&path, loss.kept_as(&path)) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => fs::rename(draft, &path),
            },
        };
        let named = named.and_then(|()| sync_folder(&path));
        named.map_err(self.failed("make"))?;
        Ok(database)
    }

    /// The count outside of the journal, made if there is none.
    fn progress(&self, found: Found) -> Result<ProgressFile, StoreError> {
        if let Found::Good(progress) = found {
            return Ok(progress);
        }
        let id = match self.own {
            Some(own) => own.id,
            None => getrandom::u64().map_err(self.failed("draw random numbers for"))?,
        };
        let says = Progress {
            id,
            ..Progress::default()
        };
        let made = ProgressFile::make(&self.progress_path(), says);
        made.map_err(self.failed("make"))
    }

    fn look(&self) -> Result<Looked, StoreError> {
        let path = self.dir.journal();
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Looked::Absent),
            Err(error) => return Err(self.failed("open")(error)),
            // redb would begin a new one in it.
            Ok(metadata) if metadata.is_file() && metadata.len() == 0 => {
                return Ok(Looked::Lost(LossKind::Empty, String::new()));
            }
            Ok(_) => {}
        }
        let lost = |why: String| Ok(Looked::Lost(LossKind::Damaged, why));
        // redb is careful with what it reads, and still may panic over a file that somebody else
        // wrote.
        let looked = catch_unwind(AssertUnwindSafe(|| {
            let mut database = (self.opener)(&path)?;
            // What lay there for a while may have rotted; afterwards nothing is read unseen.
            let is_sound = database.check_integrity()?;
            let content = content(&database)?;
            Ok::<_, redb::Error>((database, content, is_sound))
        }));
        match looked {
            Ok(Ok((database, content, true))) => Ok(Looked::Good(database, content)),
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
        let place = place_of(&self.dir.journal());
        Journal::new((database, about), progress, place, Arc::clone(self.clock))
    }

    fn progress_path(&self) -> PathBuf {
        self.dir.journal().with_extension("progress")
    }

    fn failed<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        doing: &'static str,
    ) -> impl FnOnce(E) -> StoreError {
        let place = place_of(&self.dir.journal());
        move |source| StoreError::Unavailable {
            doing,
            place,
            source: source.into(),
        }
    }
}
