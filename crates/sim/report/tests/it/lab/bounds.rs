//! Each algorithm's adversary reaches the bound, and never exceeds it.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::time::DurationUs;
use anteroom_report::lab::algorithm::{Settings, all};
use anteroom_report::lab::run::{Plan, StoreKind, run};
use anteroom_report::lab::traffic::{self, Demand, Traffic, adversary};
use proptest::prelude::*;

use crate::lab::common::{alone, plan, policy, settings};

/// Returns the adversary of one algorithm.
fn against(policy: &Policy) -> Traffic {
    let most = policy.window_cost_max(1);
    adversary(policy.rate(), most, 1, DurationUs::ZERO).expect("a small limit")
}

#[test]
fn each_adversary_reaches_its_bound_and_none_goes_beyond() {
    for (algorithm, most) in [
        (AlgorithmKind::FixedWindow, 200),
        (AlgorithmKind::SlidingWindow, 199),
        (AlgorithmKind::SubWindows, 199),
        (AlgorithmKind::SubWindowsStrict, 100),
        (AlgorithmKind::SlidingLog, 100),
        (AlgorithmKind::TokenBucket, 199),
        (AlgorithmKind::Gcra, 199),
        (AlgorithmKind::LeakyBucket, 100),
    ] {
        let policy = policy(algorithm);
        let stats = alone(policy, &against(&policy)).stats;
        assert_eq!(stats.highest, most, "{algorithm:?}");
        assert_eq!(policy.window_cost_max(1), most, "{algorithm:?}");
        // At least the excess over the limit was wrong.
        assert!(stats.wrongly_allowed >= most - 100, "{algorithm:?}");
        assert_eq!(stats.wrongly_allowed > 0, most > 100, "{algorithm:?}");
    }
}

/// Returns the most requests in any window for an adversary that knows the distance of the store.
fn highest_over(store: StoreKind, algorithm: AlgorithmKind, delay: DurationUs) -> u64 {
    const NODES: u32 = 3;
    let policy = policy(algorithm);
    let most = policy.window_cost_max(1);
    let way = delay.times(store.ways());
    let traffic = adversary(policy.rate(), most, NODES, way).expect("a small limit");
    let plan = Plan {
        delay,
        ..plan(policy, store, NODES)
    };
    run(&plan, &traffic).expect("it keeps all").stats.highest
}

#[test]
fn a_distant_store_does_not_cure_an_algorithm_that_overshoots() {
    for delay in [0, 2, 50].map(|ms| DurationUs(ms * 1_000)) {
        for (algorithm, most, lent) in [
            (AlgorithmKind::FixedWindow, 200, 200),
            (AlgorithmKind::SlidingWindow, 199, 180),
            (AlgorithmKind::SubWindows, 199, 135),
            (AlgorithmKind::SubWindowsStrict, 100, 100),
            (AlgorithmKind::SlidingLog, 100, 100),
            (AlgorithmKind::TokenBucket, 199, 190),
        ] {
            let highest = |store| highest_over(store, algorithm, delay);
            let case = format!("{algorithm:?} {delay:?}");
            assert_eq!(highest(StoreKind::Valkey), most, "{case}");
            if policy(algorithm).counters().is_some() {
                assert_eq!(highest(StoreKind::Memcached), most, "{case}");
            }
            // Leased requests count when they are leased and are used later, so most bounds are not
            // quite reached.
            let leases = highest(StoreKind::Leases);
            assert!((lent..=most).contains(&leases), "{case}: {leases}");
        }
    }
}

#[test]
fn finer_sub_windows_lower_the_number_of_mistakes_and_not_the_peak() {
    let with = |sub_windows| {
        let settings = Settings {
            sub_windows,
            ..settings()
        };
        let policy = settings.policy(AlgorithmKind::SubWindows).unwrap();
        alone(policy, &against(&policy)).stats
    };
    let (coarse, fine) = (with(1), with(60));
    assert_eq!((coarse.highest, fine.highest), (199, 199));
    assert!(fine.wrongly_rejected * 10 < coarse.wrongly_rejected);
}

#[test]
fn nodes_that_count_alone_allow_that_many_times_as_much() {
    let policy = policy(AlgorithmKind::FixedWindow);
    let traffic = adversary(policy.rate(), 200, 6, DurationUs::ZERO).unwrap();
    let stats = run(&plan(policy, StoreKind::Local, 6), &traffic)
        .unwrap()
        .stats;
    assert_eq!(stats.highest, 1_200);
    let most = StoreKind::Local.most_in_any_window(&policy, 6);
    assert_eq!(most, 1_200);
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let rate = (1u32..60, 1u64..20).prop_map(|(requests, secs)| {
        Rate::new(requests, DurationUs::from_secs(secs)).expect("the window is in range")
    });
    (
        rate,
        prop_oneof![Just(1u32), Just(4), Just(10)],
        1u32..80,
        0u32..10,
    )
        .prop_map(|(rate, sub_windows, burst, queue)| Settings {
            rate,
            sub_windows,
            burst: Some(burst),
            queue,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn no_algorithm_exceeds_its_bound_and_a_strict_one_never_errs(
        settings in any_settings(),
        seed in 0u64..1_000,
        times in 1u32..4,
        is_bursty in any::<bool>(),
    ) {
        let rate = settings.rate;
        let demand = Demand {
            rate: Rate::new(rate.requests() * times, rate.window()).expect("as wide as before"),
            length: rate.window().times(8),
            clients: 2,
            seed,
        };
        let make = if is_bursty { traffic::bursty } else { traffic::random };
        let traffic = make(&demand).expect("a few hundred requests");
        for algorithm in all() {
            let policy = settings.policy(algorithm).expect("the settings fit");
            let stats = alone(policy, &traffic).stats;
            let most = policy.window_cost_max(1);
            prop_assert!(stats.highest <= most, "{algorithm:?}: {} of {most}", stats.highest);
            let is_strict = most <= u64::from(rate.requests());
            prop_assert!(stats.wrongly_allowed == 0 || !is_strict, "{algorithm:?}");
            if algorithm == AlgorithmKind::SlidingLog {
                prop_assert_eq!(stats.wrongly_rejected, 0);
            }
        }
    }
}
