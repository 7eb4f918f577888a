//! Is there any order of events in which a promise breaks? One small world for each seed, full of
//! faults, judged by the same checkers as a rehearsal.
//!
//! A seed and the code give the same bytes every time: [`SeedRun::digest`]. What a broken promise
//! looked like is told by [`explain`], as short as it can be made.

pub mod coverage;
mod generate;
mod shorten;

use anteroom_room::rules::AllocationKind;
use anteroom_room::time::Span;

use crate::outcome::{Promise, Violation};
use crate::recording::Recording;
use crate::run::Simulation;
use crate::scenario::model::Scenario;
pub use generate::scenario;
pub use shorten::explain;

/// Events after which a seed has shown what it can, if somebody was let in after the last fault.
const STEPS: u64 = 4_000;
/// Events after which that is waited for no longer.
const STEPS_MAX: u64 = 12_000;
/// The same in worlds that last longer, because sessions do.
const STEPS_MAX_LONG: u64 = 60_000;
/// The same in one of eight of them, so that these run to their end.
const STEPS_MAX_WHOLE: u64 = 500_000;
/// Worlds that last longer than this do.
const LONG: Span = Span::from_secs(240);

fn steps_max(scenario: &Scenario) -> u64 {
    if scenario.length <= LONG {
        STEPS_MAX
    } else if scenario.seed.is_multiple_of(8) {
        STEPS_MAX_WHOLE
    } else {
        STEPS_MAX_LONG
    }
}

/// What became of a seed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SeedRun {
    /// The seed.
    pub seed: u64,
    /// Events that happened.
    pub steps: u64,
    /// How long it took, in virtual time.
    pub elapsed: Span,
    /// A fingerprint of everything that was decided.
    pub digest: u64,
    /// Visitors who were let in: a world in which nobody is proves nothing.
    pub admitted: u64,
    /// Whether somebody was let in after the end of the last fault.
    pub has_recovered: bool,
    /// The first broken promise.
    pub violation: Option<Violation>,
}

/// Runs one seed.
#[must_use]
pub fn run(seed: u64) -> SeedRun {
    run_scenario(&scenario(seed))
}

/// Runs one seed and tells what each of its ledgers was asked and what it answered; the world's is
/// the last.
#[must_use]
pub fn record(seed: u64) -> Vec<Recording> {
    run_recorded(&scenario(seed)).into_recordings()
}

fn run_recorded(scenario: &Scenario) -> Simulation {
    let simulation = Simulation::new(scenario, 0, AllocationKind::Leases);
    let mut simulation = simulation.with_recording();
    run_out(&mut simulation, steps_max(scenario));
    simulation
}

fn run_scenario(scenario: &Scenario) -> SeedRun {
    let mut simulation = Simulation::new(scenario, 0, AllocationKind::Leases);
    run_out(&mut simulation, steps_max(scenario));
    let has_recovered = simulation.has_recovered();
    let digest = simulation.digest();
    let (steps, elapsed) = (simulation.events(), simulation.elapsed());
    let outcome = simulation.finish();
    SeedRun {
        seed: scenario.seed,
        steps,
        elapsed,
        digest,
        admitted: outcome.figures.admitted,
        has_recovered,
        violation: outcome.violations.into_iter().next(),
    }
}

/// Lets a small world run until a promise is broken, or long enough.
fn run_out(simulation: &mut Simulation, steps_max: u64) {
    while simulation.judge().violation_count() == 0 {
        let steps = simulation.events();
        let has_shown = steps >= STEPS && steps_max == STEPS_MAX && simulation.has_recovered();
        let is_over = steps >= steps_max || has_shown;
        if is_over || !simulation.step() {
            break;
        }
    }
}

/// Whether a scenario still breaks this promise.
fn breaks(scenario: &Scenario, promise: Promise) -> Option<Violation> {
    run_scenario(scenario)
        .violation
        .filter(|violation| violation.promise == promise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_run_every_time_and_another_one_another() {
        for seed in 0..20 {
            assert_eq!(run(seed), run(seed), "seed {seed}");
        }
        assert_ne!(run(1).digest, run(2).digest);
    }

    #[test]
    fn a_run_that_is_recorded_is_the_same_run() {
        for seed in 0..20 {
            let recorded = run_recorded(&scenario(seed));
            assert_eq!(recorded.digest(), run(seed).digest, "seed {seed}");
            let recordings = recorded.into_recordings();
            assert!(!recordings.is_empty(), "seed {seed}");
            assert!(recordings.iter().all(|one| !one.operations.is_empty()));
        }
    }
}
