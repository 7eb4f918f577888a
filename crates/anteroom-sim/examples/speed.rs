//! How fast is the simulator? Events per second of one run; a tool for whoever works on it.
//!
//! `speed DATA_CENTERS NODES VISITORS MINUTES`, with so many nodes in each data center.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

use std::process::ExitCode;

use anteroom_core::rules::{AllocationKind, Limits, Rules};
use anteroom_core::time::{Millis, Span};
use anteroom_sim::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, RatePoint, RoomPlan, Scenario,
};
use anteroom_sim::{outcome::Outcome, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| {
        let word = words.get(at).and_then(|word| word.parse().ok());
        word.unwrap_or(default)
    };
    let scenario = large(
        number(0, 300),
        number(1, 10),
        number(2, 1_000_000),
        number(3, 10),
    );
    let (outcome, secs) = timed(&scenario);
    let figures = &outcome.figures;
    let events = figures.events as f64;
    println!(
        "{} events in {secs:.1} s: {:.0} a second",
        figures.events,
        events / secs
    );
    println!("{figures:?}");
    println!("violations: {:?}", outcome.violations.first());
    ExitCode::SUCCESS
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures the simulator, not what is simulated"
)]
fn timed(scenario: &Scenario) -> (Outcome, f64) {
    let before = std::time::Instant::now();
    let outcome = run(scenario, 0, AllocationKind::Leases, &mut |_| {});
    (outcome, before.elapsed().as_secs_f64())
}

/// Many visitors at many nodes; somewhat more come than may.
fn large(data_centers: u32, nodes: u32, visitors: u32, minutes: u32) -> Scenario {
    let length = Span::from_secs(u64::from(minutes) * 60);
    let per_second = f64::from(visitors) / f64::from(minutes) / 60.0;
    let ms = |from, to| Delay {
        from: Span(from),
        to: Span(to),
    };
    let per_minute = visitors / minutes;
    let point = |at| RatePoint { at, per_second };
    Scenario {
        name: "large".to_owned(),
        about: String::new(),
        seed: 1,
        starts_at: Millis(1_694_432_754_000),
        length,
        sample_every: Span::from_secs(60),
        world_lease: anteroom_core::ledger::LendingTerms::WORLD.ttl,
        compare: vec![AllocationKind::Leases],
        rooms: vec![RoomPlan {
            name: "shop".to_owned(),
            rules: Rules {
                limits: Limits {
                    total_active_users: per_minute * 4,
                    new_users_per_minute: per_minute * 9 / 10,
                },
                session_duration: Span::from_secs(300),
                ..Rules::default()
            },
            arrivals: vec![Arrivals {
                data_center: None,
                points: vec![point(Span::ZERO), point(length)],
            }],
            behaviour: Behaviour {
                pages: 5.0,
                think_time: Span::from_secs(20),
                parallel_requests: 2,
                second_tab: 0.0,
                patience: Some(Span::from_secs(600)),
                no_shows: 0.0,
                changes_node: 0.0,
                changes_data_center: 0.0,
                without_cookies: 0.0,
                log_out: 0.0,
                replays: 0.0,
            },
        }],
        data_centers: (0..data_centers)
            .map(|index| DataCenterPlan {
                name: format!("dc{index}"),
                nodes,
                share: 1.0,
                to_store: ms(1, 2),
                to_world: ms(20, 40),
            })
            .collect(),
        faults: Vec::new(),
    }
}
