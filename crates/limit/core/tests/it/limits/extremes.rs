//! Extreme settings, states, times and costs: nothing overflows or panics. States come from stores
//! and are not trusted.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::counters::AddThenRead;
use anteroom_limit::fine::FineTimestamp;
use anteroom_limit::fixed_window::{self, FixedWindow};
use anteroom_limit::gcra::{self, Gcra};
use anteroom_limit::leaky_bucket::{self, LeakyBucket};
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::{self, Entry, SlidingLog};
use anteroom_limit::sliding_window::{self, SlidingWindow};
use anteroom_limit::sub_windows::{self, SubWindows};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::{self, TokenBucket};
use proptest::prelude::*;

/// Generates numbers close to overflows, and any others.
fn wild() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::from(u32::MAX)),
        (0u64..4).prop_map(|below| u64::MAX - below),
        (0u32..64).prop_map(|shift| 1 << shift),
        any::<u64>(),
    ]
}

fn wild_u32() -> impl Strategy<Value = u32> {
    wild().prop_map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn wild_costs() -> impl Strategy<Value = Cost> {
    prop_oneof![
        3 => wild_u32().prop_map(Cost::take),
        1 => wild_u32().prop_map(Cost::refund),
        1 => Just(Cost::Peek),
    ]
}

/// Generates all algorithms that accept these settings.
fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let window = prop_oneof![
        Just(1_000_000u64),
        Just(1_000_001),
        Just(366 * 86_400_000_000),
        1_000_000u64..366 * 86_400_000_000,
    ];
    let parts = prop_oneof![Just(1u32), 1u32..121];
    (wild_u32(), window, wild_u32(), wild_u32(), parts).prop_map(
        |(calls, window, burst, initial, parts)| {
            let rate = Rate::new(calls, DurationUs(window)).expect("the window is in range");
            let all = [
                SlidingLog::new(rate).map(Policy::SlidingLog),
                Ok(Policy::FixedWindow(FixedWindow::new(rate))),
                Ok(Policy::SlidingWindow(SlidingWindow::new(rate))),
                SubWindows::new(rate, parts).map(Policy::SubWindows),
                SubWindows::strict(rate, parts).map(Policy::SubWindows),
                TokenBucket::new(rate, burst, initial).map(Policy::TokenBucket),
                TokenBucket::new(rate, burst, burst).map(Policy::TokenBucket),
                Gcra::new(rate, burst).map(Policy::Gcra),
                Ok(Policy::LeakyBucket(LeakyBucket::new(rate, burst))),
            ];
            all.into_iter().flatten().collect()
        },
    )
}

fn states() -> impl Strategy<Value = Vec<State>> {
    let entries = prop::collection::vec((wild(), wild_u32()), 0..5);
    let counts = prop::collection::vec(wild_u32(), 0..130);
    (wild(), wild(), wild_u32(), wild_u32(), entries, counts).prop_map(
        |(at, part, count, other, entries, counts)| {
            let at = TimestampUs(at);
            let fine = FineTimestamp {
                micros: at,
                fraction: count,
            };
            let entries = entries.into_iter().map(|(at, requests)| Entry {
                at: TimestampUs(at),
                requests,
            });
            vec![
                State::New,
                State::SlidingLog(Box::new(sliding_log::State::from_entries(entries))),
                State::FixedWindow(fixed_window::State {
                    starts_at: at,
                    counts: [count],
                }),
                State::SlidingWindow(sliding_window::State {
                    starts_at: at,
                    counts: [count, other],
                }),
                State::SubWindows(sub_windows::State::from_counts(at, counts.into())),
                State::TokenBucket(token_bucket::State {
                    counted_at: at,
                    part,
                    tokens: count,
                    is_known: true,
                }),
                State::Gcra(gcra::State { free_at: fine }),
                State::LeakyBucket(leaky_bucket::State { free_at: fine }),
            ]
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_overflows_and_nothing_panics(
        policies in policies(),
        states in states(),
        steps in prop::collection::vec((wild(), wild_costs()), 1..6),
    ) {
        for policy in policies {
            for state in &states {
                let mut state = state.clone();
                for (now, cost) in &steps {
                    let now = TimestampUs(*now);
                    let before = state.clone();
                    let verdict = policy.step(&mut state, now, *cost);
                    policy.is_idle(&state, now);
                    if !verdict.is_allowed() {
                        prop_assert_eq!(before, state.clone());
                    }
                }
            }
            policy.window_cost_max(u32::MAX);
        }
    }

    #[test]
    fn any_counters_get_a_verdict(
        policies in policies(),
        times in (wild(), wild()),
        cost in wild_costs(),
        counts in prop::collection::vec(wild_u32(), 0..250),
    ) {
        let add_then_read = AddThenRead {
            added_at: TimestampUs(times.0),
            read_at: TimestampUs(times.1),
        };
        for counters in policies.iter().filter_map(Policy::counters) {
            let read = counters.to_read(add_then_read).len();
            prop_assert!(read <= 2 * counters.count());
            let _ = counters.decide(add_then_read, cost, &counts);
        }
    }

    #[test]
    fn settings_may_change_at_any_step(
        settings in prop::collection::vec(policies(), 1..6),
        starts_at in wild(),
        steps in prop::collection::vec((0u64..200_000_000, wild_costs()), 6),
    ) {
        for kind in 0..5 {
            let (mut state, mut now) = (State::default(), TimestampUs(starts_at));
            for (policies, (later, cost)) in settings.iter().zip(&steps) {
                now = now + DurationUs(*later);
                let policy = policies[kind % policies.len()];
                policy.step(&mut state, now, *cost);
            }
        }
    }
}
