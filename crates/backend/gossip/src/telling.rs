//! What does a node tell, when, and to whom?
//!
//! - What it has changed itself, to all others, as soon as its turn comes, what matters most first
//!   ([`crate::news`]), and [`TELLS`] times: a datagram that is lost costs one interval, and three
//!   in a row are rare.
//! - All that it speaks for, to all others, slowly round and round ([`REPEAT_PERIOD`]): what was
//!   lost all the same heals.
//! - The same to whoever joins, fast.
//!
//! A node speaks for itself, and for those who are gone, as far as it has heard of them: so what a
//! node counted that was stopped, or killed, stays counted till its time is over, also with those
//! who join later.

use std::time::Duration;

use anteroom_limit::time::TimestampUs;

use crate::board::CounterTable;
use crate::cell::{Cell, CounterId, WriterId};
use crate::event_counts::Event;
use crate::message::{CounterReport, Packer};
use crate::news::{Deferred, class};

/// How often a change is told. Once would leave what was lost to the slow repetition.
pub const TELLS: u8 = 3;
/// In how long all is repeated at an interval of 100 ms, as long as a node tells of no more than
/// 108,800 counters (34 in each of 32 datagrams, a hundred times) and knows no more than 204,800;
/// in longer beyond.
pub const REPEAT_PERIOD: Duration = Duration::from_secs(10);
/// Datagrams of each kind that a node sends to one other in one interval at most: 38 kB, as many as
/// fit into the buffers that systems have for a socket (some 200 kB) from several at once.
const DATAGRAMS_AT_ONCE: usize = 32;
/// Counters that are looked at for a repetition at once, so that calls never wait long for that.
const LOOKS_MOST: usize = 2_048;

impl Cell {
    /// Its writer's own share, to be told.
    fn tell(&self, id: CounterId, me: WriterId) -> CounterReport {
        let own = self.shares().iter().filter(|share| share.writer == me);
        CounterReport {
            id,
            forget_at: self.forget_at,
            shares: own.copied().collect(),
        }
    }

    /// Whether what was told in that round is to be told again: nothing has changed since.
    fn is_told_again(&self, told_in: u64) -> bool {
        self.told_in == told_in && self.untold == 0 && self.tells_left > 0
    }
}

impl CounterTable {
    /// Notes that this node changed its share of a counter by so many calls.
    pub(crate) fn note_change(&mut self, id: CounterId, by: u32) {
        let Some(cell) = self.cells.get_mut(&id) else {
            return;
        };
        let before = class(cell.untold);
        cell.untold = cell.untold.saturating_add(by);
        let Some(now) = class(cell.untold).filter(|now| Some(*now) != before) else {
            return;
        };
        self.news.push(now, id);
        if let Some(put_off) = self.news.put_off()
            && self.is_waiting(put_off)
        {
            self.event_counts.count(Event::CounterPutOff);
        }
    }

    /// Whether that still had to be told.
    fn is_waiting(&self, put_off: Deferred) -> bool {
        let (Deferred::Untold(_, id) | Deferred::Again(_, id)) = put_off;
        self.cells.get(&id).is_some_and(|cell| match put_off {
            Deferred::Untold(in_class, _) => class(cell.untold) == Some(in_class),
            Deferred::Again(told_in, _) => cell.is_told_again(told_in),
        })
    }

    /// The news, for all others.
    pub(crate) fn tell_news(&mut self, now: TimestampUs) -> Vec<Vec<u8>> {
        let mut packer = Packer::new(self.me, now, DATAGRAMS_AT_ONCE);
        let (me, round) = (self.me, self.round);
        self.round += 1;
        // What is told here for the first time has its turn again in a later round.
        let mut again = self.news.again();
        while let Some((in_class, id)) = self.news.pop() {
            let Some(cell) = self.cells.get_mut(&id) else {
                continue;
            };
            if class(cell.untold) != Some(in_class) {
                continue;
            }
            if !packer.push(&cell.tell(id, me)) {
                self.news.push(in_class, id);
                return packer.into_bodies();
            }
            cell.untold = 0;
            cell.told_in = round;
            cell.tells_left = TELLS - 1;
            self.news.push_again(round, id);
        }
        while again > 0
            && let Some((told_in, id)) = self.news.pop_again()
        {
            again -= 1;
            let Some(cell) = self.cells.get_mut(&id) else {
                continue;
            };
            if !cell.is_told_again(told_in) {
                continue;
            }
            if !packer.push(&cell.tell(id, me)) {
                self.news.unpop_again(told_in, id);
                break;
            }
            cell.tells_left -= 1;
            if cell.tells_left > 0 {
                self.news.push_again(told_in, id);
            }
        }
        packer.into_bodies()
    }

    /// The next part of all, for all others; forgets what is over on the way.
    pub(crate) fn tell_round(&mut self, now: TimestampUs, interval: Duration) -> Vec<Vec<u8>> {
        let mut packer = Packer::new(self.me, now, DATAGRAMS_AT_ONCE);
        let rounds = REPEAT_PERIOD.as_micros() / interval.as_micros().max(1);
        let rounds = usize::try_from(rounds).unwrap_or(usize::MAX).max(1);
        let looks = self.cells.len().div_ceil(rounds).min(LOOKS_MOST);
        for _ in 0..looks {
            if self.hand >= self.cells.len() {
                self.hand = 0;
            }
            if let Some(told) = self.told_at(self.hand, now)
                && !packer.push(&told)
            {
                break;
            }
            self.turn_hand(now);
        }
        packer.into_bodies()
    }

    /// The part of all that ends before `rest`, for one who has just come, and what is still to be
    /// told then. From the last to the first: what is added meanwhile is news, and what takes
    /// another's place comes from behind.
    pub(crate) fn tell_newcomer(&self, now: TimestampUs, rest: usize) -> (Vec<Vec<u8>>, usize) {
        let mut packer = Packer::new(self.me, now, DATAGRAMS_AT_ONCE);
        let mut rest = rest.min(self.cells.len());
        let stop = rest.saturating_sub(LOOKS_MOST);
        while rest > stop {
            if let Some(told) = self.told_at(rest - 1, now)
                && !packer.push(&told)
            {
                break;
            }
            rest -= 1;
        }
        (packer.into_bodies(), rest)
    }

    /// What this node says of a counter; `None` if it is over, or others say all that there is to
    /// say.
    fn told_at(&self, at: usize, now: TimestampUs) -> Option<CounterReport> {
        let (id, cell) = self.cells.get_index(at)?;
        let shares = cell.shares().iter();
        let ours = shares.filter(|share| share.added > 0 && self.speaks_for(share.writer));
        let told = CounterReport {
            id: *id,
            forget_at: cell.forget_at,
            shares: ours.copied().collect(),
        };
        (cell.forget_at > now && !told.shares.is_empty()).then_some(told)
    }
}
