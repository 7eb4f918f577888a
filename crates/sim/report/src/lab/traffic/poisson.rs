//! Calls of one client that know nothing of each other, in a stretch of time: what made-up traffic
//! consists of.

use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::Call;
use crate::lab::rng::Dice;

/// Where calls are closer than this on average, time is counted more finely than in microseconds.
/// What is cut off of each time between two calls makes up to one and a half calls in a thousand
/// too many there, and the more the closer they are: at a call every four microseconds seven for
/// every five.
const CLOSE_MICROS: u64 = 1_000;
/// Parts of a microsecond that are counted then. A mean of `u32::MAX` calls a second has 232 of
/// them.
const PARTS: u64 = 1_000_000;

/// The time between two calls, on average.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Apart {
    /// At least one.
    mean: u64,
    /// Parts of a microsecond in which it is told.
    parts: u64,
}

impl Apart {
    /// At this rate; `None` if no calls come.
    pub(super) fn of(rate: Rate) -> Option<Self> {
        let calls = u64::from(rate.calls());
        let micros = rate.window().0.checked_div(calls)?;
        let parts = if micros < CLOSE_MICROS { PARTS } else { 1 };
        Some(Self {
            mean: (rate.window().0.saturating_mul(parts) / calls).max(1),
            parts,
        })
    }

    /// With so many tenths of the rate.
    pub(super) fn at_tenths(self, tenths: u64) -> Self {
        Self {
            mean: (self.mean.saturating_mul(10) / tenths).max(1),
            ..self
        }
    }
}

/// Adds the calls of a client from one moment on, before another: a Poisson process.
pub(super) fn push(
    calls: &mut Vec<Call>,
    rng: &mut Dice,
    client: u32,
    apart: Apart,
    (from, to): (TimestampUs, TimestampUs),
) {
    // Whole microseconds must not stand still; parts of them are too small to.
    let least = u64::from(apart.parts == 1);
    let mut elapsed = rng.whole_exponential(apart.mean);
    loop {
        let at = from + DurationUs(elapsed / apart.parts);
        if at >= to {
            return;
        }
        calls.push(Call { at, client });
        elapsed = elapsed.saturating_add(rng.whole_exponential(apart.mean).max(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::rng::Purpose;
    use crate::lab::traffic::BEGIN;

    /// Calls of so many a minute and half as many again, in so many seconds.
    fn count(calls_a_minute: u32, secs: u64) -> usize {
        let rate = Rate::new(calls_a_minute, DurationUs::from_secs(60)).unwrap();
        let mut rng = Dice::new(1, Purpose::Traffic);
        let mut calls = Vec::new();
        let apart = Apart::of(rate).unwrap().at_tenths(15);
        let end = BEGIN + DurationUs::from_secs(secs);
        push(&mut calls, &mut rng, 0, apart, (BEGIN, end));
        assert!(calls.is_sorted_by_key(|call| call.at));
        assert!(calls.iter().all(|call| call.at >= BEGIN && call.at < end));
        calls.len()
    }

    #[test]
    fn as_many_calls_come_as_were_asked_for_however_close_they_are() {
        // Four in a thousand are more than chance is off by, and less than whole microseconds are.
        let check = |calls_a_minute: u32, secs, expected: usize| {
            let found = count(calls_a_minute, secs);
            let off = found.abs_diff(expected) * 250;
            assert!(off <= expected, "{calls_a_minute}/min: {found}");
        };
        check(40_000, 600, 600_000);
        check(1_000_000, 40, 1_000_000);
        check(15_100_000, 2, 755_000);
    }

    #[test]
    fn nothing_comes_of_a_rate_of_nothing() {
        let none = Rate::new(0, DurationUs::from_secs(60)).unwrap();
        assert_eq!(Apart::of(none), None);
    }
}
