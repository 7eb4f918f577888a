//! Oracle: compares every decision with the number of requests of that client allowed in the window
//! that ends with it.
//!
//! It has its own log, because the log of `anteroom-limit` is among the algorithms under test.

use std::collections::{BTreeMap, VecDeque};

use anteroom_limit::rate::Rate;
use anteroom_limit::time::TimestampUs;

use crate::lab::outcome::{Decision, Fate, LimitStatistics};

/// Sorts decisions by time and counts them. Others add the costs.
pub(crate) fn count_decisions(rate: Rate, decisions: &mut [Decision]) -> LimitStatistics {
    // Stable: of two at one moment the earlier decision comes first.
    decisions.sort_by_key(|decision| decision.at);
    let limit = u64::from(rate.requests());
    let mut clients: BTreeMap<u32, Sliding> = BTreeMap::new();
    let mut stats = LimitStatistics::default();
    for decision in decisions.iter() {
        let sliding = clients.entry(decision.client).or_default();
        let before = sliding.count(rate, decision.at);
        stats.requests += 1;
        match decision.fate {
            Fate::Admitted => {
                stats.admitted += 1;
                stats.wrongly_allowed += u64::from(before >= limit);
                sliding.add(decision.at);
                stats.highest = stats.highest.max(before + 1);
            }
            Fate::Rejected | Fate::Undecided => {
                stats.rejected += 1;
                stats.undecided += u64::from(decision.fate == Fate::Undecided);
                stats.wrongly_rejected += u64::from(before < limit);
            }
        }
    }
    stats
}

/// Exact count of the last window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sliding {
    inside: VecDeque<TimestampUs>,
}

impl Sliding {
    pub(crate) fn add(&mut self, at: TimestampUs) {
        self.inside.push_back(at);
    }

    /// Returns the number in the window that ends now; an entry as old as the window is over.
    pub(crate) fn count(&mut self, rate: Rate, now: TimestampUs) -> u64 {
        let is_over = |at: &&TimestampUs| now.since(**at) >= rate.window();
        while self.inside.front().filter(is_over).is_some() {
            self.inside.pop_front();
        }
        self.inside.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use anteroom_limit::time::DurationUs;

    use super::*;

    fn two_in_ten() -> Rate {
        Rate::new(2, DurationUs::from_secs(10)).unwrap()
    }

    fn at(secs: u64, fate: Fate) -> Decision {
        Decision {
            at: TimestampUs(secs * 1_000_000),
            client: 0,
            fate,
        }
    }

    #[test]
    fn wrong_admissions_are_above_the_limit_and_wrong_rejections_below() {
        use Fate::{Admitted, Rejected, Undecided};
        let check = |decisions: &[Decision], wrong: (u64, u64), highest| {
            let mut decisions = decisions.to_vec();
            let stats = count_decisions(two_in_ten(), &mut decisions);
            let found = (stats.wrongly_allowed, stats.wrongly_rejected);
            assert_eq!((found, stats.highest), (wrong, highest), "{decisions:?}");
        };
        check(
            &[at(0, Admitted), at(1, Admitted), at(2, Rejected)],
            (0, 0),
            2,
        );
        check(
            &[at(0, Admitted), at(1, Admitted), at(9, Admitted)],
            (1, 0),
            3,
        );
        check(
            &[at(0, Admitted), at(1, Admitted), at(10, Admitted)],
            (0, 0),
            2,
        );
        check(
            &[at(0, Admitted), at(1, Rejected), at(2, Undecided)],
            (0, 2),
            1,
        );
        // Wrongly allowed requests count like any others.
        check(
            &[
                at(0, Admitted),
                at(1, Admitted),
                at(9, Admitted),
                at(10, Rejected),
            ],
            (1, 0),
            3,
        );
    }

    #[test]
    fn decisions_count_at_their_own_time_and_not_at_their_arrival() {
        use Fate::{Admitted, Rejected};
        let mut decisions = vec![at(5, Rejected), at(1, Admitted), at(2, Admitted)];
        assert_eq!(
            count_decisions(two_in_ten(), &mut decisions).wrongly_rejected,
            0
        );
    }

    #[test]
    fn each_client_is_counted_by_itself() {
        let mut decisions: Vec<Decision> = (0..6)
            .map(|client| Decision {
                client: client / 2,
                ..at(u64::from(client), Fate::Admitted)
            })
            .collect();
        let stats = count_decisions(two_in_ten(), &mut decisions);
        assert_eq!((stats.wrongly_allowed, stats.highest), (0, 2));
    }
}
