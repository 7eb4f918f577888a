//! Custom pages of the rooms of the API at this node: in memory, in its stores and in its data
//! folder.
//!
//! A page is written before the record names it, and never changes. While a room refers to it, each
//! node lets it live on, and writes it again if the store has lost it. A node that cannot read a
//! page keeps the page that the room had, or the built-in one. It says so in its log, in its note
//! and in the API. A page is how a room looks: for it no site is held back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::api_rooms::{ApiRooms, DELETED_FOR, Pages};
use anteroom_room::time::DurationMs;
use anteroom_store::{Expected, StoreError, chain};
use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::LiveApiRooms;

/// Time for which a page lies in a store after its last reference. A copy of the record that is
/// still read may refer to it.
const PAGE_FOR: DurationMs = DELETED_FOR;
/// Interval at which a node lets a page live on. Until then, a page that a store has lost alone is
/// missing.
const KEEP_INTERVAL: Duration = Duration::from_secs(3_600);
/// Most pages that a node keeps alive at once.
const KEPT_AT_ONCE: usize = 8;
/// Longest read of missing pages.
const FETCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of reads of missing pages.
const FETCH_INTERVAL: Duration = Duration::from_secs(1);

/// Pages that this node has in memory.
#[derive(Default)]
pub(super) struct HeldPages {
    texts: Mutex<Arc<Pages>>,
    kept: Mutex<Kept>,
    missing: Mutex<Missing>,
}

/// Knowledge about pages in stores.
#[derive(Default)]
struct Kept {
    /// State of the main record when that was last looked at.
    state: Option<Expected>,
    /// Times at which pages were last written or let live on, by number of the store and name.
    at: BTreeMap<(usize, String), Instant>,
    /// Time at which the data center's copy of the record was last confirmed.
    copy_at: Option<Instant>,
}

/// Pages that were not found.
#[derive(Default)]
struct Missing {
    looked_at: Option<(Arc<ApiRooms>, Instant)>,
    reported: BTreeSet<String>,
}

/// Returns the name of a page: the hex digits of its SHA-256 digest.
pub(super) fn page_name(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl HeldPages {
    pub(super) fn all(&self) -> Arc<Pages> {
        Arc::clone(&self.texts.lock())
    }

    pub(super) fn add(&self, pages: Pages) {
        if !pages.is_empty() {
            let mut texts = self.texts.lock();
            Arc::make_mut(&mut texts).extend(pages);
        }
    }

    /// Drops all pages but those of records.
    pub(super) fn keep_only(&self, records: &[&ApiRooms]) {
        let mut texts = self.texts.lock();
        let names: BTreeSet<&str> = records
            .iter()
            .flat_map(|record| record.page_names())
            .collect();
        if texts.keys().any(|name| !names.contains(name.as_str())) {
            Arc::make_mut(&mut texts).retain(|name, _| names.contains(name.as_str()));
        }
    }

    /// Returns the pages to look for now.
    fn to_fetch(&self, record: &Arc<ApiRooms>) -> Vec<String> {
        let texts = self.all();
        let names = record.page_names().into_iter();
        let names = names.filter(|name| !texts.contains_key(*name));
        let names: Vec<String> = names.map(str::to_owned).collect();
        let mut missing = self.missing.lock();
        if names.is_empty() {
            missing.reported.clear();
            return names;
        }
        let is_fresh = missing.looked_at.as_ref().is_some_and(|(looked_for, at)| {
            Arc::ptr_eq(looked_for, record) && at.elapsed() < FETCH_INTERVAL
        });
        if is_fresh {
            return Vec::new();
        }
        missing.looked_at = Some((Arc::clone(record), Instant::now()));
        names
    }

    /// Notes the state of the main record: pages may be lost with it.
    fn note_state(&self, state: Option<Expected>) {
        let mut kept = self.kept.lock();
        let is_loss = |before: Expected, now: Expected| {
            before.identity != now.identity || now.version < before.version
        };
        if let (Some(before), Some(now)) = (kept.state, state)
            && is_loss(before, now)
        {
            kept.at.clear();
        }
        kept.state = state.or(kept.state);
    }
}

impl LiveApiRooms {
    /// Writes pages into the main store, before the record names them.
    pub(super) async fn write_pages(&self, pages: &Pages) -> Result<(), StoreError> {
        if let Some(main) = self.feed.stores().next() {
            for (name, text) in pages {
                main.keep_page(name, Some(text), PAGE_FOR).await?;
                let mut kept = self.pages.kept.lock();
                kept.at.insert((0, name.clone()), Instant::now());
            }
        }
        Ok(())
    }

    /// Reads pages that rooms refer to and that this node has not, and serves the rooms with them.
    pub(super) async fn fetch_pages(&self) {
        let names = self.pages.to_fetch(&self.record());
        if names.is_empty() {
            return;
        }
        let (mut found, mut lost) = (Pages::new(), BTreeSet::new());
        let fetching = async {
            for name in &names {
                match self.fetch_page(name).await {
                    Some(text) => {
                        found.insert(name.clone(), text);
                    }
                    None => {
                        lost.insert(name.clone());
                    }
                }
            }
        };
        // The rest follows with the next read.
        let _ = timeout(FETCH_TIMEOUT, fetching).await;
        if !found.is_empty() {
            self.pages.add(found);
            self.serve_again();
        }
        let mut missing = self.pages.missing.lock();
        if !lost.is_subset(&missing.reported) {
            let inputs = self.inputs();
            let rooms: Vec<&str> = inputs.without_pages().collect();
            tracing::warn!(
                rooms = rooms.join(", "),
                pages = lost.iter().cloned().collect::<Vec<_>>().join(", "),
                "custom pages not found in the store: their rooms keep the pages that they had; \
                 write them again if no node has them"
            );
        }
        missing.reported = lost;
    }

    async fn fetch_page(&self, name: &str) -> Option<Arc<str>> {
        for store in self.feed.stores() {
            let read = store.page(name).await;
            let read = read.inspect_err(|error| {
                tracing::debug!(cause = chain(error), name, "custom page not read");
            });
            let text = read
                .ok()
                .flatten()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(text) = text.filter(|text| page_name(text) == name) {
                return Some(Arc::from(text));
            }
        }
        None
    }

    /// Lets pages and the data center's copy live on, and writes pages that a store has lost.
    pub(super) async fn keep_pages(&self) {
        self.pages.note_state(self.feed.seen());
        let (record, texts) = (self.record(), self.pages.all());
        let is_fresh = |at: &Instant| at.elapsed() < KEEP_INTERVAL;
        let mut due = Vec::new();
        {
            let mut kept = self.pages.kept.lock();
            kept.at.retain(|_, at| is_fresh(at));
            for (number, store) in self.feed.stores().enumerate() {
                let names = record.page_names().into_iter();
                let texts = names.filter_map(|name| texts.get_key_value(name));
                let texts =
                    texts.filter(|(name, _)| !kept.at.contains_key(&(number, (*name).clone())));
                due.extend(texts.map(|(name, text)| (number, store, name, text)));
            }
        }
        for (number, store, name, text) in due.into_iter().take(KEPT_AT_ONCE) {
            let keeping = async {
                let is_there = store.keep_page(name, None, PAGE_FOR).await?;
                if !is_there {
                    tracing::warn!(name, "the store has lost a custom page: restoring it");
                    store.keep_page(name, Some(text), PAGE_FOR).await?;
                }
                Ok::<_, StoreError>(())
            };
            match timeout(FETCH_TIMEOUT, keeping).await {
                Ok(Ok(())) => {
                    let mut kept = self.pages.kept.lock();
                    kept.at.insert((number, name.clone()), Instant::now());
                }
                Ok(Err(error)) => {
                    tracing::debug!(cause = chain(&error), name, "custom page not kept");
                    return;
                }
                Err(_) => return,
            }
        }
        let is_copy_due = !self
            .pages
            .kept
            .lock()
            .copy_at
            .as_ref()
            .is_some_and(is_fresh);
        if self.feed.has_copy() && is_copy_due {
            self.feed.renew_copy().await;
            self.pages.kept.lock().copy_at = Some(Instant::now());
        }
    }
}
