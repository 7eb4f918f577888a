//! What did operators say about a room while it runs? A small record beside the room's ledger:
//! values that win over the file, a pause, a message; and with it the newest change, so that
//! nothing changes without a trace.
//!
//! JSON, for an operator may have to look at it. Where it is kept and who reads it when is not
//! known here, and neither is what the room makes of it.

mod held;
mod log;
mod order;
mod shown;

use anteroom_room::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Changed, LiveValues, RoomConfig};

pub use held::{DecidedAt, HeldStop, HeldStops, Stop, Subject};
pub use log::Log;
pub use order::OperatorCommand;
pub use shown::{Shown, ShownHeld, ShownPause, ShownValue};

/// What operators said about one room.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomOverrides {
    /// How often something was said.
    pub version: u64,
    /// Values that win over the file.
    #[serde(default)]
    pub values: LiveValues,
    /// Nobody new goes in.
    #[serde(default)]
    pub pause: Option<Pause>,
    /// What stands on the page and in JSON; a pause has its own.
    #[serde(default)]
    pub message: Option<String>,
    /// When somebody last gave a command about what a node may hold by itself.
    #[serde(default, skip_serializing_if = "DecidedAt::is_never")]
    pub decided_at: DecidedAt,
    /// The newest change.
    #[serde(default)]
    pub newest: Option<Entry>,
}

/// A pause.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Why, in the operator's words.
    pub message: Option<String>,
    /// Since when, in Unix milliseconds by the wall clock.
    pub since: u64,
}

/// Who changes something.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// Name of the token that was shown.
    pub token: String,
    /// Who they say they are: the Unix user of a command.
    #[serde(default)]
    pub user: Option<String>,
    /// Where they connected from.
    pub address: String,
}

/// One change.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The version that it made.
    pub version: u64,
    /// When, in Unix milliseconds by the wall clock of the node that was told; later than the entry
    /// before it, wherever that clock stands.
    pub at: u64,
    /// Who.
    pub who: Actor,
    /// What was said, as a command.
    pub what: String,
    /// What was changed by it.
    pub changes: Vec<Change>,
}

impl Entry {
    /// The next one of a record: its version is one more, and it is later, wherever the clock
    /// stands that says `now`.
    #[must_use]
    pub fn following<R: Record>(
        record: &R,
        who: &Actor,
        now: Timestamp,
        what: String,
        changes: Vec<Change>,
    ) -> Self {
        let before = record.newest().map_or(0, |newest| newest.at);
        Self {
            version: record.version() + 1,
            at: now.0.max(before + 1),
            who: who.clone(),
            what,
            changes,
        }
    }
}

/// What became of one value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Change {
    /// Which.
    pub key: String,
    /// What held before; `null` if nothing did.
    pub before: Value,
    /// What holds now.
    pub after: Value,
}

/// The record is no record, or one of a version that is not known here.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the record of what operators said is damaged")]
pub struct DamagedOverrides;

/// What operators said about something, as it is kept: versioned, with the newest change in it.
pub trait Record: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Writes it down.
    fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what was written down.
    ///
    /// # Errors
    ///
    /// [`DamagedOverrides`] if the bytes are no such record.
    fn decode(bytes: &[u8]) -> Result<Self, DamagedOverrides> {
        decode(bytes)
    }

    /// How often something was said.
    fn version(&self) -> u64;

    /// The newest change.
    fn newest(&self) -> Option<&Entry>;

    /// Whether this was said later than `other`. A store may have lost something, and then two
    /// records of the same version differ; what was said last holds.
    fn is_newer_than(&self, other: &Self) -> bool {
        let said = |record: &Self| {
            let at = record.newest().map_or(0, |newest| newest.at);
            (at, record.version())
        };
        said(self) > said(other)
    }
}

impl Record for RoomOverrides {
    fn version(&self) -> u64 {
        self.version
    }

    fn newest(&self) -> Option<&Entry> {
        self.newest.as_ref()
    }
}

/// The form of the record; another number is not understood.
const FORM: u8 = 1;

#[derive(Deserialize, Serialize)]
struct Written<T> {
    form: u8,
    #[serde(flatten)]
    record: T,
}

impl RoomOverrides {
    /// What holds, where the file says `file`: a pause is not part of it.
    #[must_use]
    pub fn applied_to(&self, file: &RoomConfig) -> Changed {
        file.with_values(&self.values)
    }

    /// What stands on the page.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        let of_pause = self
            .pause
            .as_ref()
            .and_then(|pause| pause.message.as_deref());
        of_pause.or(self.message.as_deref())
    }
}

/// Writes a record in the form that [`decode`] reads.
///
/// # Panics
///
/// If its keys are no texts, or if it cannot be written at all; records are text and numbers.
#[must_use]
fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    serde_json::to_vec(&Written { form: FORM, record }).expect("text and numbers can be written")
}

/// Reads a record that [`encode`] has written.
///
/// # Errors
///
/// [`DamagedOverrides`] if the bytes are none of this form.
fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, DamagedOverrides> {
    let written: Written<T> = serde_json::from_slice(bytes).map_err(|_| DamagedOverrides)?;
    if written.form != FORM {
        return Err(DamagedOverrides);
    }
    Ok(written.record)
}

#[cfg(test)]
mod tests;
