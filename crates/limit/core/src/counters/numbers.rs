//! How are counters written down? How many there are, where the newest begins, and the counters
//! from the newest on; zeros at the end are left out.

use alloc::vec::Vec;

use crate::time::Micros;

/// Counters of which the newest begins at `starts_at`.
pub(crate) fn numbers(starts_at: Micros, counts: &[u32]) -> Vec<u64> {
    let last = counts.iter().rposition(|count| *count > 0);
    let known = counts.get(..last.map_or(0, |last| last + 1));
    let known = known.unwrap_or_default().iter().copied().map(u64::from);
    let head = [counts.len() as u64, starts_at.0];
    head.into_iter().chain(known).collect()
}

/// Where the newest begins, and all counters: at least one, and at most so many. `None` if the
/// numbers are none.
pub(crate) fn from_numbers(numbers: &[u64], most: usize) -> Option<(Micros, Vec<u32>)> {
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
    Some((Micros(*starts_at), counts))
}
