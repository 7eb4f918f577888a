//! Independent requests of one client over a length of time: the parts of generated traffic.

use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::Request;
use crate::lab::rng::LabRng;

/// Mean gap below which time is counted more finely than in microseconds. Rounding each gap down
/// adds up to 1.5 requests in a thousand at this gap, and more below it: at a request every four
/// microseconds, seven for every five.
const CLOSE_MICROS: u64 = 1_000;
/// Parts of a microsecond for such gaps. A mean of `u32::MAX` requests a second has 232 of them.
const PARTS: u64 = 1_000_000;

/// Mean gap between two requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Apart {
    /// Gap; at least one.
    mean: u64,
    /// Parts of a microsecond in one unit.
    parts: u64,
}

impl Apart {
    /// Creates the gap of this rate; `None` if no requests come.
    pub(super) fn of(rate: Rate) -> Option<Self> {
        let requests = u64::from(rate.requests());
        let micros = rate.window().0.checked_div(requests)?;
        let parts = if micros < CLOSE_MICROS { PARTS } else { 1 };
        Some(Self {
            mean: (rate.window().0.saturating_mul(parts) / requests).max(1),
            parts,
        })
    }

    /// Returns the gap at so many tenths of the rate.
    pub(super) fn at_tenths(self, tenths: u64) -> Self {
        Self {
            mean: (self.mean.saturating_mul(10) / tenths).max(1),
            ..self
        }
    }
}

/// Adds the requests of a client in a range of time: a Poisson process.
pub(super) fn push(
    requests: &mut Vec<Request>,
    rng: &mut LabRng,
    client: u32,
    apart: Apart,
    (from, to): (TimestampUs, TimestampUs),
) {
    // Whole microseconds must not stand still; their parts are too small to.
    let least = u64::from(apart.parts == 1);
    let mut elapsed = rng.whole_exponential(apart.mean);
    loop {
        let at = from + DurationUs(elapsed / apart.parts);
        if at >= to {
            return;
        }
        requests.push(Request { at, client });
        elapsed = elapsed.saturating_add(rng.whole_exponential(apart.mean).max(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::rng::Purpose;
    use crate::lab::traffic::BEGIN;

    /// Counts requests at this rate and half as many again, in so many seconds.
    fn count(requests_a_minute: u32, secs: u64) -> usize {
        let rate = Rate::new(requests_a_minute, DurationUs::from_secs(60)).unwrap();
        let mut rng = LabRng::new(1, Purpose::Traffic);
        let mut requests = Vec::new();
        let apart = Apart::of(rate).unwrap().at_tenths(15);
        let end = BEGIN + DurationUs::from_secs(secs);
        push(&mut requests, &mut rng, 0, apart, (BEGIN, end));
        assert!(requests.is_sorted_by_key(|request| request.at));
        assert!(
            requests
                .iter()
                .all(|request| request.at >= BEGIN && request.at < end)
        );
        requests.len()
    }

    #[test]
    fn the_requested_rate_comes_out_at_any_gap() {
        // Four in a thousand are more than the random error, and less than the error of whole
        // microseconds.
        let check = |requests_a_minute: u32, secs, expected: usize| {
            let found = count(requests_a_minute, secs);
            let off = found.abs_diff(expected) * 250;
            assert!(off <= expected, "{requests_a_minute}/min: {found}");
        };
        check(40_000, 600, 600_000);
        check(1_000_000, 40, 1_000_000);
        check(15_100_000, 2, 755_000);
    }

    #[test]
    fn a_rate_of_zero_yields_no_requests() {
        let none = Rate::new(0, DurationUs::from_secs(60)).unwrap();
        assert_eq!(Apart::of(none), None);
    }
}
