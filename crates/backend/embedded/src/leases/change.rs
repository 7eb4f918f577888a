//! What is to be read or written, and what comes of many of them in one transaction.

use anteroom_limit::lending::epoch::StoreIdentity;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lent::{Expected, Kept, Loaded, Swapped, Token};
use redb::Database;
use tokio::sync::oneshot::Sender;

use crate::leases::failure::{Failure, cause};
use crate::leases::tables::{Name, Tables, begin, bytes_of};

/// Ends are rounded up to this, so that a client who calls all the time does not move in the table
/// of ends with every write.
const END_STEP: u64 = 10_000_000;
/// So many clients are forgotten with every write at least: one forgets more than it brings.
const SWEEP_LEAST: usize = 16;
/// And so many at once where there is little room.
const SWEEP_MOST: usize = 4_096;
/// One of so many bytes is kept for clients who are in the file already: what is written of them
/// grows while they call, and somebody who makes up keys must not take that room from them.
const KEPT_PART: u64 = 8;

/// A read, and who waits for it.
pub(crate) struct Read {
    pub(crate) client: Option<Name>,
    pub(crate) tell: Sender<Result<Loaded, Failure>>,
}

/// A write, and who waits for it.
pub(crate) struct Change {
    /// `None`: the epoch's.
    pub(crate) client: Option<Name>,
    pub(crate) expected: Expected,
    pub(crate) kept: Kept,
    pub(crate) keep_for: DurationUs,
    pub(crate) tell: Sender<Result<Swapped, Failure>>,
}

/// What is the same for all writes of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) identity: StoreIdentity,
    pub(crate) now: TimestampUs,
    pub(crate) bytes_max: u64,
}

/// What comes of a write, once the transaction has ended.
pub(crate) type Outcome = Result<Swapped, Failure>;

/// Writes what may be written, in one transaction that has reached the disk when this returns;
/// `bytes` is how much is kept.
pub(crate) fn write_all(
    database: &Database,
    changes: &[Change],
    setting: Setting,
    bytes: &mut u64,
) -> Result<Vec<Outcome>, Failure> {
    let unknown = |error: redb::Error| Failure::Unknown(cause(error));
    let write = begin(database).map_err(unknown)?;
    let mut left = *bytes;
    let outcomes = {
        let mut tables = Tables::open(&write).map_err(unknown)?;
        let outcomes = attempt_all(&mut tables, changes, setting, &mut left);
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
    setting: Setting,
    bytes: &mut u64,
) -> Result<Vec<Outcome>, redb::Error> {
    // Before, only where room is needed: somebody may have read what is swept, and would have to
    // read it again.
    if *bytes > setting.bytes_max / 2 {
        *bytes = bytes.saturating_sub(tables.sweep(setting.now, SWEEP_MOST)?);
    }
    let attempts = changes.iter();
    let attempts = attempts.map(|change| attempt(tables, change, setting, bytes));
    let outcomes = attempts.collect::<Result<Vec<_>, _>>()?;
    let most = SWEEP_LEAST.max(2 * changes.len());
    *bytes = bytes.saturating_sub(tables.sweep(setting.now, most)?);
    tables.put_as_of(setting.now)?;
    Ok(outcomes)
}

fn attempt(
    tables: &mut Tables<'_>,
    change: &Change,
    setting: Setting,
    bytes: &mut u64,
) -> Result<Outcome, redb::Error> {
    if change.expected.identity != setting.identity {
        return Ok(Ok(Swapped::OtherStore));
    }
    let found = tables.load(change.client.as_ref(), setting.now, setting.identity)?;
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
        0 => setting.bytes_max - setting.bytes_max / KEPT_PART,
        _ => setting.bytes_max,
    };
    if after > before && would_be > bytes_max {
        return Ok(Err(Failure::Full { bytes_max }));
    }
    let forget_at = setting.now.0.saturating_add(change.keep_for.0);
    let forget_at = forget_at.div_ceil(END_STEP).saturating_mul(END_STEP);
    tables.put_client(name, &change.kept, TimestampUs(forget_at))?;
    *bytes = would_be;
    Ok(Ok(Swapped::Written))
}
