//! How is written down what a store keeps: a version byte, then postcard.
//!
//! A client's record that cannot be read is no new client: whoever lends treats it as one that has spent all. A limit is
//! read by the same checks as one from a config, so nothing that was written down can be a limit that cannot be had.

mod forms;

use anteroom_limits::lending::epoch::Epoch;
use anteroom_limits::lending::record::Record;

use forms::{EpochForm, RecordForm};

/// Of clients' records. Another one for any change of [`forms`], and of what a widened limit is.
const RECORD_VERSION: u8 = 1;
/// Of epochs.
const EPOCH_VERSION: u8 = 1;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Written by a version of this program that is not known here.
    #[error("record of version {found}, this program reads version {known}")]
    Version {
        /// The version byte, 0 if there is none.
        found: u8,
        /// The one that is read here.
        known: u8,
    },
    /// Damaged.
    #[error("record is damaged")]
    Damaged,
}

/// Writes a client's record down.
#[must_use]
pub fn encode(record: &Record) -> Vec<u8> {
    write(RECORD_VERSION, &RecordForm::from(record))
}

/// Reads a client's record.
///
/// # Errors
///
/// [`RecordError`] if the bytes are no record of this version.
pub fn decode(bytes: &[u8]) -> Result<Record, RecordError> {
    let form: RecordForm = read(RECORD_VERSION, bytes)?;
    form.read().ok_or(RecordError::Damaged)
}

/// Writes an epoch's record down.
#[must_use]
pub fn encode_epoch(epoch: &Epoch) -> Vec<u8> {
    write(EPOCH_VERSION, &EpochForm::from(epoch))
}

/// Reads an epoch's record.
///
/// # Errors
///
/// [`RecordError`] if the bytes are no epoch of this version.
pub fn decode_epoch(bytes: &[u8]) -> Result<Epoch, RecordError> {
    read::<EpochForm>(EPOCH_VERSION, bytes).map(EpochForm::read)
}

fn write(version: u8, form: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_extend(form, vec![version]).expect("writing into memory cannot fail")
}

fn read<'b, T: serde::Deserialize<'b>>(known: u8, bytes: &'b [u8]) -> Result<T, RecordError> {
    let (found, rest) = match bytes.split_first() {
        Some((&found, rest)) => (found, rest),
        None => (0, bytes),
    };
    if found != known {
        return Err(RecordError::Version { found, known });
    }
    match postcard::take_from_bytes(rest) {
        Ok((form, [])) => Ok(form),
        _ => Err(RecordError::Damaged),
    }
}

#[cfg(test)]
mod tests;
