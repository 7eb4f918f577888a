//! Runs every room under every allocation, on a few threads, with a progress line.
//!
//! Threads do not influence the results: a run is a function of its scenario, and outcomes stand in
//! the order of the jobs.

use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anteroom_config::words;
use anteroom_room::rules::AllocationKind;
use anteroom_sim::outcome::Outcome;
use anteroom_sim::run::{self, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::source::Variant;

/// Most runs of one command: a larger table is not readable.
const JOBS_MAX: usize = 64;
/// Most threads: the largest simulations take some gigabytes each.
const THREADS_MAX: usize = 4;
/// Steps of the progress line for each run.
const STEPS: u64 = 1_000;

/// Run of one room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    variant: usize,
    room: usize,
    allocation: AllocationKind,
}

/// Returns all runs: every room, under every setting, under every allocation.
pub(super) fn jobs(variants: &[Variant]) -> anyhow::Result<Vec<Job>> {
    // A setting changes rooms and cannot create one.
    let rooms = variants.first().map_or(0, |v| v.scenario.rooms.len());
    let mut jobs = Vec::new();
    for room in 0..rooms {
        for (index, variant) in variants.iter().enumerate() {
            jobs.extend(variant.scenario.compare.iter().map(|allocation| Job {
                variant: index,
                room,
                allocation: *allocation,
            }));
        }
    }
    anyhow::ensure!(
        jobs.len() <= JOBS_MAX,
        "these are {} runs ({rooms} rooms, {} combinations of settings, their allocations): at \
         most \
         {JOBS_MAX} are compared; choose one with --allocation, or fewer values",
        jobs.len(),
        variants.len()
    );
    Ok(jobs)
}

/// Runs all jobs; the outcomes stand in their order.
pub(super) fn run(variants: &[Variant], jobs: &[Job]) -> Vec<Outcome> {
    let bar = bar(jobs.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else {
                return done;
            };
            done.push((index, run_one(variants, *job, &bar)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.min(THREADS_MAX).min(jobs.len());
    let mut outcomes: Vec<(usize, Outcome)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| {
            // A panic is our bug, so it continues in this thread.
            worker
                .join()
                .unwrap_or_else(|cause| panic::resume_unwind(cause))
        });
        ended.flatten().collect()
    });
    bar.finish_and_clear();
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn run_one(variants: &[Variant], job: Job, bar: &ProgressBar) -> Outcome {
    let Variant { scenario, settings } = &variants[job.variant];
    let room = &scenario.rooms[job.room].name;
    bar.set_message(format!("{room}, {}", words::allocation(job.allocation)));
    let mut shown = 0;
    let mut progress = |Progress { done, length, .. }: Progress| {
        let steps = done.0.saturating_mul(STEPS) / length.0.max(1);
        bar.inc(steps.saturating_sub(shown));
        shown = steps.max(shown);
    };
    let mut outcome = run::run(scenario, job.room, job.allocation, &mut progress);
    outcome.settings.clone_from(settings);
    outcome
}

/// Creates a progress line, if there is a terminal.
fn bar(jobs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} [{bar:40}] {percent:>3} %  {msg}")
        .expect("the template is a constant, and a test reads it")
        .progress_chars("=> ");
    let target = if io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let length = u64::try_from(jobs)
        .unwrap_or(u64::MAX)
        .saturating_mul(STEPS);
    ProgressBar::with_draw_target(Some(length), target).with_style(style)
}

#[cfg(test)]
mod tests {
    use anteroom_sim::scenario::shipped::Shipped;

    use super::*;

    fn variants(count: usize) -> Vec<Variant> {
        let scenario = Shipped::find("flash-sale").unwrap().scenario().unwrap();
        let variant = || Variant {
            scenario: scenario.clone(),
            settings: vec![("seed".to_owned(), "1".to_owned())],
        };
        (0..count).map(|_| variant()).collect()
    }

    #[test]
    fn every_setting_is_run_under_every_allocation_up_to_a_bound() {
        let of = |count| jobs(&variants(count)).map(|jobs| jobs.len());
        assert_eq!(of(2).unwrap(), 8);
        assert_eq!(of(16).unwrap(), 64);
        let message = of(17).unwrap_err().to_string();
        assert!(message.starts_with("these are 68 runs"), "{message}");
    }

    #[test]
    fn the_progress_line_can_be_drawn() {
        assert_eq!(bar(3).length(), Some(3 * STEPS));
    }
}
