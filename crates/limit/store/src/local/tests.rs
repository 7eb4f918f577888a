//! Tests of counts in memory: clients are counted alone, several limits as one, and floods do no
//! harm.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::DurationUs;
use proptest::prelude::*;

use super::*;
use crate::key::KeyMaker;

const NOW: TimestampUs = TimestampUs(1_700_000_000_000_000);

fn a_minute(limit: u32) -> Policy {
    let rate = Rate::new(limit, DurationUs::from_secs(60)).unwrap();
    Policy::FixedWindow(FixedWindow::new(rate))
}

fn client(name: &str) -> ClientKey {
    KeyMaker::new([9; 16]).key([name.as_bytes()])
}

fn acquire<'c>(counts: &'c LocalCounts, policy: &'c Policy, name: &str) -> LocalAcquire<'c> {
    LocalAcquire {
        counts,
        policy,
        key: client(name),
        cost: Cost::ONE,
        delay_max: DurationUs::ZERO,
    }
}

fn is_admitted(counts: &LocalCounts, policy: &Policy, name: &str) -> bool {
    counts
        .acquire(&acquire(counts, policy, name), NOW)
        .is_allowed()
}

fn admitted(counts: &LocalCounts, policy: &Policy, name: &str) -> usize {
    (0..200)
        .filter(|_| is_admitted(counts, policy, name))
        .count()
}

#[test]
fn each_client_has_the_limit_for_itself() {
    let (counts, policy) = (LocalCounts::new(1_000), a_minute(5));
    for name in ["a", "b", "c"] {
        assert_eq!(admitted(&counts, &policy, name), 5);
    }
    assert_eq!(
        counts.fill(),
        Fill {
            keys: 3,
            overflows: 0
        }
    );
}

#[test]
fn concurrent_threads_admit_one_client_no_more_than_its_limit() {
    let (counts, policy) = (LocalCounts::new(1_000), a_minute(1_000));
    let admitted = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    admitted.fetch_add(u32::from(is_admitted(&counts, &policy, "one")), Relaxed);
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 1_000);
}

/// Acquires for one client from both limits.
fn acquire_both(
    [narrow, wide]: [&LocalCounts; 2],
    [few, many]: [&Policy; 2],
    name: &str,
) -> (bool, Vec<Verdict>) {
    let mut verdicts = Vec::new();
    let acquires = [acquire(wide, many, name), acquire(narrow, few, name)];
    let is_admitted = acquire_all(&acquires, NOW, &mut verdicts);
    (is_admitted, verdicts)
}

#[test]
fn a_request_that_one_limit_rejects_takes_from_none() {
    let [narrow, wide] = [1_000, 1_000].map(LocalCounts::new);
    let (few, many) = (a_minute(3), a_minute(10));
    let both = || acquire_both([&narrow, &wide], [&few, &many], "a");
    for left in [9, 8, 7] {
        let (is_admitted, verdicts) = both();
        assert!(is_admitted);
        assert_eq!(verdicts[0].remaining, left);
    }
    for _ in 0..20 {
        let (is_admitted, verdicts) = both();
        assert!(!is_admitted);
        assert_eq!(
            verdicts.iter().map(Verdict::is_allowed).collect::<Vec<_>>(),
            [true, false]
        );
        // The state without this request.
        assert_eq!(verdicts[0].remaining, 7);
    }
    assert_eq!(admitted(&wide, &many, "a"), 7);
}

#[test]
fn a_client_listed_twice_is_acquired_twice_or_never() {
    let (counts, policy) = (LocalCounts::new(1_000), a_minute(3));
    let acquire = acquire(&counts, &policy, "a");
    let mut verdicts = Vec::new();
    assert!(acquire_all(&[acquire, acquire], NOW, &mut verdicts));
    assert!(!acquire_all(&[acquire, acquire], NOW, &mut verdicts));
    assert_eq!(admitted(&counts, &policy, "a"), 1);
}

#[test]
fn threads_acquiring_several_limits_neither_deadlock_nor_acquire_partly() {
    let [first, second] = [1_000, 1_000].map(LocalCounts::new);
    let (few, many) = (a_minute(500), a_minute(2_000));
    let both = AtomicU32::new(0);
    thread::scope(|scope| {
        for turned in [false, true, false, true] {
            let (first, second, few, many, both) = (&first, &second, &few, &many, &both);
            scope.spawn(move || {
                let mut acquires = [(first, few), (second, many)]
                    .map(|(counts, policy)| acquire(counts, policy, "a"));
                if turned {
                    acquires.reverse();
                }
                let mut verdicts = Vec::new();
                for _ in 0..500 {
                    let is_admitted = acquire_all(&acquires, NOW, &mut verdicts);
                    both.fetch_add(u32::from(is_admitted), Relaxed);
                }
            });
        }
    });
    assert_eq!(both.into_inner(), 500);
    assert_eq!(admitted(&first, &few, "a"), 0);
    let cost = Cost::Peek;
    let left = second.acquire(
        &LocalAcquire {
            cost,
            ..acquire(&second, &many, "a")
        },
        NOW,
    );
    assert_eq!(left.remaining, 1_500);
}

#[test]
fn a_flood_of_clients_resets_no_client_over_the_limit() {
    let rate = Rate::new(5, DurationUs::from_secs(60)).unwrap();
    let bucket = Policy::Gcra(Gcra::new(rate, 5).unwrap());
    for policy in [a_minute(5), bucket] {
        let counts = LocalCounts::new(640);
        assert_eq!(admitted(&counts, &policy, "guilty"), 5);
        for stranger in 0..100_000 {
            is_admitted(&counts, &policy, &stranger.to_string());
        }
        let Fill { keys, overflows } = counts.fill();
        assert!(keys <= 640, "{keys}");
        assert!(overflows > 90_000, "{overflows}");
        assert_eq!(admitted(&counts, &policy, "guilty"), 0);
        // By then all are idle.
        counts.sweep(&policy, NOW + DurationUs::from_secs(180));
        assert_eq!(counts.fill().keys, 0);
    }
}

fn own_policies(clients: &[(&str, Policy)]) -> HashMap<ClientKey, Policy> {
    let keyed = |(name, policy): &(&str, Policy)| (client(name), *policy);
    clients.iter().map(keyed).collect()
}

#[test]
fn a_policy_of_its_own_keeps_what_a_client_spent() {
    let (counts, usual) = (LocalCounts::new(1_000), a_minute(5));
    assert_eq!(admitted(&counts, &usual, "a"), 5);
    counts.set_own(&own_policies(&[("a", a_minute(8))]));
    let known = counts.own_policy(client("a"));
    assert_eq!(known.map(|policy| policy.rate().requests()), Some(8));
    assert_eq!(counts.own_policy(client("b")), None);
    assert_eq!(admitted(&counts, &usual, "a"), 3);
    // It stays the same client when its policy is set again or changed.
    counts.set_own(&own_policies(&[("a", a_minute(8)), ("c", a_minute(1))]));
    assert_eq!(admitted(&counts, &usual, "a"), 0);
    counts.set_own(&own_policies(&[("a", a_minute(9))]));
    assert_eq!(admitted(&counts, &usual, "a"), 1);
    counts.set_own(&HashMap::new());
    assert_eq!(admitted(&counts, &usual, "a"), 0);
    assert_eq!(admitted(&counts, &usual, "b"), 5);
    counts.set_own(&own_policies(&[("a", a_minute(9))]));
    assert_eq!(admitted(&counts, &usual, "a"), 0);
}

#[test]
fn a_client_with_its_own_policy_is_not_evicted() {
    let day = Rate::new(10, DurationUs::from_secs(86_400)).unwrap();
    let day = Policy::FixedWindow(FixedWindow::new(day));
    let (counts, usual) = (LocalCounts::new(1_000), a_minute(5));
    counts.set_own(&own_policies(&[("a", day)]));
    assert_eq!(admitted(&counts, &usual, "a"), 10);
    let later = NOW + DurationUs::from_secs(600);
    counts.sweep(&usual, later);
    counts.set_own(&own_policies(&[("a", day)]));
    counts.sweep(&usual, later);
    let verdict = counts.acquire(&acquire(&counts, &usual, "a"), later);
    assert!(!verdict.is_allowed());
}

#[test]
fn setting_a_policy_changes_nothing_for_clients_of_the_same_overflow_entry() {
    let (counts, usual) = (LocalCounts::new(64), a_minute(5));
    for stranger in 0..2_000 {
        admitted(&counts, &usual, &stranger.to_string());
    }
    let before = counts.fill().keys;
    counts.set_own(&own_policies(&[("a", a_minute(500))]));
    admitted(&counts, &usual, "a");
    counts.set_own(&HashMap::new());
    assert_eq!(counts.fill().keys, before + 1);
    for stranger in 0..2_000 {
        assert_eq!(admitted(&counts, &usual, &stranger.to_string()), 0);
    }
}

#[test]
fn a_policy_of_its_own_holds_with_several_limits() {
    let (counts, usual) = (LocalCounts::new(1_000), a_minute(5));
    assert_eq!(admitted(&counts, &usual, "a"), 5);
    counts.set_own(&own_policies(&[("a", a_minute(7))]));
    let acquires = [acquire(&counts, &usual, "a"), acquire(&counts, &usual, "b")];
    let mut verdicts = Vec::new();
    let admitted_both = (0..10).filter(|_| acquire_all(&acquires, NOW, &mut verdicts));
    assert_eq!(admitted_both.count(), 2);
    assert_eq!(admitted(&counts, &usual, "b"), 3);
}

#[test]
fn threads_lose_no_acquisition_while_policies_change() {
    let (counts, usual) = (LocalCounts::new(1_000), a_minute(1_000));
    let admitted = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    admitted.fetch_add(u32::from(is_admitted(&counts, &usual, "a")), Relaxed);
                }
            });
        }
        scope.spawn(|| {
            for round in 0..200 {
                let clients = own_policies(&[("a", a_minute(1_000)), ("b", a_minute(1))]);
                let clients = if round % 2 == 0 {
                    clients
                } else {
                    HashMap::new()
                };
                counts.set_own(&clients);
            }
        });
    });
    assert_eq!(admitted.into_inner(), 1_000);
}

#[test]
fn a_request_delayed_too_long_is_rejected_at_no_cost() {
    let rate = Rate::new(60, DurationUs::from_secs(60)).unwrap();
    let smooth = Policy::LeakyBucket(LeakyBucket::new(rate, 10));
    let (counts, wide) = (LocalCounts::new(1_000), LocalCounts::new(1_000));
    let many = a_minute(100);
    let delay_max = DurationUs::from_secs(3);
    let delayed = LocalAcquire {
        delay_max,
        ..acquire(&counts, &smooth, "a")
    };
    let outcomes: Vec<_> = (0..6)
        .map(|_| counts.acquire(&delayed, NOW).outcome)
        .collect();
    let admit = |seconds| Outcome::Allow {
        delay: DurationUs::from_secs(seconds),
    };
    let reject = Outcome::Reject {
        retry_after: Some(DurationUs::from_secs(1)),
    };
    assert_eq!(
        outcomes,
        [admit(0), admit(1), admit(2), admit(3), reject, reject]
    );
    let mut verdicts = Vec::new();
    assert!(!acquire_all(
        &[acquire(&wide, &many, "a"), delayed],
        NOW,
        &mut verdicts
    ));
    assert_eq!(verdicts[0].remaining, 100);
    let later = NOW + DurationUs::from_secs(1);
    assert_eq!(counts.acquire(&delayed, later).outcome, admit(3));
}

#[test]
fn the_table_can_be_enlarged_later() {
    let (counts, policy) = (LocalCounts::new(64), a_minute(5));
    for stranger in 0..1_000 {
        admitted(&counts, &policy, &stranger.to_string());
    }
    let full = counts.fill().keys;
    assert!(full <= 64);
    counts.set_keys_max(64_000);
    for stranger in 0..1_000 {
        assert_eq!(admitted(&counts, &policy, &stranger.to_string()), 0);
    }
    assert!(counts.fill().keys > 900);
}

proptest! {
    /// Acquiring from several limits equals acquiring from each after peeking at all.
    #[test]
    fn several_limits_are_acquired_as_one(
        limits in proptest::collection::vec(1_u32..6, 1..4),
        requests in proptest::collection::vec((0_usize..3, 1_u32..4, any::<bool>()), 0..60),
    ) {
        let policies: Vec<Policy> = limits.iter().map(|limit| a_minute(*limit)).collect();
        let counts: Vec<LocalCounts> = limits.iter().map(|_| LocalCounts::new(64)).collect();
        let names = ["a", "b", "c"];
        let mut spent = vec![[0_u32; 3]; limits.len()];
        let mut verdicts = Vec::new();
        for (name, cost, turned) in requests {
            let counts_by = counts.iter().zip(&policies);
            let acquires = counts_by.map(|(counts, policy)| LocalAcquire {
                cost: Cost::take(cost),
                ..acquire(counts, policy, names[name])
            });
            let mut acquires: Vec<LocalAcquire<'_>> = acquires.collect();
            if turned {
                acquires.reverse();
            }
            let fits = limits.iter().zip(&spent).all(|(limit, spent)| spent[name] + cost <= *limit);
            prop_assert_eq!(acquire_all(&acquires, NOW, &mut verdicts), fits);
            if fits {
                spent.iter_mut().for_each(|spent| spent[name] += cost);
            }
            if turned {
                verdicts.reverse();
            }
            for ((limit, spent), verdict) in limits.iter().zip(&spent).zip(&verdicts) {
                prop_assert_eq!(verdict.remaining, limit - spent[name]);
            }
        }
    }
}
