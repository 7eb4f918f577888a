//! Record of a ledger in a store: a version byte, then postcard.
//!
//! A record that cannot be read is an error and not an empty ledger. An empty one would grant what
//! earlier leases may have granted before.

mod children;
mod parts;
mod record;
mod upstream;

use anteroom_room::ledger::{Ledger, LedgerParts, UnsoundLedger};

use record::LedgerRecord;

/// Version that this program writes.
const VERSION: u8 = 7;

/// Previous version, which this program still reads. It lacks the byte at the end, which says
/// whether a clock was read under the parent. Until the next such reading a reserve lasts longer.
const VERSION_BEFORE: u8 = 6;

/// Error of decoding a ledger.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerRecordError {
    /// The record was written by an unknown version of this program.
    #[error(
        "ledger record of version {found}, this program reads versions {VERSION_BEFORE} and \
         {VERSION}"
    )]
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
        Some((&version @ (VERSION | VERSION_BEFORE), rest)) => {
            let (record, left): (LedgerRecord, _) =
                postcard::take_from_bytes(rest).map_err(|_| LedgerRecordError::Damaged)?;
            let is_read_under_parent = match (version, left) {
                (VERSION_BEFORE, []) | (VERSION, [0]) => false,
                (VERSION, [1]) => true,
                _ => return Err(LedgerRecordError::Damaged),
            };
            let mut parts = LedgerParts::from(record);
            match &mut parts.upstream {
                Some(upstream) => upstream.to_mut().is_read_under_parent = is_read_under_parent,
                None if is_read_under_parent => return Err(LedgerRecordError::Damaged),
                None => {}
            }
            Ledger::from_parts(parts).map_err(LedgerRecordError::Unsound)
        }
        first => Err(LedgerRecordError::Version {
            found: first.map_or(0, |(&found, _)| found),
        }),
    }
}

fn encode_parts(parts: LedgerParts<'_>) -> Vec<u8> {
    let upstream = parts.upstream.as_deref();
    let is_read_under_parent = upstream.is_some_and(|upstream| upstream.is_read_under_parent);
    let record = LedgerRecord::from(parts);
    let start = vec![VERSION];
    let mut bytes = postcard::to_extend(&record, start).expect("writing into memory cannot fail");
    bytes.push(u8::from(is_read_under_parent));
    bytes
}

#[cfg(test)]
mod tests;
