//! The config parser on damaged files: never a panic, never two lines, never a key.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-wire --test fuzz_config` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` begins elsewhere, or repeats a failure.

#[path = "fuzz_config/mutator.rs"]
mod mutator;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use mutator::Mutator;

fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = fs::read_dir(root.join("testdata/config"))
        .expect("the fixtures are part of the crate")
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.push(root.join("../../anteroom.example.toml"));
    files.sort();
    files
        .into_iter()
        .map(|file| fs::read(file).expect("a fixture can be read"))
        .collect()
}

fn number_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_file_of_the_corpus_holds_what_must_hold() {
    for file in corpus() {
        anteroom_wire::fuzz::config(&file);
    }
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "how long a fuzzer runs is measured on the real clock; nothing is decided by it"
)]
fn damaged_files_hold_what_must_hold() {
    let corpus = corpus();
    let seconds = number_from_environment("ANTEROOM_FUZZ_SECONDS").unwrap_or(1);
    let mut seed = number_from_environment("ANTEROOM_FUZZ_SEED").unwrap_or(1);
    let began = Instant::now();
    let mut runs = 0;
    // At least one run: a repeated failure must show even if no time is given.
    while runs == 0 || began.elapsed() < Duration::from_secs(seconds) {
        let input = Mutator::new(seed).damage(&corpus);
        let checked = AssertUnwindSafe(|| anteroom_wire::fuzz::config(&input));
        if let Err(panic) = catch_unwind(checked) {
            eprintln!(
                "repeat with ANTEROOM_FUZZ_SECONDS=0 ANTEROOM_FUZZ_SEED={seed}\n{}",
                String::from_utf8_lossy(&input)
            );
            resume_unwind(panic);
        }
        runs += 1;
        seed = seed.wrapping_add(1);
    }
    eprintln!("{runs} damaged files in {seconds} s");
}
