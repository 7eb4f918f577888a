//! `cargo xtask mutations`: would anybody notice if a rule of the protocol were missing?
//!
//! Each file of `crates/sim/engine/mutations` is a patch that removes one rule. The patch is
//! applied to a copy of the workspace, the simulator is built there and runs its seeds until a
//! promise breaks. Whether the code keeps every promise without a patch is for other tests.

mod patch;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;

use anyhow::{bail, ensure};
use clap::Args;

use crate::counters::Tally;
use crate::step::{Run, Scope};
use crate::stopwatch::Stopwatch;
use crate::workspace;
use patch::{Found, Mutation};
use tree::Tree;

/// Seeds to run before a mutation counts as unnoticed. Without a mutation all of them keep every
/// promise. The rarest mutation is noticed in seed 1,365; others shift with every change of the
/// code.
const SEEDS: u64 = 8_000;

/// So many mutations are tried by [`check`] unless everything was asked for: half a minute. From
/// commit to commit they are others, so that a rule that lost its checker is found soon.
const FEW: usize = 4;

/// Which rules to remove.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask mutations                                 all of them
  cargo xtask mutations --list                          the rules, and who notices that one is gone
  cargo xtask mutations --only no-phantoms              one of them
  cargo xtask mutations --only no-phantoms --seeds 50   see whether 50 seeds are enough to notice it

Ends with 1 when a mutation was not noticed, or by a checker that its file does not name. To add a
mutation, put a patch into crates/sim/engine/mutations, with the lines `Rule: ...` (the rule that
it removes) and `Noticed by: ...` (names of promises, or Assertion) above the diff.")]
pub(crate) struct Options {
    /// Remove this rule alone; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the mutations instead of trying them.
    #[arg(long)]
    list: bool,
    /// Seeds to run before a mutation counts as unnoticed.
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    seeds: u64,
}

/// Tries the mutations that were asked for.
///
/// # Errors
///
/// When one was not noticed by a checker that its file names; the message is the command that
/// repeats it. And when a file cannot be read, or the simulator cannot be built.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mutations = chosen(patch::read_all()?, &options.only)?;
    if options.list {
        for mutation in &mutations {
            println!("{:<28} {}", mutation.name, mutation.rule);
            println!("{:<28} noticed by {}", "", mutation.noticed_by());
        }
        return Ok(());
    }
    try_each(&mutations, options.seeds, &mut Tally::default())
}

/// Tries all mutations, or those of [`few`]. Each counts as a test.
///
/// # Errors
///
/// As [`run()`].
pub(crate) fn check(run: &mut Run) -> anyhow::Result<()> {
    let all = patch::read_all()?;
    let (tried, left) = match run.scope {
        Scope::All => (all, Vec::new()),
        Scope::Usual => few(all, workspace::commits(), &workspace::changed_files()),
    };
    let left = left.iter().map(|mutation| &mutation.name);
    run.left_out
        .extend(left.map(|name| format!("mutation {name}")));
    try_each(&tried, SEEDS, &mut run.counters)
}

/// Chooses the mutations of files that have changed since the last commit, and [`FEW`] more by the
/// number of commits. Returns them, and those that are left.
fn few(
    all: Vec<Mutation>,
    commits: usize,
    changed: &BTreeSet<String>,
) -> (Vec<Mutation>, Vec<Mutation>) {
    let count = all.len();
    let first = commits.wrapping_mul(FEW) % count.max(1);
    let numbered = all.into_iter().enumerate();
    let (tried, left): (Vec<_>, Vec<_>) = numbered.partition(|(number, mutation)| {
        let is_next = (number + count - first) % count < FEW;
        is_next || mutation.files.iter().any(|file| changed.contains(file))
    });
    let mutations = |numbered: Vec<(usize, Mutation)>| {
        let mutations = numbered.into_iter().map(|(_, mutation)| mutation);
        mutations.collect()
    };
    (mutations(tried), mutations(left))
}

fn chosen(all: Vec<Mutation>, only: &[String]) -> anyhow::Result<Vec<Mutation>> {
    for name in only {
        let is_known = all.iter().any(|mutation| mutation.name == *name);
        ensure!(
            is_known,
            "no mutation is called {name}; for their names: cargo xtask mutations --list"
        );
    }
    let is_chosen = |mutation: &Mutation| only.is_empty() || only.contains(&mutation.name);
    Ok(all.into_iter().filter(is_chosen).collect())
}

fn try_each(mutations: &[Mutation], seeds: u64, counters: &mut Tally) -> anyhow::Result<()> {
    let clock = Stopwatch::start();
    let tree = Tree::open()?;
    println!("building the simulator without a mutation");
    tree.build()?;
    let mut unnoticed = Vec::new();
    for mutation in mutations {
        let clock = Stopwatch::start();
        let found = tree.with(mutation, || {
            tree.build()?;
            tree.run(seeds)
        });
        let is_noticed = matches!(&found, Ok(found) if mutation.expects(found));
        let words = match found {
            Ok(found) => closing_words(mutation, &found, seeds),
            Err(error) => format!("FAILED: {error:#}"),
        };
        let took = clock.elapsed().as_secs_f32();
        println!("{:<28} {words}, {took:.1} s", mutation.name);
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

fn closing_words(mutation: &Mutation, found: &Found, seeds: u64) -> String {
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
