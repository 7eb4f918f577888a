//! What is an Envoy told about a bucket?

use std::sync::Arc;

use anteroom_limit::quota::lasting::{MARGIN, seconds_until};
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

/// Of the calls of an assignment, the part that comes evenly while it lasts; the rest is there at
/// once. Some versions of Envoy take a bucket for an empty one that would take longer to fill than
/// the machine runs, so it must not take long.
const PART_THAT_COMES: u32 = 4;

/// Lines of one message.
const LINES_OF_MESSAGE: usize = 100;

/// Below so many calls none comes later: a single token in twice the time that the assignment lasts
/// never comes.
const FEW: u32 = 8;

/// What is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Assignments {
    /// So many calls, for so many seconds, and not beyond a moment.
    Assigned {
        calls: u32,
        seconds: u32,
        ends_at: TimestampUs,
    },
    /// All calls, for so many seconds.
    Allowed { seconds: u32 },
    /// No calls, for so many seconds.
    Denied { seconds: u32 },
    /// That nobody keeps a book of it any more.
    Abandoned,
}

/// A bucket, and what is told about it.
#[derive(Debug)]
pub(crate) struct Line {
    id: Arc<BucketId>,
    told: Assignments,
    /// What its name takes, of a bucket that is not kept.
    _held: Option<OwnedSemaphorePermit>,
}

impl Line {
    pub(crate) const fn new(id: Arc<BucketId>, told: Assignments) -> Self {
        let _held = None;
        Self { id, told, _held }
    }

    /// The same, and this until it is sent.
    pub(crate) fn holding(self, held: OwnedSemaphorePermit) -> Self {
        let _held = Some(held);
        Self { _held, ..self }
    }

    /// As it is sent; nothing if it is too late to tell it.
    pub(crate) fn actions(&self, now: TimestampUs) -> Vec<BucketAction> {
        let blanket = |rule: BlanketRule| Strategy::BlanketRule(rule.into());
        match self.told {
            Assignments::Assigned {
                calls,
                seconds,
                ends_at,
            } => {
                let Some(left) = seconds_until(ends_at, now) else {
                    return Vec::new();
                };
                let seconds = seconds.min(left);
                let bucket = Strategy::TokenBucket(bucket_of(calls, seconds));
                // A token bucket in the place of another one goes on, in Envoy 1.40, from where
                // that was: empty. In the place of a blanket rule it begins full, as what is newly
                // charged is to be. It applies both before it goes on.
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

/// What is sent, made when it can be sent: what waited is told with the time that is left of it.
pub(crate) fn answers(
    lines: mpsc::Receiver<Result<Line, Status>>,
    clock: Clock,
) -> impl Stream<Item = Result<RateLimitQuotaResponse, Status>> {
    unfold(lines, move |mut lines| async move {
        loop {
            let mut bucket_action = Vec::new();
            let mut next = Some(lines.recv().await?);
            while let Some(line) = next {
                match line {
                    Ok(line) => bucket_action.extend(line.actions(clock.now())),
                    Err(status) => return Some((Err(status), lines)),
                }
                let has_place = bucket_action.len() < LINES_OF_MESSAGE;
                next = has_place.then(|| lines.try_recv().ok()).flatten();
            }
            if !bucket_action.is_empty() {
                return Some((Ok(RateLimitQuotaResponse { bucket_action }), lines));
            }
        }
    })
}

/// A token bucket that lets through so many calls, and no more, in so many seconds and a margin.
fn bucket_of(calls: u32, seconds: u32) -> TokenBucket {
    let (comes, interval) = if calls < FEW {
        (0, 2 * (u64::from(seconds) + MARGIN.secs_ceil()))
    } else {
        let lasts = u64::from(seconds) + MARGIN.secs_ceil();
        (calls / PART_THAT_COMES, lasts)
    };
    TokenBucket {
        max_tokens: calls - comes,
        tokens_per_fill: Some(UInt32Value {
            value: comes.max(1),
        }),
        fill_interval: Some(Duration {
            seconds: i64::try_from(interval).unwrap_or(i64::MAX),
            nanos: 0,
        }),
    }
}

#[cfg(test)]
mod tests {
    use anteroom_limit::quota::lasting::CALLS_MOST;

    use super::*;

    fn line(told: Assignments) -> Line {
        let id = Arc::new(BucketId::default());
        Line::new(id, told)
    }

    fn seconds(told: Assignments, now: TimestampUs) -> Option<i64> {
        let action = line(told).actions(now).pop()?.bucket_action?;
        match action {
            Action::QuotaAssignmentAction(action) => Some(action.assignment_time_to_live?.seconds),
            Action::AbandonAction(_) => None,
        }
    }

    #[test]
    fn what_is_told_late_lasts_less_long() {
        let told = Assignments::Assigned {
            calls: 3,
            seconds: 59,
            ends_at: TimestampUs(59_500_000),
        };
        let check = |now, expected| assert_eq!(seconds(told, TimestampUs(now)), expected);
        check(0, Some(59));
        check(500_000, Some(59));
        check(500_001, Some(58));
        check(58_500_000, Some(1));
        check(58_500_001, None);
    }

    #[test]
    fn a_bucket_begins_full_whatever_there_was_before() {
        let told = Assignments::Assigned {
            calls: 3,
            seconds: 59,
            ends_at: TimestampUs(59_500_000),
        };
        let actions = line(told).actions(TimestampUs(0)).into_iter();
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
    fn a_bucket_lets_through_what_was_assigned_and_no_more() {
        for calls in [1, 7, 8, 9, 600, CALLS_MOST] {
            for seconds in [1, 59, 600] {
                let bucket = bucket_of(calls, seconds);
                let fill = u64::from(bucket.tokens_per_fill.unwrap().value);
                let interval = u64::try_from(bucket.fill_interval.unwrap().seconds).unwrap();
                // As long as it lasts, and a margin.
                let comes = fill * (u64::from(seconds) + 1) / interval;
                let all = u64::from(bucket.max_tokens) + comes;
                assert_eq!(all, u64::from(calls), "{calls} {seconds}");
                // And Envoy can begin with a full one soon after its machine.
                let to_fill = u64::from(bucket.max_tokens) * interval / fill;
                assert!(to_fill <= 14 * 601, "{calls} {seconds}: {to_fill}");
            }
        }
    }
}
