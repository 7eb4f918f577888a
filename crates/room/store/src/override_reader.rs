//! Overrides of one subject as a process reads them, and their recovery after a loss of the store.
//!
//! The newest overrides win: an older record never replaces a newer one, in any store. A process
//! that knows newer ones than the main store restores them there. A copy in the data center's own
//! store serves the same end. It is read once after the start, and has the overrides even if the
//! main store was emptied while no process ran.
//!
//! This module does not keep the overrides in effect, and does not decide when to read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anteroom_config::overrides::{Log, Record as OverrideRecord, UnreadableOverrides};
use anteroom_room::time::{DurationMs, Timestamp};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::overrides::{ChangeError, OverrideStore};
use crate::store::{Expected, Note, StoreError, chain};

/// Interval of reads of the whole record. Between them a read asks only for another version, which
/// a store that lost everything may by chance reach again.
const WHOLE_READ_INTERVAL: Duration = Duration::from_secs(60);
/// Timeout of a read or a write.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Overrides in effect in a process.
pub trait OverrideListener<R>: Sync {
    /// Returns the newest overrides that the process knows.
    fn known(&self) -> Arc<R>;

    /// Puts overrides into effect if they have something that the known ones lack.
    fn adopt(&self, overrides: R);
}

/// Main record that lacked nothing that was known, and had no news.
#[derive(Debug)]
struct Agreed<R> {
    expected: Expected,
    known: Arc<R>,
    at: Instant,
}

/// Stored overrides of one subject, as one process reads and changes them.
#[derive(Debug)]
pub struct OverrideFeed<R> {
    /// Main record.
    main: OverrideStore<R>,
    /// Copy in this data center's own store, for a node that starts while the root's store is
    /// unavailable or has lost the record.
    copy: Option<OverrideStore<R>>,
    are_others: bool,
    about: Box<str>,
    is_failing: AtomicBool,
    /// Whether the main record was ever read.
    has_heard: AtomicBool,
    /// Whether there is no copy, or it was read since this process began.
    has_heard_copy: AtomicBool,
    /// Whether a main record or a copy was ever found.
    has_found: AtomicBool,
    /// Whether there is a copy that cannot be read.
    is_copy_damaged: AtomicBool,
    /// Time for which a copy counts after it was last known to equal the main record; `None` for
    /// ever.
    copy_lifetime: Option<DurationMs>,
    /// State of the main record at the newest read. What was found is known since.
    seen: Mutex<Option<Expected>>,
    /// Newest read of the main record, and what was known then, if neither lacked anything.
    agreed: Mutex<Option<Agreed<R>>>,
}

impl<R: OverrideRecord> OverrideFeed<R> {
    /// Returns a feed of the main record and its copy. `are_others` says whether other processes
    /// write there. `about` names the subject in logs.
    #[must_use]
    pub fn new(
        (main, copy): (OverrideStore<R>, Option<OverrideStore<R>>),
        are_others: bool,
        about: &str,
    ) -> Self {
        let has_heard_copy = AtomicBool::new(copy.is_none());
        Self {
            main,
            copy,
            are_others,
            about: about.into(),
            is_failing: AtomicBool::new(false),
            has_heard: AtomicBool::new(false),
            has_heard_copy,
            has_found: AtomicBool::new(false),
            is_copy_damaged: AtomicBool::new(false),
            copy_lifetime: None,
            seen: Mutex::new(None),
            agreed: Mutex::new(None),
        }
    }

    /// Lets the data center's copy expire this long after the newest [`OverrideFeed::renew_copy`].
    #[must_use]
    pub fn with_copy_lifetime(self, lifetime: DurationMs) -> Self {
        Self {
            copy_lifetime: Some(lifetime),
            ..self
        }
    }

    /// Returns the main store, and the data center's if that is another one.
    pub fn stores(&self) -> impl Iterator<Item = &OverrideStore<R>> {
        std::iter::once(&self.main).chain(&self.copy)
    }

    /// Whether a main record or a copy was ever found, even an empty one.
    #[must_use]
    pub fn has_found(&self) -> bool {
        self.has_found.load(Ordering::Relaxed)
    }

    /// Whether there is a copy that cannot be read.
    #[must_use]
    pub fn is_copy_damaged(&self) -> bool {
        self.is_copy_damaged.load(Ordering::Relaxed)
    }

    /// Returns the state of the main record at the newest read. All that was found there is known.
    #[must_use]
    pub fn seen(&self) -> Option<Expected> {
        *self.seen.lock()
    }

    /// Returns the state of the main record if that lacked nothing of `known` at the newest read.
    #[must_use]
    pub fn has_all_of(&self, known: &Arc<R>) -> Option<Expected> {
        let agreed = self.agreed.lock();
        let agreed = agreed.as_ref();
        let agreed = agreed.filter(|agreed| Arc::ptr_eq(&agreed.known, known));
        agreed.map(|agreed| agreed.expected)
    }

    /// Returns the notes that readers left beside the main record, after a second at most.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the main store fails.
    pub async fn notes(&self) -> Result<Vec<Note>, StoreError> {
        in_time(self.main.notes(), &self.about).await
    }

    /// Removes the note of a reader. If that fails, it expires.
    pub async fn remove_note(&self, name: &str) {
        let note = Note {
            name: name.to_owned(),
            value: Vec::new(),
        };
        let removing = self.main.read_changed(self.seen(), Some(&note));
        if let Err(error) = in_time(removing, &self.about).await {
            tracing::debug!(cause = chain(&error), "note not removed");
        }
    }

    /// Lets the data center's copy count for another lifetime. Call it while the main record can be
    /// read. A failure does no harm before the copy expires.
    pub async fn renew_copy(&self) {
        if let (Some(copy), Some(lifetime)) = (&self.copy, self.copy_lifetime)
            && let Err(error) = in_time(copy.keep_for(lifetime), &self.about).await
        {
            let cause = chain(&error);
            tracing::debug!(
                cause,
                about = &*self.about,
                "copy of the overrides not renewed"
            );
        }
    }

    /// Whether other processes may change the overrides.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.are_others
    }

    /// Whether the newest read failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Whether the main record was ever read.
    #[must_use]
    pub fn was_read(&self) -> bool {
        self.has_heard.load(Ordering::Relaxed)
    }

    /// Whether there is a copy.
    #[must_use]
    pub const fn has_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// Whether there is no copy, or it was read since this process began.
    #[must_use]
    pub fn was_copy_read(&self) -> bool {
        self.has_heard_copy.load(Ordering::Relaxed)
    }

    /// Reads the overrides, for at most a second. Until the copy was read once, reads it before,
    /// for at most another second.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the main record cannot be read. The newest of the known overrides and the
    /// copy's stay in effect.
    pub async fn read(&self, listener: &impl OverrideListener<R>) -> Result<(), StoreError> {
        self.read_and_note(listener, None).await
    }

    /// Reads the overrides as [`OverrideFeed::read`] does, and leaves a note beside the main record
    /// with the same request.
    ///
    /// # Errors
    ///
    /// As [`OverrideFeed::read`]. The note may not be left then.
    pub async fn read_and_note(
        &self,
        listener: &impl OverrideListener<R>,
        note: Option<&Note>,
    ) -> Result<(), StoreError> {
        // The copy goes first: a change writes it last.
        if let Err(error) = self.read_copy(listener).await {
            tracing::debug!(
                cause = chain(&error),
                about = &*self.about,
                "copy of the overrides not read"
            );
        }
        // Taken before the read: a change made here meanwhile is not a loss of the store.
        let known = listener.known();
        let expected = self.expected(&known);
        let read = in_time(self.main.read_changed(expected, note), &self.about).await;
        let was_failing = self.is_failing.swap(read.is_err(), Ordering::Relaxed);
        let found = read.inspect_err(|error| {
            // A successor waits for its predecessor's journal. That is no failure.
            let is_early = matches!(error, StoreError::Held { .. }) && !self.was_read();
            if !was_failing && !is_early {
                tracing::warn!(
                    about = &*self.about,
                    cause = chain(error),
                    "overrides not read: the known ones stay in effect"
                );
            }
        })?;
        self.has_heard.store(true, Ordering::Relaxed);
        let Some((expected, found)) = found else {
            return Ok(());
        };
        self.has_found.fetch_or(found.is_some(), Ordering::Relaxed);
        let found = found.unwrap_or_default();
        let (is_lost, is_news) = (known.is_newer_than(&found), found.is_newer_than(&known));
        if is_lost {
            tracing::warn!(
                about = &*self.about,
                known = known.version(),
                has = found.version(),
                "the store has lost the newest overrides: restoring them"
            );
            keep(&self.main, &known, None);
        }
        if is_news {
            if !is_lost && found.version() <= known.version() {
                tracing::warn!(
                    about = &*self.about,
                    known = known.version(),
                    version = found.version(),
                    "the store had lost the newest overrides; others written since take effect"
                );
            }
            listener.adopt(found.clone());
            self.keep_copy(listener);
        }
        let known = listener.known();
        let is_equal = !is_lost && !known.is_newer_than(&found) && !found.is_newer_than(&known);
        *self.agreed.lock() = is_equal.then(|| Agreed {
            expected,
            known,
            at: Instant::now(),
        });
        *self.seen.lock() = Some(expected);
        Ok(())
    }

    /// Returns the version of the main record whose content is known; `None` if a read needs the
    /// content.
    fn expected(&self, known: &Arc<R>) -> Option<Expected> {
        let agreed = self.agreed.lock();
        let agreed = agreed.as_ref().filter(|agreed| {
            Arc::ptr_eq(&agreed.known, known) && agreed.at.elapsed() < WHOLE_READ_INTERVAL
        });
        agreed.map(|agreed| agreed.expected)
    }

    /// Reads the data center's copy, unless that was done before.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store of the copy is unavailable. A damaged copy is ignored.
    pub async fn read_copy(&self, listener: &impl OverrideListener<R>) -> Result<(), StoreError> {
        let Some(copy) = self.copy.as_ref().filter(|_| !self.was_copy_read()) else {
            return Ok(());
        };
        match in_time(copy.read(), &self.about).await {
            Ok(found) => {
                self.has_found.fetch_or(found.is_some(), Ordering::Relaxed);
                listener.adopt(found.unwrap_or_default());
            }
            // A store that rejects the read for another reason may reply later.
            Err(error) if is_damaged(&error) => {
                tracing::error!(
                    about = &*self.about,
                    cause = chain(&error),
                    "copy of the overrides damaged: ignoring it"
                );
                self.is_copy_damaged.store(true, Ordering::Relaxed);
            }
            Err(error) => return Err(error),
        }
        self.has_heard_copy.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Changes the overrides, as [`OverrideStore::change`] does. The change is in effect here when
    /// this returns. The copy is read before, unless that was done: after the change it would count
    /// as older.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]. Nothing is changed then, unless the store failed after the write: what a
    /// read finds then takes effect.
    pub async fn change<E: std::error::Error + 'static>(
        &self,
        listener: &impl OverrideListener<R>,
        change: impl FnMut(&R, Timestamp) -> Result<R, E>,
    ) -> Result<Arc<R>, ChangeError<E>> {
        self.read_copy(listener).await.map_err(ChangeError::Store)?;
        let changed = self.main.change(&listener.known(), change).await;
        match changed {
            Ok(next) => {
                self.has_found.store(true, Ordering::Relaxed);
                listener.adopt(next.clone());
                self.keep_copy(listener);
                Ok(Arc::new(next))
            }
            Err(refused @ ChangeError::Rejected(_)) => Err(refused),
            Err(error) => {
                // `read` logs its own failure.
                let _ = self.read(listener).await;
                Err(error)
            }
        }
    }

    /// Returns the audit log, oldest entry first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log(&self) -> Result<Log, StoreError> {
        self.main.log().await
    }

    /// Writes the known overrides to the data center's copy.
    fn keep_copy(&self, listener: &impl OverrideListener<R>) {
        if let Some(copy) = &self.copy {
            keep(copy, &listener.known(), self.copy_lifetime);
        }
    }
}

/// Whether there is a record that cannot be decoded.
fn is_damaged(error: &StoreError) -> bool {
    match error {
        StoreError::Rejected { source, .. } => source.is::<UnreadableOverrides>(),
        _ => false,
    }
}

async fn in_time<T>(
    read: impl Future<Output = Result<T, StoreError>>,
    about: &str,
) -> Result<T, StoreError> {
    match timeout(TIMEOUT, read).await {
        Ok(read) => read,
        Err(elapsed) => Err(StoreError::Unavailable {
            doing: "reach within a second",
            store_name: format!("the overrides of {about}"),
            source: Box::new(elapsed),
        }),
    }
}

/// Restores overrides to a store, in the background.
fn keep<R: OverrideRecord>(
    store: &OverrideStore<R>,
    overrides: &Arc<R>,
    lifetime: Option<DurationMs>,
) {
    let (store, overrides) = (store.clone(), Arc::clone(overrides));
    let restore = async move {
        store.restore(&overrides).await?;
        if let Some(lifetime) = lifetime {
            store.keep_for(lifetime).await?;
        }
        Ok::<_, StoreError>(())
    };
    tokio::spawn(async move {
        match timeout(TIMEOUT, restore).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "overrides not copied yet");
            }
            Err(_) => tracing::debug!("overrides not copied yet: timed out"),
        }
    });
}
