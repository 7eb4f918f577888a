//! Generic cell rate algorithm: is this call further ahead of its rate than its burst allows?
//!
//! The same limit as a token bucket's, kept as one moment: when all that was charged would be over
//! if calls came one by one. A call goes through if that moment lies no more than a burst ahead.
//!
//! # Settings that change
//!
//! What was spent is kept as time: a client that is five seconds ahead stays five seconds ahead,
//! however many calls that is now.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
pub use crate::paced::State;
use crate::paced::{Ahead, Paced};
use crate::rate::Rate;
use crate::settings::{Settings, SettingsError};
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// A rate, and how many calls may come at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gcra(Paced);

impl Gcra {
    /// A burst of one lets calls through one by one.
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

    /// How many calls in how long.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.rate()
    }

    /// How many calls may come at once.
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

    /// `burst + calls - 1`. Let the window begin at `t`. What is charged in it lies one after the
    /// other from `t` on or later, and the last of it, charged at `s`, ends no later than a burst
    /// after `s`: it takes at most `s - t` and a burst of time. As `s - t` is less than a window,
    /// that is less than `calls + burst` calls.
    fn most_in_any_window(&self, _cost_max: u32) -> u64 {
        match self.rate().calls() {
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
    fn a_burst_passes_at_once_and_then_calls_come_one_by_one() {
        let mut client = client(60, 10);
        assert_eq!(client.call("07:10:00", 11), 10);
        assert_eq!(client.retry_at("07:10:00", 1), Some(at("07:10:01")));
        assert_eq!(client.retry_at("07:10:00", 10), Some(at("07:10:10")));
        assert_eq!(client.retry_at("07:10:00", 11), None);
        assert_eq!(client.call("07:10:05", 10), 5);
        assert_eq!(client.full_at("07:10:05"), at("07:10:15"));
    }

    #[test]
    fn seven_calls_a_minute_are_seven_calls_a_minute_all_day() {
        let mut client = client(7, 1);
        let (mut now, mut admitted) = (TimestampUs(0), 0);
        while now < TimestampUs(0) + MINUTE.times(1_440) {
            match client.limit.step(&mut client.state, now, Cost::ONE).outcome {
                Outcome::Admit { .. } => admitted += 1,
                Outcome::Reject { retry_after } => now = now + retry_after.unwrap(),
            }
        }
        // Each call comes up to a microsecond late, for there is no time in between: not a call a
        // day.
        assert_eq!(admitted, 7 * 1_440);
    }

    #[test]
    fn without_pauses_nothing_is_lost_to_rounding() {
        let mut client = client(7, 2);
        let admitted = (0..86_400_000u64).step_by(10).filter(|&ms| {
            let now = TimestampUs(ms * 1_000);
            client
                .limit
                .step(&mut client.state, now, Cost::ONE)
                .is_admitted()
        });
        assert_eq!(admitted.count(), 7 * 1_440 + 1);
    }

    #[test]
    fn what_was_spent_stays_spent_when_the_settings_change() {
        let mut client = client(60, 10);
        client.call("07:10:00", 10);
        // Ten seconds ahead of its rate, however many calls these are now.
        for (calls, burst, left) in [(60, 5, 0), (60, 20, 10), (120, 30, 10), (6, 3, 2)] {
            client.limit = Gcra::new(a_minute(calls), burst).unwrap();
            assert_eq!(client.remaining("07:10:00"), left, "{calls} {burst}");
        }
        client.limit = Gcra::new(a_minute(0), 10).unwrap();
        assert_eq!(client.call("07:20:00", 1), 0);
    }

    #[test]
    fn a_fraction_of_a_faster_rate_is_carried_up() {
        let mut client = client(7, 10);
        client.call("07:10:00", 2);
        assert_eq!(client.state.free_at.fraction, 1);
        client.call("07:10:00", 3);
        assert_eq!(client.state.free_at.fraction, 6);
        let whole = client.state.free_at.micros;
        client.limit = Gcra::new(a_minute(6), 10).unwrap();
        client.call("07:10:00", 1);
        let later = whole + crate::time::DurationUs(10_000_001);
        assert_eq!(client.state.free_at.micros, later);
        assert_eq!(client.state.free_at.fraction, 0);
    }

    #[test]
    fn a_refund_undoes_charges_and_never_lends() {
        let mut client = client(60, 10);
        client.call("07:10:00", 10);
        client.step("07:10:05", Cost::refund(3));
        assert_eq!(client.remaining("07:10:05"), 8);
        client.step("07:10:05", Cost::refund(30));
        assert_eq!(client.call("07:10:05", 20), 10);
    }

    #[test]
    fn a_burst_of_nothing_is_refused() {
        assert_eq!(Gcra::new(a_minute(1), 0), Err(SettingsError::BurstZero));
    }

    #[test]
    fn a_state_is_two_words() {
        assert!(size_of::<State>() <= 16);
    }
}
