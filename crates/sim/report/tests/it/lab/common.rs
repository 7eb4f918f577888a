//! Limits, plans and traffic that several files need.

use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_report::lab::algorithm::Settings;
use anteroom_report::lab::outcome::{Decision, Fate, Outcome};
use anteroom_report::lab::routing::Routing;
use anteroom_report::lab::run::{INTERVAL, Plan, StoreKind, run};
use anteroom_report::lab::traffic::{BEGIN, Request, Traffic};

pub(crate) const MINUTE: DurationUs = DurationUs::from_secs(60);

/// Returns the article's limit: 100 requests a minute, four sub-windows of 15 seconds and a part of
/// a fifth.
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

/// Runs one node that counts alone.
pub(crate) fn alone(policy: Policy, traffic: &Traffic) -> Outcome {
    run(&plan(policy, StoreKind::Local, 1), traffic).expect("one node can keep all")
}

/// Returns a moment of the morning of generated traffic, `07:10:23`.
pub(crate) fn clock(time: &str) -> TimestampUs {
    let secs = time.split(':').fold(0, |sum, part| {
        sum * 60 + part.parse::<u64>().expect("it is a time of day")
    });
    BEGIN - DurationUs::from_secs(7 * 3_600) + DurationUs::from_secs(secs)
}

/// Returns so many requests at each of these moments.
pub(crate) fn requests_at(at: &[(&str, u64)]) -> Traffic {
    let mut requests = Vec::new();
    for (time, count) in at {
        let request = Request {
            at: clock(time),
            client: 0,
        };
        requests.extend((0..*count).map(|_| request));
    }
    Traffic::new(String::new(), requests)
}

/// Counts allowed requests in a range of time.
pub(crate) fn admitted_in(decisions: &[Decision], from: TimestampUs, to: TimestampUs) -> usize {
    let is_in = |one: &&Decision| one.at >= from && one.at < to && one.fate == Fate::Admitted;
    decisions.iter().filter(is_in).count()
}
