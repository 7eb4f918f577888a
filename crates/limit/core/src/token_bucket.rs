//! Token bucket: takes one token for each request.
//!
//! The bucket fills at the rate, up to its capacity. It fills when it is read; nothing runs in the
//! background. Source: Muscat, "Distributed Rate-Limiting Algorithms", 2022, which also has the
//! initial burst: a new client's bucket may hold more than its capacity. Tokens above the capacity
//! stay until they are spent, and do not come back.
//!
//! Time that has not made a whole token yet is kept as a part of a token, so that seven requests a
//! minute are exactly seven.
//!
//! # Forgetting
//!
//! A forgotten client counts as new and gets the initial burst again. With an initial burst above
//! the capacity, a full bucket is therefore kept for [`NEWCOMER_AFTER`] (or a window, if that is
//! longer) after the last request. That costs memory for each client of the last day. Otherwise a
//! full bucket may be forgotten at once.
//!
//! # Settings that change
//!
//! Tokens are kept. A bucket that holds more than a new client's is cut down to that, so that a
//! lower limit acts at once. One that may hold more now fills up at the rate.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::exact::{div_ceil, div_floor, product, saturate_u32};
use crate::rate::Rate;
use crate::settings::{Settings, SettingsError};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Standing, Verdict};

/// Time for which a client that gets an initial burst is remembered after its last request.
///
/// If it is shorter, a client gets its initial burst again after a short pause. If it is longer,
/// unused keys fill the memory. A day is how long most bans and quotas last.
pub const NEWCOMER_AFTER: DurationUs = DurationUs::from_secs(86_400);

/// Rate, capacity, and tokens of a new client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TokenBucket {
    rate: Rate,
    capacity: u32,
    initial_burst: u32,
}

/// State of one client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct State {
    /// Time at which the tokens were counted: that of the last request or refund.
    pub counted_at: TimestampUs,
    /// Part of the next token at that time. One token has as many parts as the window has
    /// microseconds.
    pub part: u64,
    /// Tokens at that time.
    pub tokens: u32,
    /// Whether the client has sent a request. If not, the other fields mean nothing.
    pub is_known: bool,
}

impl TokenBucket {
    /// Creates a bucket. `initial_burst` is what a new client's bucket holds; usually the same as
    /// `capacity`.
    ///
    /// # Errors
    ///
    /// [`SettingsError::BurstZero`] if the bucket can hold nothing,
    /// [`SettingsError::InitialBurstBelowCapacity`] if it is not full at first. Its level would
    /// then depend on when a client was first rejected, which the state would have to store too.
    pub const fn new(rate: Rate, capacity: u32, initial_burst: u32) -> Result<Self, SettingsError> {
        if capacity == 0 {
            return Err(SettingsError::BurstZero);
        }
        if initial_burst < capacity {
            return Err(SettingsError::InitialBurstBelowCapacity {
                initial_burst,
                capacity,
            });
        }
        Ok(Self {
            rate,
            capacity,
            initial_burst,
        })
    }

    /// Returns the rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns how many tokens the bucket can hold.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns how many tokens a new client's bucket holds.
    #[must_use]
    pub const fn initial_burst(&self) -> u32 {
        self.initial_burst
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            burst: Some(self.capacity),
            initial_burst: Some(self.initial_burst),
            ..Settings::default()
        }
    }

    /// Returns how long after its last request a client is remembered because it would get the
    /// initial burst again as a new one; zero if a new one gets no more than the capacity.
    pub(crate) fn newcomer_after(&self) -> DurationUs {
        if self.initial_burst > self.capacity {
            NEWCOMER_AFTER.max(self.rate.window())
        } else {
            DurationUs::ZERO
        }
    }

    /// Returns the state with all tokens counted that there are at `now`, or at the last count if
    /// the clock went back.
    fn count(&self, state: &State, now: TimestampUs) -> State {
        let window = self.rate.window().0;
        if !state.is_known {
            return State {
                counted_at: now,
                part: 0,
                tokens: self.initial_burst,
                is_known: true,
            };
        }
        let tokens = state.tokens.min(self.initial_burst);
        if self.rate.requests() == 0 {
            return State { tokens, ..*state };
        }
        let now = now.max(state.counted_at);
        // A longer window may have written a part that is too large.
        let part = state.part.min(window - 1);
        let passed = now.since(state.counted_at).0;
        let parts = product(passed, u64::from(self.rate.requests())) + u128::from(part);
        let (new, part) = if parts < u128::from(window) {
            (0, parts)
        } else {
            let new = div_floor(parts, window);
            (new, parts.saturating_sub(product(new, window)))
        };
        let filled = saturate_u32(u64::from(tokens).saturating_add(new)).min(self.capacity);
        let is_full = tokens.max(filled) >= self.capacity;
        State {
            counted_at: now,
            part: match u64::try_from(part) {
                Ok(part) if !is_full => part,
                _ => 0,
            },
            tokens: tokens.max(filled),
            is_known: true,
        }
    }

    /// Returns when the bucket will hold this many tokens, if no request comes; `None` if never.
    fn holds_at(&self, counted: &State, tokens: u32) -> Option<TimestampUs> {
        let missing = tokens.saturating_sub(counted.tokens);
        if missing == 0 {
            return Some(counted.counted_at);
        }
        if tokens > self.capacity || self.rate.requests() == 0 {
            return None;
        }
        let parts = product(u64::from(missing), self.rate.window().0) - u128::from(counted.part);
        let wait = div_ceil(parts, u64::from(self.rate.requests()));
        Some(counted.counted_at + DurationUs(wait))
    }

    fn standing(&self, counted: &State, now: TimestampUs) -> Standing {
        let is_closed = self.rate.requests() == 0;
        let full_at = self.holds_at(counted, self.capacity);
        Standing {
            now,
            remaining: if is_closed { 0 } else { counted.tokens },
            full_at: full_at.unwrap_or_else(|| counted.counted_at + self.rate.window()),
        }
    }

    fn take(&self, state: &mut State, now: TimestampUs, taken: Option<u32>) -> Verdict {
        let mut counted = self.count(state, now);
        let wanted = taken.unwrap_or(1);
        if self.rate.requests() == 0 {
            return self.standing(&counted, now).reject(None);
        }
        let Some(left) = counted.tokens.checked_sub(wanted) else {
            let retry_at = self.holds_at(&counted, wanted);
            return self.standing(&counted, now).reject(retry_at);
        };
        if taken.is_some() {
            counted.tokens = left;
            *state = counted;
        }
        self.standing(&counted, now).admit()
    }

    /// Gives back no more than a new client has. That may lift a bucket above its capacity: the
    /// refunded request may have used the initial burst.
    fn refund(&self, state: &mut State, now: TimestampUs, back: u32) -> Verdict {
        let mut counted = self.count(state, now);
        if state.is_known {
            counted.tokens = counted.tokens.saturating_add(back).min(self.initial_burst);
            if counted.tokens >= self.capacity {
                counted.part = 0;
            }
            *state = counted;
        }
        self.standing(&counted, now).admit()
    }
}

impl State {
    /// Returns the state of a client that has just spent everything.
    pub(crate) fn empty(counted_at: TimestampUs) -> Self {
        Self {
            counted_at,
            part: 0,
            tokens: 0,
            is_known: true,
        }
    }

    /// Writes the time of the count, the part of the next token, and the tokens.
    pub(crate) fn write_numbers(&self, put: &mut dyn FnMut(u64)) {
        if self.is_known {
            [self.counted_at.0, self.part, self.tokens.into()]
                .into_iter()
                .for_each(put);
        }
    }

    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let &[counted_at, part, tokens] = numbers else {
            return None;
        };
        Some(Self {
            counted_at: TimestampUs(counted_at),
            part,
            tokens: u32::try_from(tokens).ok()?,
            is_known: true,
        })
    }
}

impl Algorithm for TokenBucket {
    type State = State;

    fn step(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        match cost {
            Cost::Take(taken) => self.take(state, now, Some(taken.get())),
            Cost::Peek => self.take(state, now, None),
            Cost::Refund(back) => self.refund(state, now, back.get()),
        }
    }

    fn is_idle(&self, state: &State, now: TimestampUs) -> bool {
        let counted = self.count(state, now);
        if !state.is_known || counted.tokens >= self.initial_burst {
            return true;
        }
        let quiet = now.since(state.counted_at);
        if self.rate.requests() == 0 {
            // Nothing refills. A client that is new again after a window gets no more than in one
            // window.
            return quiet >= self.rate.window();
        }
        counted.tokens >= self.capacity && quiet >= NEWCOMER_AFTER.max(self.rate.window())
    }

    /// The initial burst (never less than the capacity) `+ calls - 1`. There are never more tokens
    /// than that burst, and less than a window makes less than `calls` new ones. If the bucket is
    /// forgotten between two requests, they are a window apart.
    fn window_cost_max(&self, _cost_max: u32) -> u64 {
        match self.rate.requests() {
            0 => 0,
            calls => u64::from(self.initial_burst) + u64::from(calls) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Client, MINUTE, a_minute, at};
    use crate::verdict::Outcome;

    fn bucket(calls: u32, capacity: u32, initial_burst: u32) -> TokenBucket {
        TokenBucket::new(a_minute(calls), capacity, initial_burst).unwrap()
    }

    /// Returns a client whose bucket holds `tokens` of 100 tokens at 07:10:00.
    fn holding(tokens: u32) -> Client<TokenBucket> {
        let mut client = Client::new(bucket(100, 100, 100));
        client.step("07:10:00", Cost::take(100 - tokens));
        assert_eq!(client.remaining("07:10:00"), tokens);
        client
    }

    // Muscat, "Distributed Rate-Limiting Algorithms", 2022: tokens, idle time, resulting tokens.
    #[test]
    fn a_bucket_fills_at_the_rate_up_to_its_capacity() {
        assert_eq!(holding(0).remaining("07:10:30"), 50);
        assert_eq!(holding(0).remaining("07:11:01"), 100);
        assert_eq!(holding(80).remaining("07:10:30"), 100);
    }

    // Muscat: it may hold more at first. That comes once.
    #[test]
    fn an_initial_burst_is_not_cut_down_and_does_not_come_back() {
        let mut client = Client::new(bucket(100, 100, 150));
        assert_eq!(client.send("07:10:00", 151), 150);
        assert_eq!(client.remaining("07:11:01"), 100);
        let mut slow = Client::new(bucket(100, 100, 150));
        assert!(slow.takes("07:10:00", 20));
        assert_eq!(slow.remaining("07:20:00"), 130);
        assert!(slow.takes("07:20:00", 100));
        assert_eq!(slow.remaining("07:21:00"), 100);
    }

    // Muscat: a bucket of five dollars an hour.
    #[test]
    fn five_an_hour_are_one_every_twelve_minutes() {
        let hour = Rate::new(5, DurationUs::from_secs(3_600)).unwrap();
        let mut client = Client::new(TokenBucket::new(hour, 5, 5).unwrap());
        assert_eq!(client.send("16:00:00", 6), 5);
        assert_eq!(client.retry_at("16:00:00", 1), Some(at("16:12:00")));
        assert_eq!(client.full_at("16:00:00"), at("17:00:00"));
    }

    #[test]
    fn time_for_less_than_a_token_is_kept() {
        let mut client = Client::new(bucket(7, 1, 1));
        let (mut now, mut admitted) = (TimestampUs(0), 0);
        while now < TimestampUs(0) + MINUTE.times(60) {
            match client.limit.step(&mut client.state, now, Cost::ONE).outcome {
                Outcome::Allow { .. } => admitted += 1,
                Outcome::Reject { retry_after } => now = now + retry_after.unwrap(),
            }
        }
        // A little is lost each time, because a full bucket does not fill further.
        assert_eq!(admitted, 420);
        let mut busy = Client::new(bucket(7, 2, 2));
        let admitted = (0..3_600_000u64).filter(|&ms| {
            let now = TimestampUs(ms * 1_000);
            busy.limit
                .step(&mut busy.state, now, Cost::ONE)
                .is_allowed()
        });
        assert_eq!(admitted.count(), 421);
    }

    #[test]
    fn parts_of_a_token_are_kept_between_requests() {
        let mut client = Client::new(bucket(7, 10, 10));
        assert_eq!(client.send("00:00:00", 10), 10);
        let mut step = |seconds: u64, cost| {
            let now = TimestampUs(seconds * 1_000_000);
            client.limit.step(&mut client.state, now, cost)
        };
        // 1.05 tokens every nine seconds.
        assert!((1..=180).all(|k| step(9 * k, Cost::ONE).is_allowed()));
        assert_eq!(step(9 * 180, Cost::Peek).remaining, 9);
    }

    #[test]
    fn a_request_that_costs_more_than_the_capacity_is_never_allowed() {
        let mut client = holding(50);
        assert_eq!(client.retry_at("07:10:00", 100), Some(at("07:10:30")));
        assert_eq!(client.retry_at("07:10:00", 101), None);
        assert_eq!(client.remaining("07:10:00"), 50);
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_tokens_and_loses_none() {
        let mut client = holding(0);
        assert_eq!(client.remaining("07:00:00"), 0);
        assert_eq!(client.retry_at("07:00:00", 50), Some(at("07:10:30")));
        assert_eq!(client.send("07:10:30", 50), 50);
        assert_eq!(client.send("07:10:00", 1), 0);
        assert_eq!(client.remaining("07:11:00"), 50);
    }

    #[test]
    fn a_bucket_with_an_initial_burst_is_kept_for_a_day() {
        let mut client = Client::new(bucket(100, 100, 150));
        let idle_at = |time| client.limit.is_idle(&client.state, at(time));
        assert!(idle_at("00:00:00"));
        client.send("00:00:00", 1);
        let idle_at = |time| client.limit.is_idle(&client.state, at(time));
        assert!(!idle_at("23:59:59.999999"));
        assert!(idle_at("24:00:00"));
        client.step("00:00:01", Cost::refund(1));
        assert!(client.limit.is_idle(&client.state, at("00:00:01")));
        let mut plain = holding(0);
        assert!(!plain.limit.is_idle(&plain.state, at("07:10:59.999999")));
        assert!(plain.limit.is_idle(&plain.state, at("07:11:00")));
        assert_eq!(plain.full_at("07:10:10"), at("07:11:00"));
    }

    #[test]
    fn tokens_are_kept_within_the_new_burst_when_settings_change() {
        let mut client = holding(60);
        for (capacity, initial_burst, left) in [(50, 50, 50), (50, 55, 55), (200, 300, 60)] {
            client.limit = bucket(100, capacity, initial_burst);
            assert_eq!(client.remaining("07:10:00"), left, "{capacity}");
        }
        client.limit = bucket(10, 200, 200);
        assert_eq!(client.remaining("07:11:00"), 70);
        client.limit = bucket(0, 200, 200);
        assert_eq!(client.remaining("07:11:00"), 0);
        assert_eq!(client.full_at("07:11:00"), at("07:11:00"));
        assert!(!client.limit.is_idle(&client.state, at("07:10:59.999999")));
        assert!(client.limit.is_idle(&client.state, at("07:11:00")));
        client.limit = bucket(10, 200, 200);
        assert_eq!(client.remaining("07:11:00"), 70);
    }

    #[test]
    fn a_refund_gives_back_no_more_than_a_new_client_has() {
        let mut client = Client::new(bucket(100, 100, 150));
        client.send("07:10:00", 30);
        client.step("07:10:00", Cost::refund(20));
        assert_eq!(client.remaining("07:10:00"), 140);
        client.step("07:10:00", Cost::refund(20));
        assert_eq!(client.remaining("07:10:00"), 150);
    }

    #[test]
    fn a_bucket_holds_something_and_is_full_at_first() {
        let new = |capacity, burst| TokenBucket::new(a_minute(1), capacity, burst).err();
        assert_eq!(new(1, 1), None);
        assert_eq!(new(0, 0), Some(SettingsError::BurstZero));
        let below = SettingsError::InitialBurstBelowCapacity {
            initial_burst: 4,
            capacity: 5,
        };
        assert_eq!(new(5, 4), Some(below));
    }
}
