//! Runs for the text about windows and buckets: the article's limit, its traffic, and two more
//! kinds.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::lab::algorithm::{Settings, raised};
use crate::lab::estimate::counted;
use crate::lab::outcome::{LimitStatistics, Outcome};
use crate::lab::run::{StoreKind, run};
use crate::lab::systems::{MINUTE, SEED, a_minute, plan};
use crate::lab::traffic::{BEGIN, Demand, Request, Traffic, adversary, bursty, random};

/// Article's limit, requests per minute.
pub(super) const LIMIT: u32 = 100;
/// Article's parts of a minute: 15 seconds each.
pub(super) const PARTS: u32 = 4;
/// Requests per minute, slightly more than the limit: the article does not state the rate of its
/// random traffic.
pub(super) const REQUESTS: u32 = 110;

/// Returns the limit by one of the algorithms.
pub(super) fn policy(algorithm: AlgorithmKind, parts: u32) -> Policy {
    let settings = Settings {
        rate: a_minute(LIMIT),
        sub_windows: parts,
        burst: None,
        queue: 0,
    };
    settings.policy(algorithm).expect("the settings fit")
}

fn demand(minutes: u64) -> Demand {
    Demand {
        rate: a_minute(REQUESTS),
        length: MINUTE.times(minutes),
        clients: 1,
        seed: SEED,
    }
}

/// Returns ten minutes of independent requests.
pub(super) fn random_requests() -> Traffic {
    random(&demand(10)).expect("a thousand requests")
}

/// Returns ten minutes of requests in bursts.
pub(super) fn bursts() -> Traffic {
    bursty(&demand(10)).expect("a thousand requests")
}

/// Returns an hour of bursts, for numbers.
pub(super) fn an_hour_of_bursts() -> Traffic {
    bursty(&demand(60)).expect("some thousand requests")
}

/// Runs one node that counts alone.
pub(super) fn alone(policy: Policy, traffic: &Traffic) -> Outcome {
    let plan = plan(policy, StoreKind::Local, 1);
    run(&plan, traffic).expect("one node can keep all")
}

/// Returns the statistics of an algorithm under its own adversary.
pub(super) fn under_attack(policy: Policy) -> LimitStatistics {
    let most = policy.window_cost_max(1);
    let traffic = adversary(policy.rate(), most, 1, DurationUs::ZERO).expect("few enough requests");
    alone(policy, &traffic).stats
}

/// Returns how many requests pass of a hundred in the second before the edge of a minute and a
/// hundred just after it.
pub(super) fn around_an_edge(algorithm: AlgorithmKind) -> u64 {
    let edge = BEGIN + MINUTE.times(10);
    let at = |at: TimestampUs| (0..100).map(move |_| Request { at, client: 0 });
    let requests = at(edge - DurationUs::from_secs(1)).chain(at(edge));
    let traffic = Traffic::new(String::new(), requests.collect());
    alone(policy(algorithm, PARTS), &traffic).stats.admitted
}

/// Returns how many of `requests` requests, `made_after` the start of a minute, are counted later.
pub(super) fn left_of(policy: &Policy, requests: u32, made_after: u64, later: u64) -> u32 {
    let unlimited = raised(policy).expect("it keeps counts");
    let at = |secs| BEGIN + DurationUs::from_secs(secs);
    let mut state = State::default();
    unlimited.step(&mut state, at(made_after), Cost::take(requests));
    let seen = unlimited.step(&mut state, at(later), Cost::Peek);
    u32::MAX - seen.remaining
}

/// Returns the mean error of the count in tenths of a request.
pub(super) fn mean_error_tenths(policy: &Policy, traffic: &Traffic) -> u64 {
    let counted = counted(policy, traffic, 0).expect("it keeps counts");
    let errors = counted.iter().map(|one| one.truth.abs_diff(one.estimate));
    errors.sum::<u64>() * 10 / (counted.len() as u64).max(1)
}

/// Visit to a token bucket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Visit {
    pub(super) at_secs: u64,
    pub(super) tokens: u32,
    pub(super) requests: u32,
    pub(super) admitted: u32,
}

/// Returns the steps of a token bucket.
pub(super) fn visits() -> [Visit; 6] {
    let bucket = policy(AlgorithmKind::TokenBucket, PARTS);
    let mut state = State::default();
    [(0, 40), (6, 60), (12, 30), (42, 50), (45, 10), (120, 30)].map(|(at_secs, requests)| {
        let now = BEGIN + DurationUs::from_secs(at_secs);
        let tokens = bucket.step(&mut state, now, Cost::Peek).remaining;
        let step = |_: &u32| bucket.step(&mut state, now, Cost::ONE).is_allowed();
        let admitted = (0..requests).filter(step);
        Visit {
            at_secs,
            tokens,
            requests,
            admitted: u32::try_from(admitted.count()).unwrap_or(u32::MAX),
        }
    })
}

/// Returns how many tokens come back to an empty bucket in so many seconds.
pub(super) fn back_after(secs: u64) -> u32 {
    let bucket = policy(AlgorithmKind::TokenBucket, PARTS);
    let mut state = State::default();
    bucket.step(&mut state, BEGIN, Cost::take(LIMIT));
    let later = BEGIN + DurationUs::from_secs(secs);
    bucket.step(&mut state, later, Cost::Peek).remaining
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_of_the_article_come_out() {
        assert_eq!(around_an_edge(AlgorithmKind::FixedWindow), 200);
        assert_eq!(around_an_edge(AlgorithmKind::SlidingLog), 100);
        let two = policy(AlgorithmKind::SlidingWindow, PARTS);
        assert_eq!(left_of(&two, 60, 30, 103), 17);
        let five = policy(AlgorithmKind::SubWindows, PARTS);
        assert_eq!(left_of(&five, 60, 0, 65), 40);
    }

    #[test]
    fn a_bucket_fills_by_fifty_in_half_a_minute_to_a_hundred() {
        let visits = visits();
        assert_eq!(visits.map(|visit| visit.tokens), [100, 70, 20, 50, 5, 100]);
        assert_eq!(visits.map(|visit| visit.admitted), [40, 60, 20, 50, 5, 30]);
        assert_eq!([0, 30, 60, 90].map(back_after), [0, 50, 100, 100]);
    }
}
