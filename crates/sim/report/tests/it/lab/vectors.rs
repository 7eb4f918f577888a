//! Numbers of the article ("Distributed Rate-Limiting Algorithms", 2022): its worked examples, run
//! through the lab.

use anteroom_limit::policy::Policy;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_report::lab::algorithm::Settings;

use crate::lab::common::{MINUTE, admitted_in, alone, clock, policy, requests_at, settings};

/// Returns requests around the edge of a minute.
fn around_the_edge() -> anteroom_report::lab::traffic::Traffic {
    requests_at(&[("7:09:59", 100), ("7:10:00", 100)])
}

#[test]
fn fixed_windows_pass_twice_the_limit_where_a_log_rejects_half() {
    let fixed = alone(policy(AlgorithmKind::FixedWindow), &around_the_edge()).stats;
    assert_eq!((fixed.admitted, fixed.wrongly_allowed), (200, 100));
    assert_eq!(fixed.highest, 200);
    let log = alone(policy(AlgorithmKind::SlidingLog), &around_the_edge()).stats;
    assert_eq!((log.admitted, log.wrongly_allowed), (100, 0));
    assert_eq!((log.rejected, log.wrongly_rejected), (100, 0));
}

#[test]
fn half_a_minute_fills_half_a_bucket_and_a_minute_all() {
    let bucket = policy(AlgorithmKind::TokenBucket);
    for (back, tokens) in [("7:00:30", 50), ("7:01:01", 100), ("7:30:00", 100)] {
        let traffic = requests_at(&[("7:00:00", 100), (back, 200)]);
        let outcome = alone(bucket, &traffic);
        let later = admitted_in(&outcome.decisions, clock(back), clock("8:00:00"));
        assert_eq!(later, tokens, "{back}");
    }
}

#[test]
fn a_bucket_that_is_partly_full_fills_up_to_its_capacity() {
    let traffic = requests_at(&[("7:00:00", 20), ("7:00:30", 200)]);
    let outcome = alone(policy(AlgorithmKind::TokenBucket), &traffic);
    let later = admitted_in(&outcome.decisions, clock("7:00:30"), clock("8:00:00"));
    assert_eq!(later, 100);
}

#[test]
fn an_initial_burst_is_there_once() {
    let bucket = TokenBucket::new(settings().rate, 100, 150).unwrap();
    let traffic = requests_at(&[("7:00:00", 200), ("7:01:01", 200)]);
    let outcome = alone(Policy::TokenBucket(bucket), &traffic);
    let first = admitted_in(&outcome.decisions, clock("7:00:00"), clock("7:01:00"));
    let second = admitted_in(&outcome.decisions, clock("7:01:00"), clock("7:02:00"));
    assert_eq!((first, second), (150, 100));
}

#[test]
fn two_windows_weigh_the_one_before_by_17_60ths_at_43_seconds() {
    // 60 requests in the minute before weigh 17, so 83 more are allowed.
    let traffic = requests_at(&[("7:00:30", 60), ("7:01:43", 100)]);
    let outcome = alone(policy(AlgorithmKind::SlidingWindow), &traffic);
    let later = admitted_in(&outcome.decisions, clock("7:01:00"), clock("7:02:00"));
    assert_eq!(later, 83);
    // All of them came in its first half, which is over: the guess is too high.
    assert_eq!(outcome.stats.wrongly_rejected, 17);
}

#[test]
fn five_15_second_windows_weigh_the_oldest_by_its_rest() {
    // 5 s into a window of 15 s, so two thirds of the oldest count: 40 of 60.
    let traffic = requests_at(&[("7:00:00", 60), ("7:01:05", 100)]);
    let outcome = alone(policy(AlgorithmKind::SubWindows), &traffic);
    let later = admitted_in(&outcome.decisions, clock("7:01:00"), clock("7:02:00"));
    assert_eq!(later, 60);
}

#[test]
fn the_windows_that_are_read_are_one_more_than_the_parts() {
    for (parts, read) in [(4, 5), (60, 61)] {
        let settings = Settings {
            sub_windows: parts,
            ..settings()
        };
        for algorithm in [AlgorithmKind::SubWindows, AlgorithmKind::SubWindowsStrict] {
            let counters = settings.policy(algorithm).unwrap().counters().unwrap();
            assert_eq!(counters.count(), read);
            assert_eq!(counters.width().0 * u64::from(parts), MINUTE.0);
        }
    }
}
