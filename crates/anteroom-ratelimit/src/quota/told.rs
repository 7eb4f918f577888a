//! What is an Envoy told about a bucket?

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anteroom_limits::time::Micros;
use anteroom_quota::lasting::seconds_until;

use crate::wire::quota::{
    AbandonAction, Action, BlanketRule, BucketAction, BucketId, QuotaAssignmentAction,
    RateLimitStrategy, Strategy, TokenBucket,
};
use crate::wire::{Duration, UInt32Value};

/// A year, in which a bucket gets one token: Envoy takes no slower rate for one, and what is prepaid is not to grow. As
/// long as an assignment lasts it is a small part of a token.
const FILLS_EVERY_SECONDS: i64 = 365 * 86_400;

/// What is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    /// So many calls, for so many seconds, and not beyond a moment.
    Assigned {
        calls: u32,
        seconds: u32,
        ends_at: Micros,
    },
    /// All calls, for so many seconds.
    Allowed { seconds: u32 },
    /// No calls, for so many seconds.
    Denied { seconds: u32 },
    /// That nobody keeps a book of it any more.
    Abandoned,
}

/// A bucket, and what is told about it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) id: Arc<BucketId>,
    pub(crate) told: Told,
}

impl Line {
    /// As it is sent; `None` if it is too late to tell it.
    pub(crate) fn action(&self, now: Micros) -> Option<BucketAction> {
        let assigned = |seconds: u32, strategy| {
            Action::QuotaAssignmentAction(QuotaAssignmentAction {
                assignment_time_to_live: Some(Duration {
                    seconds: seconds.into(),
                    nanos: 0,
                }),
                rate_limit_strategy: Some(RateLimitStrategy {
                    strategy: Some(strategy),
                }),
            })
        };
        let blanket = |rule: BlanketRule| Strategy::BlanketRule(rule.into());
        let action = match self.told {
            Told::Assigned {
                calls,
                seconds,
                ends_at,
            } => {
                let seconds = seconds.min(seconds_until(ends_at, now)?);
                assigned(seconds, Strategy::TokenBucket(bucket_of(calls)))
            }
            Told::Allowed { seconds } => assigned(seconds, blanket(BlanketRule::AllowAll)),
            Told::Denied { seconds } => assigned(seconds, blanket(BlanketRule::DenyAll)),
            Told::Abandoned => Action::AbandonAction(AbandonAction {}),
        };
        Some(BucketAction {
            bucket_id: Some((*self.id).clone()),
            bucket_action: Some(action),
        })
    }
}

/// A token bucket with so many calls. Envoy goes on with the one that it has if it is told the same again, and what was
/// newly charged would be lost; so no two are the same. It compares the calls, the tokens of a fill, and of the time between
/// two fills the part of a second, which it leaves out when it fills.
fn bucket_of(calls: u32) -> TokenBucket {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let nanos = TOLD.fetch_add(1, Ordering::Relaxed) % 999_999_999;
    TokenBucket {
        max_tokens: calls,
        tokens_per_fill: Some(UInt32Value { value: 1 }),
        fill_interval: Some(Duration {
            seconds: FILLS_EVERY_SECONDS,
            nanos: i32::try_from(nanos).unwrap_or(0),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(told: Told) -> Line {
        let id = Arc::new(BucketId::default());
        Line { id, told }
    }

    fn seconds(told: Told, now: Micros) -> Option<i64> {
        match line(told).action(now)?.bucket_action? {
            Action::QuotaAssignmentAction(action) => Some(action.assignment_time_to_live?.seconds),
            Action::AbandonAction(_) => None,
        }
    }

    #[test]
    fn what_is_told_late_lasts_less_long() {
        let told = Told::Assigned {
            calls: 3,
            seconds: 59,
            ends_at: Micros(59_500_000),
        };
        let check = |now, expected| assert_eq!(seconds(told, Micros(now)), expected);
        check(0, Some(59));
        check(500_000, Some(59));
        check(500_001, Some(58));
        check(58_500_000, Some(1));
        check(58_500_001, None);
    }

    #[test]
    fn two_assignments_are_never_the_same_to_envoy() {
        let [one, other] = [bucket_of(5), bucket_of(5)];
        let nanos = |bucket: &TokenBucket| bucket.fill_interval.unwrap().nanos;
        assert_ne!(nanos(&one), nanos(&other));
        assert_eq!(one.max_tokens, 5);
    }
}
