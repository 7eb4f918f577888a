//! What has a node to tell, and when? News are gathered until its next round, so one message tells
//! of many calls.

use std::collections::BTreeMap;

use anteroom_limit::counters::CounterIndex;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::lab::rng::{Dice, Purpose};
use crate::lab::run::Plan;

/// So many calls of a client that a node admitted in a stretch of time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct News {
    pub(crate) writer: u32,
    pub(crate) client: u32,
    pub(crate) index: CounterIndex,
    pub(crate) calls: u32,
    /// When the first of them came.
    pub(crate) since: TimestampUs,
}

/// What somebody tells in its next round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    interval: DurationUs,
    /// Rounds are so long after multiples of the interval: those of nodes lie anywhere.
    offset: DurationUs,
    gathered: BTreeMap<(u32, CounterIndex, u32), News>,
}

/// When there is something to do for whoever tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Due {
    /// Nothing is gathered: right now.
    Now,
    /// The first of these news: then.
    At(TimestampUs),
    /// It is known.
    Known,
}

impl Round {
    /// Those of so many who tell.
    pub(crate) fn of(plan: &Plan, count: u32) -> Vec<Self> {
        let mut rng = Dice::new(plan.seed, Purpose::Rounds);
        let round = |_| Self {
            interval: plan.interval,
            offset: rng.part_of(plan.interval),
            gathered: BTreeMap::new(),
        };
        (0..count).map(round).collect()
    }

    /// Adds to what is told.
    pub(crate) fn gather(&mut self, news: News, now: TimestampUs) -> Due {
        let is_first = self.gathered.is_empty();
        let told = self
            .gathered
            .entry((news.client, news.index, news.writer))
            .or_insert(News { calls: 0, ..news });
        told.calls = told.calls.saturating_add(news.calls);
        told.since = told.since.min(news.since);
        match (self.interval.0, is_first) {
            (0, _) => Due::Now,
            (_, true) => Due::At(self.next(now)),
            (_, false) => Due::Known,
        }
    }

    /// All that is told, by client.
    pub(crate) fn take(&mut self) -> Vec<News> {
        std::mem::take(&mut self.gathered).into_values().collect()
    }

    fn next(&self, now: TimestampUs) -> TimestampUs {
        let into = (now.0 + self.interval.0 - self.offset.0) % self.interval.0;
        now + DurationUs(self.interval.0 - into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(interval: u64) -> Round {
        Round {
            interval: DurationUs(interval),
            offset: DurationUs(interval / 4),
            gathered: BTreeMap::new(),
        }
    }

    fn news(client: u32, since: u64) -> News {
        News {
            writer: 0,
            client,
            index: CounterIndex(7),
            calls: 1,
            since: TimestampUs(since),
        }
    }

    #[test]
    fn news_wait_for_the_next_round_and_are_told_together() {
        let mut round = round(100);
        assert_eq!(
            round.gather(news(1, 130), TimestampUs(130)),
            Due::At(TimestampUs(225))
        );
        assert_eq!(round.gather(news(1, 140), TimestampUs(140)), Due::Known);
        assert_eq!(round.gather(news(2, 150), TimestampUs(150)), Due::Known);
        let told = round.take();
        assert_eq!(
            told,
            [
                News {
                    calls: 2,
                    ..news(1, 130)
                },
                news(2, 150)
            ]
        );
        assert_eq!(
            round.gather(news(1, 225), TimestampUs(225)),
            Due::At(TimestampUs(325))
        );
        assert_eq!(round.gather(news(1, 3), TimestampUs(3)), Due::Known);
        assert_eq!(round.take()[0].since, TimestampUs(3));
        assert_eq!(
            round.gather(news(1, 3), TimestampUs(3)),
            Due::At(TimestampUs(25))
        );
    }

    #[test]
    fn nothing_waits_where_each_call_is_told_at_once() {
        let mut round = round(0);
        assert_eq!(round.gather(news(1, 130), TimestampUs(130)), Due::Now);
        assert_eq!(round.take().len(), 1);
    }
}
