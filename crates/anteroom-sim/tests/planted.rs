//! Would anybody notice? Each rule of the protocol is left out in turn, and the checker that finds
//! it is named.
//!
//! One test, because what is planted is planted in the whole process. Needs the feature
//! `planted-bugs`: `cargo xtask test --only planted`.
#![cfg(feature = "planted-bugs")]

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anteroom_core::planted::{Bug, plant};
use anteroom_sim::outcome::Promise;
use anteroom_sim::seeds;

/// Seeds that are tried before a bug counts as unnoticed. Without a bug all of them keep every
/// promise.
const SEEDS: u64 = 4_000;

/// Who notices what.
const EXPECTED: &[(Bug, &[Promise])] = &[
];

/// The first seed in which a promise is broken, and which.
fn first_broken() -> Option<(u64, Promise)> {
    let next = AtomicU64::new(0);
    let found = AtomicU64::new(u64::MAX);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= SEEDS || seed > found.load(Ordering::Relaxed) {
                        break;
                    }
                    if seeds::run(seed).violation.is_some() {
                        found.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seed = found.into_inner();
    let violation = (seed != u64::MAX).then(|| seeds::run(seed).violation)??;
    Some((seed, violation.promise))
}

#[test]
fn every_rule_that_is_left_out_is_noticed() {
    let mut told = String::new();
    for &bug in Bug::ALL {
        plant(Some(bug));
        let found = first_broken();
        writeln!(told, "{bug:?}: {found:?}").unwrap();
        println!("{bug:?}: {found:?}");
    }
    plant(None);
    let _ = EXPECTED;
}
