//! Are clients counted alone, several limits as one, and floods without harm?

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use anteroom_limits::fixed_window::FixedWindow;
use anteroom_limits::gcra::Gcra;
use anteroom_limits::rate::Rate;
use anteroom_limits::time::MicroSpan;
use proptest::prelude::*;

use super::*;
use crate::key::KeyMaker;

const NOW: Micros = Micros(1_700_000_000_000_000);

fn a_minute(calls: u32) -> Policy {
    let rate = Rate::new(calls, MicroSpan::from_secs(60)).unwrap();
    Policy::FixedWindow(FixedWindow::new(rate))
}

fn client(name: &str) -> CallKey {
    KeyMaker::new([9; 16]).key([name.as_bytes()])
}

fn call(counts: &LocalCounts, policy: &Policy, name: &str) -> bool {
    counts
        .charge(policy, false, client(name), NOW, Cost::ONE)
        .is_admitted()
}

fn admitted(counts: &LocalCounts, policy: &Policy, name: &str) -> usize {
    (0..200).filter(|_| call(counts, policy, name)).count()
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
            crowded: 0
        }
    );
}

#[test]
fn threads_that_call_for_one_client_admit_no_more_than_its_limit() {
    let (counts, policy) = (LocalCounts::new(1_000), a_minute(1_000));
    let admitted = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    admitted.fetch_add(u32::from(call(&counts, &policy, "one")), Relaxed);
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 1_000);
}

/// Charges one client in both limits.
fn charge_both(
    [narrow, wide]: [&LocalCounts; 2],
    [few, many]: [&Policy; 2],
    name: &str,
) -> (bool, Vec<Verdict>) {
    let charge = |counts, policy| Charge {
        counts,
        policy,
        is_own: false,
        key: client(name),
        cost: Cost::ONE,
    };
    let mut verdicts = Vec::new();
    let is_admitted = charge_all(
        &[charge(wide, many), charge(narrow, few)],
        NOW,
        &mut verdicts,
    );
    (is_admitted, verdicts)
}

#[test]
fn a_call_that_one_limit_rejects_is_charged_by_none() {
    let [narrow, wide] = [1_000, 1_000].map(LocalCounts::new);
    let (few, many) = (a_minute(3), a_minute(10));
    let both = || charge_both([&narrow, &wide], [&few, &many], "a");
    for left in [9, 8, 7] {
        let (is_admitted, verdicts) = both();
        assert!(is_admitted);
        assert_eq!(verdicts[0].remaining, left);
    }
    for _ in 0..20 {
        let (is_admitted, verdicts) = both();
        assert!(!is_admitted);
        assert_eq!(
            verdicts
                .iter()
                .map(Verdict::is_admitted)
                .collect::<Vec<_>>(),
            [true, false]
        );
        // As it stands without this call.
        assert_eq!(verdicts[0].remaining, 7);
    }
    assert_eq!(admitted(&wide, &many, "a"), 7);
}

#[test]
fn one_client_that_stands_twice_in_a_call_is_charged_twice_or_not_at_all() {
    let (counts, policy) = (LocalCounts::new(1_000), a_minute(3));
    let charge = Charge {
        counts: &counts,
        policy: &policy,
        is_own: false,
        key: client("a"),
        cost: Cost::ONE,
    };
    let mut verdicts = Vec::new();
    assert!(charge_all(&[charge, charge], NOW, &mut verdicts));
    assert!(!charge_all(&[charge, charge], NOW, &mut verdicts));
    assert_eq!(admitted(&counts, &policy, "a"), 1);
}

#[test]
fn threads_that_charge_several_limits_neither_wait_for_ever_nor_charge_one_alone() {
    let [first, second] = [1_000, 1_000].map(LocalCounts::new);
    let (few, many) = (a_minute(500), a_minute(2_000));
    let both = AtomicU32::new(0);
    thread::scope(|scope| {
        for turned in [false, true, false, true] {
            let (first, second, few, many, both) = (&first, &second, &few, &many, &both);
            scope.spawn(move || {
                let mut charges = [(first, few), (second, many)].map(|(counts, policy)| Charge {
                    counts,
                    policy,
                    is_own: false,
                    key: client("a"),
                    cost: Cost::ONE,
                });
                if turned {
                    charges.reverse();
                }
                let mut verdicts = Vec::new();
                for _ in 0..500 {
                    let is_admitted = charge_all(&charges, NOW, &mut verdicts);
                    both.fetch_add(u32::from(is_admitted), Relaxed);
                }
            });
        }
    });
    assert_eq!(both.into_inner(), 500);
    assert_eq!(admitted(&first, &few, "a"), 0);
    let left = second.charge(&many, false, client("a"), NOW, Cost::Peek);
    assert_eq!(left.remaining, 1_500);
}

#[test]
fn a_flood_of_clients_does_not_let_one_that_is_over_its_limit_in() {
    let (counts, policy) = (LocalCounts::new(640), a_minute(5));
    let rate = Rate::new(5, MicroSpan::from_secs(60)).unwrap();
    let bucket = Policy::Gcra(Gcra::new(rate, 5).unwrap());
    for policy in [policy, bucket] {
        assert_eq!(admitted(&counts, &policy, "guilty"), 5);
        for stranger in 0..100_000 {
            call(&counts, &policy, &stranger.to_string());
        }
        let Fill { keys, crowded } = counts.fill();
        assert!(keys <= 640, "{keys}");
        assert!(crowded > 90_000, "{crowded}");
        assert_eq!(admitted(&counts, &policy, "guilty"), 0);
        // Later all may be forgotten.
        counts.sweep(&policy, NOW + MicroSpan::from_secs(180));
        assert_eq!(counts.fill().keys, 0);
    }
}

#[test]
fn settings_of_its_own_keep_what_a_client_was_charged() {
    let (counts, usual, own) = (LocalCounts::new(1_000), a_minute(5), a_minute(8));
    assert_eq!(admitted(&counts, &usual, "a"), 5);
    let with_own = || counts.charge(&own, true, client("a"), NOW, Cost::ONE);
    assert_eq!((0..20).filter(|_| with_own().is_admitted()).count(), 3);
    counts.forget_own();
    assert_eq!(admitted(&counts, &usual, "a"), 0);
    assert_eq!(admitted(&counts, &usual, "b"), 5);
    // And again: the eight are all that it may have.
    assert_eq!((0..20).filter(|_| with_own().is_admitted()).count(), 0);
}

#[test]
fn settings_of_its_own_hold_where_several_limits_are_charged() {
    let (counts, usual, own) = (LocalCounts::new(1_000), a_minute(2), a_minute(4));
    assert_eq!(admitted(&counts, &usual, "a"), 2);
    let charge = |policy, is_own, name| Charge {
        counts: &counts,
        policy,
        is_own,
        key: client(name),
        cost: Cost::ONE,
    };
    let charges = [charge(&own, true, "a"), charge(&usual, false, "b")];
    let mut verdicts = Vec::new();
    let went = (0..10)
        .filter(|_| charge_all(&charges, NOW, &mut verdicts))
        .count();
    assert_eq!(went, 2);
    assert_eq!(admitted(&counts, &usual, "b"), 0);
}

proptest! {
    /// Charging several limits is the same as charging each of them after having looked at all.
    #[test]
    fn several_limits_are_charged_as_one(
        limits in proptest::collection::vec(1_u32..6, 1..4),
        calls in proptest::collection::vec((0_usize..3, 1_u32..4, any::<bool>()), 0..60),
    ) {
        let policies: Vec<Policy> = limits.iter().map(|limit| a_minute(*limit)).collect();
        let counts: Vec<LocalCounts> = limits.iter().map(|_| LocalCounts::new(64)).collect();
        let names = ["a", "b", "c"];
        let mut spent = vec![[0_u32; 3]; limits.len()];
        let mut verdicts = Vec::new();
        for (name, cost, turned) in calls {
            let mut charges: Vec<Charge<'_>> = counts.iter().zip(&policies).map(|(counts, policy)| Charge {
                counts,
                policy,
                is_own: false,
                key: client(names[name]),
                cost: Cost::take(cost),
            }).collect();
            if turned {
                charges.reverse();
            }
            let fits = limits.iter().zip(&spent).all(|(limit, spent)| spent[name] + cost <= *limit);
            prop_assert_eq!(charge_all(&charges, NOW, &mut verdicts), fits);
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
