//! Plan of a load: its target, its visitors and their arrivals.

use std::ops::RangeInclusive;
use std::time::Duration;

use url::Url;

/// Gateways that visitors go to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Addresses of the gateways, such as `http://127.0.0.1:8080/`; at least one. Only their ports
    /// differ, so that the cookies of one are sent to all.
    pub urls: Vec<Url>,
    /// Name of the room, for requests for the position.
    pub room: String,
}

/// Behaviour of the visitors. Every choice follows from the seed; durations of requests do not.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Number of visitors.
    pub visitors: u32,
    /// Time until the last visitor arrives. The rate of arrivals grows.
    pub arrive_over: Duration,
    /// Number of pages that a visitor opens, the first one included; at least 1.
    pub pages: RangeInclusive<u32>,
    /// Time between two pages of a visitor.
    pub think: RangeInclusive<Duration>,
    /// Percentage of visitors who leave the queue after a time.
    pub impatient_percent: u32,
    /// Time after which those visitors leave the queue.
    pub leaves_after: RangeInclusive<Duration>,
    /// Percentage of visitors who buy at the end.
    pub buy_percent: u32,
    /// Percentage of visitors who log out at the end; the others just leave.
    pub log_out_percent: u32,
    /// Percentage of visitors who use another node for each request; the others keep theirs.
    pub wander_percent: u32,
    /// Time until a waiting visitor first requests its position. Short, as in the waiting page's
    /// script: a position counts once the ticket has been sent back.
    pub first_poll_after: Duration,
    /// Longest time until a response.
    pub response_timeout: Duration,
    /// Pause of a visitor after an error; twice as long after two errors.
    pub retry_pause: Duration,
    /// Requests in flight at once; at least 1.
    pub requests_at_once: usize,
    /// Seed of the choices.
    pub seed: u64,
}

impl LoadPlan {
    /// Returns the arrival time of visitor `number` (from 0). Arrivals grow with time to the power
    /// of 1.5, so that a shop fills early and the queue keeps growing.
    pub(super) fn arrives_after(&self, number: u32) -> Duration {
        let part = (f64::from(number) + 0.5) / f64::from(self.visitors.max(1));
        self.arrive_over.mul_f64(part.min(1.0).powf(2.0 / 3.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::quick_plan;

    #[test]
    fn visitors_arrive_ever_faster_and_all_in_time() {
        let plan = LoadPlan {
            visitors: 100,
            arrive_over: Duration::from_secs(10),
            ..quick_plan()
        };
        let arrivals: Vec<_> = (0..100).map(|number| plan.arrives_after(number)).collect();
        assert!(arrivals.is_sorted());
        assert!(arrivals[99] <= plan.arrive_over);
        assert!(arrivals[10] - arrivals[0] > arrivals[99] - arrivals[89]);
    }
}
