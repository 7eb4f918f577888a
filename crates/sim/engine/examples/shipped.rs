//! Prints a table of the shipped scenarios under `leases`, for `docs/explanation/nobody-waits.md`.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

use std::sync::Mutex;
use std::thread;

use anteroom_room::rules::AllocationKind;
use anteroom_sim::outcome::RunStatistics;
use anteroom_sim::run::run;
use anteroom_sim::scenario::shipped::{SHIPPED, Shipped};

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted =
        |shipped: &&Shipped| names.is_empty() || names.contains(&shipped.name.to_owned());
    let jobs: Vec<Shipped> = SHIPPED.iter().filter(is_wanted).copied().collect();
    let todo = Mutex::new(jobs.clone());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = todo.lock().ok().and_then(|mut todo| todo.pop());
            let Some(shipped) = next else { break };
            let scenario = shipped
                .scenario()
                .unwrap_or_else(|problems| panic!("{problems}"));
            let outcome = run(&scenario, 0, AllocationKind::Leases, &mut |_| {});
            if let Ok(mut done) = done.lock() {
                done.push((shipped.name, outcome));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    println!(
        "| scenario | first in line though free | queueing began at | fill | decision, p50, p99 | \
         inversion, p99 | most in a second | announced waits: right, early, late, unknown, risen | \
         violated invariants |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    let done = done.into_inner().unwrap_or_default();
    for shipped in jobs {
        let outcomes = done.iter().filter(|(name, _)| *name == shipped.name);
        for (name, outcome) in outcomes {
            println!(
                "| `{name}` | {} | {} |",
                row(&outcome.stats),
                outcome.violations.len()
            );
        }
    }
}

fn row(stats: &RunStatistics) -> String {
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    format!(
        "{:.3} % | {} | {} | {} ms, {} ms | {:.1} s | {} | {}",
        stats.queued_although_free_and_first * 100.0,
        percent(stats.utilization_at_first_queue),
        percent(stats.fill_while_overloaded),
        stats.added_latency_ms_p50,
        stats.added_latency_ms_p99,
        stats.order_inversion_ms_p99.unwrap_or(0) as f64 / 1_000.0,
        stats.admitted_in_a_second_max,
        stats.announced_waits.map_or_else(
            || "-".to_owned(),
            |waits| [
                waits.right,
                waits.early,
                waits.late,
                waits.unknown,
                waits.risen
            ]
            .map(|share| format!("{:.1}", share * 100.0))
            .join(", ")
        ),
    )
}
