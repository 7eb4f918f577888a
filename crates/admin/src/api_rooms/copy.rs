//! Copy of the rooms of the API in the data folder of this node, with their pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anteroom_config::api_rooms::{ApiRooms, DELETED_FOR, Pages};
use anteroom_config::overrides::Record as _;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::OverrideListener as _;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::LiveApiRooms;
use super::pages::page_name;

/// Longest wait for a write of the copy.
const SAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest age of a copy that still equals the record. A copy older than [`DELETED_FOR`] could
/// bring deleted rooms back.
const CONFIRMED_EVERY: DurationMs = DurationMs::from_secs(86_400);

/// State of the copy.
#[derive(Default)]
pub(super) struct CopyState {
    /// Whether there is a copy that was read or written.
    pub(super) is_there: AtomicBool,
    /// Whether the copy that was found cannot be read.
    pub(super) is_damaged: AtomicBool,
    saved: Mutex<Option<Saved>>,
}

/// Record that is in the data folder, and when it was written.
struct Saved {
    record: Arc<ApiRooms>,
    /// Number of its pages that are there as well.
    pages: usize,
    at: Timestamp,
}

/// Copy in the data folder.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Copy {
    /// Time at which the copy equalled the record, in Unix milliseconds by the wall clock.
    confirmed_at: u64,
    record: String,
}

impl LiveApiRooms {
    pub(super) fn read_copy(&self) {
        let copy = match self.host.read_copy() {
            // Whoever writes a record into the journal writes a copy beside it.
            Ok(None) if !self.feed.is_shared() => {
                self.copy.is_there.store(true, Ordering::Relaxed);
                return;
            }
            Ok(None) => return,
            Ok(Some(text)) => decode(&text),
            Err(error) => {
                tracing::error!(error = &*error, "copy of the rooms of the API not read");
                self.copy.is_damaged.store(true, Ordering::Relaxed);
                return;
            }
        };
        let Some((record, confirmed_at)) = copy else {
            tracing::error!(
                "copy of the rooms of the API damaged: ignoring it; if the store has no rooms, put \
                 `api-rooms` in the data folder back from a backup, or remove it to begin without \
                 rooms"
            );
            self.copy.is_damaged.store(true, Ordering::Relaxed);
            return;
        };
        let age = self.clock.wall().since(confirmed_at);
        if age >= DELETED_FOR {
            let days = age.0 / 86_400_000;
            tracing::warn!(days, "copy of the rooms of the API too old: ignoring it");
            return;
        }
        self.pages.add(self.read_pages(&record));
        self.adopt(record);
        self.copy.is_there.store(true, Ordering::Relaxed);
        self.host.set_known(self.are_known());
    }

    /// Reads the pages of a record from the data folder, as far as they are there.
    fn read_pages(&self, record: &ApiRooms) -> Pages {
        let mut pages = Pages::new();
        for name in record.page_names() {
            match self.host.read_page(name) {
                Ok(Some(text)) if page_name(&text) == name => {
                    pages.insert(name.to_owned(), Arc::from(text));
                }
                Ok(Some(_)) => tracing::error!(name, "copy of a custom page damaged: ignoring it"),
                Ok(None) => {}
                Err(error) => tracing::error!(error = &*error, "copy of a custom page not read"),
            }
        }
        pages
    }

    /// Writes the copy if the record has changed, or once a day.
    pub(super) async fn save(self: &Arc<Self>) {
        let saving = Arc::clone(self);
        // A disk may hang.
        let writing = tokio::task::spawn_blocking(move || saving.write_copy());
        let _ = timeout(SAVE_TIMEOUT, writing).await;
    }

    fn write_copy(&self) {
        // Another thread may still write, to a disk that hangs.
        let Some(mut saved) = self.copy.saved.try_lock() else {
            return;
        };
        let (inputs, now) = (self.inputs(), self.clock.wall());
        let record = inputs.known;
        let held = self.pages.all();
        let names = record.page_names();
        let texts = names
            .iter()
            .filter_map(|name| Some((*name, held.get(*name)?)));
        let texts: Vec<(&str, &Arc<str>)> = texts.collect();
        let is_saved = saved.as_ref().is_some_and(|saved| {
            let is_same = Arc::ptr_eq(&saved.record, &record) && saved.pages == texts.len();
            is_same && now.since(saved.at) < CONFIRMED_EVERY
        });
        if is_saved || self.file().sites.is_empty() {
            return;
        }
        let pages = texts.len();
        // The pages first: a copy that names them must find them.
        let mut written = texts
            .into_iter()
            .map(|(name, text)| self.host.write_page(name, text));
        let written = written.find(Result::is_err).unwrap_or(Ok(()));
        match written.and_then(|()| self.host.write_copy(&encode(&record, now))) {
            Ok(()) => {
                self.host.remove_other_pages(&names);
                self.pages.keep_only(&[&*record, &*inputs.shown]);
                *saved = Some(Saved {
                    record: Arc::clone(&record),
                    pages,
                    at: now,
                });
                self.copy.is_there.store(true, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(error = &*error, "copy of the rooms of the API not written");
            }
        }
    }
}

fn encode(record: &ApiRooms, now: Timestamp) -> String {
    let copy = Copy {
        confirmed_at: now.0,
        record: String::from_utf8_lossy(&record.encode()).into_owned(),
    };
    serde_json::to_string(&copy).unwrap_or_default()
}

fn decode(text: &str) -> Option<(ApiRooms, Timestamp)> {
    let copy: Copy = serde_json::from_str(text).ok()?;
    let record = ApiRooms::decode(copy.record.as_bytes()).ok()?;
    Some((record, Timestamp(copy.confirmed_at)))
}
