//! Record of a ledger in a store: a version byte, then postcard.
//!
//! A record that cannot be read is an error and not an empty ledger. An empty one would grant what
//! earlier leases may have granted before.

mod children;
pub mod left_request;
mod parts;
mod record;
mod upstream;

use anteroom_room::ledger::{Ledger, LedgerParts, UnsoundLedger};

use record::LedgerRecord;

/// Version that this program writes and reads.
const VERSION: u8 = 9;

/// Error of decoding a ledger.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerRecordError {
    /// The record was written by an unknown version of this program.
    #[error("ledger record of version {found}, this program reads version {VERSION}")]
    Version {
        /// The version byte, 0 if there is none.
        found: u8,
    },
    /// The bytes are no record.
    #[error("ledger record is damaged")]
    Damaged,
    /// The record breaks an invariant of ledgers.
    #[error("ledger record is damaged")]
    Unsound(#[source] UnsoundLedger),
}

/// Encodes a ledger.
///
/// # Panics
///
/// Never: every ledger can be serialised.
#[must_use]
pub fn encode(ledger: &Ledger) -> Vec<u8> {
    encode_parts(ledger.to_parts())
}

/// Decodes a ledger.
///
/// # Errors
///
/// [`LedgerRecordError`] if the bytes are no ledger of this version.
pub fn decode(bytes: &[u8]) -> Result<Ledger, LedgerRecordError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => {
            let record: LedgerRecord = match postcard::take_from_bytes(rest) {
                Ok((record, [])) => record,
                _ => return Err(LedgerRecordError::Damaged),
            };
            Ledger::from_parts(record.into()).map_err(LedgerRecordError::Unsound)
        }
        first => Err(LedgerRecordError::Version {
            found: first.map_or(0, |(&found, _)| found),
        }),
    }
}

fn encode_parts(parts: LedgerParts<'_>) -> Vec<u8> {
    let record = LedgerRecord::from(parts);
    postcard::to_extend(&record, vec![VERSION]).expect("writing into memory cannot fail")
}

#[cfg(test)]
mod tests;
