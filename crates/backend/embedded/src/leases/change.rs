//! Reads and writes of the file, and transactions of many writes.

use anteroom_limit::leases::epoch::StoreIdentity;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lease_store::{Expected, Loaded, StoredRecord, Swapped, Token};
use redb::Database;
use tokio::sync::oneshot::Sender;

use crate::leases::failure::{Failure, cause};
use crate::leases::tables::{Name, Tables, begin, bytes_of};

/// Unit to which ends are rounded up, in microseconds, so that a busy client does not move in the
/// table of ends with every write.
const END_STEP: u64 = 10_000_000;
/// Least number of clients that a transaction may remove: more than it usually adds.
const SWEEP_MIN: usize = 16;
/// Most clients that a transaction removes if the file is more than half full.
const SWEEP_MAX: usize = 4_096;
/// Fraction of the bytes (one of so many) that is reserved for known clients. Their records grow,
/// and an attacker with invented keys must not take that space.
const RESERVED_PART: u64 = 8;

/// Read, and the sender of its reply.
pub(crate) struct Read {
    pub(crate) client: Option<Name>,
    pub(crate) reply: Sender<Result<Loaded, Failure>>,
}

/// Write, and the sender of its reply.
pub(crate) struct Change {
    /// Client of the record; `None` = the epoch's record.
    pub(crate) client: Option<Name>,
    pub(crate) expected: Expected,
    pub(crate) kept: StoredRecord,
    pub(crate) keep_for: DurationUs,
    pub(crate) reply: Sender<Result<Swapped, Failure>>,
}

/// Parameters of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransactionParams {
    pub(crate) identity: StoreIdentity,
    pub(crate) now: TimestampUs,
    pub(crate) bytes_max: u64,
}

/// Outcome of a write, after its transaction.
pub(crate) type Outcome = Result<Swapped, Failure>;

/// Performs writes in one transaction, which has reached the disk when this returns. `bytes` is the
/// size of all clients' records.
pub(crate) fn write_all(
    database: &Database,
    changes: &[Change],
    params: TransactionParams,
    bytes: &mut u64,
) -> Result<Vec<Outcome>, Failure> {
    let unknown = |error: redb::Error| Failure::Unknown(cause(error));
    let write = begin(database).map_err(unknown)?;
    let mut left = *bytes;
    let outcomes = {
        let mut tables = Tables::open(&write).map_err(unknown)?;
        let outcomes = attempt_all(&mut tables, changes, params, &mut left);
        outcomes.map_err(unknown)?
    };
    let has_written = outcomes
        .iter()
        .any(|outcome| matches!(outcome, Ok(Swapped::Written)));
    if has_written {
        write.commit().map_err(|error| unknown(error.into()))?;
        *bytes = left;
    } else {
        write.abort().map_err(|error| unknown(error.into()))?;
    }
    Ok(outcomes)
}

fn attempt_all(
    tables: &mut Tables<'_>,
    changes: &[Change],
    params: TransactionParams,
    bytes: &mut u64,
) -> Result<Vec<Outcome>, redb::Error> {
    // A sweep before the writes may remove records that a writer has just read, and cause a
    // conflict. So it is done only if space is short.
    if *bytes > params.bytes_max / 2 {
        *bytes = bytes.saturating_sub(tables.sweep(params.now, SWEEP_MAX)?);
    }
    let attempts = changes.iter();
    let attempts = attempts.map(|change| attempt(tables, change, params, bytes));
    let outcomes = attempts.collect::<Result<Vec<_>, _>>()?;
    let most = SWEEP_MIN.max(2 * changes.len());
    *bytes = bytes.saturating_sub(tables.sweep(params.now, most)?);
    tables.put_as_of(params.now)?;
    Ok(outcomes)
}

fn attempt(
    tables: &mut Tables<'_>,
    change: &Change,
    params: TransactionParams,
    bytes: &mut u64,
) -> Result<Outcome, redb::Error> {
    if change.expected.identity != params.identity {
        return Ok(Ok(Swapped::OtherStore));
    }
    let found = tables.load(change.client.as_ref(), params.now, params.identity)?;
    let mut expected = change.expected;
    if change.client.is_none() {
        expected.client = Token(0);
    }
    if found.expected() != expected {
        return Ok(Ok(Swapped::Conflict(found)));
    }
    let Some(name) = &change.client else {
        tables.put_epoch(&change.kept)?;
        return Ok(Ok(Swapped::Written));
    };
    let before = tables.bytes(name)?;
    let after = bytes_of(name, change.kept.value.len());
    let would_be = bytes.saturating_sub(before).saturating_add(after);
    let bytes_max = match before {
        0 => params.bytes_max - params.bytes_max / RESERVED_PART,
        _ => params.bytes_max,
    };
    if after > before && would_be > bytes_max {
        return Ok(Err(Failure::Full { bytes_max }));
    }
    let forget_at = params.now.0.saturating_add(change.keep_for.0);
    let forget_at = forget_at.div_ceil(END_STEP).saturating_mul(END_STEP);
    tables.put_client(name, &change.kept, TimestampUs(forget_at))?;
    *bytes = would_be;
    Ok(Ok(Swapped::Written))
}
