//! Log of the changes of a room. Entries are never changed; the oldest are dropped when there are
//! too many.
//!
//! Access to it is not decided here. No value that can be changed is a secret.

use serde::{Deserialize, Serialize};

use super::{Entry, UnreadableOverrides, decode, encode};
use crate::Problem;

/// Most entries that are kept: a busy night has a few dozen.
pub(super) const ENTRIES_MAX: usize = 200;
/// Largest record, in bytes; an entry with two of the longest messages takes about four thousand.
const BYTES_MAX: usize = 128 * 1_024;

/// The changes of one room, oldest first.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// The changes.
    pub entries: Vec<Entry>,
    /// Number of entries that were dropped because there were too many.
    #[serde(default)]
    pub dropped: u64,
}

impl Log {
    /// Adds an entry; returns whether it is new.
    pub fn add(&mut self, entry: &Entry) -> bool {
        if self.entries.contains(entry) {
            return false;
        }
        self.entries.push(entry.clone());
        while self.entries.len() > ENTRIES_MAX || self.is_too_large() {
            self.entries.remove(0);
            self.dropped += 1;
        }
        true
    }

    /// Returns the entry with a version.
    ///
    /// # Errors
    ///
    /// A text that names the versions that there are.
    pub fn entry(&self, version: u64) -> Result<&Entry, String> {
        let found = self.entries.iter().find(|entry| entry.version == version);
        found.ok_or_else(|| {
            let versions = self.entries.iter().map(|entry| entry.version);
            let (first, last) = (versions.clone().min(), versions.max());
            let range = first
                .zip(last)
                .map(|(first, last)| format!("; the log has {first} to {last}"));
            let range = range.unwrap_or_default();
            format!("no change has version {version}{range}")
        })
    }

    /// Returns a problem with who changed its key after `entry`, if somebody has.
    #[must_use]
    pub fn with_later_change(&self, problem: Problem, entry: &Entry) -> Problem {
        let is_later = |later: &&Entry| {
            let mut changes = later.changes.iter();
            later.version > entry.version
                && later.room_id == entry.room_id
                && changes.any(|change| change.key == problem.key)
        };
        let Some(later) = self.entries.iter().rev().find(is_later) else {
            return problem;
        };
        let user = later.who.name();
        let hint = format!(
            "{user} changed it: version {}, {}",
            later.version, later.what
        );
        Problem {
            hint: Some(hint),
            ..problem
        }
    }

    /// Whether the record is too large. Only measured if there is more than one entry.
    fn is_too_large(&self) -> bool {
        self.entries.len() > 1 && self.encode().len() > BYTES_MAX
    }

    /// Encodes the record.
    ///
    /// # Panics
    ///
    /// Never: it is text and numbers.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Decodes a record.
    ///
    /// # Errors
    ///
    /// [`UnreadableOverrides`] if the bytes are not a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, UnreadableOverrides> {
        decode(bytes)
    }
}
