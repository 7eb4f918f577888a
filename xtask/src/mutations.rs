//! Mutation tests of the protocol, `cargo xtask mutations`: a checker must notice each missing
//! rule.
//!
//! Each file of `crates/sim/engine/mutations` is a patch that removes one rule. The patch is
//! applied to a copy of the workspace. The simulator is built there and runs its seeds until an
//! invariant breaks. Other tests check that all invariants hold without a patch.

mod patch;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;

use anyhow::{bail, ensure};
use clap::Args;

use crate::counters::TestCounts;
use crate::step::{Run, Scope};
use crate::stopwatch::Stopwatch;
use crate::workspace;
use patch::{Found, Mutation};
use tree::Tree;

/// Seeds to run before a mutation counts as unnoticed. Without a mutation every invariant holds in
/// all of them. The seeds that notice a mutation shift with every change of the code; the rarest
/// needed 12,620.
const SEEDS: u64 = 30_000;

/// Number of mutations that [`check`] tests: a minute and a half. They differ from commit to
/// commit, so that a rule without a working checker is found soon.
const FEW: usize = 4;

/// Number of commits for which a changed file counts as new in the full scope. [`FEW`] mutations of
/// such files are tested beside the others. The usual scope tests all mutations of files with
/// changes that are not committed.
const RECENT: u32 = 50;

/// Seeds that must keep every invariant without a mutation. The simulator's tests run them as well.
const SOUND_SEEDS: u64 = 500;

/// Selection of mutations.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask mutations                                 test all of them
  cargo xtask mutations --list                          list the rules and their checkers
  cargo xtask mutations --only no-phantoms              test one of them
  cargo xtask mutations --only no-phantoms --seeds 50   test whether 50 seeds are enough

Ends with 1 if a mutation was not noticed, or only by a checker that its file does not name.
To add a mutation, put a patch into crates/sim/engine/mutations. Above its diff are the lines
`Rule: ...` (the rule that it removes) and `Noticed by: ...` (names of invariants, or Assertion).")]
pub(crate) struct Options {
    /// Test this mutation only; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the mutations instead of testing them.
    #[arg(long)]
    list: bool,
    /// Seeds to run before a mutation counts as unnoticed.
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    seeds: u64,
}

/// Tests the selected mutations.
///
/// # Errors
///
/// If no checker that its file names noticed a mutation; the message has the command that repeats
/// it. Also if a file cannot be read, or the simulator cannot be built.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mutations = select(patch::read_all()?, &options.only)?;
    if options.list {
        for mutation in &mutations {
            println!("{:<28} {}", mutation.name, mutation.rule);
            println!("{:<28} noticed by {}", "", mutation.noticed_by());
        }
        return Ok(());
    }
    test_each(&mutations, options.seeds, &mut TestCounts::default())
}

/// Tests the mutations that a [`Selection`] selects. Each counts as a test.
///
/// # Errors
///
/// Those of [`run()`].
pub(crate) fn check(run: &mut Run) -> anyhow::Result<()> {
    let all = patch::read_all()?;
    let (commits, of_changed) = match run.scope {
        Scope::All => (RECENT, FEW),
        Scope::Usual => (0, usize::MAX),
    };
    let (selected, others) = Selection {
        few: FEW,
        of_changed,
        turn: workspace::commits(),
    }
    .select(all, &workspace::changed_files(commits));
    let others = others.iter().map(|mutation| &mutation.name);
    run.left_out
        .extend(others.map(|name| format!("mutation {name}")));
    test_each(&selected, SEEDS, &mut run.counters)
}

/// Part of the mutations, which changes with its turn.
#[derive(Clone, Copy, Debug)]
struct Selection {
    /// Number of mutations of any file.
    few: usize,
    /// Greatest number of others, of files that have changed.
    of_changed: usize,
    /// Number of the turn.
    turn: usize,
}

impl Selection {
    /// Returns the selected mutations and the others.
    fn select(
        self,
        mut all: Vec<Mutation>,
        changed: &BTreeSet<String>,
    ) -> (Vec<Mutation>, Vec<Mutation>) {
        let mut selected = take_turn(&mut all, self.turn, self.few);
        let is_changed = |mutation: &Mutation| mutation.files.iter().any(|f| changed.contains(f));
        let (mut of_changed, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_changed);
        selected.extend(take_turn(&mut of_changed, self.turn, self.of_changed));
        others.extend(of_changed);
        (selected, others)
    }
}

/// Takes at most `count` mutations out of `mutations`: those of this turn.
fn take_turn(mutations: &mut Vec<Mutation>, turn: usize, count: usize) -> Vec<Mutation> {
    let all = mutations.len();
    if count >= all {
        return std::mem::take(mutations);
    }
    let first = turn.wrapping_mul(count) % all;
    mutations.rotate_left(first);
    mutations.drain(..count).collect()
}

fn select(all: Vec<Mutation>, only: &[String]) -> anyhow::Result<Vec<Mutation>> {
    for name in only {
        let is_known = all.iter().any(|mutation| mutation.name == *name);
        ensure!(
            is_known,
            "no mutation is called {name}; for their names: cargo xtask mutations --list"
        );
    }
    let is_selected = |mutation: &Mutation| only.is_empty() || only.contains(&mutation.name);
    Ok(all.into_iter().filter(is_selected).collect())
}

fn test_each(mutations: &[Mutation], seeds: u64, counters: &mut TestCounts) -> anyhow::Result<()> {
    let clock = Stopwatch::start();
    let tree = Tree::open()?;
    println!("building the simulator without a mutation");
    tree.build()?;
    let sound = tree.run(SOUND_SEEDS.min(seeds))?;
    ensure!(
        sound == Found::Nothing,
        "without a mutation: {sound:?}; for the seed: cargo xtask sim --seed N"
    );
    let mut unnoticed = Vec::new();
    for mutation in mutations {
        let clock = Stopwatch::start();
        let found = tree.with(mutation, || {
            tree.build()?;
            tree.run(seeds)
        });
        let is_noticed = matches!(&found, Ok(found) if mutation.expects(found));
        let text = match found {
            Ok(found) => result_text(mutation, &found, seeds),
            Err(error) => format!("FAILED: {error:#}"),
        };
        let took = clock.elapsed().as_secs_f32();
        println!("{:<28} {text}, {took:.1} s", mutation.name);
        if is_noticed {
            counters.passed += 1;
        } else {
            counters.failed += 1;
            unnoticed.push(format!(" --only {}", mutation.name));
        }
    }
    println!(
        "mutations: {} noticed, {} not, in {} s",
        mutations.len() - unnoticed.len(),
        unnoticed.len(),
        clock.elapsed().as_secs()
    );
    if !unnoticed.is_empty() {
        bail!("repeat with: cargo xtask mutations{}", unnoticed.concat());
    }
    Ok(())
}

fn result_text(mutation: &Mutation, found: &Found, seeds: u64) -> String {
    match found {
        Found::Nothing => format!("NOT NOTICED in {seeds} seeds"),
        Found::Broken { seed, checker } if mutation.expects(found) => {
            format!("{checker:<9} seed {seed:>4}")
        }
        Found::Broken { seed, checker } => format!(
            "noticed by {checker} in seed {seed}, BUT ITS FILE NAMES {}",
            mutation.noticed_by()
        ),
    }
}
