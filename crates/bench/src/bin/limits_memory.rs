//! Bytes per client in this process. Started by `cargo xtask bench limits`.
//!
//! A program of its own, as a counting allocator is slower.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

use std::alloc::System;
use std::num::NonZeroU32;

use anteroom_limit::cost::Cost;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::KeyMaker;
use anteroom_limit_store::local::{LocalAcquire, LocalCounts};
use governor::{DefaultKeyedRateLimiter, Quota};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let is_json = std::env::args().any(|argument| argument == "--json");
    if !is_json {
        println!(
            "memory: bytes per client (target: anteroom by gcra at most 64, and 16 for its \
             key)"
        );
        println!(
            "  {:>9} {:>14} {:>14} {:>14}",
            "clients", "gcra", "strict (10)", "governor"
        );
    }
    for clients in [50_000_u32, 100_000, 150_000, 1_000_000] {
        let hour = DurationUs::from_secs(3_600);
        let rate = Rate::new(100, hour).expect("an hour is a window");
        let gcra = ours(
            clients,
            &Policy::Gcra(Gcra::new(rate, 100).expect("a burst")),
        );
        let strict = SubWindows::strict(rate, 10).expect("even parts");
        let strict = ours(clients, &Policy::SubWindows(strict));
        let governor = governor(clients);
        if is_json {
            println!(
                "{{\"clients\":{clients},\"gcra\":{gcra:.1},\"strict\":{strict:.1},\
                 \"governor\":{governor:.1}}}"
            );
        } else {
            println!("  {clients:>9} {gcra:>14.1} {strict:>14.1} {governor:>14.1}");
        }
    }
}

/// Returns the bytes per client that `run` leaves in use.
fn each<T>(clients: u32, run: impl FnOnce() -> T) -> f64 {
    let region = Region::new(ALLOCATOR);
    let kept = run();
    let change = region.change();
    let used = change.bytes_allocated - change.bytes_deallocated;
    drop(kept);
    used as f64 / f64::from(clients)
}

fn ours(clients: u32, policy: &Policy) -> f64 {
    each(clients, || {
        let counts = LocalCounts::new(2 * clients as usize);
        let keys = KeyMaker::new([7; 16]);
        for client in 0..clients {
            let acquire = LocalAcquire {
                counts: &counts,
                policy,
                key: keys.key([client.to_string().as_bytes()]),
                cost: Cost::ONE,
                delay_max: DurationUs::ZERO,
            };
            assert!(
                counts
                    .acquire(&acquire, TimestampUs(1_700_000_000_000_000))
                    .is_allowed()
            );
        }
        counts
    })
}

/// Measures governor with numbers as keys, which take no memory outside of their entries.
fn governor(clients: u32) -> f64 {
    let hundred = NonZeroU32::new(100).expect("above zero");
    each(clients, || {
        let limiter: DefaultKeyedRateLimiter<u128> =
            DefaultKeyedRateLimiter::keyed(Quota::per_hour(hundred));
        for client in 0..clients {
            assert!(limiter.check_key(&u128::from(client)).is_ok());
        }
        limiter
    })
}
