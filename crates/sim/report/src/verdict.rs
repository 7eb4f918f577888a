//! What came of it, in words that a manager can use: was a limit exceeded, how long did people
//! wait?

use crate::chart::number::{counted, duration, grouped, percent};
use anteroom_room::rules::AllocationKind;
use anteroom_sim::outcome::{Outcome, Promise};

use crate::rows::column;
use crate::variant::Variant;

/// A verdict on one allocation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sentence {
    /// A few sentences.
    pub(super) text: String,
    /// Whether a limit or a promise was broken.
    pub(super) is_bad: bool,
}

/// A verdict on each of the allocations of a room.
pub(super) fn sentences(variant: &Variant<'_>) -> Vec<Sentence> {
    variant.outcomes.iter().map(|outcome| of(outcome)).collect()
}

fn of(outcome: &Outcome) -> Sentence {
    let stats = &outcome.stats;
    let is_over = stats.above_seats > 0 || stats.above_rate > 0;
    let mut text = format!("With {}, {}", column(outcome), limits(outcome));
    text.push(' ');
    text.push_str(&waits(outcome));
    if let Some(promises) = broken(outcome) {
        text.push(' ');
        text.push_str(&promises);
    }
    Sentence {
        text,
        is_bad: is_over || !outcome.violations.is_empty() || stats.thrown_out > 0,
    }
}

fn limits(outcome: &Outcome) -> String {
    let (stats, limits) = (&outcome.stats, outcome.limits);
    let seats = over(
        stats.above_seats,
        limits.total_active_users,
        "visitors inside",
    );
    let rate = over(
        stats.above_rate,
        limits.new_users_per_minute,
        "admissions a minute",
    );
    match (seats, rate) {
        (None, None) => format!(
            "the limits were never exceeded: at most {} inside, at most {} admitted in a minute.",
            grouped(stats.inside_max.into()),
            grouped(stats.admitted_in_a_minute_max.into()),
        ),
        (Some(one), None) | (None, Some(one)) => format!("the limit {one}."),
        (Some(seats), Some(rate)) => format!("the limit {seats}, and the limit {rate}."),
    }
}

/// `of 200 visitors inside was exceeded by up to 14 (7.0 %)`.
fn over(by: u32, limit: u32, what: &str) -> Option<String> {
    let part = percent(f64::from(by) / f64::from(limit.max(1)));
    let (by, limit) = (grouped(by.into()), grouped(limit.into()));
    (by != "0").then(|| format!("of {limit} {what} was exceeded by up to {by} ({part})"))
}

fn waits(outcome: &Outcome) -> String {
    let stats = &outcome.stats;
    let most = outcome.samples.iter().map(|sample| sample.waiting).max();
    let most = u64::from(most.unwrap_or(0));
    let got_in = match (stats.wait_ms_p50, stats.wait_ms_p99) {
        (Some(half), Some(most)) => format!(
            " Of those who got in after waiting, half waited {} at most, and 99 % {} at most.",
            duration(half),
            duration(most)
        ),
        _ => String::new(),
    };
    let left = match stats.abandoned {
        0 => String::new(),
        some => format!(
            " {} left while waiting.",
            counted(some, "visitor", "visitors")
        ),
    };
    if most == 0 && got_in.is_empty() && left.is_empty() {
        return "Nobody had to wait.".to_owned();
    }
    let waiting = match most {
        0 => "People waited for moments only.".to_owned(),
        1 => "One visitor at a time had to wait.".to_owned(),
        most => format!("Up to {} visitors waited at one time.", grouped(most)),
    };
    format!("{waiting}{got_in}{left}")
}

/// What was promised and not kept.
fn broken(outcome: &Outcome) -> Option<String> {
    let count = u64::try_from(outcome.violations.len()).unwrap_or(u64::MAX);
    let first = outcome.violations.first()?;
    let which = match first.promise {
        Promise::Seats => "never too many inside",
        Promise::Rate => "never too many admissions in a minute",
        Promise::Inside => "who is inside stays inside",
        Promise::Order => "nobody overtakes",
        Promise::NoWaste => "nobody waits while a slot is free",
        Promise::Recovery => "faults end",
    };
    let count = counted(count, "time", "times");
    let whose = match outcome.allocation {
        AllocationKind::Leases => {
            " This is a bug in Anteroom: please report the scenario and the seed."
        }
        _ => "",
    };
    Some(format!(
        "Promises were broken {count}, the first of them: {which}.{whose}"
    ))
}
