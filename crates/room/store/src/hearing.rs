//! How does a process hear what operators say about one thing, and what becomes of it where a store
//! has lost it?
//!
//! What was said last holds: an older record never takes the place of a newer one, wherever either
//! lies. Whoever knows more than the store that counts puts it back there. So does a copy in the
//! data center's own store, which is looked at once: it knows what was said before this process
//! began, also where the store that counts was emptied while nobody ran.
//!
//! What holds is not kept here, and when to read is not known here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anteroom_config::overrides::{DamagedOverrides, Log, Record as Said};
use tokio::time::timeout;

use crate::overrides::{ChangeError, OverrideStore};
use crate::store::{StoreError, chain};

/// A read that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What holds in a process, as far as it has heard.
pub trait OverrideListener<R>: Sync {
    /// What it knows.
    fn known(&self) -> Arc<R>;

    /// Lets this hold, if it was said later than what is known by now.
    fn adopt(&self, said: R);
}

/// Where it is kept what operators say about one thing, as one process hears it.
#[derive(Debug)]
pub struct OverrideFeed<R> {
    /// The record that counts.
    place: OverrideStore<R>,
    /// A copy in this data center's own store, for a node that starts while the root's is away or
    /// has lost it.
    copy: Option<OverrideStore<R>>,
    are_others: bool,
    about: Box<str>,
    is_failing: AtomicBool,
    /// Whether the record that counts was ever read.
    has_heard: AtomicBool,
    /// Whether what the copy knew when this process began is known.
    has_heard_copy: AtomicBool,
}

impl<R: Said> OverrideFeed<R> {
    /// Hears what is said in `place`. `are_others` says whether other processes write there;
    /// `about` names in the log what it is about.
    #[must_use]
    pub fn new(
        (place, copy): (OverrideStore<R>, Option<OverrideStore<R>>),
        are_others: bool,
        about: &str,
    ) -> Self {
        let has_heard_copy = AtomicBool::new(copy.is_none());
        Self {
            place,
            copy,
            are_others,
            about: about.into(),
            is_failing: AtomicBool::new(false),
            has_heard: AtomicBool::new(false),
            has_heard_copy,
        }
    }

    /// Whether others may say something.
    #[must_use]
    pub const fn are_others(&self) -> bool {
        self.are_others
    }

    /// Whether the newest reading failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Whether the record that counts was ever read.
    #[must_use]
    pub fn has_heard(&self) -> bool {
        self.has_heard.load(Ordering::Relaxed)
    }

    /// Whether there is a copy.
    #[must_use]
    pub const fn has_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// Whether there is no copy, or it was read since this process began.
    #[must_use]
    pub fn has_heard_copy(&self) -> bool {
        self.has_heard_copy.load(Ordering::Relaxed)
    }

    /// Reads what was said, for at most a second; and the copy before it, until that has answered
    /// once, for as long again.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record that counts cannot be read. What is known holds, and what the
    /// copy knows.
    pub async fn read(&self, listener: &impl OverrideListener<R>) -> Result<(), StoreError> {
        // Before the other: whoever says something tells the copy last.
        if let Err(error) = self.read_copy(listener).await {
            tracing::debug!(
                cause = chain(&error),
                about = &*self.about,
                "no copy is read"
            );
        }
        // Before the answer: what is said here meanwhile is no loss of the store's.
        let known = listener.known();
        let read = in_time(&self.place, &self.about).await;
        let was_failing = self.is_failing.swap(read.is_err(), Ordering::Relaxed);
        let found = read.inspect_err(|error| {
            // A successor waits for its predecessor's journal, which is no failure.
            let is_early = matches!(error, StoreError::Held { .. }) && !self.has_heard();
            if !was_failing && !is_early {
                tracing::warn!(
                    about = &*self.about,
                    cause = chain(error),
                    "what operators say is not read: what is known holds"
                );
            }
        })?;
        self.has_heard.store(true, Ordering::Relaxed);
        if known.is_newer_than(&found) {
            tracing::warn!(
                about = &*self.about,
                known = known.version(),
                has = found.version(),
                "the store has lost what operators said last; putting it back"
            );
            keep(&self.place, &known);
        } else if found.is_newer_than(&known) {
            if found.version() <= known.version() {
                tracing::warn!(
                    about = &*self.about,
                    known = known.version(),
                    version = found.version(),
                    "the store had lost what operators said last, and somebody has said something \
                     else since, which \
                     holds"
                );
            }
            listener.adopt(found);
            self.keep_copy(listener);
        }
        Ok(())
    }

    /// Reads what the data center has heard of, if that was not done yet.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if its store does not answer. A copy that cannot be understood is none.
    pub async fn read_copy(&self, listener: &impl OverrideListener<R>) -> Result<(), StoreError> {
        let Some(copy) = self.copy.as_ref().filter(|_| !self.has_heard_copy()) else {
            return Ok(());
        };
        match in_time(copy, &self.about).await {
            Ok(found) => listener.adopt(found),
            // A store that refuses for another reason may answer later: it is asked again.
            Err(error) if is_damaged(&error) => {
                tracing::error!(about = &*self.about, cause = chain(&error), "no copy");
            }
            Err(error) => return Err(error),
        }
        self.has_heard_copy.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Changes what was said, as [`OverrideStore::change`]; it holds here when this returns. The
    /// copy is read before, if that was not done yet: what it knows would be older than this for
    /// ever.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; nothing is changed then, unless the store failed after it was told: then
    /// what it says now holds, if it says something.
    pub async fn change<E: std::error::Error + 'static>(
        &self,
        listener: &impl OverrideListener<R>,
        change: impl FnMut(&R) -> Result<R, E>,
    ) -> Result<Arc<R>, ChangeError<E>> {
        self.read_copy(listener).await.map_err(ChangeError::Store)?;
        let changed = self.place.change(&listener.known(), change).await;
        match changed {
            Ok(next) => {
                listener.adopt(next.clone());
                self.keep_copy(listener);
                Ok(Arc::new(next))
            }
            Err(refused @ ChangeError::Refused(_)) => Err(refused),
            Err(error) => {
                // It says so itself.
                let _ = self.read(listener).await;
                Err(error)
            }
        }
    }

    /// Who changed what, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log(&self) -> Result<Log, StoreError> {
        self.place.log().await
    }

    /// For hard times: in the data center's own store.
    fn keep_copy(&self, listener: &impl OverrideListener<R>) {
        if let Some(copy) = &self.copy {
            keep(copy, &listener.known());
        }
    }
}

/// Whether there is a record, and nobody can read it.
fn is_damaged(error: &StoreError) -> bool {
    match error {
        StoreError::Refused { source, .. } => source.is::<DamagedOverrides>(),
        _ => false,
    }
}

async fn in_time<R: Said>(place: &OverrideStore<R>, about: &str) -> Result<R, StoreError> {
    match timeout(TIMEOUT, place.read()).await {
        Ok(read) => read.map(Option::unwrap_or_default),
        Err(elapsed) => Err(StoreError::Unavailable {
            doing: "reach within a second",
            place: format!("the settings of {about}"),
            source: Box::new(elapsed),
        }),
    }
}

/// Sees to it that a place knows this, while everything goes on.
fn keep<R: Said>(place: &OverrideStore<R>, said: &Arc<R>) {
    let (place, said) = (place.clone(), Arc::clone(said));
    tokio::spawn(async move {
        match timeout(TIMEOUT, place.restore(&said)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "settings of operators not copied yet");
            }
            Err(_) => tracing::debug!("settings of operators not copied yet: no answer in time"),
        }
    });
}
