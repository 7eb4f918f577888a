//! Order of the queue: each waiting visitor gets a rank; lower ranks are served first.
//!
//! FIFO ranks by the second of arrival, and within it by lot. A draw gives those who came before
//! the start a rank by lot, all of them ahead of the start, so that the watermark serves both in
//! the same way.
//! `random` has no ranks: it draws anew in every round.

use crate::hash::LotteryKey;
use crate::id::VisitorId;
use crate::rules::{Draw, Rules};
use crate::time::{DurationMs, Timestamp};
use crate::watermark::{BUCKET, RANKS_IN_BUCKET};

/// Most ranks over which a draw spreads the early visitors, in the seconds before the start.
///
/// One rank then holds 1/4096 of them, so that few share it; within it the first to refresh enters
/// first. Many more would make a million waiting visitors cost a million counters.
const DRAW_STEPS: u64 = 4_096;

/// Length of a round of `random`. Drawn visitors stay eligible for it, and every visitor refreshes
/// at least once in it.
pub const ROUND: DurationMs = DurationMs(10_000);

/// Returns the bucket of a visitor who arrives now.
///
/// When a draw starts in the middle of a bucket, later arrivals in that bucket get the next one.
/// Otherwise they would seem to have come before the start, and take part.
#[must_use]
pub fn bucket(now: Timestamp, rules: &Rules) -> Timestamp {
    let bucket = now.floor_to(BUCKET);
    let is_in_bucket = |draw: Draw| bucket < draw.until && draw.until <= now;
    if rules.draws().any(is_in_bucket) {
        bucket + BUCKET
    } else {
        bucket
    }
}

/// Returns the rank by which a visitor is served.
#[must_use]
pub fn rank(bucket: Timestamp, visitor: VisitorId, rules: &Rules, key: &LotteryKey) -> Timestamp {
    let takes_part = |draw: &Draw| draw.from.floor_to(BUCKET) <= bucket && bucket < draw.until;
    let Some(draw) = rules.draws().find(takes_part) else {
        let place = key.draw(visitor, bucket.0) % RANKS_IN_BUCKET;
        return bucket + DurationMs(BUCKET.0 / RANKS_IN_BUCKET).times(place);
    };
    let end = draw.until.floor_to(BUCKET);
    let first = (end - BUCKET.times(DRAW_STEPS)).max(draw.from.floor_to(BUCKET));
    // A short time has several ranks in a second, as arrivals have.
    let buckets = (end.since(first).0 / BUCKET.0).max(1);
    let in_bucket = (DRAW_STEPS / buckets).clamp(1, RANKS_IN_BUCKET);
    let in_bucket = 1 << in_bucket.ilog2();
    let step = key.draw(visitor, draw.name.0) % (buckets * in_bucket);
    first + DurationMs(BUCKET.0 / in_bucket).times(step)
}

/// Chances of one round of `random`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lottery {
    /// Number of the round: whole [`ROUND`]s since the epoch.
    round: u64,
    /// Draws below this win; the chance is this over 2^64.
    wins_below: u64,
    /// Value of `wins_below` in the previous round, whose winners may not have refreshed yet.
    won_below: u64,
}

impl Lottery {
    /// Starts a new round when its time has come: `slots` of `waiting` win on average. Within a
    /// round nothing changes, so that asking often does not help.
    pub fn advance(&mut self, slots: u32, waiting: u32, now: Timestamp) {
        let round = now.0 / ROUND.0;
        if round == self.round {
            return;
        }
        self.won_below = if round == self.round + 1 {
            self.wins_below
        } else {
            0
        };
        self.round = round;
        let winners = with_allowance(slots);
        self.wins_below = if winners >= waiting {
            u64::MAX
        } else {
            u64::MAX / u64::from(waiting) * u64::from(winners)
        };
    }

    /// Whether this visitor was drawn in this round or the one before.
    #[must_use]
    pub fn is_drawn(&self, visitor: VisitorId, key: &LotteryKey) -> bool {
        key.draw(visitor, self.round) < self.wins_below
            || key.draw(visitor, self.round.wrapping_sub(1)) < self.won_below
    }
}

/// Returns the winners to draw on average, so that there are seldom fewer than slots. Their number
/// varies by its square root, and some do not come back.
fn with_allowance(slots: u32) -> u32 {
    if slots == 0 {
        return 0;
    }
    slots.saturating_add(2 * slots.isqrt() + 2)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    const KEY: LotteryKey = LotteryKey([3; 16]);

    fn visitor(n: u32) -> VisitorId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_le_bytes());
        VisitorId(id)
    }

    #[test]
    fn a_draw_puts_early_visitors_first_in_random_order() {
        let rules = Rules {
            opens_at: Some(Timestamp(10_000_000)),
            draw: true,
            ..Rules::default()
        };
        let ranks: alloc::vec::Vec<_> = (0..1_000)
            .map(|n| {
                let bucket = Timestamp(9_000_000 + u64::from(n) * 1_000);
                rank(bucket, visitor(n), &rules, &KEY)
            })
            .collect();
        assert!(ranks.iter().all(|rank| *rank < Timestamp(10_000_000)));
        let rising = ranks.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rising), "{rising} of 999 rise");
        let late = rank(Timestamp(10_000_000), visitor(1), &rules, &KEY);
        assert_eq!(late, Timestamp(10_000_000));
    }

    #[test]
    fn a_visitor_who_arrives_after_a_draw_is_not_in_it() {
        let rules = Rules {
            opens_at: Some(Timestamp(10_000_400)),
            draw: true,
            ..Rules::default()
        };
        let check = |now, is_early| {
            let bucket = bucket(Timestamp(now), &rules);
            let rank = rank(bucket, visitor(1), &rules, &KEY);
            assert_eq!(rank < Timestamp(10_000_000), is_early, "{now}");
        };
        check(9_999_999, true);
        check(10_000_000, true);
        check(10_000_399, true);
        check(10_000_400, false);
        check(10_000_999, false);
        check(10_001_000, false);
    }

    #[test]
    fn a_draw_that_begins_late_is_behind_those_who_waited_before() {
        for seconds in [1, 2, 300, 600, 4_096, 9_000] {
            let opens_at = Timestamp(10_000_000);
            let rules = Rules {
                opens_at: Some(opens_at),
                holds_from: opens_at - DurationMs::from_secs(seconds),
                draw: true,
                ..Rules::default()
            };
            let rank_of = |n, bucket| rank(bucket, visitor(n), &rules, &KEY);
            let before = rules.holds_from - BUCKET;
            let ranks = 0..2_000;
            let ranks: BTreeSet<_> = ranks.map(|n| rank_of(n, rules.holds_from)).collect();
            assert!(rank_of(7, before) < rules.holds_from, "{seconds} s");
            assert!(*ranks.first().unwrap() >= rules.holds_from, "{seconds} s");
            assert!(*ranks.last().unwrap() < opens_at, "{seconds} s");
            let few = ranks.len() as u64;
            assert!(
                few > 900 || few == seconds * RANKS_IN_BUCKET,
                "{few} in {seconds} s"
            );
        }
    }

    #[test]
    fn without_a_draw_the_bucket_is_the_second_of_arrival() {
        let rules = Rules {
            opens_at: Some(Timestamp(10_000_400)),
            ..Rules::default()
        };
        assert_eq!(bucket(Timestamp(10_000_999), &rules), Timestamp(10_000_000));
        assert_eq!(
            bucket(Timestamp(10_000_999), &Rules::default()),
            Timestamp(10_000_000)
        );
    }

    #[test]
    fn without_a_draw_the_rank_is_in_the_second_of_the_arrival() {
        let bucket = Timestamp(10_000_000);
        let ranks = (0..1_000).map(|n| rank(bucket, visitor(n), &Rules::default(), &KEY));
        let mut counts = alloc::collections::BTreeMap::new();
        for rank in ranks {
            *counts.entry(rank.since(bucket).0).or_insert(0) += 1;
        }
        let places: alloc::vec::Vec<u64> = counts.keys().copied().collect();
        assert_eq!(places, [0, 125, 250, 375, 500, 625, 750, 875]);
        assert!(counts.values().all(|count| (80..170).contains(count)));
    }

    #[test]
    fn a_round_draws_about_as_many_as_there_are_slots() {
        let mut lottery = Lottery::default();
        lottery.advance(100, 10_000, Timestamp(10_000));
        let winners = |lottery: &Lottery| -> alloc::vec::Vec<u32> {
            (0..10_000)
                .filter(|&n| lottery.is_drawn(visitor(n), &KEY))
                .collect()
        };
        let first = winners(&lottery);
        assert!((60..140).contains(&first.len()), "{}", first.len());
        lottery.advance(0, 10_000, Timestamp(20_000));
        assert_eq!(winners(&lottery), first, "winners may come one round later");
        lottery.advance(100, 10_000, Timestamp(30_000));
        assert_ne!(winners(&lottery), first);
    }

    #[test]
    fn all_win_when_all_fit() {
        let mut lottery = Lottery::default();
        lottery.advance(5, 5, Timestamp(10_000));
        assert!((0..100).all(|n| lottery.is_drawn(visitor(n), &KEY)));
    }
}
