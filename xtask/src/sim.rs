//! Search for an order of events that breaks an invariant: `cargo xtask sim`.
//!
//! The search is an example of `anteroom-sim`; this builds it optimized and forwards the options.
//! The same search over fewer seeds is a test, run by `cargo xtask test`.

use anyhow::{Context, bail};
use clap::Args;

use crate::cargo;

/// Selection of seeds.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask sim                               run the first 2 000 seeds, as the tests do
  cargo xtask sim --seeds 100000                run a long search
  cargo xtask sim --from 100000 --seeds 50000   run another part of it
  cargo xtask sim --seed 4711 --lines 200       print the events of one seed

Ends with 1 if an invariant broke, and prints the command that replays it.")]
pub(crate) struct Options {
    /// Number of seeds to run [default: 2000].
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    seeds: Option<u64>,
    /// First seed [default: 0].
    #[arg(long, value_name = "A", conflicts_with = "seed")]
    from: Option<u64>,
    /// Print the events of this seed instead, shortened if it breaks an invariant.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Number of the last lines to print [default: 60].
    #[arg(long, value_name = "L")]
    lines: Option<u32>,
    /// Seeds run at the same time [default: one for each core].
    #[arg(long, value_name = "T", conflicts_with = "seed")]
    threads: Option<u32>,
}

/// Exit code of Cargo if it cannot build or start a program.
const CARGO_FAILED: i32 = 101;

/// Runs the selected seeds.
///
/// # Errors
///
/// If an invariant broke, or the search could not be built.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let forwarded = forwarded(options);
    let mut arguments = vec![
        "run",
        "--release",
        "-q",
        "-p",
        "anteroom-sim",
        "--example",
        "seeds",
        "--",
    ];
    arguments.extend(forwarded.iter().map(String::as_str));
    cargo::announce(&arguments);
    let status = cargo::command(&arguments)
        .status()
        .context("starting cargo run")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => bail!("an invariant broke; see the events above"),
        Some(CARGO_FAILED) => bail!("the search could not be built, or it panicked; see above"),
        _ => bail!("the search ended early ({status})"),
    }
}

fn forwarded(options: &Options) -> Vec<String> {
    let lines = options.lines.map(u64::from);
    let threads = options.threads.map(u64::from);
    let given = [
        ("--seeds", options.seeds),
        ("--from", options.from),
        ("--seed", options.seed),
        ("--lines", lines),
        ("--threads", threads),
    ];
    let given = given.into_iter().filter_map(|(name, value)| {
        let value = value?.to_string();
        Some([name.to_owned(), value])
    });
    given.flatten().collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    fn check(typed: &str, expected: &str) {
        let words = std::iter::once("sim").chain(typed.split_whitespace());
        let typed = Typed::try_parse_from(words).unwrap();
        assert_eq!(forwarded(&typed.options).join(" "), expected);
    }

    #[test]
    fn only_the_given_options_are_forwarded() {
        check("", "");
        check("--seeds 100000", "--seeds 100000");
        check(
            "--from 5 --seeds 7 --threads 1",
            "--seeds 7 --from 5 --threads 1",
        );
        check("--lines 9 --seed 4711", "--seed 4711 --lines 9");
    }

    #[test]
    fn one_seed_and_many_seeds_exclude_each_other() {
        for typed in [
            ["--seed", "1", "--seeds", "2"],
            ["--seed", "1", "--from", "2"],
        ] {
            assert!(Typed::try_parse_from([&["sim"], &typed[..]].concat()).is_err());
        }
    }
}
