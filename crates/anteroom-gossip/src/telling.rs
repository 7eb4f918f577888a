//! What does a node tell, when, and to whom?
//!
//! - What it has changed itself, to all others, as soon as its turn comes, the newest first, and [`TELLS`] times: a datagram
//!   that is lost costs one interval, and three in a row are rare.
//! - All that it speaks for, to all others, slowly round and round ([`REPEAT_PERIOD`]): what was lost all the same heals.
//! - The same to whoever joins, fast.
//!
//! A node speaks for itself, and for those who are gone, as far as it has heard of them: so what a node
//! counted that was stopped, or killed, stays counted till its time is over, also with those who join later.

use std::time::Duration;

use anteroom_limits::time::Micros;

use crate::board::Board;
use crate::cell::CounterId;
use crate::message::{Packer, Told};
use crate::tally::Event;

/// How often a change is told. Once would leave what was lost to the slow repetition.
pub const TELLS: u8 = 3;
/// In how long all is repeated at an interval of 100 ms, as long as a node tells of no more than 108,800 counters (34 in each of
/// 32 datagrams, a hundred times) and knows no more than 204,800; in longer beyond.
pub const REPEAT_PERIOD: Duration = Duration::from_secs(10);
/// Datagrams of each kind that a node sends to one other in one interval at most: 38 kB, as many as fit into the
/// buffers that systems have for a socket (some 200 kB) from several at once.
const DATAGRAMS_AT_ONCE: usize = 32;
/// Counters that are looked at for a repetition at once, so that calls never wait long for that.
const LOOKS_MOST: usize = 2_048;
/// News that wait at most. Beyond, the oldest are left to the repetition.
const NEWS_MAX: usize = 65_536;

impl Board {
    /// Notes that this node changed its share of a counter.
    pub(crate) fn note_change(&mut self, id: CounterId) {
        let round = self.round;
        let Some(cell) = self.cells.get_mut(&id) else {
            return;
        };
        cell.tells_left = TELLS;
        if cell.changed_in == round {
            return;
        }
        cell.changed_in = round;
        self.changed.push_back((round, id));
        if self.changed.len() > NEWS_MAX {
            self.changed.pop_front();
            self.tally.count(Event::CounterPutOff);
        }
    }

    /// The news, for all others.
    pub(crate) fn tell_news(&mut self, now: Micros) -> Vec<Vec<u8>> {
        let mut packer = Packer::new(self.me, now, DATAGRAMS_AT_ONCE);
        let mut again = Vec::new();
        while let Some((changed_in, id)) = self.changed.pop_back() {
            let me = self.me;
            let Some(cell) = self.cells.get_mut(&id) else {
                continue;
            };
            if cell.changed_in != changed_in {
                continue;
            }
            let own = cell.shares().iter().filter(|share| share.writer == me);
            let told = Told {
                id,
                forget_at: cell.forget_at,
                shares: own.copied().collect(),
            };
            if !packer.push(&told) {
                self.changed.push_back((changed_in, id));
                break;
            }
            cell.tells_left = cell.tells_left.saturating_sub(1);
            if cell.tells_left > 0 {
                again.push((changed_in, id));
            }
        }
        // Behind all that was never told.
        for told in again {
            self.changed.push_front(told);
        }
        self.round += 1;
        packer.into_bodies()
    }

    /// The next part of all, for all others; forgets what is over on the way.
    pub(crate) fn tell_round(&mut self, now: Micros, interval: Duration) -> Vec<Vec<u8>> {
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

    /// The part of all that ends before `rest`, for one who has just come, and what is still to be told then. From the last to the first: what
    /// is added meanwhile is news, and what takes another's place comes from behind.
    pub(crate) fn tell_newcomer(&self, now: Micros, rest: usize) -> (Vec<Vec<u8>>, usize) {
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

    /// What this node says of a counter; `None` if it is over, or others say all that there is to say.
    fn told_at(&self, at: usize, now: Micros) -> Option<Told> {
        let (id, cell) = self.cells.get_index(at)?;
        let shares = cell.shares().iter();
        let ours = shares.filter(|share| share.added > 0 && self.speaks_for(share.writer));
        let told = Told {
            id: *id,
            forget_at: cell.forget_at,
            shares: ours.copied().collect(),
        };
        (cell.forget_at > now && !told.shares.is_empty()).then_some(told)
    }
}
