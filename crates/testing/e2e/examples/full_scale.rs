//! How full is a room kept at the periods of real life? Two data centers with three nodes each,
//! sessions of five minutes, 300 seats and four visitors for each of them, for a quarter of an
//! hour: what `cargo xtask cluster --full-scale` runs.
//!
//! Optional arguments: for how many minutes, within how many seconds the crowd comes, and its seed.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

use std::env;
use std::time::Duration;

use anteroom_e2e::clock::now;
use anteroom_e2e::cluster::{Cluster, Setup};
use anteroom_e2e::crowd::{Crowd, Habits, Phase, Tally};
use anteroom_e2e::fill::{Fill, FillMeter};
use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;
use tokio::time::interval;

const SEATS: u32 = 300;
/// So many that only seats hold visitors back.
const NEW_USERS_PER_MINUTE: u32 = 6_000;
const SESSION_SECS: u64 = 300;
const MINUTES: u64 = 14;
/// All of them at once, as when a sale opens.
const ARRIVALS_SECS: u64 = 1;
/// How often the room is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many visitors come, and how many pages they open: many leave soon and a few stay for very
/// long, like lengths that are distributed exponentially, with a mean of some three minutes.
const CROWDS: [(u32, u32, u32); 3] = [(700, 1, 12), (350, 6, 40), (150, 30, 90)];

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
        // The room as it is if nobody sets anything else.
        room: String::new(),
        ..Setup::new(limits, SESSION_SECS)
    };
    let cluster = Cluster::start(setup).await;
    let crowds = CROWDS.iter().enumerate().map(|(number, crowd)| {
        let (visitors, least, most) = *crowd;
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
        Crowd::send(&cluster.doors(), &[phase], &habits, seed)
    });
    let crowds: Vec<Crowd> = crowds.collect();
    let meter = watch(&cluster, &crowds, Duration::from_secs(minutes * 60)).await;
    let mut counters = Tally::default();
    for crowd in crowds {
        counters = counters.and(crowd.go_home().await);
    }
    cluster.assert_kept(&counters);
    let verdict = cluster.origin().verdict();
    let Some(fill) = meter.fill(now()) else {
        println!("the room was never full: {verdict:?}");
        return;
    };
    println!("{}", told(&fill));
    println!(
        "highest inside: {} of {SEATS}; highest admissions a minute: {} of {NEW_USERS_PER_MINUTE}; \
         {} admitted in all; {} requests later than their seat",
        verdict.most_inside,
        verdict.most_admissions_in_a_minute,
        verdict.admissions,
        verdict.late_requests
    );
    println!(
        "nobody with a valid ticket was queued; {} ran out",
        counters.ran_out
    );
}

/// Looks at the room for so long, and says each minute what it sees.
async fn watch(cluster: &Cluster, crowds: &[Crowd], lasts: Duration) -> FillMeter {
    let mut meter = FillMeter::new(SEATS as usize);
    let mut looks = interval(LOOK_EVERY);
    let began_at = looks.tick().await;
    let mut tell_at = began_at + Duration::from_secs(60);
    loop {
        let at = looks.tick().await;
        let inside = cluster.origin().inside();
        let waiting = crowds.iter().map(|crowd| crowd.counters().waiting).sum();
        meter.look(now(), inside, waiting);
        if at >= tell_at {
            tell_at += Duration::from_secs(60);
            let minute = (at - began_at).as_secs() / 60;
            let fill = meter.fill(now()).as_ref().map(told);
            eprintln!(
                "minute {minute}: {inside} inside, {waiting} wait; {}",
                fill.unwrap_or_default()
            );
        }
        if at >= began_at + lasts {
            return meter;
        }
    }
}

fn told(fill: &Fill) -> String {
    let secs = |span: DurationMs| format!("{}.{:03} s", span.0 / 1_000, span.0 % 1_000);
    let percent = fill.taken_per_100_000;
    format!(
        "full after {}; since then {}.{:03} % of the seats taken ({} looks); {} times a free seat \
         was \
         taken while somebody waited, after {} (p50), {} (p99), {} at most",
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
