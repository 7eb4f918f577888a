//! Number form of counters: how many there are, the start of the newest, and the counters from the
//! newest on. Zeros at the end are left out.

use alloc::vec::Vec;

use crate::time::TimestampUs;

/// Writes counters of which the newest begins at `starts_at`.
pub(crate) fn write_numbers(starts_at: TimestampUs, counts: &[u32], put: &mut dyn FnMut(u64)) {
    let last = counts.iter().rposition(|count| *count > 0);
    let known = counts.get(..last.map_or(0, |last| last + 1));
    put(counts.len() as u64);
    put(starts_at.0);
    for &count in known.unwrap_or_default() {
        put(count.into());
    }
}

/// Reads the start of the newest counter, and all counters: from one to `most`. `None` if the
/// numbers are malformed.
pub(crate) fn from_numbers(numbers: &[u64], most: usize) -> Option<(TimestampUs, Vec<u32>)> {
    let [count, starts_at, known @ ..] = numbers else {
        return None;
    };
    let count = usize::try_from(*count).ok()?;
    if count == 0 || count > most || known.len() > count {
        return None;
    }
    let known = known.iter().map(|count| u32::try_from(*count));
    let mut counts = known.collect::<Result<Vec<u32>, _>>().ok()?;
    counts.resize(count, 0);
    Some((TimestampUs(*starts_at), counts))
}
