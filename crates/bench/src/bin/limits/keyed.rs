//! Limits per client name, counted in this process.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::KeyMaker;
use anteroom_limit_store::local::{LocalAcquire, LocalCounts};
use governor::{DefaultKeyedRateLimiter, Quota};
use limitador::RateLimiter;
use limitador::limit::{Context, Limit};
use tokio::time::Instant;

use crate::Options;
use crate::race::{self, Race, Runner};

const CLIENTS: usize = 100_000;
const CHECKS: u64 = 2_000_000;
const TARGET: &str = "at most 1.00 x governor";

/// Clients that send requests in an order that no cache predicts.
pub(crate) struct Names {
    names: Vec<String>,
    at: usize,
}

impl Names {
    pub(crate) fn of(clients: usize) -> Self {
        let names = (0..clients).map(|client| format!("api-key-{client:012}"));
        Self {
            names: names.collect(),
            at: 0,
        }
    }

    fn next(&mut self) -> &String {
        // A step that is coprime to the number of clients reaches all of them.
        self.at = (self.at + 61_803) % self.names.len();
        &self.names[self.at]
    }
}

/// Anteroom's counts, used as the gateway does: by a digest of the name, and reading the time for
/// each check.
pub(crate) struct Ours {
    counts: LocalCounts,
    keys: KeyMaker,
    policy: Policy,
    began: Instant,
}

impl Ours {
    pub(crate) fn by(policy: Policy) -> Self {
        Self {
            counts: LocalCounts::new(2 * CLIENTS),
            keys: KeyMaker::new([7; 16]),
            policy,
            began: Instant::now(),
        }
    }

    pub(crate) fn check(&self, name: &str) -> bool {
        let elapsed = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let acquire = LocalAcquire {
            counts: &self.counts,
            policy: &self.policy,
            key: self.keys.key([name.as_bytes()]),
            cost: Cost::ONE,
            delay_max: DurationUs::ZERO,
        };
        let now = TimestampUs(1_700_000_000_000_000 + elapsed);
        self.counts.acquire(&acquire, now).is_allowed()
    }
}

fn rate(requests: u32) -> Rate {
    Rate::new(requests, DurationUs::from_secs(3_600)).expect("an hour is a window")
}

pub(crate) fn gcra(requests: u32) -> Policy {
    Policy::Gcra(Gcra::new(rate(requests), requests).expect("a burst above zero"))
}

fn strict(requests: u32) -> Policy {
    Policy::SubWindows(SubWindows::strict(rate(requests), 10).expect("even parts"))
}

fn governor(requests: u32) -> DefaultKeyedRateLimiter<String> {
    let requests = NonZeroU32::new(requests).expect("above zero");
    let period = Duration::from_secs(3_600) / requests.get();
    let quota = Quota::with_period(period)
        .expect("above zero")
        .allow_burst(requests);
    DefaultKeyedRateLimiter::keyed(quota)
}

fn limitador(requests: u32) -> RateLimiter {
    let limiter = RateLimiter::new(4 * CLIENTS as u64);
    let variables = vec!["key".try_into().expect("an expression")];
    limiter.add_limit(Limit::new(
        "api",
        u64::from(requests),
        3_600,
        vec![],
        variables,
    ));
    limiter
}

fn check_limitador(limiter: &RateLimiter, name: &str) -> bool {
    let values = HashMap::from([("key".to_owned(), name.to_owned())]);
    let context = Context::from(values);
    let checked = limiter.check_rate_limited_and_update(&"api".into(), &context, 1);
    !checked.expect("it is in memory").limited
}

/// Measures clients that never reach their limit.
pub(crate) fn many(name: &str, options: &Options) -> anyhow::Result<Race> {
    Ok(keyed(name, options, 1_000_000, true))
}

/// Measures clients that are always over their limit.
pub(crate) fn many_over(name: &str, options: &Options) -> anyhow::Result<Race> {
    Ok(keyed(name, options, 1, false))
}

fn keyed(name: &str, options: &Options, requests: u32, expected: bool) -> Race {
    let (governor, limitador) = (governor(requests), limitador(requests));
    let (ours, ours_strict) = (Ours::by(gcra(requests)), Ours::by(strict(requests)));
    let all = Names::of(CLIENTS);
    for client in &all.names {
        // One check makes all of them known; clients with a limit of one are over it then.
        assert!(ours.check(client) && ours_strict.check(client));
        assert!(governor.check_key(client).is_ok() && check_limitador(&limitador, client));
    }
    let each = |check: Box<dyn Fn(&String) -> bool>| {
        let mut names = Names::of(CLIENTS);
        let run = move |checks: u64| {
            for _ in 0..checks {
                assert_eq!(check(names.next()), expected);
            }
        };
        Box::new(run) as Box<dyn FnMut(u64)>
    };
    let runners: Vec<Runner<'_>> = vec![
        (
            "governor 0.10 (gcra)",
            each(Box::new(move |name| governor.check_key(name).is_ok())),
        ),
        (
            "anteroom, gcra",
            each(Box::new(move |name| ours.check(name))),
        ),
        (
            "anteroom, sub-windows-strict (10)",
            each(Box::new(move |name| ours_strict.check(name))),
        ),
        (
            "limitador 0.14 (fixed window)",
            each(Box::new(move |name| check_limitador(&limitador, name))),
        ),
    ];
    race::run(name, options, CHECKS, TARGET, runners)
}

/// Measures one client that two threads check.
pub(crate) fn hot(name: &str, options: &Options) -> anyhow::Result<Race> {
    let client = "api-key-7".to_owned();
    let both = |check: Box<dyn Fn() -> bool + Send + Sync>| {
        let check = Arc::new(check);
        let run = move |checks: u64| {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let check = Arc::clone(&check);
                    scope.spawn(move || {
                        for _ in 0..checks / 2 {
                            assert!(check());
                        }
                    });
                }
            });
        };
        Box::new(run) as Box<dyn FnMut(u64)>
    };
    let requests = u32::MAX;
    let (governor, limitador, ours) = (
        governor(1_000_000_000),
        limitador(requests),
        Ours::by(gcra(requests)),
    );
    let names = [client.clone(), client.clone(), client];
    let [one, two, three] = names;
    let runners: Vec<Runner<'_>> = vec![
        (
            "governor 0.10 (gcra)",
            both(Box::new(move || governor.check_key(&one).is_ok())),
        ),
        ("anteroom, gcra", both(Box::new(move || ours.check(&two)))),
        (
            "limitador 0.14 (fixed window)",
            both(Box::new(move || check_limitador(&limitador, &three))),
        ),
    ];
    Ok(race::run(name, options, CHECKS, TARGET, runners))
}
