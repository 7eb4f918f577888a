//! Tools that tests of several crates share: a fuzzer that needs no other compiler, real
//! redis-servers and memcached servers, slow or broken links, and raw HTTP connections. Features
//! add an HTTP/2 client, a browser, arrivals of visitors, and a load generator.
//!
//! Only tests depend on this crate; the layer check ensures that. Only the load generator knows our
//! crates: it reads the headers of the demo's origin. Each crate itself checks its inputs.

#[cfg(feature = "arrivals")]
pub mod arrivals;
#[cfg(feature = "browser")]
pub mod browser;
#[cfg(feature = "load")]
pub mod clock;
#[cfg(feature = "http2")]
pub mod http2;
#[cfg(feature = "load")]
pub mod load;
pub mod memcached_server;
mod mutate;
mod process;
pub mod redis_server;
pub mod relay;
pub mod seeds;
mod waiting;
pub mod wire;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

pub use mutate::{Field, Language, Mutator};
pub use waiting::{POLL_INTERVAL, TIMEOUT, eventually, eventually_within};

/// Length and first seed of a run; a failure prints both so that it can be repeated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Effort {
    /// Time in seconds after which no further input is made; at least one is.
    pub seconds: u64,
    /// Seed of the first input; each further one adds one.
    pub seed: u64,
}

impl Effort {
    /// Reads `ANTEROOM_FUZZ_SECONDS` and `ANTEROOM_FUZZ_SEED`; by default one second from seed 1.
    ///
    /// # Panics
    ///
    /// If one of them is set and not a number, because a shorter run would pass unnoticed.
    #[must_use]
    pub fn from_environment() -> Self {
        Self {
            seconds: number("ANTEROOM_FUZZ_SECONDS"),
            seed: number("ANTEROOM_FUZZ_SEED"),
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, seed } = self;
        write!(
            f,
            "ANTEROOM_FUZZ_SECONDS={seconds} ANTEROOM_FUZZ_SEED={seed}"
        )
    }
}

fn number(name: &str) -> u64 {
    let Some(text) = std::env::var_os(name) else {
        return 1;
    };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{name} is not a number: {}", text.display()))
}

/// Damages files of `corpus` and passes each result to `check`, until the time is over. Returns the
/// number of results.
///
/// # Panics
///
/// If `check` panics, with the same panic, after printing how to repeat it; or if `corpus` is
/// empty.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a fuzzer runs is measured on the real clock; nothing is decided by it"
)]
pub fn fuzz(
    effort: Effort,
    language: &Language<'_>,
    corpus: &[Vec<u8>],
    check: impl Fn(&[u8]),
) -> u64 {
    let began = Instant::now();
    let mut seed = effort.seed;
    let mut runs = 0;
    // At least one run: a repeated failure must show even if no time is given.
    while runs == 0 || began.elapsed() < Duration::from_secs(effort.seconds) {
        let input = Mutator::new(seed).damage(corpus, language);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&input))) {
            let repeat = Effort { seconds: 0, seed };
            eprintln!("repeat with {repeat}\n{}", input.escape_ascii());
            resume_unwind(panic);
        }
        runs += 1;
        seed = seed.wrapping_add(1);
    }
    eprintln!("{runs} damaged inputs in {} s", effort.seconds);
    runs
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const LANGUAGE: Language<'_> = Language {
        pieces: &[b"<", b">"],
        field: None,
    };

    fn inputs(seed: u64) -> Vec<Vec<u8>> {
        let seen = RefCell::new(Vec::new());
        let effort = Effort { seconds: 0, seed };
        let corpus = [b"something to damage".to_vec()];
        let runs = fuzz(effort, &LANGUAGE, &corpus, |input| {
            seen.borrow_mut().push(input.to_vec());
        });
        assert_eq!(runs, 1);
        seen.into_inner()
    }

    #[test]
    fn without_time_there_is_one_input_and_its_seed_repeats_it() {
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    fn a_failed_check_fails_the_run() {
        let effort = Effort {
            seconds: 0,
            seed: 1,
        };
        let failed = catch_unwind(|| {
            fuzz(effort, &LANGUAGE, &[b"a".to_vec()], |_| panic!("found one"));
        });
        assert_eq!(
            failed.unwrap_err().downcast_ref::<&str>(),
            Some(&"found one")
        );
    }

    #[test]
    fn an_effort_prints_as_what_is_typed_to_repeat_it() {
        let effort = Effort {
            seconds: 0,
            seed: 42,
        };
        assert_eq!(
            effort.to_string(),
            "ANTEROOM_FUZZ_SECONDS=0 ANTEROOM_FUZZ_SEED=42"
        );
    }
}
