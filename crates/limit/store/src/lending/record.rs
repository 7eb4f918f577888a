//! How is an epoch written down? A version byte, then postcard. Records of clients, which stores
//! must be able to read too, are [`crate::lent::record`]'s.

mod forms;

use crate::lent::record::{RecordError, after_version};
use anteroom_limit::lending::epoch::Epoch;

use forms::EpochForm;

/// Another one for any change of [`forms`].
const VERSION: u8 = 1;

/// Writes an epoch's record down.
#[expect(clippy::missing_panics_doc, reason = "writing into memory cannot fail")]
#[must_use]
pub fn encode_epoch(epoch: &Epoch) -> Vec<u8> {
    postcard::to_extend(&EpochForm::from(epoch), vec![VERSION])
        .expect("writing into memory cannot fail")
}

/// Reads an epoch's record.
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
