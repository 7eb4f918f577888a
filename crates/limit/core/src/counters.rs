//! Counters of requests, one for each interval of time: the formula behind fixed windows, sliding
//! windows and sub-windows.
//!
//! Time is cut into intervals of one width, from the Unix epoch on, with a counter each. The
//! current counter and a few older ones count in full. The window covers only a part of the oldest,
//! which counts in full or with falling weight. The limit applies to the sum
//!
//! `whole + oldest * (width - elapsed) / width`
//!
//! without rounding. A request fits if its cost is at most the limit minus this sum, where the sum
//! is rounded up.
//!
//! # Stores that can only add
//!
//! Counters need no transaction. A node adds the cost of a request to [`Counters::index_at`]
//! (`added_at`), reads the counters [`Counters::to_read`], and decides by [`Counters::decide`]. If
//! the request is rejected, it subtracts the same cost from the same counter.
//!
//! Among allowed requests, the one added last sees all others. So the bound of the algorithm holds,
//! however late a node reads: a request read in a later interval must also fit there. The price:
//! rejected requests count against others until they are subtracted.
//!
//! This holds for one clock. Where clocks of nodes differ, a node passes the latest time that any
//! clock may show as `read_at`; otherwise it misses requests with later dates.
//! [`Counters::decide_by_all_clocks`] does that.

use alloc::vec::Vec;

use crate::cost::Cost;
use crate::exact::{div_ceil, div_floor, product};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Standing, Verdict};

mod clocks;
mod numbers;

pub(crate) use numbers::{from_numbers, write_numbers};

/// Counting rule: the limit, the width of a counter, and which counters matter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counters {
    limit: u32,
    width: u64,
    older: u32,
    oldest: Oldest,
}

/// Weight of the oldest counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Oldest {
    /// Full weight until the interval has left the window.
    Whole,
    /// Weight equal to the part of the interval that is still in the window.
    Falling,
}

/// Index of a counter: whole widths since the Unix epoch.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CounterIndex(pub u64);

/// Times at which a request was added to the counters and at which they were read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AddThenRead {
    /// Time that selected the counter.
    pub added_at: TimestampUs,
    /// Time at or after the read.
    pub read_at: TimestampUs,
}

/// Counters with their weights at one point in time.
#[derive(Clone, Copy)]
struct View<'a> {
    rule: &'a Counters,
    /// Start of the current counter.
    starts_at: TimestampUs,
    elapsed: u64,
    /// Number of counters that began after the first of `counts`.
    begun: u64,
    /// Counts, newest first.
    counts: &'a [u32],
}

impl Counters {
    /// Creates the rule. `width` is not zero.
    pub(crate) const fn new(limit: u32, width: DurationUs, older: u32, oldest: Oldest) -> Self {
        Self {
            limit,
            width: width.0,
            older,
            oldest,
        }
    }

    /// Returns the interval that one counter covers.
    #[must_use]
    pub const fn width(&self) -> DurationUs {
        DurationUs(self.width)
    }

    /// Returns the weight of the oldest counter.
    #[must_use]
    pub const fn oldest(&self) -> Oldest {
        self.oldest
    }

    /// Returns the largest cost that any window allows.
    ///
    /// - One counter that counts in full: `2 * limit`. Any window lies in two intervals, and each
    ///   has at most the limit.
    /// - Several that count in full: `limit`. Any window lies in that many intervals, and all of
    ///   them count in full for its last request.
    /// - With a falling one: `2 * limit - 1`, however many there are. At the last request of the
    ///   window, `elapsed` of the newest interval is over. All but the oldest then have at most
    ///   `limit - oldest * (width - elapsed) / width`, and the oldest at most `oldest`. The sum is
    ///   below `limit + oldest`, as `elapsed` is less than the width.
    pub(crate) fn most_in_any_window(&self) -> u64 {
        let limit = u64::from(self.limit);
        match (self.oldest, self.older) {
            (Oldest::Whole, 0) => 2 * limit,
            (Oldest::Whole, _) => limit,
            (Oldest::Falling, _) => (2 * limit).saturating_sub(1),
        }
    }

    /// Returns how many counters matter at one point in time.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.older as usize + 1
    }

    /// Returns how long after its start a counter matters. After that a store may forget it.
    #[must_use]
    pub const fn valid_for(&self) -> DurationUs {
        DurationUs(self.width.saturating_mul(self.older as u64 + 1))
    }

    /// Returns the counter to which a request at `now` is added, and from which it is refunded.
    #[must_use]
    pub const fn index_at(&self, now: TimestampUs) -> CounterIndex {
        CounterIndex(now.0 / self.width)
    }

    /// Returns the counters that [`Self::decide`] needs, newest first: [`Self::count`] of them, and
    /// more only if newer ones began before the read.
    #[must_use]
    pub fn to_read(
        &self,
        times: AddThenRead,
    ) -> impl ExactSizeIterator<Item = CounterIndex> + use<> {
        let added = self.index_at(times.added_at).0;
        let oldest = added.saturating_sub(u64::from(self.older));
        // At most `older` on either side of the counter that was added to.
        let count = usize::try_from(self.newest_to_read(times) - oldest).unwrap_or(0) + 1;
        (0..count)
            .rev()
            .map(move |at| CounterIndex(oldest + at as u64))
    }

    /// Decides about a request by the counters as read after its cost was added to one of them.
    ///
    /// `counts` are those of [`Self::to_read`], in that order; missing ones at the end are zero. A
    /// peek adds nothing, and gets the verdict of a request of cost one. A refund is subtracted,
    /// not below zero, before the counters are read.
    ///
    /// A request that is rejected only because it was read in a later interval may come again at
    /// once.
    #[must_use]
    pub fn decide(&self, times: AddThenRead, cost: Cost, counts: &[u32]) -> Verdict {
        let newest = self.newest_to_read(times);
        let late = newest - self.index_at(times.added_at).0;
        let newest_starts_at = TimestampUs(newest.saturating_mul(self.width));
        let read_at = times.read_at.max(times.added_at);
        let wanted = match cost {
            Cost::Take(taken) => taken.get(),
            Cost::Peek => 1,
            Cost::Refund(_) => {
                let view = self.view(newest_starts_at, counts, read_at);
                return view.standing(read_at, view.left()).admit();
            }
        };
        let is_added = cost != Cost::Peek;
        let fits = (0..=late).all(|newer| {
            let view = self.view_when(times.added_at, newer, late, counts);
            let left = view.signed_left();
            left >= if is_added { 0 } else { i128::from(wanted) }
        });
        if fits {
            let view = self.view(newest_starts_at, counts, read_at);
            return view.standing(read_at, view.left()).admit();
        }
        let mut others: Vec<u32> = counts.to_vec();
        let own = usize::try_from(late).ok().and_then(|at| others.get_mut(at));
        if let Some(own) = own.filter(|_| is_added) {
            *own = own.saturating_sub(wanted);
        }
        let view = self.view(newest_starts_at, &others, read_at);
        view.standing(read_at, view.left())
            .reject(view.fits_at(wanted))
    }

    /// Returns the newest counter whose verdicts still depend on the one that `times` added to.
    fn newest_to_read(&self, times: AddThenRead) -> u64 {
        let added = self.index_at(times.added_at).0;
        let read = self.index_at(times.read_at).0;
        let last = added.saturating_add(u64::from(self.older));
        read.clamp(added, last)
    }

    /// Returns the counters as of `added_at`, or as of the start of the counter `newer` places
    /// later.
    fn view_when<'a>(
        &'a self,
        added_at: TimestampUs,
        newer: u64,
        late: u64,
        counts: &'a [u32],
    ) -> View<'a> {
        let skipped = usize::try_from(late - newer).unwrap_or(usize::MAX);
        let own_starts_at = added_at.0 - added_at.0 % self.width;
        View {
            rule: self,
            starts_at: TimestampUs(own_starts_at.saturating_add(newer.saturating_mul(self.width))),
            elapsed: if newer == 0 {
                added_at.0 % self.width
            } else {
                0
            },
            begun: 0,
            counts: counts.get(skipped..).unwrap_or_default(),
        }
    }

    /// Returns the counters at `now`, or at the start of the first of them if the clock went back.
    fn view<'a>(
        &'a self,
        newest_starts_at: TimestampUs,
        counts: &'a [u32],
        now: TimestampUs,
    ) -> View<'a> {
        let since = now.since(newest_starts_at).0;
        let (starts_at, elapsed, begun) = if since < self.width {
            (newest_starts_at, since, 0)
        } else {
            let elapsed = now.0 % self.width;
            let begun = now.0 / self.width - newest_starts_at.0 / self.width;
            (TimestampUs(now.0 - elapsed), elapsed, begun)
        };
        View {
            rule: self,
            starts_at,
            elapsed,
            begun,
            counts,
        }
    }

    /// Steps an algorithm that keeps its counters itself: `counts` newest first, of which the first
    /// begins at `starts_at`.
    pub(crate) fn step(
        &self,
        starts_at: &mut TimestampUs,
        counts: &mut [u32],
        now: TimestampUs,
        cost: Cost,
    ) -> Verdict {
        let view = self.view(*starts_at, counts, now);
        let wanted = match cost {
            Cost::Take(taken) => taken.get(),
            Cost::Peek => 1,
            Cost::Refund(back) => {
                let (newest, begun) = (view.starts_at, view.begun);
                shift(counts, begun);
                *starts_at = newest;
                undo(counts, back.get());
                let view = self.view(*starts_at, counts, now);
                return view.standing(now, view.left()).admit();
            }
        };
        let left = view.left();
        let Some(left_after) = left.checked_sub(wanted) else {
            return view.standing(now, left).reject(view.fits_at(wanted));
        };
        if cost == Cost::Peek {
            return view.standing(now, left).admit();
        }
        let (newest, begun) = (view.starts_at, view.begun);
        shift(counts, begun);
        *starts_at = newest;
        if let Some(count) = counts.first_mut() {
            *count = count.saturating_add(wanted);
        }
        let full_at = newest + self.valid_for();
        let standing = Standing {
            now,
            remaining: left_after,
            full_at,
        };
        standing.admit()
    }

    pub(crate) fn is_idle(&self, starts_at: TimestampUs, counts: &[u32], now: TimestampUs) -> bool {
        self.view(starts_at, counts, now).full_at().is_none()
    }
}

impl View<'_> {
    /// Returns the counter `age` intervals before the current one; zero if it is unknown or too
    /// old.
    fn count(&self, age: u32) -> u32 {
        let known = u64::from(age).checked_sub(self.begun);
        let at = known.and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
    }

    /// Returns how many counters, from the newest, count in full.
    fn whole_ones(&self) -> u32 {
        match self.rule.oldest {
            Oldest::Whole => self.rule.older + 1,
            Oldest::Falling => self.rule.older,
        }
    }

    fn whole(&self) -> u64 {
        let known = u64::from(self.whole_ones()).saturating_sub(self.begun);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let counts = self.counts.iter().take(known);
        counts.map(|&count| u64::from(count)).sum()
    }

    /// Returns the oldest counter if its weight falls.
    fn falling(&self) -> u64 {
        match self.rule.oldest {
            Oldest::Whole => 0,
            Oldest::Falling => u64::from(self.count(self.rule.older)),
        }
    }

    /// Returns the limit minus the sum, rounded down; negative above the limit.
    fn signed_left(&self) -> i128 {
        let falling = match self.falling() {
            0 => 0,
            falling => {
                let parts = product(falling, self.rule.width - self.elapsed);
                div_ceil(parts, self.rule.width)
            }
        };
        i128::from(self.rule.limit) - i128::from(self.whole()) - i128::from(falling)
    }

    fn left(&self) -> u32 {
        u32::try_from(self.signed_left()).unwrap_or(0)
    }

    fn standing(&self, now: TimestampUs, left: u32) -> Standing {
        Standing {
            now,
            remaining: left,
            full_at: self.full_at().unwrap_or(now),
        }
    }

    /// Returns the time after which no counter matters; `None` if none does now.
    fn full_at(&self) -> Option<TimestampUs> {
        let known = u64::from(self.rule.older + 1).saturating_sub(self.begun);
        let mut known = self.counts.iter().zip(0..known);
        let (_, newest) = known.find(|(count, _)| **count > 0)?;
        let stretches = u64::from(self.rule.older) + 1 - self.begun - newest;
        Some(self.starts_at + self.rule.width().times(stretches))
    }

    /// Returns the first time at which a request of cost `wanted` fits, if no other comes before.
    /// The loop goes from counter to counter; in each the sum falls linearly.
    fn fits_at(&self, wanted: u32) -> Option<TimestampUs> {
        let allowed = u64::from(self.rule.limit.checked_sub(wanted)?);
        let whole_ones = self.whole_ones();
        let mut whole = self.whole();
        let mut starts_at = self.starts_at;
        for ahead in 0..=whole_ones {
            let falling = match self.rule.oldest {
                Oldest::Whole => 0,
                Oldest::Falling => u64::from(self.count(whole_ones - ahead)),
            };
            let elapsed = match allowed.checked_sub(whole) {
                Some(_) if falling == 0 => Some(0),
                Some(left) => {
                    let before_end = div_floor(product(left, self.rule.width), falling);
                    Some(self.rule.width.saturating_sub(before_end))
                }
                None => None,
            };
            if let Some(elapsed) = elapsed {
                return Some(starts_at + DurationUs(elapsed));
            }
            let leaving = whole_ones.checked_sub(ahead + 1).map(|age| self.count(age));
            whole = whole.saturating_sub(u64::from(leaving.unwrap_or(0)));
            starts_at = starts_at + self.rule.width();
        }
        Some(starts_at)
    }
}

/// Shifts `counts` to make room for counters that began since.
fn shift(counts: &mut [u32], begun: u64) {
    let begun = usize::try_from(begun)
        .unwrap_or(usize::MAX)
        .min(counts.len());
    counts.copy_within(..counts.len() - begun, begun);
    counts[..begun].fill(0);
}

/// Subtracts `back` from the counts, newest first.
fn undo(counts: &mut [u32], back: u32) {
    let mut left = back;
    for count in counts {
        let undone = left.min(*count);
        *count -= undone;
        left -= undone;
    }
}

#[cfg(test)]
mod tests;
