//! Checker of invariant 4: no visitor behind its node's watermark is admitted.

use anteroom_room::time::Timestamp;
use anteroom_room::watermark::Watermark;

use super::Checkers;
use crate::outcome::Invariant;

/// Admission with what decides its order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// Rank of a visitor who waited; `None` for a new visitor.
    pub(crate) rank: Option<Timestamp>,
    /// Watermark that the node knows.
    pub(crate) watermark: Watermark,
}

impl Checkers {
    pub(crate) fn check_order(&mut self, admission: Admission, now: Timestamp) {
        let Admission { rank, watermark } = admission;
        let is_fair = match rank {
            Some(rank) => watermark.covers(rank),
            None => watermark == Watermark::Open,
        };
        if !is_fair {
            self.report(Invariant::Order, now, || match rank {
                Some(rank) => {
                    let behind = match watermark {
                        Watermark::UpTo(mark) => rank.since(mark),
                        _ => rank.since(Timestamp::ZERO),
                    };
                    format!("admitted {behind} behind the watermark")
                }
                None => "admitted a new visitor while waiting visitors go first".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use anteroom_room::rules::Rules;

    use super::*;
    use crate::run::tests::scenario;

    #[test]
    fn a_visitor_behind_the_watermark_must_not_be_admitted() {
        let mut checkers = Checkers::new(&scenario(), &Rules::default());
        let mut check = |rank: Option<u64>, watermark, expected| {
            let admission = Admission {
                rank: rank.map(Timestamp),
                watermark,
            };
            let before = checkers.violation_count();
            checkers.check_order(admission, Timestamp(0));
            assert_eq!(
                checkers.violation_count() - before,
                expected,
                "{admission:?}"
            );
        };
        check(Some(5), Watermark::UpTo(Timestamp(5)), 0);
        check(Some(6), Watermark::UpTo(Timestamp(5)), 1);
        check(Some(6), Watermark::Open, 0);
        check(Some(6), Watermark::Nobody, 1);
        check(None, Watermark::Open, 0);
        check(None, Watermark::UpTo(Timestamp(9)), 1);
    }
}
