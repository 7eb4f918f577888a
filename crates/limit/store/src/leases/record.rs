//! Encoding of epochs: a version byte, then postcard. Client records, which stores can read too,
//! are in [`crate::lease_store::record`].

mod forms;

use crate::lease_store::record::{RecordError, after_version};
use anteroom_limit::leases::epoch::Epoch;

use forms::EpochForm;

/// Version of the encoding. Raise it for any change of [`forms`].
const VERSION: u8 = 1;

/// Encodes the record of an epoch.
#[expect(clippy::missing_panics_doc, reason = "writing into memory cannot fail")]
#[must_use]
pub fn encode_epoch(epoch: &Epoch) -> Vec<u8> {
    postcard::to_extend(&EpochForm::from(epoch), vec![VERSION])
        .expect("writing into memory cannot fail")
}

/// Decodes the record of an epoch.
///
/// # Errors
///
/// [`RecordError`] if the bytes are no epoch of this version.
pub fn decode_epoch(bytes: &[u8]) -> Result<Epoch, RecordError> {
    match postcard::take_from_bytes::<EpochForm>(after_version(bytes, VERSION)?) {
        Ok((form, [])) => Ok(form.read()),
        _ => Err(RecordError::Damaged),
    }
}

#[cfg(test)]
mod tests;
