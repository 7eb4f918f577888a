//! Who changed what, and when? Entries are added and never changed; the oldest go when there are
//! more than may be kept.
//!
//! Who may read it is not decided here. No value that can be changed is a secret.

use serde::{Deserialize, Serialize};

use super::{DamagedOverrides, Entry, decode, encode};

/// Most entries that are kept: a night of hard work has a few dozen.
pub(super) const ENTRIES_MAX: usize = 200;
/// Most bytes of the record; an entry with two of the longest messages takes about four thousand.
const BYTES_MAX: usize = 128 * 1_024;

/// The changes of one room, oldest first.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// The changes.
    pub entries: Vec<Entry>,
    /// How many were dropped because there were too many.
    #[serde(default)]
    pub dropped: u64,
}

impl Log {
    /// Adds an entry; returns whether it was not there yet.
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

    /// A record of the largest entries is measured only where there are enough of them.
    fn is_too_large(&self) -> bool {
        self.entries.len() > 1 && self.encode().len() > BYTES_MAX
    }

    /// Writes the record down.
    ///
    /// # Panics
    ///
    /// Never: it is text and numbers.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// [`DamagedOverrides`] if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, DamagedOverrides> {
        decode(bytes)
    }
}
