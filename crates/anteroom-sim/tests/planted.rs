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
const SEEDS: u64 = 8_000;

/// Whose business it is to notice each of them.
fn checkers_of(bug: Bug) -> &'static [Promise] {
    match bug {
        Bug::ForgetsNewestEnds => &[Promise::Recovery],
        Bug::CountsBeforeReturn | Bug::HoardsSlots => &[Promise::NoWaste],
        Bug::FewCreditsFarAway | Bug::MoversWaitInLine => &[Promise::Inside],
        // Both are kept by the same numbers, and which one is broken first is the seed's choice.
        Bug::AppliesStaleAnswers | Bug::NoReserveAfterLoss | Bug::RestartWritesOldRow => {
            &[Promise::Seats, Promise::Rate]
        }
        Bug::LendsBeyondOwnLease => &[Promise::Seats, Promise::Recovery],
        Bug::SpendsNextMinute => &[Promise::Rate],
        Bug::ClosesByOwnClock => &[Promise::Seats, Promise::Inside],
        _ => &[Promise::Seats],
    }
}

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
fn every_rule_that_is_left_out_is_noticed_by_the_checker_of_its_promise() {
    let mut told = String::new();
    let mut is_noticed = true;
    for &bug in Bug::ALL {
        plant(Some(bug));
        let found = first_broken();
        let is_right = found.is_some_and(|(_, promise)| checkers_of(bug).contains(&promise));
        is_noticed &= is_right;
        match found {
            Some((seed, promise)) => writeln!(told, "{bug:?}: {promise:?}, by seed {seed}"),
            None => writeln!(told, "{bug:?}: nobody noticed in {SEEDS} seeds"),
        }
        .expect("writing into a string cannot fail");
    }
    plant(None);
    println!("{told}");
    assert!(is_noticed, "not all is noticed as it should be:\n{told}");
}
