//! Leaky bucket as a queue: delays each request until its turn.
//!
//! Requests go on one by one, at the distance of the rate. One that comes too early is delayed. It
//! is rejected if its delay would be longer than a full queue takes. Source: Muscat, "Distributed
//! Rate-Limiting Algorithms", 2022.
//!
//! A request of higher cost goes on at its beginning and takes as long as that many requests. One
//! that costs more than the whole rate is never allowed.
//!
//! # Settings that change
//!
//! Promises are kept as time: delayed requests go on when they were promised to.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
pub use crate::paced::State;
use crate::paced::{Ahead, Paced};
use crate::rate::Rate;
use crate::settings::Settings;
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// Rate, and how many requests may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeakyBucket(Paced);

impl LeakyBucket {
    /// Creates the limit. With a queue of zero it rejects a request that comes too early.
    #[must_use]
    pub fn new(rate: Rate, queue: u32) -> Self {
        Self(Paced::new(rate, Ahead::Queue(queue)))
    }

    /// Returns the rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.rate()
    }

    /// Returns how many requests may wait.
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

    /// `calls - 1` and the largest cost, so `calls` if each costs one. It counts requests where
    /// they go on, not where they come. From the first to the last that goes on in the window there
    /// is less than a window. All but the last take their time in between: less than `calls`.
    /// Rounding up to whole microseconds moves no request into another window, as windows are whole
    /// too.
    fn window_cost_max(&self, cost_max: u32) -> u64 {
        match self.rate().requests() {
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

    /// Returns how long each of these requests has to wait, in seconds.
    fn delays(client: &mut Client<LeakyBucket>, time: &str, costs: &[u32]) -> Vec<Option<u64>> {
        let steps = costs
            .iter()
            .map(|&cost| client.step(time, Cost::take(cost)));
        let delay = |verdict: Verdict| match verdict.outcome {
            Outcome::Allow { delay } => Some(delay.secs_ceil()),
            Outcome::Reject { .. } => None,
        };
        steps.map(delay).collect()
    }

    use alloc::vec::Vec;

    // Muscat, "Distributed Rate-Limiting Algorithms", 2022: requests wait, and what does not fit
    // spills.
    #[test]
    fn requests_proceed_one_by_one_and_a_full_queue_rejects() {
        let mut client = client(60, 3);
        let seen = delays(&mut client, "07:10:00", &[1, 1, 1, 1, 1]);
        assert_eq!(seen, [Some(0), Some(1), Some(2), Some(3), None]);
        assert_eq!(client.retry_at("07:10:00", 1), Some(at("07:10:01")));
        assert_eq!(delays(&mut client, "07:10:01", &[1, 1]), [Some(3), None]);
        assert_eq!(client.full_at("07:10:01"), at("07:10:05"));
        assert_eq!(delays(&mut client, "07:10:10", &[1]), [Some(0)]);
    }

    #[test]
    fn without_a_queue_a_request_that_comes_too_early_is_rejected() {
        let mut client = client(60, 0);
        assert_eq!(client.send("07:10:00", 5), 1);
        assert_eq!(client.remaining("07:10:00.999999"), 0);
        assert_eq!(client.remaining("07:10:01"), 1);
    }

    #[test]
    fn a_costly_request_delays_the_next_one_for_longer() {
        let mut client = client(60, 10);
        let seen = delays(&mut client, "07:10:00", &[5, 2, 1, 61]);
        assert_eq!(seen, [Some(0), Some(5), Some(7), None]);
        assert_eq!(client.retry_at("07:10:00", 61), None);
    }

    #[test]
    fn seven_requests_a_minute_go_on_seven_a_minute() {
        let mut client = client(7, 700);
        client.step("07:10:00", Cost::ONE);
        let second = client.step("07:10:00", Cost::Peek).outcome;
        // 8,571,428 4/7 us, rounded up.
        let delay = DurationUs(8_571_429);
        assert_eq!(second, Outcome::Allow { delay });
        let mut last = DurationUs::ZERO;
        for _ in 0..700 {
            match client.step("07:10:00", Cost::ONE).outcome {
                Outcome::Allow { delay } => last = delay,
                Outcome::Reject { .. } => panic!("the queue is long enough"),
            }
        }
        assert_eq!(last, DurationUs::from_secs(6_000));
    }

    #[test]
    fn a_refund_lets_the_next_request_go_on_earlier() {
        let mut client = client(60, 10);
        delays(&mut client, "07:10:00", &[1, 1, 1]);
        client.step("07:10:00", Cost::refund(1));
        assert_eq!(delays(&mut client, "07:10:00", &[1]), [Some(2)]);
        client.step("07:10:01", Cost::refund(9));
        assert_eq!(delays(&mut client, "07:10:01", &[1]), [Some(0)]);
    }

    #[test]
    fn delayed_requests_keep_their_time_when_the_settings_change() {
        let mut client = client(60, 10);
        delays(&mut client, "07:10:00", &[1, 1, 1]);
        client.limit = LeakyBucket::new(a_minute(6), 1);
        assert_eq!(delays(&mut client, "07:10:00", &[1, 1]), [Some(3), None]);
        client.limit = LeakyBucket::new(a_minute(0), 1);
        assert_eq!(delays(&mut client, "07:20:00", &[1]), [None]);
    }
}
