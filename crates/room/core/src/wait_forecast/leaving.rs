//! Rate at which active visitors leave.
//!
//! In a small room few leave in any minute, so one snapshot says little. The estimate is of the
//! last two sessions. Before there was one, it begins with the guess that visitors browse for as
//! long as a session.

use super::{END_PARTS, ONE};
use crate::rules::Rules;
use crate::seats::SeatTerms;
use crate::sync::Snapshot;
use crate::time::{DurationMs, Timestamp};

/// Weight of the guess: so many people were watched for a quarter of a seat.
const GUESS_WEIGHT: u64 = 8 * ONE;
/// Quarters of a seat after which an observation has lost most of its weight.
const REMEMBERED: u64 = 8;
/// Observations in a quarter of a seat.
const LOOKS: u64 = 64;
/// Millionths of one.
const WHOLE: u64 = 1_000_000;

/// Active visitors by the quarter of a seat in which theirs end, the soonest first, in thousandths.
/// Those in the second quarter have sent nothing for half of a seat, so they have left.
pub(super) type Quarters = [u64; 4];

/// Estimate of how many active visitors leave in a quarter of a seat.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaving {
    /// Time since which visitors have been active.
    since: Option<Timestamp>,
    looked_at: Timestamp,
    /// Thousandths of people who left.
    left: u64,
    /// Thousandths of active visitors times quarters of a seat.
    watched: u64,
}

impl Leaving {
    /// Handles a snapshot.
    pub fn handle_snapshot(&mut self, snapshot: &Snapshot, rules: &Rules) {
        let (now, quarter) = (snapshot.as_of, quarter_of(rules));
        if snapshot.active == 0 {
            *self = Self::default();
            return;
        }
        let since = *self.since.get_or_insert(now);
        let passed = now.since(self.looked_at);
        if passed.0 < quarter.0 / LOOKS {
            return;
        }
        self.looked_at = now;
        // Before, nobody can have left for so long that it shows. After a gap nothing is known.
        if now.since(since) < quarter.times(3) || passed > quarter {
            return;
        }
        let quarters = quarters_of(snapshot, quarter);
        let part = |amount: u64| amount.saturating_mul(passed.0) / quarter.0;
        let fade = |amount: u64| amount - (part(amount) / REMEMBERED).min(amount);
        self.left = fade(self.left) + part(quarters[1]);
        self.watched = fade(self.watched) + part(quarters.iter().sum());
    }

    /// Returns the rate at which those leave who still open pages: of a million, in a quarter of a
    /// seat.
    pub(super) fn millionths(&self, quarters: Quarters, rules: &Rules) -> u64 {
        let [_, earlier, lately, _] = quarters;
        let (left, watched) = if self.watched > 0 {
            (self.left, self.watched)
        } else {
            // Just after an opening only those show who left at once.
            let left = if earlier > 0 { earlier } else { lately };
            (left, if left > 0 { quarters.iter().sum() } else { 0 })
        };
        // Who leaves is active for four more quarters. The others still open pages.
        let browsing = watched.saturating_sub(4 * left).max(watched / 8);
        let guess = WHOLE * quarter_of(rules).0 / rules.session_duration.0.max(1);
        (left * WHOLE + GUESS_WEIGHT * guess) / (browsing + GUESS_WEIGHT)
    }
}

/// Returns a quarter of the longest seat.
pub(super) fn quarter_of(rules: &Rules) -> DurationMs {
    DurationMs((SeatTerms::of(rules).longest_seat().0 / 4).max(1))
}

/// Returns the active visitors of a snapshot by the quarter in which their seats end.
pub(super) fn quarters_of(snapshot: &Snapshot, quarter: DurationMs) -> Quarters {
    let part = snapshot.longest_known.0.max(1) / END_PARTS as u64;
    let mut quarters = [0; 4];
    for (index, &count) in snapshot.ends_ahead.iter().enumerate() {
        let of = usize::try_from(part * index as u64 / quarter.0).unwrap_or(3);
        quarters[of.min(3)] += u64::from(count) * ONE;
    }
    quarters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the estimate of a room of so many seats after two hours in which so many leave.
    fn watched(seats: u32, noise: impl Fn(u64) -> u32) -> (Leaving, Snapshot) {
        let rules = Rules::default();
        let mut leaving = Leaving::default();
        let mut last = Snapshot::default();
        for second in 0..7_200 {
            let left = noise(second).min(seats);
            let mut ends_ahead = [0; END_PARTS];
            ends_ahead[5] = left;
            ends_ahead[15] = seats - left;
            last = Snapshot {
                as_of: Timestamp(1_000_000 + second * 1_000),
                active: seats,
                ends_ahead,
                longest_known: SeatTerms::of(&rules).longest_seat(),
                ..Snapshot::default()
            };
            leaving.handle_snapshot(&last, &rules);
        }
        (leaving, last)
    }

    fn share(leaving: Leaving, snapshot: &Snapshot) -> u64 {
        let rules = Rules::default();
        leaving.millionths(quarters_of(snapshot, quarter_of(&rules)), &rules)
    }

    #[test]
    fn the_rate_of_a_small_room_does_not_follow_each_visitor() {
        // Two in a quarter on average, of twelve who browse.
        let (leaving, last) = watched(20, |second| [0, 6, 2, 1, 1][(second / 60 % 5) as usize]);
        let found = share(leaving, &last);
        assert!((150_000..250_000).contains(&found), "{found}");
    }

    #[test]
    fn a_large_room_knows_its_rate_and_not_the_guess() {
        let (leaving, last) = watched(2_000, |_| 40);
        let found = share(leaving, &last);
        assert!((21_000..23_500).contains(&found), "{found}");
    }

    #[test]
    fn an_empty_room_forgets_and_the_guess_is_a_session() {
        let (mut leaving, _) = watched(20, |_| 0);
        leaving.handle_snapshot(&Snapshot::default(), &Rules::default());
        let mut alone = Snapshot {
            longest_known: SeatTerms::of(&Rules::default()).longest_seat(),
            active: 1,
            ..Snapshot::default()
        };
        alone.ends_ahead[15] = 1;
        assert_eq!(
            share(leaving, &alone),
            258_333,
            "a quarter of a seat is that of a session"
        );
    }
}
