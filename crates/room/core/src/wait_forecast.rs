//! Forecast of waits: how many visitors leave the front of the queue by when.
//!
//! It follows from what is known and not from the recent rate alone, so it holds from the first
//! minute after an opening on, and a time in which the room was closed is no slow time. Known are
//! the free seats, the ends in the tickets of active visitors, the limits, and how many of those
//! who wait give up.
//!
//! A visitor who is active either still opens pages, which extends its seat, or has left. Its seat
//! tells which of the two: those who have sent nothing for half of a seat have left, and their
//! seats end when their tickets say. The others leave at the rate at which visitors left before.

mod giving_up;
mod leaving;

use alloc::vec;
use alloc::vec::Vec;

use crate::queue_position::WaitRange;
use crate::rules::Rules;
use crate::seats::SeatTerms;
use crate::sync::Snapshot;
use crate::time::{DurationMs, Timestamp};
pub use giving_up::GivingUp;
pub use leaving::Leaving;
use leaving::{quarter_of, quarters_of};

/// Parts of the longest seat for which a snapshot tells how many seats end.
pub const END_PARTS: usize = 16;

/// Steps of a forecast; beyond them the queue goes on as in the last ones.
const STEPS: usize = 512;
/// Steps in a longest seat, unless they were shorter or longer than the bounds below.
const STEPS_IN_SEAT: u64 = 64;
const SHORTEST_STEP: DurationMs = DurationMs(1_000);
const LONGEST_STEP: DurationMs = DurationMs(60_000);
/// Part of the steps whose rate goes on beyond them.
const LAST_STEPS: usize = STEPS / 4;

/// People and seats are counted in thousandths: slow rooms admit less than one in a step.
const ONE: u64 = 1_000;
/// Growth of those who have left so far, in parts of this.
const NO_GROWTH: u64 = 1 << 20;

/// Rates at which visitors leave, as one node observes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Waiting visitors who give up.
    pub giving_up: GivingUp,
    /// Active visitors who leave.
    pub leaving: Leaving,
}

/// Forecast of the queue's front.
#[derive(Clone, Debug, Default)]
pub struct WaitForecast {
    as_of: Timestamp,
    step: DurationMs,
    /// Thousandths of people who have left the front of the queue by the end of each step.
    left: Vec<u64>,
}

impl WaitForecast {
    /// Makes the forecast of a snapshot.
    #[must_use]
    pub fn of(snapshot: &Snapshot, rules: &Rules, habits: &Habits) -> Self {
        let give_up = habits.giving_up.millionths_per_second();
        let terms = SeatTerms::of(rules);
        let step = DurationMs(terms.longest_seat().0 / STEPS_IN_SEAT);
        let step = step.clamp(SHORTEST_STEP, LONGEST_STEP);
        let mut room = Model::of(snapshot, rules, &habits.leaving, step);
        let mut forecast = Self {
            as_of: snapshot.as_of,
            step,
            left: Vec::new(),
        };
        let all = (u64::from(snapshot.waiting) + 1) * ONE;
        let (mut left, mut growth) = (0u64, NO_GROWTH);
        for index in 0..STEPS {
            let admitted = room.advance(index);
            growth = growth.saturating_add(growth * give_up / 1_000_000 * step.0 / 1_000);
            growth = growth.min(NO_GROWTH << 20);
            let left_now = u128::from(admitted) * u128::from(growth) / u128::from(NO_GROWTH);
            left = left.saturating_add(u64::try_from(left_now).unwrap_or(u64::MAX));
            forecast.left.push(left);
            if left >= all {
                break;
            }
        }
        forecast
    }

    /// Whether it is the forecast of this snapshot.
    #[must_use]
    pub fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.as_of == snapshot.as_of && !self.left.is_empty()
    }

    /// Returns the time until as many people have left as are ahead of a visitor, and one more;
    /// `None` if nobody is expected to leave.
    #[must_use]
    pub fn wait(&self, ahead: u32, now: Timestamp) -> Option<DurationMs> {
        let wanted = (u64::from(ahead) + 1) * ONE;
        let index = self.left.partition_point(|left| *left < wanted);
        let passed = now.since(self.as_of);
        let at = match self.left.get(index) {
            Some(&until) => {
                let before = index.checked_sub(1).map_or(0, |index| self.left[index]);
                let part = self.step.0 * (wanted - before) / (until - before).max(1);
                self.step.times(index as u64) + DurationMs(part)
            }
            None => self.beyond(wanted)?,
        };
        Some(at.less(passed))
    }

    /// Returns the wait of each visitor in a `random` room in which `waiting` wait: quartiles.
    #[must_use]
    pub fn wait_by_lot(&self, waiting: u32, now: Timestamp) -> Option<WaitRange> {
        Some(WaitRange {
            low: self.wait(waiting / 4, now)?,
            middle: self.wait(waiting / 2, now)?,
            high: self.wait(waiting / 4 * 3, now)?,
        })
    }

    /// Returns the time at which so many have left, by the rate of the last steps.
    fn beyond(&self, wanted: u64) -> Option<DurationMs> {
        let last = *self.left.last()?;
        let from = self.left.len().checked_sub(LAST_STEPS)?;
        let rate = (last - self.left[from]) / LAST_STEPS as u64;
        let more = (wanted - last).checked_div(rate)?;
        Some(self.step.times(self.left.len() as u64 + more))
    }
}

/// Room as it goes on while visitors wait all the time.
struct Model {
    step: DurationMs,
    /// Seats that end in each step.
    ends: Vec<u64>,
    /// Steps from a visitor's last page to the end of its seat.
    seat_steps: usize,
    /// Visitors who still open pages.
    browsing: u64,
    /// Share of them who leave in a step, in millionths.
    leaving: u64,
    is_renewed: bool,
    seats_free: u64,
    pace: Pace,
}

impl Model {
    fn of(snapshot: &Snapshot, rules: &Rules, leaving: &Leaving, step: DurationMs) -> Self {
        let terms = SeatTerms::of(rules);
        let taken = u64::from(snapshot.active) + u64::from(snapshot.phantoms);
        let seats = u64::from(rules.limits.total_active_users);
        let mut model = Self {
            step,
            ends: vec![0; STEPS],
            seat_steps: steps_in(terms.session + terms.grid, step),
            browsing: 0,
            leaving: 0,
            is_renewed: rules.session_renewal,
            seats_free: seats.saturating_sub(taken) * ONE,
            pace: Pace::of(snapshot, rules),
        };
        model.read_ends(snapshot, rules, leaving);
        model
    }

    /// Reads when the seats of active visitors end, and how many of them still open pages.
    fn read_ends(&mut self, snapshot: &Snapshot, rules: &Rules, leaving: &Leaving) {
        let part = snapshot.longest_known.0.max(1) / END_PARTS as u64;
        let quarter = quarter_of(rules);
        let quarters = quarters_of(snapshot, quarter);
        for (index, &count) in snapshot.ends_ahead.iter().enumerate() {
            let from = part * index as u64;
            if from < 2 * quarter.0 || !self.is_renewed {
                self.spread(u64::from(count) * ONE, from, part);
            }
        }
        if !self.is_renewed {
            return;
        }
        // As many have left in each of the last two quarters as leave in any: some of those who
        // were silent for as long only read.
        let rate = leaving.millionths(quarters, rules);
        let [_, _, lately, recent] = quarters;
        let left = (lately + recent) * rate / (1_000_000 + 2 * rate);
        // Of those who browse, no more were silent for longer than for a quarter.
        let left_lately = left.max(lately.saturating_sub(recent)).min(lately);
        let left_now = left.min(recent * 3 / 4);
        self.spread(left_lately, 2 * quarter.0, quarter.0);
        self.spread(left_now, 3 * quarter.0, quarter.0);
        self.browsing = lately - left_lately + recent - left_now;
        self.leaving = (rate * self.step.0 / quarter.0).min(1_000_000);
    }

    /// Spreads seats that end within `part` milliseconds from a time on over the steps.
    fn spread(&mut self, count: u64, from: u64, part: u64) {
        let (first, last) = (from / self.step.0, (from + part) / self.step.0);
        let steps = last - first + 1;
        for index in first..=last {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if let Some(ends) = self.ends.get_mut(index) {
                *ends += count / steps;
            }
        }
    }

    /// Goes on for a step. Returns the admissions.
    fn advance(&mut self, index: usize) -> u64 {
        self.seats_free += self.ends[index];
        let admitted = self.pace.admit(self.seats_free, self.step);
        self.seats_free -= admitted;
        let mut leaving = admitted;
        if self.is_renewed {
            self.browsing += admitted;
            leaving = self.browsing * self.leaving / 1_000_000;
            self.browsing -= leaving;
        }
        if let Some(ends) = self.ends.get_mut(index + self.seat_steps) {
            *ends += leaving;
        }
        admitted
    }
}

fn steps_in(time: DurationMs, step: DurationMs) -> usize {
    usize::try_from(time.0.div_ceil(step.0)).unwrap_or(usize::MAX)
}

/// Admissions that the limit of a minute allows.
struct Pace {
    each_minute: u64,
    each_second: u64,
    /// Whether they come free one by one.
    is_even: bool,
    used: u64,
    into_minute: u64,
}

impl Pace {
    fn of(snapshot: &Snapshot, rules: &Rules) -> Self {
        let limits = rules.limits;
        Self {
            each_minute: u64::from(limits.new_users_per_minute) * ONE,
            each_second: u64::from(limits.admissions_per_second()) * ONE,
            is_even: rules.pacing,
            used: u64::from(snapshot.admitted_in(snapshot.as_of.minute())) * ONE,
            into_minute: snapshot.as_of.0 % 60_000,
        }
    }

    /// Admits up to `seats` in a step. A step may be as long as a minute.
    fn admit(&mut self, seats: u64, step: DurationMs) -> u64 {
        let (mut admitted, mut left) = (0, step.0);
        while left > 0 {
            let time = left.min(60_000 - self.into_minute);
            self.into_minute += time;
            let allowed = if self.is_even {
                self.each_minute * self.into_minute / 60_000
            } else {
                self.each_minute
            };
            let in_seconds = self.each_second * time.div_ceil(1_000);
            let part = allowed
                .saturating_sub(self.used)
                .min(in_seconds)
                .min(seats - admitted);
            self.used += part;
            admitted += part;
            left -= time;
            if self.into_minute == 60_000 {
                (self.into_minute, self.used) = (0, 0);
            }
        }
        admitted
    }
}

#[cfg(test)]
mod tests;
