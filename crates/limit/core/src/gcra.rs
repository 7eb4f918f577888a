//! Generic cell rate algorithm: rejects a request that is further ahead of its rate than the burst
//! allows.
//!
//! The limit of a token bucket, kept as one point in time: when everything taken is paid off, if
//! requests come one by one. A request is allowed if that point lies no more than a burst ahead.
//!
//! # Settings that change
//!
//! Spending is kept as time: a client that is five seconds ahead stays five seconds ahead, however
//! many requests that is now.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
pub use crate::paced::State;
use crate::paced::{Ahead, Paced};
use crate::rate::Rate;
use crate::settings::{Settings, SettingsError};
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// Rate, and a burst of requests that may come at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gcra(Paced);

impl Gcra {
    /// Creates the limit. A burst of one spaces requests evenly.
    ///
    /// # Errors
    ///
    /// [`SettingsError::BurstZero`].
    pub fn new(rate: Rate, burst: u32) -> Result<Self, SettingsError> {
        if burst == 0 {
            return Err(SettingsError::BurstZero);
        }
        Ok(Self(Paced::new(rate, Ahead::Burst(burst))))
    }

    /// Returns the rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.rate()
    }

    /// Returns how many requests may come at once.
    #[must_use]
    pub fn burst(&self) -> u32 {
        let (Ahead::Burst(calls) | Ahead::Queue(calls)) = self.0.ahead();
        calls
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            burst: Some(self.burst()),
            ..Settings::default()
        }
    }
}

impl Algorithm for Gcra {
    type State = State;

    fn step(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        self.0.step(state, now, cost)
    }

    fn is_idle(&self, state: &State, now: TimestampUs) -> bool {
        state.is_idle(now)
    }

    /// `burst + calls - 1`. Let the window begin at `t`. The costs taken in it lie one after the
    /// other, none before `t`. The last one, taken at `s`, ends no later than a burst after `s`, so
    /// all take at most `s - t` and a burst of time. As `s - t` is less than a window, that is less
    /// than `calls + burst` requests.
    fn window_cost_max(&self, _cost_max: u32) -> u64 {
        match self.rate().requests() {
            0 => 0,
            calls => u64::from(self.burst()) + u64::from(calls) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Client, MINUTE, a_minute, at};
    use crate::verdict::Outcome;

    fn client(calls: u32, burst: u32) -> Client<Gcra> {
        Client::new(Gcra::new(a_minute(calls), burst).unwrap())
    }

    #[test]
    fn a_burst_passes_at_once_and_later_requests_one_by_one() {
        let mut client = client(60, 10);
        assert_eq!(client.send("07:10:00", 11), 10);
        assert_eq!(client.retry_at("07:10:00", 1), Some(at("07:10:01")));
        assert_eq!(client.retry_at("07:10:00", 10), Some(at("07:10:10")));
        assert_eq!(client.retry_at("07:10:00", 11), None);
        assert_eq!(client.send("07:10:05", 10), 5);
        assert_eq!(client.full_at("07:10:05"), at("07:10:15"));
    }

    #[test]
    fn seven_requests_a_minute_stay_seven_all_day() {
        let mut client = client(7, 1);
        let (mut now, mut admitted) = (TimestampUs(0), 0);
        while now < TimestampUs(0) + MINUTE.times(1_440) {
            match client.limit.step(&mut client.state, now, Cost::ONE).outcome {
                Outcome::Allow { .. } => admitted += 1,
                Outcome::Reject { retry_after } => now = now + retry_after.unwrap(),
            }
        }
        // Times are whole microseconds, so each request comes up to a microsecond late: less than
        // one request a day.
        assert_eq!(admitted, 7 * 1_440);
    }

    #[test]
    fn a_busy_client_loses_nothing_to_rounding() {
        let mut client = client(7, 2);
        let admitted = (0..86_400_000u64).step_by(10).filter(|&ms| {
            let now = TimestampUs(ms * 1_000);
            client
                .limit
                .step(&mut client.state, now, Cost::ONE)
                .is_allowed()
        });
        assert_eq!(admitted.count(), 7 * 1_440 + 1);
    }

    #[test]
    fn what_was_spent_stays_spent_when_the_settings_change() {
        let mut client = client(60, 10);
        client.send("07:10:00", 10);
        // Ten seconds ahead of its rate, however many requests that is now.
        for (calls, burst, left) in [(60, 5, 0), (60, 20, 10), (120, 30, 10), (6, 3, 2)] {
            client.limit = Gcra::new(a_minute(calls), burst).unwrap();
            assert_eq!(client.remaining("07:10:00"), left, "{calls} {burst}");
        }
        client.limit = Gcra::new(a_minute(0), 10).unwrap();
        assert_eq!(client.send("07:20:00", 1), 0);
    }

    #[test]
    fn a_fraction_of_a_faster_rate_is_carried_up() {
        let mut client = client(7, 10);
        client.send("07:10:00", 2);
        assert_eq!(client.state.free_at.fraction, 1);
        client.send("07:10:00", 3);
        assert_eq!(client.state.free_at.fraction, 6);
        let whole = client.state.free_at.micros;
        client.limit = Gcra::new(a_minute(6), 10).unwrap();
        client.send("07:10:00", 1);
        let later = whole + crate::time::DurationUs(10_000_001);
        assert_eq!(client.state.free_at.micros, later);
        assert_eq!(client.state.free_at.fraction, 0);
    }

    #[test]
    fn a_refund_gives_back_no_more_than_was_spent() {
        let mut client = client(60, 10);
        client.send("07:10:00", 10);
        client.step("07:10:05", Cost::refund(3));
        assert_eq!(client.remaining("07:10:05"), 8);
        client.step("07:10:05", Cost::refund(30));
        assert_eq!(client.send("07:10:05", 20), 10);
    }

    #[test]
    fn a_burst_of_zero_is_invalid() {
        assert_eq!(Gcra::new(a_minute(1), 0), Err(SettingsError::BurstZero));
    }

    #[test]
    fn a_state_is_two_words() {
        assert!(size_of::<State>() <= 16);
    }
}
