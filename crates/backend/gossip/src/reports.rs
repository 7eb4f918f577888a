//! Reports that a node sends to its peers:
//!
//! - Its own changes, to all peers, the most important first ([`crate::pending`]), and
//!   [`SENDS_PER_CHANGE`] times: a lost datagram costs one interval, and three lost in a row are
//!   rare.
//! - All counters that it reports for, to all peers, slowly and in turn ([`REPEAT_PERIOD`]): this
//!   repairs what was lost all the same.
//! - All counters that it reports for, fast, to a node that joins.
//!
//! A node reports for itself, and for departed nodes as far as it knows their counts. So the
//! requests that a stopped or killed node counted stay counted until their window ends, also with
//! nodes that join later.

use std::time::Duration;

use anteroom_limit::time::TimestampUs;

use crate::cell::{Cell, CounterId, WriterId};
use crate::counter_table::CounterTable;
use crate::event_counts::Event;
use crate::message::{CounterReport, Packer};
use crate::pending::{Deferred, class};

/// Number of times a change is sent. After a single loss the change would wait for the slow
/// repetition.
pub const SENDS_PER_CHANGE: u8 = 3;
/// Period in which all counters are repeated at an interval of 100 ms. It holds while a node
/// reports no more than 108,800 counters (34 in each of 32 datagrams, a hundred times) and knows no
/// more than 204,800; beyond that it takes longer.
pub const REPEAT_PERIOD: Duration = Duration::from_secs(10);
/// Most datagrams of each kind that a node sends to one peer in an interval: 38 kB. The usual
/// socket buffer (some 200 kB) holds that from several nodes at once.
const DATAGRAMS_AT_ONCE: usize = 32;
/// Most counters that a repetition visits at once, so that requests never wait long for the lock.
const LOOKS_MOST: usize = 2_048;

impl Cell {
    /// Returns a report of this node's own share.
    fn report(&self, id: CounterId, me: WriterId) -> CounterReport {
        let own = self.shares().iter().filter(|share| share.writer == me);
        CounterReport {
            id,
            forget_at: self.forget_at,
            shares: own.copied().collect(),
        }
    }

    /// Returns whether the report of round `reported_in` is still to be sent again: nothing has
    /// changed since.
    fn is_due_again(&self, reported_in: u64) -> bool {
        self.reported_in == reported_in && self.unreported == 0 && self.sends_left > 0
    }
}

impl CounterTable {
    /// Records that this node changed its share of a counter by `by` requests.
    pub(crate) fn note_change(&mut self, id: CounterId, by: u32) {
        let Some(cell) = self.cells.get_mut(&id) else {
            return;
        };
        let before = class(cell.unreported);
        cell.unreported = cell.unreported.saturating_add(by);
        let Some(now) = class(cell.unreported).filter(|now| Some(*now) != before) else {
            return;
        };
        self.news.push(now, id);
        if let Some(deferred) = self.news.defer()
            && self.is_waiting(deferred)
        {
            self.event_counts.count(Event::CounterDeferred);
        }
    }

    /// Returns whether a deferred report was still due.
    fn is_waiting(&self, deferred: Deferred) -> bool {
        let (Deferred::Unreported(_, id) | Deferred::Again(_, id)) = deferred;
        self.cells.get(&id).is_some_and(|cell| match deferred {
            Deferred::Unreported(in_class, _) => class(cell.unreported) == Some(in_class),
            Deferred::Again(reported_in, _) => cell.is_due_again(reported_in),
        })
    }

    /// Returns reports of pending changes, for all peers.
    pub(crate) fn report_changes(&mut self, now: TimestampUs) -> Vec<Vec<u8>> {
        let mut packer = Packer::new(self.me, now, DATAGRAMS_AT_ONCE);
        let (me, round) = (self.me, self.round);
        self.round += 1;
        // Changes that are first sent in this round are sent again in a later one.
        let mut again = self.news.again();
        while let Some((in_class, id)) = self.news.pop() {
            let Some(cell) = self.cells.get_mut(&id) else {
                continue;
            };
            if class(cell.unreported) != Some(in_class) {
                continue;
            }
            if !packer.push(&cell.report(id, me)) {
                self.news.push(in_class, id);
                return packer.into_bodies();
            }
            cell.unreported = 0;
            cell.reported_in = round;
            cell.sends_left = SENDS_PER_CHANGE - 1;
            self.news.push_again(round, id);
        }
        while again > 0
            && let Some((reported_in, id)) = self.news.pop_again()
        {
            again -= 1;
            let Some(cell) = self.cells.get_mut(&id) else {
                continue;
            };
            if !cell.is_due_again(reported_in) {
                continue;
            }
            if !packer.push(&cell.report(id, me)) {
                self.news.unpop_again(reported_in, id);
                break;
            }
            cell.sends_left -= 1;
            if cell.sends_left > 0 {
                self.news.push_again(reported_in, id);
            }
        }
        packer.into_bodies()
    }

    /// Returns the next part of the repetition of all counters, for all peers. Forgets expired ones
    /// on the way.
    pub(crate) fn report_round(&mut self, now: TimestampUs, interval: Duration) -> Vec<Vec<u8>> {
        let mut packer = Packer::new(self.me, now, DATAGRAMS_AT_ONCE);
        let rounds = REPEAT_PERIOD.as_micros() / interval.as_micros().max(1);
        let rounds = usize::try_from(rounds).unwrap_or(usize::MAX).max(1);
        let looks = self.cells.len().div_ceil(rounds).min(LOOKS_MOST);
        for _ in 0..looks {
            if self.cursor >= self.cells.len() {
                self.cursor = 0;
            }
            if let Some(report) = self.report_at(self.cursor, now)
                && !packer.push(&report)
            {
                break;
            }
            self.advance_cursor(now);
        }
        packer.into_bodies()
    }

    /// Returns reports of counters before index `rest`, for a newcomer, and the index to continue
    /// at. It goes from the last counter to the first: counters added meanwhile are reported as
    /// changes, and a counter that moves to a freed index comes from behind.
    pub(crate) fn report_to_newcomer(
        &self,
        now: TimestampUs,
        rest: usize,
    ) -> (Vec<Vec<u8>>, usize) {
        let mut packer = Packer::new(self.me, now, DATAGRAMS_AT_ONCE);
        let mut rest = rest.min(self.cells.len());
        let stop = rest.saturating_sub(LOOKS_MOST);
        while rest > stop {
            if let Some(report) = self.report_at(rest - 1, now)
                && !packer.push(&report)
            {
                break;
            }
            rest -= 1;
        }
        (packer.into_bodies(), rest)
    }

    /// Returns this node's report of a counter; `None` if it has expired, or other nodes report all
    /// its shares.
    fn report_at(&self, at: usize, now: TimestampUs) -> Option<CounterReport> {
        let (id, cell) = self.cells.get_index(at)?;
        let shares = cell.shares().iter();
        let reported = shares.filter(|share| share.added > 0 && self.reports_for(share.writer));
        let report = CounterReport {
            id: *id,
            forget_at: cell.forget_at,
            shares: reported.copied().collect(),
        };
        (cell.forget_at > now && !report.shares.is_empty()).then_some(report)
    }
}
