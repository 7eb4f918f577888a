//! Stats of origins for operators.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anteroom_room::histogram::Histogram;
use tokio::time::Instant;

use crate::upstream::counts::STATUS_CLASSES;
use crate::upstream::group::Group;
use crate::upstream::health::Condition;
use crate::upstream::origin::Origin;
use crate::upstream::request::RequestBody;

/// Present stats of one origin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OriginStats {
    /// URL, such as `http://host:port`.
    pub url: String,
    /// Condition of the origin.
    pub condition: Condition,
    /// Duration of the condition.
    pub since: Duration,
    /// Last error, at any time; `None` without one.
    pub last_error: Option<String>,
    /// Requests in flight, until their responses are read.
    pub in_flight: usize,
    /// Requests by outcome: a few fixed words.
    pub outcomes: Vec<(&'static str, u64)>,
    /// Times until the heads of responses, by bucket; the last one has no bound.
    pub response_times: Vec<(Option<Duration>, u64)>,
    /// Sum of all response times.
    pub response_time_sum: Duration,
    /// Moving mean of recent response times; `None` before the first.
    pub recent_response_time: Option<Duration>,
    /// Checks that passed.
    pub good_checks: u64,
    /// Checks that failed.
    pub bad_checks: u64,
}

/// Counts of requests that were sent again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RetryStats {
    /// Retries because the connection was just being closed, or the origin did not process the
    /// request.
    pub stale: u64,
    /// Retries at another origin, because the first accepted no connection.
    pub elsewhere: u64,
}

/// Present stats of the origins of a site or a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupStats {
    /// Origins in the order of the file.
    pub origins: Vec<OriginStats>,
    /// Retries of requests.
    pub retries: RetryStats,
    /// Whether all origins fail their checks.
    pub is_down: bool,
}

impl<B: RequestBody> Group<B> {
    /// Returns the response times of all origins since the start, and the requests by class: status
    /// 1xx to 5xx, then those without a response.
    #[must_use]
    pub fn responses(&self) -> (Histogram, [u64; STATUS_CLASSES + 1]) {
        let (mut times, mut statuses) = (Histogram::default(), [0; STATUS_CLASSES + 1]);
        for origin in self.origins() {
            origin.counts.add_to(&mut times, &mut statuses);
        }
        (times, statuses)
    }

    /// Returns the present stats.
    #[must_use]
    pub fn stats(&self) -> GroupStats {
        let now = Instant::now();
        GroupStats {
            origins: self
                .origins()
                .iter()
                .map(|origin| of(origin, now))
                .collect(),
            retries: RetryStats {
                stale: self.retries.stale(),
                elsewhere: self.retries.elsewhere(),
            },
            is_down: self.is_down(),
        }
    }
}

fn of<B>(origin: &Arc<Origin<B>>, now: Instant) -> OriginStats {
    let (condition, since) = {
        let health = origin.health.lock();
        (health.condition(now), health.age(now))
    };
    let counts = &origin.counts;
    OriginStats {
        url: origin.url.clone(),
        condition,
        since,
        last_error: origin.last_error.lock().clone(),
        in_flight: origin.in_flight(),
        outcomes: counts.outcomes().to_vec(),
        response_times: counts.classes(),
        response_time_sum: counts.sum(),
        recent_response_time: counts.recent(),
        good_checks: counts.good_checks.load(Relaxed),
        bad_checks: counts.bad_checks.load(Relaxed),
    }
}
