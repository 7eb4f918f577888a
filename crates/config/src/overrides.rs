//! Overrides of a room: a small record beside its ledger, with values that win over the file, a
//! pause, a message, and the newest change, so that no change goes without a trace.
//!
//! It is JSON, because operators may have to read it. Where it is stored, when nodes read it and
//! what the room makes of it are not decided here.

mod command;
mod ends;
mod event_latches;
mod log;
mod pending_stops;
mod shown;

use std::collections::BTreeMap;

use anteroom_room::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Changed, LiveValues, RoomConfig};

pub use command::OperatorCommand;
pub use ends::{End, EventEnd, HiddenValue, SetBy, Until};
pub use event_latches::{EventLatch, EventLatches, RunOff};
pub use log::Log;
pub use pending_stops::{DecidedAt, PendingStop, PendingStops, Stop, Subject};
pub use shown::{PauseView, PendingStopView, RoomOverridesView, SetView, ValueView};

/// Overrides that operators set for one room.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomOverrides {
    /// Number of changes so far.
    pub version: u64,
    /// Values that win over the file.
    #[serde(default)]
    pub values: LiveValues,
    /// Pause, in which no new visitor is admitted.
    #[serde(default)]
    pub pause: Option<Pause>,
    /// Message on the page and in JSON; a pause has its own.
    #[serde(default)]
    pub message: Option<String>,
    /// Operators who set each override, and its end: by key, `message` or `pause`. What was set
    /// before this was recorded has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set_by: BTreeMap<String, SetBy>,
    /// Times of the newest commands about each subject that a node may keep on its own.
    #[serde(default, skip_serializing_if = "DecidedAt::is_never")]
    pub decided_at: DecidedAt,
    /// Phases that events of the room have reached.
    #[serde(default, skip_serializing_if = "EventLatches::is_empty")]
    pub events: EventLatches,
    /// The newest change.
    #[serde(default)]
    pub newest: Option<Entry>,
}

/// A pause.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Reason, in the operator's words.
    pub message: Option<String>,
    /// Start, in Unix milliseconds by the wall clock.
    pub since: u64,
}

/// Operator who makes a change.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// Name of the token that authorised the change.
    pub token: String,
    /// Name that the operator gives: the Unix user of a command.
    #[serde(default)]
    pub user: Option<String>,
    /// Address from which the operator connected.
    pub address: String,
}

/// One change.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Version that the change made.
    pub version: u64,
    /// Time of the change, in Unix milliseconds by the wall clock of the node that received it;
    /// later than the previous entry, even if that clock is behind.
    pub at: u64,
    /// Operator.
    pub who: Actor,
    /// The change as a command line.
    pub what: String,
    /// Values that changed.
    pub changes: Vec<Change>,
    /// Id of the room of the API that changed; absent if it was another change, or of several.
    #[serde(default, rename = "roomId", skip_serializing_if = "Option::is_none")]
    pub room_id: Option<String>,
}

impl Entry {
    /// Returns the next entry of a record: its version is one more, and its time is later, even if
    /// the clock that gives `now` is behind.
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
            room_id: None,
        }
    }
}

/// Change of one value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Change {
    /// Key.
    pub key: String,
    /// Value before; `null` if there was none.
    pub before: Value,
    /// Value now; `null` if there is none.
    pub after: Value,
    /// End of the override before; absent if there was none, or it had no end.
    #[serde(default, rename = "endBefore", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub end_before: Option<End>,
}

impl Change {
    /// Returns the change of a value without an end.
    #[must_use]
    pub fn new(key: impl Into<String>, before: Value, after: Value) -> Self {
        Self {
            key: key.into(),
            before,
            after,
            end_before: None,
        }
    }
}

/// Error of bytes that this program cannot read as a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableOverrides {
    /// Bytes that are no record.
    #[error("the record of overrides is damaged")]
    Damaged,
    /// Record of a newer version of the program.
    #[error("the record has form {0}, and this program reads form {FORM}")]
    OtherForm(u64),
}

/// Record of overrides, as a store keeps it: versioned, with the newest change in it.
pub trait Record: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Encodes the record.
    fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Decodes a record.
    ///
    /// # Errors
    ///
    /// [`UnreadableOverrides`] if the bytes are not such a record.
    fn decode(bytes: &[u8]) -> Result<Self, UnreadableOverrides> {
        decode(bytes)
    }

    /// Returns the number of changes so far.
    fn version(&self) -> u64;

    /// Returns the newest change.
    fn newest(&self) -> Option<&Entry>;

    /// Whether this record has something that `other` lacks. A store may lose data, and then two
    /// records of the same version differ. A record that is a whole is newer if its last change is
    /// later.
    fn is_newer_than(&self, other: &Self) -> bool {
        let recency = |record: &Self| {
            let at = record.newest().map_or(0, |newest| newest.at);
            (at, record.version())
        };
        recency(self) > recency(other)
    }

    /// Returns what is known after both records were read. Of records that are wholes, it is the
    /// newer one.
    #[must_use]
    fn merged(&self, other: &Self) -> Self {
        if self.is_newer_than(other) {
            self.clone()
        } else {
            other.clone()
        }
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

/// Highest form of a record that this program reads. It reads no other one.
pub const FORM: u64 = 1;

/// Version that bytes state.
#[derive(Deserialize)]
struct StatedForm {
    form: u64,
}

#[derive(Deserialize, Serialize)]
struct Written<T> {
    form: u64,
    #[serde(flatten)]
    record: T,
}

impl RoomOverrides {
    /// Returns the file's configuration with the values of this record; a pause is not part of it.
    #[must_use]
    pub fn applied_to(&self, file: &RoomConfig) -> Changed {
        file.with_values(&self.values)
    }

    /// Returns the message for the page.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        let of_pause = self
            .pause
            .as_ref()
            .and_then(|pause| pause.message.as_deref());
        of_pause.or(self.message.as_deref())
    }

    /// Returns when the message for the page was set; `None` if there is none, or if it was set
    /// before times were recorded.
    #[must_use]
    pub fn message_at(&self) -> Option<Timestamp> {
        let of_pause = self.pause.as_ref().filter(|pause| pause.message.is_some());
        let subject = match (of_pause, &self.message) {
            (Some(_), _) => Subject::Pause,
            (None, Some(_)) => Subject::Message,
            (None, None) => return None,
        };
        let at = self.decided_at.of(subject);
        (at > 0).then_some(Timestamp(at))
    }
}

/// Encodes a record in the form that [`decode`] reads.
///
/// # Panics
///
/// If its keys are not texts, or if it cannot be encoded; records are text and numbers.
#[must_use]
fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    serde_json::to_vec(&Written { form: FORM, record }).expect("text and numbers can be written")
}

/// Decodes a record that [`encode`] has written.
///
/// # Errors
///
/// [`UnreadableOverrides`] if the bytes are not in this form.
fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, UnreadableOverrides> {
    let damaged = |_| UnreadableOverrides::Damaged;
    let StatedForm { form } = serde_json::from_slice(bytes).map_err(damaged)?;
    if form != FORM {
        return Err(UnreadableOverrides::OtherForm(form));
    }
    let written: Written<T> = serde_json::from_slice(bytes).map_err(damaged)?;
    Ok(written.record)
}

#[cfg(test)]
mod tests;
