//! Messages to an Envoy about its buckets.

use std::sync::Arc;

use anteroom_limit::quota::lifetime::{MARGIN, seconds_until};
use anteroom_limit::time::TimestampUs;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::Status;

use crate::quota::Clock;
use crate::wire::quota::{
    AbandonAction, Action, BlanketRule, BucketAction, BucketId, QuotaAssignmentAction,
    RateLimitQuotaResponse, RateLimitStrategy, Strategy, TokenBucket,
};
use crate::wire::{Duration, UInt32Value};

/// Divisor for the part of an assignment that refills evenly while it lasts; the rest is available
/// at once. Some versions of Envoy treat a bucket as empty if filling it takes longer than the
/// machine has been up, so it must fill fast.
const REFILL_DIVISOR: u32 = 4;

/// Most actions of one message.
const ACTIONS_MAX: usize = 100;

/// Requests below which nothing refills: Envoy would never add a single token within twice the
/// assignment's lifetime.
const REFILL_MIN: u32 = 8;

/// State of a bucket, as reported to its Envoy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Assignments {
    /// Allowance of so many requests for so many seconds, and never beyond a point in time.
    Assigned {
        requests: u32,
        seconds: u32,
        ends_at: TimestampUs,
    },
    /// Allowance of all requests, for so many seconds.
    Allowed { seconds: u32 },
    /// Denial of all requests, for so many seconds.
    Denied { seconds: u32 },
    /// The bucket is no longer kept here.
    Abandoned,
}

/// Update of one bucket.
#[derive(Debug)]
pub(crate) struct BucketUpdate {
    id: Arc<BucketId>,
    assignment: Assignments,
    /// Share of the budget that the name takes, for a bucket that is not kept.
    _permit: Option<OwnedSemaphorePermit>,
}

impl BucketUpdate {
    pub(crate) const fn new(id: Arc<BucketId>, assignment: Assignments) -> Self {
        let _permit = None;
        Self {
            id,
            assignment,
            _permit,
        }
    }

    /// Adds a permit that is dropped when the update is sent.
    pub(crate) fn with_permit(self, permit: OwnedSemaphorePermit) -> Self {
        let _permit = Some(permit);
        Self { _permit, ..self }
    }

    /// Returns the actions to send; none if it is too late.
    pub(crate) fn actions(&self, now: TimestampUs) -> Vec<BucketAction> {
        let blanket = |rule: BlanketRule| Strategy::BlanketRule(rule.into());
        match self.assignment {
            Assignments::Assigned {
                requests,
                seconds,
                ends_at,
            } => {
                let Some(left) = seconds_until(ends_at, now) else {
                    return Vec::new();
                };
                let seconds = seconds.min(left);
                let bucket = Strategy::TokenBucket(bucket_of(requests, seconds));
                // In Envoy 1.40 a token bucket that replaces another one starts with that one's
                // tokens: empty. One that replaces a blanket rule starts full, as a new assignment
                // must. Envoy applies both actions before it goes on.
                vec![
                    self.assigned(seconds, blanket(BlanketRule::DenyAll)),
                    self.assigned(seconds, bucket),
                ]
            }
            Assignments::Allowed { seconds } => {
                vec![self.assigned(seconds, blanket(BlanketRule::AllowAll))]
            }
            Assignments::Denied { seconds } => {
                vec![self.assigned(seconds, blanket(BlanketRule::DenyAll))]
            }
            Assignments::Abandoned => vec![self.action(Action::AbandonAction(AbandonAction {}))],
        }
    }

    fn assigned(&self, seconds: u32, strategy: Strategy) -> BucketAction {
        self.action(Action::QuotaAssignmentAction(QuotaAssignmentAction {
            assignment_time_to_live: Some(Duration {
                seconds: seconds.into(),
                nanos: 0,
            }),
            rate_limit_strategy: Some(RateLimitStrategy {
                strategy: Some(strategy),
            }),
        }))
    }

    fn action(&self, action: Action) -> BucketAction {
        BucketAction {
            bucket_id: Some((*self.id).clone()),
            bucket_action: Some(action),
        }
    }
}

/// Returns the responses. Each is built when it can be sent, so that updates that waited have the
/// right remaining time.
pub(crate) fn responses(
    updates: mpsc::Receiver<Result<BucketUpdate, Status>>,
    clock: Clock,
) -> impl Stream<Item = Result<RateLimitQuotaResponse, Status>> {
    unfold(updates, move |mut updates| async move {
        loop {
            let mut bucket_action = Vec::new();
            let mut next = Some(updates.recv().await?);
            while let Some(update) = next {
                match update {
                    Ok(update) => bucket_action.extend(update.actions(clock.now())),
                    Err(status) => return Some((Err(status), updates)),
                }
                let has_room = bucket_action.len() < ACTIONS_MAX;
                next = has_room.then(|| updates.try_recv().ok()).flatten();
            }
            if !bucket_action.is_empty() {
                return Some((Ok(RateLimitQuotaResponse { bucket_action }), updates));
            }
        }
    })
}

/// Returns a token bucket that allows exactly `requests` requests within `seconds` and a margin.
fn bucket_of(requests: u32, seconds: u32) -> TokenBucket {
    let (refill, interval) = if requests < REFILL_MIN {
        (0, 2 * (u64::from(seconds) + MARGIN.secs_ceil()))
    } else {
        let lasts = u64::from(seconds) + MARGIN.secs_ceil();
        (requests / REFILL_DIVISOR, lasts)
    };
    TokenBucket {
        max_tokens: requests - refill,
        tokens_per_fill: Some(UInt32Value {
            value: refill.max(1),
        }),
        fill_interval: Some(Duration {
            seconds: i64::try_from(interval).unwrap_or(i64::MAX),
            nanos: 0,
        }),
    }
}

#[cfg(test)]
mod tests {
    use anteroom_limit::quota::lifetime::CALLS_MOST;

    use super::*;

    fn update(assignment: Assignments) -> BucketUpdate {
        let id = Arc::new(BucketId::default());
        BucketUpdate::new(id, assignment)
    }

    fn seconds(assignment: Assignments, now: TimestampUs) -> Option<i64> {
        let action = update(assignment).actions(now).pop()?.bucket_action?;
        match action {
            Action::QuotaAssignmentAction(action) => Some(action.assignment_time_to_live?.seconds),
            Action::AbandonAction(_) => None,
        }
    }

    #[test]
    fn an_update_sent_late_lasts_shorter() {
        let assignment = Assignments::Assigned {
            requests: 3,
            seconds: 59,
            ends_at: TimestampUs(59_500_000),
        };
        let check = |now, expected| assert_eq!(seconds(assignment, TimestampUs(now)), expected);
        check(0, Some(59));
        check(500_000, Some(59));
        check(500_001, Some(58));
        check(58_500_000, Some(1));
        check(58_500_001, None);
    }

    #[test]
    fn a_bucket_starts_full_whatever_it_replaces() {
        let assignment = Assignments::Assigned {
            requests: 3,
            seconds: 59,
            ends_at: TimestampUs(59_500_000),
        };
        let actions = update(assignment).actions(TimestampUs(0)).into_iter();
        let strategies = actions.map(|action| match action.bucket_action {
            Some(Action::QuotaAssignmentAction(action)) => action.rate_limit_strategy?.strategy,
            _ => None,
        });
        let strategies: Vec<_> = strategies.collect();
        let deny = Strategy::BlanketRule(BlanketRule::DenyAll.into());
        let bucket = Strategy::TokenBucket(bucket_of(3, 59));
        assert_eq!(strategies, [Some(deny), Some(bucket)]);
    }

    #[test]
    fn a_bucket_allows_exactly_what_was_assigned() {
        for requests in [1, 7, 8, 9, 600, CALLS_MOST] {
            for seconds in [1, 59, 600] {
                let bucket = bucket_of(requests, seconds);
                let fill = u64::from(bucket.tokens_per_fill.unwrap().value);
                let interval = u64::try_from(bucket.fill_interval.unwrap().seconds).unwrap();
                // For as long as it lasts, with the margin.
                let refill = fill * (u64::from(seconds) + 1) / interval;
                let all = u64::from(bucket.max_tokens) + refill;
                assert_eq!(all, u64::from(requests), "{requests} {seconds}");
                // Envoy treats it as full soon after its machine has started.
                let to_fill = u64::from(bucket.max_tokens) * interval / fill;
                assert!(to_fill <= 14 * 601, "{requests} {seconds}: {to_fill}");
            }
        }
    }
}
