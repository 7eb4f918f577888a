//! The record of a ledger as a store keeps it: a version byte, then postcard.
//!
//! A record that cannot be read is an error and not an empty ledger: lending anew what may be
//! lent already is the one thing that must not happen by accident.

mod children;
mod parts;
mod record;
mod upstream;

use anteroom_room::ledger::{Ledger, UnsoundLedger};

use record::LedgerRecord;

const VERSION: u8 = 7;

/// Why a record is no ledger.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerRecordError {
    /// Written by a version of this program that is not known here.
    #[error("ledger record of version {found}, this program reads version {VERSION}")]
    Version {
        /// The version byte, 0 if there is none.
        found: u8,
    },
    /// Damaged.
    #[error("ledger record is damaged")]
    Damaged,
    /// It can be read, and breaks a rule of ledgers.
    #[error("ledger record is damaged")]
    Unsound(#[source] UnsoundLedger),
}

/// Writes a ledger down.
///
/// # Panics
///
/// Never: a ledger has no form that cannot be written into memory.
#[must_use]
pub fn encode(ledger: &Ledger) -> Vec<u8> {
    let record = LedgerRecord::from(ledger.to_parts());
    let start = vec![VERSION];
    postcard::to_extend(&record, start).expect("writing into memory cannot fail")
}

/// Reads a ledger.
///
/// # Errors
///
/// [`LedgerRecordError`] if the bytes are no ledger of this version.
pub fn decode(bytes: &[u8]) -> Result<Ledger, LedgerRecordError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => {
            let (record, left): (LedgerRecord, _) =
                postcard::take_from_bytes(rest).map_err(|_| LedgerRecordError::Damaged)?;
            if left.is_empty() {
                Ledger::from_parts(record.into()).map_err(LedgerRecordError::Unsound)
            } else {
                Err(LedgerRecordError::Damaged)
            }
        }
        first => Err(LedgerRecordError::Version {
            found: first.map_or(0, |(&found, _)| found),
        }),
    }
}

#[cfg(test)]
mod tests;
