//! What is one counter, and how is it put together from what several nodes say of it?
//!
//! Each node (each process: who is restarted is another writer) says two totals of its own, which
//! only grow: what it has added, and what it has given back. Whoever hears of them keeps the larger
//! of each. So it does not matter in which order they come, how often, or which were lost on the
//! way, as long as a later one arrives.

use anteroom_limit::time::TimestampUs;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Nodes that one counter can have shares of. Restarted nodes count each time they admitted a call
/// within one window; a node beyond is not heard, so this is far above what anybody runs, and
/// bounds what a broken peer can plant.
pub(crate) const SHARES_MAX: usize = 256;

/// A process that counts, by a number drawn when it began. Never zero.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WriterId(pub u64);

/// Which counter: of whom, how long its stretch of time is, and which stretch.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct CounterId {
    /// A client of a limit, see [`crate::names`].
    pub(crate) name: u128,
    /// The stretch, in microseconds.
    pub(crate) width: u64,
    /// Whole stretches since the Unix epoch.
    pub(crate) index: u64,
}

/// What one writer says of a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Share {
    pub(crate) writer: WriterId,
    /// All that it ever added.
    pub(crate) added: u64,
    /// All that it ever gave back; of its own, so not more than it added.
    pub(crate) back: u64,
}

/// One counter.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// From then on it matters to nobody.
    pub(crate) forget_at: TimestampUs,
    /// In which round this node last told a change of its own share.
    pub(crate) told_in: u64,
    /// How many calls its share has changed by since then.
    pub(crate) untold: u32,
    /// How often what was told must still be told.
    pub(crate) tells_left: u8,
    /// A client's that began when something was counted for his crowd: what he called before may be
    /// counted there.
    pub(crate) is_of_crowd: bool,
    shares: SmallVec<[Share; 1]>,
}

/// What became of a share that was heard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Merged {
    /// It said more than was known.
    PendingReports,
    /// It was known.
    Known,
    /// There is no place for one more writer.
    Full,
}

impl Share {
    fn left(&self) -> u64 {
        self.added.saturating_sub(self.back)
    }
}

impl Cell {
    pub(crate) fn new(forget_at: TimestampUs) -> Self {
        Self {
            forget_at,
            told_in: 0,
            untold: 0,
            tells_left: 0,
            is_of_crowd: false,
            shares: SmallVec::new(),
        }
    }

    /// What all writers have counted together.
    pub(crate) fn sum(&self) -> u32 {
        let all = self.shares.iter().map(Share::left);
        let sum = all.fold(0_u64, u64::saturating_add);
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    pub(crate) fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Adds to a writer's own share.
    pub(crate) fn add(&mut self, me: WriterId, by: u32) {
        let share = self.of(me);
        share.added = share.added.saturating_add(u64::from(by));
    }

    /// Takes off what was added and told nobody yet.
    pub(crate) fn undo_add(&mut self, me: WriterId, by: u32) {
        let share = self.of(me);
        share.added = share.added.saturating_sub(u64::from(by));
    }

    /// Gives back up to so much of a writer's own share: how much.
    pub(crate) fn give_back(&mut self, me: WriterId, up_to: u32) -> u32 {
        let Some(share) = self.shares.iter_mut().find(|share| share.writer == me) else {
            return 0;
        };
        let given = u64::from(up_to).min(share.left());
        share.back = share.back.saturating_add(given);
        // It is not more than `up_to`.
        u32::try_from(given).unwrap_or(up_to)
    }

    /// Whether nobody ever counted here.
    pub(crate) fn is_empty(&self) -> bool {
        self.shares.iter().all(|share| share.added == 0)
    }

    /// Hears what a writer says.
    pub(crate) fn merge(&mut self, told: Share) -> Merged {
        let known = self.shares.iter_mut();
        let Some(share) = known.into_iter().find(|share| share.writer == told.writer) else {
            if self.shares.len() >= SHARES_MAX {
                return Merged::Full;
            }
            self.shares.push(told);
            return Merged::PendingReports;
        };
        let before = *share;
        share.added = share.added.max(told.added);
        share.back = share.back.max(told.back);
        if *share == before {
            Merged::Known
        } else {
            Merged::PendingReports
        }
    }

    fn of(&mut self, writer: WriterId) -> &mut Share {
        let found = self.shares.iter().position(|share| share.writer == writer);
        let at = found.unwrap_or_else(|| {
            self.shares.push(Share {
                writer,
                added: 0,
                back: 0,
            });
            self.shares.len() - 1
        });
        &mut self.shares[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(writer: u64, added: u64, back: u64) -> Share {
        Share {
            writer: WriterId(writer),
            added,
            back,
        }
    }

    #[test]
    fn the_sum_is_what_all_writers_left_and_old_news_are_ignored() {
        let mut cell = Cell::new(TimestampUs(1));
        assert_eq!(cell.merge(share(1, 7, 2)), Merged::PendingReports);
        assert_eq!(cell.merge(share(2, 4, 0)), Merged::PendingReports);
        assert_eq!(cell.sum(), 9);
        assert_eq!(cell.merge(share(1, 5, 2)), Merged::Known);
        assert_eq!(cell.merge(share(1, 8, 1)), Merged::PendingReports);
        assert_eq!(cell.sum(), 10);
    }

    #[test]
    fn nobody_refunds_what_is_not_his_and_no_share_is_negative() {
        let (me, other) = (WriterId(1), WriterId(2));
        let mut cell = Cell::new(TimestampUs(1));
        cell.add(me, 3);
        assert_eq!(cell.give_back(other, 2), 0);
        assert_eq!(cell.give_back(me, 5), 3);
        assert_eq!(cell.sum(), 0);
        // What nobody who keeps to the rules would say.
        cell.merge(share(3, 1, 100));
        cell.merge(share(2, 4, 0));
        assert_eq!(cell.sum(), 4);
    }

    #[test]
    fn more_than_a_number_can_hold_is_over_any_limit() {
        let mut cell = Cell::new(TimestampUs(1));
        for writer in 1..=2 * SHARES_MAX as u64 {
            let heard = cell.merge(share(writer, u64::MAX, 0));
            let fits = writer <= SHARES_MAX as u64;
            assert_eq!(heard == Merged::PendingReports, fits, "{writer}");
        }
        assert_eq!(cell.sum(), u32::MAX);
        cell.add(WriterId(1), 1);
        assert_eq!(cell.sum(), u32::MAX);
    }
}
