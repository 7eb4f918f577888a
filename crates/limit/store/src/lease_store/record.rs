//! Encoding of client records, in a form that a store can process itself ([`super::step`]).
//!
//! A version byte and then text: the *head*; two times; the state of the widened limit.
//!
//! `{number} {random} {ttl} {calls} {window} {letter}{ numbers};{as_of} {nothing_until};{state};`
//!
//! The head consists of the epoch and the promised limit, with the length of leases. Records with
//! the same head belong to the same limit in the same epoch, so a script can compare bytes without
//! conversion.
//!
//! A record that cannot be read does not make its client new: the rule counts it as used up. A
//! record of a later version may still be in use, so nothing is granted over it. Limits pass the
//! same checks as those from a config, so no record holds an invalid limit.

use anteroom_limit::codec::{self, number};
use anteroom_limit::leases::epoch::EpochId;
use anteroom_limit::leases::record::Record;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::State;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::{AlgorithmKind, LeaseRule};
use anteroom_limit::settings::Settings;
use anteroom_limit::time::{DurationUs, TimestampUs};

/// Version of the encoding. Raise it for any change of the text, or of what a widened limit is.
const VERSION: u8 = 2;

/// Error of decoding a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Another version of the program wrote the record.
    #[error("record of version {found}, this program reads version {known}")]
    Version {
        /// Version byte of the record, 0 if there is none.
        found: u8,
        /// Version that this program reads.
        known: u8,
    },
    /// The bytes are damaged.
    #[error("record is damaged")]
    Damaged,
}

/// Encodes a client's record.
#[must_use]
pub fn encode(record: &Record) -> Vec<u8> {
    let mut text = head(record.epoch, &record.lent_by);
    let (as_of, nothing_until) = (record.as_of.0, record.nothing_until.0);
    text.push_str(&format!("{as_of} {nothing_until};"));
    codec::write(&record.state, &mut text);
    // Terminator: no truncated record is valid.
    text.push(';');
    text.into_bytes()
}

/// Returns the head of records that this limit has in this epoch.
#[must_use]
pub fn head(epoch: EpochId, lent_by: &LeasedLimit) -> String {
    let EpochId { number, random } = epoch;
    let promised = lent_by.promised();
    let (rate, ttl) = (promised.rate(), lent_by.ttl().0);
    let (calls, window) = (rate.requests(), rate.window().0);
    let mut policy = promised.row().letter.to_owned();
    for (_, value) in promised.each_setting() {
        policy.push_str(&format!(" {value}"));
    }
    let version = char::from(VERSION);
    format!("{version}{number} {random} {ttl} {calls} {window} {policy};")
}

/// Decodes a client's record.
///
/// # Errors
///
/// [`RecordError`] if the bytes are no record of this version.
pub fn decode(bytes: &[u8]) -> Result<Record, RecordError> {
    let text = std::str::from_utf8(after_version(bytes, VERSION)?).ok();
    text.and_then(read).ok_or(RecordError::Damaged)
}

/// Returns what follows the version byte of a record.
///
/// # Errors
///
/// [`RecordError::Version`] if the version is another one.
pub fn after_version(bytes: &[u8], known: u8) -> Result<&[u8], RecordError> {
    let (found, rest) = match bytes.split_first() {
        Some((&found, rest)) => (found, rest),
        None => (0, bytes),
    };
    if found == known {
        Ok(rest)
    } else {
        Err(RecordError::Version { found, known })
    }
}

fn read(text: &str) -> Option<Record> {
    let parts: Vec<&str> = text.splitn(4, ';').collect();
    let [head, times, state, ""] = parts[..] else {
        return None;
    };
    let (epoch, lent_by) = read_head(head)?;
    let (as_of, nothing_until) = times.split_once(' ')?;
    Some(Record {
        epoch,
        as_of: TimestampUs(number(as_of)?),
        nothing_until: TimestampUs(number(nothing_until)?),
        lent_by,
        state: read_state(state)?,
    })
}

fn read_head(text: &str) -> Option<(EpochId, LeasedLimit)> {
    // No head has more parts.
    let parts: Vec<&str> = text.splitn(9, ' ').collect();
    let [epoch, random, ttl, calls, window, letter, more @ ..] = parts.as_slice() else {
        return None;
    };
    let rate = Rate::new(small(calls)?, DurationUs(number(window)?)).ok()?;
    let mut kinds = AlgorithmKind::ALL.iter();
    let kind = kinds.find(|kind| kind.row().letter == *letter)?;
    if more.len() != kind.row().settings.len() {
        return None;
    }
    let mut settings = Settings::default();
    for (setting, value) in kind.row().settings.iter().zip(more) {
        settings.set(*setting, small(value)?);
    }
    let promised = kind.build(rate, &settings).ok()?;
    let epoch = EpochId {
        number: number(epoch)?,
        random: number(random)?,
    };
    let lent_by = LeasedLimit::with_ttl(promised, DurationUs(number(ttl)?)).ok()?;
    Some((epoch, lent_by))
}

/// Reads the state of a limit that can be leased.
fn read_state(text: &str) -> Option<State> {
    let is_leasable = |state: &State| match state.kind().map(|kind| kind.row().lease_rule) {
        Some(LeaseRule::Never) => false,
        Some(LeaseRule::LongerWindow | LeaseRule::SmallerBurst | LeaseRule::EndsWithWindow)
        | None => true,
    };
    codec::read(text).filter(is_leasable)
}

fn small(text: &str) -> Option<u32> {
    u32::try_from(number(text)?).ok()
}

#[cfg(test)]
mod tests;
