//! Measures how full a room is with the timing of production: `cargo xtask cluster --full-scale`
//! runs it. Two data centers have three nodes each, with sessions of five minutes, 300 seats and
//! four visitors per seat, for a quarter of an hour.
//!
//! Optional arguments: the length in minutes, the seconds within which the visitors come, and the
//! seed.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

use std::env;
use std::time::Duration;

use anteroom_e2e::cluster::{Cluster, Setup};
use anteroom_e2e::fill::{Fill, FillMeter};
use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;
use anteroom_testkit::clock::now;
use anteroom_testkit::load::{Habits, Phase, VisitorCounts, VisitorLoad};
use tokio::time::interval;

const SEATS: u32 = 300;
/// Limit so high that only seats limit admissions.
const NEW_USERS_PER_MINUTE: u32 = 6_000;
const SESSION_SECS: u64 = 300;
const MINUTES: u64 = 14;
/// All at once, as when a sale opens.
const ARRIVALS_SECS: u64 = 1;
/// Interval at which the room is observed.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// Number of visitors, and their pages: many leave soon and a few stay for very long, nearly like
/// an exponential distribution with a mean of some three minutes.
const LOADS: [(u32, u32, u32); 3] = [(700, 1, 12), (350, 6, 40), (150, 30, 90)];

#[tokio::main]
async fn main() {
    let argument = |index| env::args().nth(index).and_then(|text| text.parse().ok());
    let minutes: u64 = argument(1).unwrap_or(MINUTES);
    let arrivals = Duration::from_secs(argument(2).unwrap_or(ARRIVALS_SECS));
    let seed: u64 = argument(3).unwrap_or(1);
    let limits = Limits {
        total_active_users: SEATS,
        new_users_per_minute: NEW_USERS_PER_MINUTE,
    };
    let setup = Setup {
        // The room with default settings.
        room: String::new(),
        ..Setup::new(limits, SESSION_SECS)
    };
    let cluster = Cluster::start(setup).await;
    let loads = LOADS.iter().enumerate().map(|(number, load)| {
        let (visitors, least, most) = *load;
        let habits = Habits {
            pages: least..=most,
            think: Duration::from_secs(5)..=Duration::from_secs(15),
            is_patient: true,
            ..Habits::default()
        };
        let seed = seed * 10 + number as u64;
        let phase = Phase {
            lasts: arrivals,
            visitors,
        };
        VisitorLoad::send(&cluster.routes(), &[phase], &habits, seed)
    });
    let loads: Vec<VisitorLoad> = loads.collect();
    let meter = watch(&cluster, &loads, Duration::from_secs(minutes * 60)).await;
    let mut counters = VisitorCounts::default();
    for load in loads {
        counters = counters.and(load.stop().await);
    }
    cluster.assert_kept(&counters);
    let verdict = cluster.origin().verdict();
    let Some(fill) = meter.fill(now()) else {
        println!("the room was never full: {verdict:?}");
        return;
    };
    println!("{}", describe(&fill));
    println!(
        "highest inside: {} of {SEATS}; highest admissions a minute: {} of {NEW_USERS_PER_MINUTE}; \
         {} admitted in all; {} requests later than their seat",
        verdict.most_inside,
        verdict.most_admissions_in_a_minute,
        verdict.admissions,
        verdict.late_requests
    );
    println!(
        "no visitor with a valid ticket was queued; {} ran out",
        counters.ran_out
    );
}

/// Observes the room for so long, and prints its state each minute.
async fn watch(cluster: &Cluster, loads: &[VisitorLoad], lasts: Duration) -> FillMeter {
    let mut meter = FillMeter::new(SEATS as usize);
    let mut ticks = interval(SAMPLE_EVERY);
    let began_at = ticks.tick().await;
    let mut print_at = began_at + Duration::from_secs(60);
    loop {
        let at = ticks.tick().await;
        let inside = cluster.origin().inside();
        let waiting = loads.iter().map(|load| load.counters().waiting).sum();
        meter.look(now(), inside, waiting);
        if at >= print_at {
            print_at += Duration::from_secs(60);
            let minute = (at - began_at).as_secs() / 60;
            let fill = meter.fill(now()).as_ref().map(describe);
            eprintln!(
                "minute {minute}: {inside} active, {waiting} waiting; {}",
                fill.unwrap_or_default()
            );
        }
        if at >= began_at + lasts {
            return meter;
        }
    }
}

fn describe(fill: &Fill) -> String {
    let secs = |span: DurationMs| format!("{}.{:03} s", span.0 / 1_000, span.0 % 1_000);
    let percent = fill.taken_per_100_000;
    format!(
        "full after {}; since then {}.{:03} % of the seats taken ({} ticks); {} times a free seat \
         was taken while visitors waited, after {} (p50), {} (p99), {} at most",
        secs(fill.full_after),
        percent / 1_000,
        percent % 1_000,
        fill.samples,
        fill.taken,
        secs(fill.free_p50),
        secs(fill.free_p99),
        secs(fill.free_max),
    )
}
