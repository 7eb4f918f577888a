//! What do counters of calls say, each for a stretch of time? The one formula behind fixed windows,
//! sliding windows and sub-windows.
//!
//! Time is cut into stretches of one width, from the Unix epoch on, with a counter each. The
//! counter of now and a few older ones count whole; the oldest, which the window covers in part
//! only, counts whole or less and less. So the limit holds the sum
//!
//! `whole + oldest * (width - elapsed) / width`
//!
//! without rounding: a call fits if what it counts is not above the limit less this sum, rounded
//! up.
//!
//! # Stores that can only add
//!
//! Counters need no transaction. A node adds what a call counts to [`Counters::index_at`]
//! (`added_at`), then reads the counters [`Counters::to_read`], and judges them with
//! [`Counters::judge`]; if the call is rejected it takes the same amount back from the same
//! counter. Who adds last of all that are admitted reads what all others added, so the bound of the
//! algorithm holds, however late a node reads: one that crosses into the next stretch between
//! adding and reading also has to fit there. The price: calls that are rejected count against
//! others until they are taken back.
//!
//! That is so for one clock. Where clocks of nodes differ, a node passes `read_at` as late as any
//! clock may show; otherwise calls dated later than it knows of are not seen.
//! [`Counters::judge_by_all_clocks`] does that.

use alloc::vec::Vec;

use crate::cost::Cost;
use crate::exact::{div_ceil, div_floor, product};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Standing, Verdict};

mod clocks;
mod numbers;

pub(crate) use numbers::{from_numbers, write_numbers};

/// How calls are counted: the limit, the width of a counter, and which counters matter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counters {
    limit: u32,
    width: u64,
    older: u32,
    oldest: Oldest,
}

/// How the oldest counter counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Oldest {
    /// Until it has left the window.
    Whole,
    /// Less and less, until at its end nothing is left.
    Falling,
}

/// Which counter: whole widths since the Unix epoch.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CounterIndex(pub u64);

/// When a call was added to the counters, and when they were read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AddThenRead {
    /// The moment by which the counter was chosen.
    pub added_at: TimestampUs,
    /// A moment at or after the reading.
    pub read_at: TimestampUs,
}

/// Counters as they count at one moment.
#[derive(Clone, Copy)]
struct View<'a> {
    rule: &'a Counters,
    /// Where the counter of now begins.
    starts_at: TimestampUs,
    elapsed: u64,
    /// How many counters began after the first of `counts`.
    begun: u64,
    /// Newest first.
    counts: &'a [u32],
}

impl Counters {
    /// `width` is not zero.
    pub(crate) const fn new(limit: u32, width: DurationUs, older: u32, oldest: Oldest) -> Self {
        Self {
            limit,
            width: width.0,
            older,
            oldest,
        }
    }

    /// The stretch of time that a counter is for.
    #[must_use]
    pub const fn width(&self) -> DurationUs {
        DurationUs(self.width)
    }

    /// How the oldest of the counters counts.
    #[must_use]
    pub const fn oldest(&self) -> Oldest {
        self.oldest
    }

    /// How much is admitted in any window at most.
    ///
    /// - One counter that counts whole: `2 * limit`, for any window lies in two stretches, and each
    ///   has the limit at most.
    /// - More of them that count whole: `limit`, for any window lies in as many stretches, and all
    ///   of them count whole when its last call is judged.
    /// - With one that falls: `2 * limit - 1`, however many there are. When the last call of the
    ///   window is judged, with `elapsed` of the newest stretch gone, there are at most
    ///   `limit - oldest * (width - elapsed) / width` in all but the oldest, and at most `oldest`
    ///   in that: together less than `limit + oldest`, as `elapsed` is less than the width.
    pub(crate) fn most_in_any_window(&self) -> u64 {
        let limit = u64::from(self.limit);
        match (self.oldest, self.older) {
            (Oldest::Whole, 0) => 2 * limit,
            (Oldest::Whole, _) => limit,
            (Oldest::Falling, _) => (2 * limit).saturating_sub(1),
        }
    }

    /// How many counters matter at one moment.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.older as usize + 1
    }

    /// How long after its beginning a counter matters. A store may forget it then.
    #[must_use]
    pub const fn matters_for(&self) -> DurationUs {
        DurationUs(self.width.saturating_mul(self.older as u64 + 1))
    }

    /// The counter to which a call at `now` is added, and from which it is taken back.
    #[must_use]
    pub const fn index_at(&self, now: TimestampUs) -> CounterIndex {
        CounterIndex(now.0 / self.width)
    }

    /// The counters that [`Self::judge`] wants, newest first: [`Self::count`] of them, and more
    /// only where reading was so late that newer ones have begun.
    #[must_use]
    pub fn to_read(
        &self,
        call: AddThenRead,
    ) -> impl ExactSizeIterator<Item = CounterIndex> + use<> {
        let added = self.index_at(call.added_at).0;
        let oldest = added.saturating_sub(u64::from(self.older));
        // At most `older` on either side.
        let count = usize::try_from(self.newest_to_read(call) - oldest).unwrap_or(0) + 1;
        (0..count)
            .rev()
            .map(move |at| CounterIndex(oldest + at as u64))
    }

    /// Judges a call by the counters as they were read after it was added to one of them.
    ///
    /// `counts` are those of [`Self::to_read`], in that order; what is missing at the end counts
    /// zero. A peek adds nothing, and is told what a call that counts one would be. A refund is
    /// subtracted, not below zero, before the counters are read.
    ///
    /// A call that is rejected only because it was read behind an edge may come again at once.
    #[must_use]
    pub fn judge(&self, call: AddThenRead, cost: Cost, counts: &[u32]) -> Verdict {
        let newest = self.newest_to_read(call);
        let late = newest - self.index_at(call.added_at).0;
        let newest_starts_at = TimestampUs(newest.saturating_mul(self.width));
        let read_at = call.read_at.max(call.added_at);
        let asked = match cost {
            Cost::Take(taken) => taken.get(),
            Cost::Peek => 1,
            Cost::Refund(_) => {
                let view = self.view(newest_starts_at, counts, read_at);
                return view.standing(read_at, view.left()).admit();
            }
        };
        let is_added = cost != Cost::Peek;
        let fits = (0..=late).all(|newer| {
            let view = self.view_when(call.added_at, newer, late, counts);
            let left = view.signed_left();
            left >= if is_added { 0 } else { i128::from(asked) }
        });
        if fits {
            let view = self.view(newest_starts_at, counts, read_at);
            return view.standing(read_at, view.left()).admit();
        }
        let mut others: Vec<u32> = counts.to_vec();
        let own = usize::try_from(late).ok().and_then(|at| others.get_mut(at));
        if let Some(own) = own.filter(|_| is_added) {
            *own = own.saturating_sub(asked);
        }
        let view = self.view(newest_starts_at, &others, read_at);
        view.standing(read_at, view.left())
            .reject(view.fits_at(asked))
    }

    /// The newest counter in which a call still matters that was added where `call` was.
    fn newest_to_read(&self, call: AddThenRead) -> u64 {
        let added = self.index_at(call.added_at).0;
        let read = self.index_at(call.read_at).0;
        let last = added.saturating_add(u64::from(self.older));
        read.clamp(added, last)
    }

    /// The counters as of the moment of adding, or as of the beginning of a counter that is
    /// `newer`.
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

    /// The counters at `now`, or where the first of them begins if the clock went back.
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

    /// The step of an algorithm that keeps its counters itself: `counts` newest first, of which the
    /// first begins at `starts_at`.
    pub(crate) fn step(
        &self,
        starts_at: &mut TimestampUs,
        counts: &mut [u32],
        now: TimestampUs,
        cost: Cost,
    ) -> Verdict {
        let view = self.view(*starts_at, counts, now);
        let asked = match cost {
            Cost::Take(taken) => taken.get(),
            Cost::Peek => 1,
            Cost::Refund(back) => {
                let (newest, begun) = (view.starts_at, view.begun);
                move_on(counts, begun);
                *starts_at = newest;
                undo(counts, back.get());
                let view = self.view(*starts_at, counts, now);
                return view.standing(now, view.left()).admit();
            }
        };
        let left = view.left();
        let Some(left_after) = left.checked_sub(asked) else {
            return view.standing(now, left).reject(view.fits_at(asked));
        };
        if cost == Cost::Peek {
            return view.standing(now, left).admit();
        }
        let (newest, begun) = (view.starts_at, view.begun);
        move_on(counts, begun);
        *starts_at = newest;
        if let Some(count) = counts.first_mut() {
            *count = count.saturating_add(asked);
        }
        let full_at = newest + self.matters_for();
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
    /// The counter so many stretches before that of now; zero if it is unknown or matters no more.
    fn count(&self, age: u32) -> u32 {
        let known = u64::from(age).checked_sub(self.begun);
        let at = known.and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
    }

    /// How many counters, from the newest, count whole.
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

    /// The oldest counter if it counts less and less.
    fn falling(&self) -> u64 {
        match self.rule.oldest {
            Oldest::Whole => 0,
            Oldest::Falling => u64::from(self.count(self.rule.older)),
        }
    }

    /// The limit less the sum, rounded down: below zero when it is over.
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

    /// When the last of the counters matters no more; `None` if none does.
    fn full_at(&self) -> Option<TimestampUs> {
        let known = u64::from(self.rule.older + 1).saturating_sub(self.begun);
        let mut known = self.counts.iter().zip(0..known);
        let (_, newest) = known.find(|(count, _)| **count > 0)?;
        let stretches = u64::from(self.rule.older) + 1 - self.begun - newest;
        Some(self.starts_at + self.rule.width().times(stretches))
    }

    /// The first moment at which a call that counts so much fits, if nobody calls before. Goes from
    /// counter to counter; in each the sum falls evenly.
    fn fits_at(&self, asked: u32) -> Option<TimestampUs> {
        let allowed = u64::from(self.rule.limit.checked_sub(asked)?);
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

/// Makes room for counters that began since.
fn move_on(counts: &mut [u32], begun: u64) {
    let begun = usize::try_from(begun)
        .unwrap_or(usize::MAX)
        .min(counts.len());
    counts.copy_within(..counts.len() - begun, begun);
    counts[..begun].fill(0);
}

/// Takes back what was counted, newest first.
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
