//! What operators see of origins.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

use crate::upstream::group::Group;
use crate::upstream::health::Condition;
use crate::upstream::origin::Origin;
use crate::upstream::request::RequestBody;

/// One origin of a room, now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OriginStats {
    /// `http://host:port`.
    pub url: String,
    /// What it is taken for.
    pub condition: Condition,
    /// For how long.
    pub since: Duration,
    /// What went wrong last, whenever that was; `None` = nothing did.
    pub last_error: Option<String>,
    /// Requests that are there now, until their answers have been read.
    pub in_flight: usize,
    /// Requests by what became of them: a few fixed words.
    pub outcomes: Vec<(&'static str, u64)>,
    /// Times until the heads of answers, by class; the last one has no bound.
    pub response_times: Vec<(Option<Duration>, u64)>,
    /// Of all answers.
    pub response_time_sum: Duration,
    /// The mean of the newest answers; `None` before the first.
    pub recent_response_time: Option<Duration>,
    /// Checks that passed.
    pub good_checks: u64,
    /// Checks that did not.
    pub bad_checks: u64,
}

/// How often requests of a room were sent again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RetryStats {
    /// Because the connection was just being closed, or the origin did not look at the request.
    pub stale: u64,
    /// To another origin, because the first took no connection.
    pub elsewhere: u64,
}

/// The origins of a room, now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RoomOriginStats {
    /// In the order of the file.
    pub origins: Vec<OriginStats>,
    /// Of the room.
    pub retries: RetryStats,
    /// Whether checks say that none is well.
    pub is_down: bool,
}

impl<B: RequestBody> Group<B> {
    /// What there is to see now.
    #[must_use]
    pub fn stats(&self) -> RoomOriginStats {
        let now = Instant::now();
        RoomOriginStats {
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
        last_error: origin.complaint.lock().clone(),
        in_flight: origin.in_flight(),
        outcomes: counts.outcomes().to_vec(),
        response_times: counts.classes(),
        response_time_sum: counts.sum(),
        recent_response_time: counts.recent(),
        good_checks: counts.good_checks.load(Relaxed),
        bad_checks: counts.bad_checks.load(Relaxed),
    }
}
