//! Promise 4: nobody goes in from behind the watermark that its node holds.

use anteroom_room::time::Timestamp;
use anteroom_room::watermark::Watermark;

use super::Checkers;
use crate::outcome::Promise;

/// An admission, as far as order is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// The rank of somebody who waited; `None` for a newcomer.
    pub(crate) rank: Option<Timestamp>,
    /// What the node holds.
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
            self.report(Promise::Order, now, || match rank {
                Some(rank) => {
                    let behind = match watermark {
                        Watermark::UpTo(mark) => rank.since(mark),
                        _ => rank.since(Timestamp::ZERO),
                    };
                    format!("let in from {behind} behind the watermark")
                }
                None => "let a newcomer in while others are to go first".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use anteroom_room::rules::{AllocationKind, Limits};

    use super::*;
    use crate::run::tests::scenario;

    #[test]
    fn whoever_is_behind_the_watermark_must_not_go_in() {
        let limits = Limits {
            total_active_users: 1,
            new_users_per_minute: 1,
        };
        let mut judge = Checkers::new(&scenario(), AllocationKind::Leases, limits);
        let mut check = |rank: Option<u64>, watermark, expected| {
            let admission = Admission {
                rank: rank.map(Timestamp),
                watermark,
            };
            let before = judge.violation_count();
            judge.check_order(admission, Timestamp(0));
            assert_eq!(judge.violation_count() - before, expected, "{admission:?}");
        };
        check(Some(5), Watermark::UpTo(Timestamp(5)), 0);
        check(Some(6), Watermark::UpTo(Timestamp(5)), 1);
        check(Some(6), Watermark::Open, 0);
        check(Some(6), Watermark::Nobody, 1);
        check(None, Watermark::Open, 0);
        check(None, Watermark::UpTo(Timestamp(9)), 1);
    }
}
