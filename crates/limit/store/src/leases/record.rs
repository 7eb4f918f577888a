//! Encoding of epochs and members: a version byte, then postcard. Client records, which stores can
//! read too, are in [`crate::lease_store::record`].

mod forms;

use crate::lease_store::record::{RecordError, after_version};
use anteroom_limit::leases::epoch::Epoch;
use anteroom_limit::leases::members::Members;
use serde::Serialize;
use serde::de::DeserializeOwned;

use forms::{EpochForm, MembersForm};

/// Version of the encoding. Raise it for any change of [`forms`].
const VERSION: u8 = 2;

/// Encodes the record of an epoch.
#[must_use]
pub fn encode_epoch(epoch: &Epoch) -> Vec<u8> {
    encode(&EpochForm::from(epoch))
}

/// Decodes the record of an epoch.
///
/// # Errors
///
/// [`RecordError`] if the bytes are no epoch of this version.
pub fn decode_epoch(bytes: &[u8]) -> Result<Epoch, RecordError> {
    decode(bytes).map(EpochForm::read)
}

/// Encodes the record of the members.
#[must_use]
pub fn encode_members(members: &Members) -> Vec<u8> {
    encode(&MembersForm::from(members))
}

/// Decodes the record of the members.
///
/// # Errors
///
/// [`RecordError`] if the bytes are no members of this version.
pub fn decode_members(bytes: &[u8]) -> Result<Members, RecordError> {
    decode(bytes).map(MembersForm::read)
}

fn encode(form: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(form, vec![VERSION]).expect("writing into memory cannot fail")
}

fn decode<Form: DeserializeOwned>(bytes: &[u8]) -> Result<Form, RecordError> {
    match postcard::take_from_bytes(after_version(bytes, VERSION)?) {
        Ok((form, [])) => Ok(form),
        _ => Err(RecordError::Damaged),
    }
}

#[cfg(test)]
mod tests;
