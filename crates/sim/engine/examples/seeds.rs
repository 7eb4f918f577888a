//! Runs many seeds of small deployments full of faults, or replays one of them. `cargo xtask sim`
//! runs it.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

use std::collections::BTreeMap;
use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anteroom_sim::outcome::Invariant;
use anteroom_sim::run::{ComebackKind, ComebackPlace};
use anteroom_sim::seeds::coverage::Coverage;
use anteroom_sim::seeds::{self, SeedRun};
use clap::Parser;

/// Look for an order of events that breaks an invariant.
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Options {
    /// Number of seeds to run.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Replay this seed and print what happened.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of trace lines to print.
    #[arg(long, default_value_t = 60)]
    lines: usize,
    /// Number of failed seeds to print.
    #[arg(long, default_value_t = 10)]
    show: usize,
    /// Number of seeds that run at the same time.
    #[arg(long)]
    threads: Option<usize>,
    /// Stop at the first failed seed and print one line for a program to read.
    #[arg(long)]
    first: bool,
}

/// Number of pairs of faults to print.
const RAREST: usize = 10;

/// Totals over all seeds.
#[derive(Default)]
struct Sum {
    done: u64,
    steps: u64,
    admitted: u64,
    recovered: u64,
    digest: u64,
    broken: BTreeMap<u64, SeedRun>,
    coverage: Coverage,
    /// Times in milliseconds from the return of a store until its ledger was open.
    closed_ms: BTreeMap<(ComebackPlace, ComebackKind), Vec<u64>>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(seed) = options.seed {
        println!("{}", seeds::explain(seed, options.lines));
        return exit_code(seeds::run(seed).violation.is_none());
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or(cores);
    if options.first {
        let broken = first_broken(&options, threads);
        match &broken {
            Some((seed, checker)) => println!("broken: seed {seed} {checker}"),
            None => println!("kept: {} seeds", options.seeds),
        }
        return exit_code(broken.is_none());
    }
    let sum = run(&options, threads);
    println!(
        "{} seeds, {} steps, {} visitors admitted, {} seeds recovered, fingerprint {:016x}",
        options.seeds, sum.steps, sum.admitted, sum.recovered, sum.digest
    );
    print_coverage(&sum.coverage);
    print_reopenings(&sum.closed_ms);
    let mut by_invariant: BTreeMap<Invariant, u64> = BTreeMap::new();
    for run in sum.broken.values() {
        if let Some(violation) = &run.violation {
            *by_invariant.entry(violation.promise).or_insert(0) += 1;
        }
    }
    for (invariant, count) in by_invariant {
        println!("{invariant:?} violated in {count} seeds");
    }
    let Some((&first, _)) = sum.broken.first_key_value() else {
        println!("no invariant was violated");
        return exit_code(true);
    };
    for (seed, run) in sum.broken.iter().take(options.show) {
        if let Some(violation) = &run.violation {
            println!("seed {seed}: {:?}: {}", violation.promise, violation.seen);
        }
    }
    println!("replay with: cargo xtask sim --seed {first}\n");
    println!("{}", seeds::explain(first, options.lines));
    exit_code(false)
}

/// Prints how many seeds met each fault, and which pairs of faults were active together least
/// often.
fn print_coverage(coverage: &Coverage) {
    println!("\nseeds with each fault before their end:");
    for (name, seeds) in &coverage.seeds {
        println!("{seeds:>8}  {name}");
    }
    let names: Vec<_> = coverage.seeds.keys().copied().collect();
    let mut pairs = Vec::new();
    for (index, &one) in names.iter().enumerate() {
        for &other in &names[index..] {
            let seeds = coverage.at_once.get(&(one, other)).copied().unwrap_or(0);
            pairs.push((seeds, one, other));
        }
    }
    pairs.sort_unstable();
    let never = pairs.iter().filter(|(seeds, ..)| *seeds == 0).count();
    println!(
        "\n{} of {} pairs of faults were under way at the same time; the rarest:",
        pairs.len() - never,
        pairs.len()
    );
    for (seeds, one, other) in pairs.iter().take(RAREST) {
        println!("{seeds:>8}  {one}, {other}");
    }
    println!();
}

/// Prints how long ledgers were closed after their stores came back with their data.
fn print_reopenings(closed_ms: &BTreeMap<(ComebackPlace, ComebackKind), Vec<u64>>) {
    println!("closed after a store came back:");
    for ((place, kind), times) in closed_ms {
        let mut times = times.clone();
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100] as f64 / 1_000.0;
        println!(
            "{:>8}  {place:?}, {kind:?}: p50 {:.1} s, p90 {:.1} s, longest {:.1} s",
            times.len(),
            at(50),
            at(90),
            at(100)
        );
    }
    println!();
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the first seed that breaks an invariant, and which. A panic is an assertion that failed.
fn first_broken(options: &Options, threads: usize) -> Option<(u64, String)> {
    let next = AtomicU64::new(options.from);
    let end = options.from.saturating_add(options.seeds);
    let first = Mutex::new(None);
    // Threads take seeds in order: when one fails, all before it are done or running.
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let broken = match panic::catch_unwind(|| seeds::run(seed)) {
                        Ok(run) => run.violation.map(|found| format!("{:?}", found.promise)),
                        Err(_) => Some("Assertion".to_owned()),
                    };
                    let Some(checker) = broken else { continue };
                    is_over.store(true, Ordering::Relaxed);
                    let mut first = first.lock().expect("no thread panics with it");
                    if first.as_ref().is_none_or(|(earlier, _)| seed < *earlier) {
                        *first = Some((seed, checker));
                    }
                }
            });
        }
    });
    first.into_inner().expect("no thread panics with it")
}

fn run(options: &Options, threads: usize) -> Sum {
    let next = AtomicU64::new(options.from);
    let end = options.from.saturating_add(options.seeds);
    let sum = Mutex::new(Sum::default());
    // Every few seconds, and twenty times at most.
    let report_every = (options.seeds / 20).max(500);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let (scenario, run) = (seeds::scenario(seed), seeds::run(seed));
                    let mut sum = sum.lock().expect("no thread panics with it");
                    sum.steps += run.steps;
                    sum.admitted += run.admitted;
                    sum.recovered += u64::from(run.has_recovered);
                    // Independent of the order in which seeds end.
                    sum.digest = sum.digest.wrapping_add(run.digest);
                    sum.coverage.note(&scenario, run.elapsed);
                    for reopening in &run.reopenings {
                        let key = (reopening.place, reopening.kind);
                        sum.closed_ms.entry(key).or_default().push(reopening.took.0);
                    }
                    if run.violation.is_some() {
                        sum.broken.insert(seed, run);
                    }
                    sum.done += 1;
                    if sum.done.is_multiple_of(report_every) {
                        let (done, broken) = (sum.done, sum.broken.len());
                        eprintln!("{done} of {} seeds, {broken} broken", options.seeds);
                    }
                }
            });
        }
    });
    sum.into_inner().expect("no thread panics with it")
}
