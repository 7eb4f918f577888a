#![allow(clippy::print_stdout)]
use anteroom_sim::run::run;
use anteroom_sim::scenario::shipped::{SHIPPED, Shipped};
use std::sync::Mutex;
fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let all: Vec<Shipped> = SHIPPED
        .iter()
        .copied()
        .filter(|s| names.is_empty() || names.iter().any(|n| n == s.name))
        .collect();
    let todo = Mutex::new(all);
    println!(
        "{:26}{:>8}{:>6}{:>7}{:>6}{:>6}{:>8}{:>8}{:>6}{:>6}{:>8}{:>5}",
        "",
        "first%",
        "util",
        "fill%",
        "p50",
        "p99",
        "inv99",
        "invmax",
        "glob",
        "loc",
        "queued",
        "over"
    );
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(s) = todo.lock().unwrap().pop() else {
                        return;
                    };
                    let scenario = s.scenario().unwrap();
                    let o = run(
                        &scenario,
                        0,
                        anteroom_room::rules::AllocationKind::Leases,
                        &mut |_| {},
                    );
                    let t = &o.stats;
                    println!(
                        "{:26}{:8.3}{:6.2}{:7.1}{:6}{:6}{:8}{:8}{:6.1}{:6.1}{:8}{:5} viol {}",
                        s.name,
                        t.queued_although_free_and_first * 100.,
                        t.utilization_at_first_queue.unwrap_or(-1.),
                        t.fill_while_overloaded.unwrap_or(0.) * 100.,
                        t.added_latency_ms_p50,
                        t.added_latency_ms_p99,
                        t.order_inversion_ms_p99.unwrap_or(0),
                        t.order_inversion_ms_max.unwrap_or(0),
                        t.global_requests_per_data_center_and_second,
                        t.local_requests_per_node_and_second,
                        t.queued,
                        t.above_seats + t.above_rate,
                        o.violations.len()
                    );
                }
            });
        }
    });
}
