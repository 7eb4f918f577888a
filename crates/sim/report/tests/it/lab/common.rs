//! Limits, plans and traffic that several files need.

use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_report::lab::algorithm::Settings;
use anteroom_report::lab::outcome::{Decision, Fate, Outcome};
use anteroom_report::lab::routing::Routing;
use anteroom_report::lab::run::{INTERVAL, Plan, StoreKind, run};
use anteroom_report::lab::traffic::{BEGIN, Call, Traffic};

pub(crate) const MINUTE: DurationUs = DurationUs::from_secs(60);

/// The article's limit: 100 calls a minute, four sub-windows of 15 seconds and a part of a fifth.
pub(crate) fn settings() -> Settings {
    Settings {
        rate: Rate::new(100, MINUTE).expect("a minute is in range"),
        sub_windows: 4,
        burst: None,
        queue: 0,
    }
}

pub(crate) fn policy(algorithm: AlgorithmKind) -> Policy {
    settings().policy(algorithm).expect("the settings fit")
}

pub(crate) fn plan(policy: Policy, store: StoreKind, nodes: u32) -> Plan {
    Plan {
        policy,
        store,
        nodes,
        routing: Routing::Spread(Vec::new()),
        delay: DurationUs(2_000),
        interval: INTERVAL,
        events_per_second: 10_000,
        seed: 1,
    }
}

/// One node that counts by itself.
pub(crate) fn alone(policy: Policy, traffic: &Traffic) -> Outcome {
    run(&plan(policy, StoreKind::Local, 1), traffic).expect("one node can keep all")
}

/// A moment of the morning of made-up traffic, `07:10:23`.
pub(crate) fn clock(time: &str) -> TimestampUs {
    let secs = time.split(':').fold(0, |sum, part| {
        sum * 60 + part.parse::<u64>().expect("it is a time of day")
    });
    BEGIN - DurationUs::from_secs(7 * 3_600) + DurationUs::from_secs(secs)
}

/// So many calls at each of these moments.
pub(crate) fn calls(at: &[(&str, u64)]) -> Traffic {
    let mut calls = Vec::new();
    for (time, count) in at {
        let call = Call {
            at: clock(time),
            client: 0,
        };
        calls.extend((0..*count).map(|_| call));
    }
    Traffic::new(String::new(), calls)
}

/// How many calls were admitted from one moment on, before another.
pub(crate) fn admitted_in(decisions: &[Decision], from: TimestampUs, to: TimestampUs) -> usize {
    let is_in = |one: &&Decision| one.at >= from && one.at < to && one.fate == Fate::Admitted;
    decisions.iter().filter(is_in).count()
}
