//! Small deployments full of faults violate no invariant, and are as full of faults as intended.
//!
//! `cargo xtask sim` runs more seeds and explains one of them. Mutations show that the checkers
//! notice violations.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anteroom_room::rules::AllocationKind;
use anteroom_room::time::DurationMs;
use anteroom_sim::run;
use anteroom_sim::scenario::model::Scenario;
use anteroom_sim::scenario::shipped::Shipped;
use anteroom_sim::seeds::coverage::{Coverage, EDGES, NAMES};
use anteroom_sim::seeds::{self, SeedRun};

/// Number of seeds: enough to meet every kind of fault dozens of times.
const SEEDS: u64 = 500;

/// Runs seeds on all cores; returns the runs by seed.
fn run_all(seeds: Range<u64>) -> BTreeMap<u64, SeedRun> {
    let next = AtomicU64::new(seeds.start);
    let runs = Mutex::new(BTreeMap::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let run = seeds::run(seed);
                    runs.lock()
                        .expect("no thread panics with it")
                        .insert(seed, run);
                }
            });
        }
    });
    runs.into_inner().expect("no thread panics with it")
}

/// One test for all that is true of these runs, as each run takes a tenth of a second.
/// `cargo xtask mutations` runs more of them in a faster build, without the assertions of this one.
#[test]
fn no_seed_violates_an_invariant_and_most_admit_and_recover() {
    let runs = run_all(0..SEEDS);
    no_invariant_is_violated(&runs);
    nearly_every_seed_admits_visitors(&runs);
    most_seeds_admit_a_visitor_after_the_last_fault(&runs);
    every_kind_of_fault_and_both_levels_are_reached(&runs);
}

fn no_invariant_is_violated(runs: &BTreeMap<u64, SeedRun>) {
    let broken: Vec<_> = runs
        .values()
        .filter_map(|run| Some((run.seed, run.violation.as_ref()?)))
        .collect();
    if let Some((seed, violation)) = broken.first() {
        panic!(
            "seed {seed} (and {others} others) broke {promise:?}: {seen}\n\
             replay with: cargo xtask sim --seed {seed}\n\n{told}",
            others = broken.len() - 1,
            promise = violation.promise,
            seen = violation.seen,
            told = seeds::explain(*seed, 60),
        );
    }
}

fn nearly_every_seed_admits_visitors(runs: &BTreeMap<u64, SeedRun>) {
    let idle = runs.values().filter(|run| run.admitted == 0).count();
    let admitted: u64 = runs.values().map(|run| run.admitted).sum();
    // A run without admissions violates at most one invariant. Some rooms queue every visitor.
    assert!(idle * 10 <= runs.len(), "{idle} seeds admit nobody");
    assert!(admitted >= 5 * runs.len() as u64, "{admitted} in all");
}

fn most_seeds_admit_a_visitor_after_the_last_fault(runs: &BTreeMap<u64, SeedRun>) {
    let stuck = runs.values().filter(|run| !run.has_recovered);
    let stuck: Vec<u64> = stuck.map(|run| run.seed).collect();
    // The others end before a seat is free again, or before a window that slides has room.
    assert!(
        stuck.len() * 20 <= runs.len() * 7,
        "{stuck:?} of {}",
        runs.len()
    );
}

fn every_kind_of_fault_and_both_levels_are_reached(runs: &BTreeMap<u64, SeedRun>) {
    let scenarios: Vec<Scenario> = (0..SEEDS).map(seeds::scenario).collect();
    let mut coverage = Coverage::default();
    for (scenario, run) in scenarios.iter().zip(runs.values()) {
        coverage.note(scenario, run.elapsed);
    }
    let reached = coverage.seeds;
    assert_eq!(reached.len(), NAMES, "{reached:?}");
    // The fault must happen before the end of the run, in at least one seed of fifty.
    let rare = reached.iter().filter(|(_, seeds)| **seeds * 50 < SEEDS);
    assert_eq!(rare.count(), 0, "{reached:?}");

    let is_far = |scenario: &Scenario| scenario.data_centers[0].to_global.to > DurationMs::ZERO;
    let has_many = |scenario: &Scenario| scenario.data_centers.len() > 1;
    let far = scenarios.iter().filter(|one| is_far(one)).count();
    let many = scenarios.iter().filter(|one| has_many(one)).count();
    assert!((100..=400).contains(&far), "{far} have two levels");
    assert!(many >= 100, "{many} have several data centers");
}

#[test]
fn the_same_seeds_give_the_same_bytes_when_run_twice() {
    let digests = || -> Vec<(u64, u64, u64)> {
        let runs = run_all(0..50);
        let word = |run: &SeedRun| (run.seed, run.steps, run.digest);
        runs.values().map(word).collect()
    };
    let (once, again) = (digests(), digests());
    assert_eq!(once, again);
    let different: BTreeSet<u64> = once.iter().map(|(_, _, digest)| *digest).collect();
    assert_eq!(different.len(), 50, "each seed is a deployment of its own");
}

#[test]
fn the_same_scenario_gives_the_same_outcome_to_the_last_byte() {
    let shipped = Shipped::find("partition").unwrap();
    let scenarios = [shipped.scenario().unwrap(), seeds::scenario(7)];
    for scenario in &scenarios {
        let told = || {
            let outcome = run(scenario, 0, AllocationKind::Leases, &mut |_| {});
            assert!(outcome.stats.admitted > 0, "{}", scenario.name);
            format!("{outcome:#?}")
        };
        assert_eq!(told(), told(), "{}", scenario.name);
    }
    let last_words = || seeds::explain(7, 200);
    assert_eq!(last_words(), last_words());
}

/// Seeds in which something goes wrong while an event begins or ends. A thousand scenarios are
/// looked at, and none is run.
#[test]
fn the_seeds_reach_every_fault_at_the_edges_of_events() {
    let mut coverage = Coverage::default();
    for seed in 0..1_000 {
        let scenario = seeds::scenario(seed);
        coverage.note(&scenario, scenario.length);
    }
    for edge in EDGES {
        for fault in [
            "crash",
            "restart",
            "pause",
            "node's clock is off",
            "node's wall clock steps",
            "global store wiped",
        ] {
            let pair = (fault.min(edge), fault.max(edge));
            let seeds = coverage.at_once.get(&pair).copied().unwrap_or(0);
            assert!(seeds >= 2, "{pair:?}: {seeds}");
        }
    }
}
