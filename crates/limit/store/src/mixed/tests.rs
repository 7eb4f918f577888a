//! Tests of many limits in one table: they are independent, and no flood admits more.

use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::DurationUs;
use anteroom_limit::token_bucket::TokenBucket;

use super::*;
use crate::key::KeyMaker;
use crate::shards::SHARDS;

/// Start of an hour.
const START: TimestampUs = TimestampUs(1_767_225_600_000_000);

fn rate(limit: u32, seconds: u64) -> Rate {
    Rate::new(limit, DurationUs::from_secs(seconds)).unwrap()
}

fn fixed(limit: u32, seconds: u64) -> Policy {
    Policy::FixedWindow(FixedWindow::new(rate(limit, seconds)))
}

fn bucket(limit: u32, burst: u32) -> Policy {
    Policy::TokenBucket(TokenBucket::new(rate(limit, 60), burst, burst).unwrap())
}

fn key(name: &str) -> ClientKey {
    KeyMaker::new([7; 16]).key([name.as_bytes()])
}

fn acquire_all(
    counts: &MixedCounts,
    acquires: &[(&Policy, &str, u32)],
    now: TimestampUs,
) -> (bool, Vec<u32>) {
    let acquires: Vec<MixedAcquire<'_>> = acquires
        .iter()
        .map(|(policy, name, cost)| MixedAcquire {
            policy,
            key: key(name),
            cost: Cost::take(*cost),
        })
        .collect();
    let mut verdicts = Vec::new();
    let is_admitted = counts.acquire_all(&acquires, now, &mut verdicts);
    (
        is_admitted,
        verdicts.iter().map(|verdict| verdict.remaining).collect(),
    )
}

fn takes(counts: &MixedCounts, policy: &Policy, name: &str, now: TimestampUs) -> bool {
    acquire_all(counts, &[(policy, name, 1)], now).0
}

#[test]
fn each_key_is_counted_by_its_own_policy() {
    let counts = MixedCounts::new(1_000);
    let (minute, bucket) = (fixed(2, 60), bucket(60, 3));
    for expected in [true, true, false] {
        assert_eq!(takes(&counts, &minute, "a", START), expected);
    }
    for expected in [true, true, true, false] {
        assert_eq!(takes(&counts, &bucket, "b", START), expected);
    }
    assert_eq!(counts.fill().keys, 2);
}

#[test]
fn if_one_limit_rejects_none_is_acquired() {
    let counts = MixedCounts::new(1_000);
    let (narrow, wide) = (fixed(1, 60), fixed(10, 3_600));
    let both = |cost| {
        let acquires = [(&wide, "wide", cost), (&narrow, "narrow", 1)];
        acquire_all(&counts, &acquires, START)
    };
    assert_eq!(both(4), (true, vec![6, 0]));
    assert_eq!(both(4), (false, vec![6, 0]));
    assert_eq!(
        acquire_all(&counts, &[(&wide, "wide", 0)], START),
        (true, vec![6])
    );
}

#[test]
fn a_key_listed_twice_is_acquired_twice_or_never() {
    let counts = MixedCounts::new(1_000);
    let three = fixed(3, 60);
    let twice = [(&three, "a", 1), (&three, "a", 1)];
    assert_eq!(acquire_all(&counts, &twice, START), (true, vec![2, 1]));
    assert!(!acquire_all(&counts, &twice, START).0);
    assert_eq!(
        acquire_all(&counts, &[(&three, "a", 1)], START),
        (true, vec![0])
    );
}

#[test]
fn a_changed_limit_keeps_what_was_spent() {
    let counts = MixedCounts::new(1_000);
    assert_eq!(
        acquire_all(&counts, &[(&fixed(10, 60), "a", 6)], START).1,
        [4]
    );
    assert_eq!(
        acquire_all(&counts, &[(&fixed(7, 60), "a", 1)], START).1,
        [0]
    );
    assert!(!takes(&counts, &fixed(7, 60), "a", START));
    assert!(takes(&counts, &bucket(10, 10), "b", START));
    assert_eq!(
        acquire_all(&counts, &[(&bucket(20, 20), "b", 1)], START).1,
        [8]
    );
}

#[test]
fn an_entry_is_evicted_after_its_own_window() {
    let counts = MixedCounts::new(1_000);
    assert!(takes(&counts, &fixed(2, 60), "minute", START));
    assert!(takes(&counts, &fixed(2, 3_600), "hour", START));
    counts.sweep(START + DurationUs::from_secs(61));
    assert_eq!(counts.fill().keys, 1);
    counts.sweep(START + DurationUs::from_secs(3_601));
    assert_eq!(counts.fill().keys, 0);
}

#[test]
fn a_peek_makes_no_entry() {
    let counts = MixedCounts::new(1_000);
    assert_eq!(
        acquire_all(&counts, &[(&fixed(2, 60), "a", 0)], START).1,
        [2]
    );
    assert_eq!(counts.fill().keys, 0);
}

#[test]
fn a_flood_resets_no_client_and_admits_none_more_often() {
    let counts = MixedCounts::new(64);
    let five = fixed(5, 3_600);
    for _ in 0..5 {
        assert!(takes(&counts, &five, "first", START));
    }
    for at in 0..10_000 {
        let (policy, name) = (fixed(1 + at % 7, 3_600), format!("{at}"));
        takes(&counts, &policy, &name, START);
    }
    assert!(counts.fill().keys <= 2 * SHARDS, "{:?}", counts.fill());
    assert!(counts.fill().overflows > 9_000);
    assert!(!takes(&counts, &five, "first", START));
    for at in 0..500 {
        let name = format!("late {at}");
        let admitted = (0..20).filter(|_| takes(&counts, &five, &name, START));
        assert!(admitted.count() <= 5);
    }
}

#[test]
fn a_slow_bucket_gains_nothing_from_a_fast_one() {
    let counts = MixedCounts::new(64);
    let hours = fixed(1, 86_400);
    for at in 0..10_000 {
        takes(&counts, &hours, &format!("{at}"), START);
    }
    // All of these share entries: 64 in each of 64 shards.
    let (slow, fast) = (bucket(1, 5), bucket(60_000, 60_000));
    let mut admitted = vec![0; 300];
    for second in 0..30 {
        let now = START + DurationUs::from_secs(second);
        for (at, admitted) in admitted.iter_mut().enumerate() {
            takes(&counts, &fast, &format!("fast {at}"), now);
            *admitted += u32::from(takes(&counts, &slow, &format!("slow {at}"), now));
        }
    }
    assert!(counts.fill().overflows > 15_000, "{:?}", counts.fill());
    assert!(
        admitted.iter().all(|admitted| *admitted <= 5),
        "{admitted:?}"
    );
    assert!(admitted.contains(&5));
}

#[test]
fn a_client_that_gets_an_entry_later_starts_from_its_overflow_entry() {
    let counts = MixedCounts::new(64);
    let (hour, day) = (fixed(3, 3_600), fixed(1, 86_400));
    for at in 0..40_000 {
        takes(&counts, &hour, &format!("{at}"), START);
        takes(&counts, &day, &format!("day {at}"), START);
    }
    let late = START + DurationUs::from_secs(3_599);
    assert!(!takes(&counts, &hour, "late", late));
    let next = START + DurationUs::from_secs(3_601);
    counts.sweep(next);
    assert!(takes(&counts, &hour, "late", next), "another window");
    assert!(takes(
        &counts,
        &Policy::Gcra(Gcra::new(rate(1, 60), 1).unwrap()),
        "late too",
        next
    ));
}
