//! Leaky bucket as a queue: when may this call go on?
//!
//! Calls go on one by one, as far apart as the rate says. One that comes too early is told how long
//! to wait; it is rejected if it would wait longer than a full queue takes. Source: Muscat,
//! "Distributed Rate-Limiting Algorithms", 2022.
//!
//! A call that counts more than one goes on at its beginning and takes as long as so many calls.
//! One that counts more than the whole rate is never admitted.
//!
//! # Settings that change
//!
//! What was promised is kept as time: calls that wait go on when they were told to.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
pub use crate::paced::State;
use crate::paced::{Ahead, Paced};
use crate::rate::Rate;
use crate::settings::Settings;
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// A rate, and how many calls may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeakyBucket(Paced);

impl LeakyBucket {
    /// A queue of zero lets no call wait: one that comes too early is rejected.
    #[must_use]
    pub fn new(rate: Rate, queue: u32) -> Self {
        Self(Paced::new(rate, Ahead::Queue(queue)))
    }

    /// How many calls in how long.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.rate()
    }

    /// How many calls may wait.
    #[must_use]
    pub fn queue(&self) -> u32 {
        let (Ahead::Burst(calls) | Ahead::Queue(calls)) = self.0.ahead();
        calls
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            queue: Some(self.queue()),
            ..Settings::default()
        }
    }
}

impl Algorithm for LeakyBucket {
    type State = State;

    fn step(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        self.0.step(state, now, cost)
    }

    fn is_idle(&self, state: &State, now: TimestampUs) -> bool {
        state.is_idle(now)
    }

    /// Counted where calls go on, not where they come: `calls - 1` and the largest cost, so `calls`
    /// if each counts one. From the first that goes on in the window to the last there is less than
    /// a window, and all but the last take their time in between: less than `calls`. Going on is
    /// rounded up to whole microseconds, which moves no call from one window into another: windows
    /// are whole too.
    fn most_in_any_window(&self, cost_max: u32) -> u64 {
        match self.rate().calls() {
            0 => 0,
            calls => u64::from(calls) - 1 + u64::from(cost_max.min(calls)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Client, a_minute, at};
    use crate::time::DurationUs;
    use crate::verdict::Outcome;

    fn client(calls: u32, queue: u32) -> Client<LeakyBucket> {
        Client::new(LeakyBucket::new(a_minute(calls), queue))
    }

    /// How long each of these calls has to wait, in seconds.
    fn delays(client: &mut Client<LeakyBucket>, time: &str, costs: &[u32]) -> Vec<Option<u64>> {
        let steps = costs
            .iter()
            .map(|&cost| client.step(time, Cost::take(cost)));
        let delay = |verdict: Verdict| match verdict.outcome {
            Outcome::Admit { delay } => Some(delay.secs_ceil()),
            Outcome::Reject { .. } => None,
        };
        steps.map(delay).collect()
    }

    use alloc::vec::Vec;

    // Muscat, "Distributed Rate-Limiting Algorithms", 2022: calls wait, and what does not fit
    // spills.
    #[test]
    fn calls_proceed_one_by_one_and_a_full_queue_rejects() {
        let mut client = client(60, 3);
        let seen = delays(&mut client, "07:10:00", &[1, 1, 1, 1, 1]);
        assert_eq!(seen, [Some(0), Some(1), Some(2), Some(3), None]);
        assert_eq!(client.retry_at("07:10:00", 1), Some(at("07:10:01")));
        assert_eq!(delays(&mut client, "07:10:01", &[1, 1]), [Some(3), None]);
        assert_eq!(client.full_at("07:10:01"), at("07:10:05"));
        assert_eq!(delays(&mut client, "07:10:10", &[1]), [Some(0)]);
    }

    #[test]
    fn without_a_queue_a_call_that_comes_too_early_is_rejected() {
        let mut client = client(60, 0);
        assert_eq!(client.call("07:10:00", 5), 1);
        assert_eq!(client.remaining("07:10:00.999999"), 0);
        assert_eq!(client.remaining("07:10:01"), 1);
    }

    #[test]
    fn a_call_that_counts_more_holds_up_the_next_one_for_longer() {
        let mut client = client(60, 10);
        let seen = delays(&mut client, "07:10:00", &[5, 2, 1, 61]);
        assert_eq!(seen, [Some(0), Some(5), Some(7), None]);
        assert_eq!(client.retry_at("07:10:00", 61), None);
    }

    #[test]
    fn seven_calls_a_minute_go_on_seven_a_minute() {
        let mut client = client(7, 700);
        client.step("07:10:00", Cost::ONE);
        let second = client.step("07:10:00", Cost::Peek).outcome;
        // 8,571,428 4/7, and not a moment too early.
        let delay = DurationUs(8_571_429);
        assert_eq!(second, Outcome::Admit { delay });
        let mut last = DurationUs::ZERO;
        for _ in 0..700 {
            match client.step("07:10:00", Cost::ONE).outcome {
                Outcome::Admit { delay } => last = delay,
                Outcome::Reject { .. } => panic!("the queue is long enough"),
            }
        }
        assert_eq!(last, DurationUs::from_secs(6_000));
    }

    #[test]
    fn a_refund_gives_the_place_to_the_next_call() {
        let mut client = client(60, 10);
        delays(&mut client, "07:10:00", &[1, 1, 1]);
        client.step("07:10:00", Cost::refund(1));
        assert_eq!(delays(&mut client, "07:10:00", &[1]), [Some(2)]);
        client.step("07:10:01", Cost::refund(9));
        assert_eq!(delays(&mut client, "07:10:01", &[1]), [Some(0)]);
    }

    #[test]
    fn waiting_calls_proceed_as_told_when_the_settings_change() {
        let mut client = client(60, 10);
        delays(&mut client, "07:10:00", &[1, 1, 1]);
        client.limit = LeakyBucket::new(a_minute(6), 1);
        assert_eq!(delays(&mut client, "07:10:00", &[1, 1]), [Some(3), None]);
        client.limit = LeakyBucket::new(a_minute(0), 1);
        assert_eq!(delays(&mut client, "07:20:00", &[1]), [None]);
    }
}
