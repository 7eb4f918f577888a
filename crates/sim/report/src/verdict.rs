//! Summary in plain words: whether a limit was exceeded, and how long visitors waited.

use crate::chart::number::{counted, duration, grouped, percent};
use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::rules::AllocationKind;
use anteroom_room::time::DurationMs;
use anteroom_sim::outcome::{Invariant, Outcome};

use crate::rows::column;
use crate::variant::Variant;

/// Summary of one allocation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sentence {
    /// Text of a few sentences.
    pub(super) text: String,
    /// Whether a limit or an invariant was violated.
    pub(super) is_bad: bool,
}

/// Returns a summary of each allocation of a room.
pub(super) fn sentences(variant: &Variant<'_>) -> Vec<Sentence> {
    variant.outcomes.iter().map(|outcome| of(outcome)).collect()
}

fn of(outcome: &Outcome) -> Sentence {
    let stats = &outcome.stats;
    let is_over = stats.above_seats > 0 || stats.above_rate > 0;
    let mut text = format!("With {}, {}", column(outcome), limits(outcome));
    text.push(' ');
    text.push_str(&waits(outcome));
    if let Some(events) = events(outcome) {
        text.push(' ');
        text.push_str(&events);
    }
    if let Some(violations) = violated(outcome) {
        text.push(' ');
        text.push_str(&violations);
    }
    Sentence {
        text,
        is_bad: is_over || !outcome.violations.is_empty() || stats.queued_with_ticket > 0,
    }
}

fn limits(outcome: &Outcome) -> String {
    let (stats, limits) = (&outcome.stats, outcome.limits);
    let seats = over(
        stats.above_seats,
        limits.total_active_users,
        "active visitors",
    );
    let rate = over(
        stats.above_rate,
        limits.new_users_per_minute,
        "admissions a minute",
    );
    match (seats, rate) {
        (None, None) => format!(
            "the limits were never exceeded: at most {} active, at most {} admitted in a minute.",
            grouped(stats.inside_max.into()),
            grouped(stats.admitted_in_a_minute_max.into()),
        ),
        (Some(one), None) | (None, Some(one)) => format!("the limit {one}."),
        (Some(seats), Some(rate)) => format!("the limit {seats}, and the limit {rate}."),
    }
}

/// Describes an excess: `of 200 active visitors was exceeded by up to 14 (7.0 %)`.
fn over(by: u32, limit: u32, what: &str) -> Option<String> {
    let part = percent(f64::from(by) / f64::from(limit.max(1)));
    let (by, limit) = (grouped(by.into()), grouped(limit.into()));
    (by != "0").then(|| format!("of {limit} {what} was exceeded by up to {by} ({part})"))
}

fn waits(outcome: &Outcome) -> String {
    let stats = &outcome.stats;
    let most = outcome.samples.iter().map(|sample| sample.waiting).max();
    let most = u64::from(most.unwrap_or(0));
    let waited = match (stats.wait_ms_p50, stats.wait_ms_p99) {
        (Some(half), Some(most)) => format!(
            " Of admitted visitors who waited, half waited {} at most, and 99 % {} at most.",
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
    if most == 0 && waited.is_empty() && left.is_empty() {
        return "No visitor waited.".to_owned();
    }
    let waiting = match most {
        0 => "Visitors waited for moments only.".to_owned(),
        1 => "One visitor at a time waited.".to_owned(),
        most => format!("Up to {} visitors waited at the same time.", grouped(most)),
    };
    format!("{waiting}{waited}{left}")
}

/// Describes when events reached their phases, by time of day: `Event sale: prequeue at 10:00:00.`
fn events(outcome: &Outcome) -> Option<String> {
    let mut sentences: Vec<(&str, String)> = Vec::new();
    for mark in &outcome.events {
        let at = rfc3339_secs(outcome.starts_at + DurationMs(mark.at_ms));
        let time = at.split('T').nth(1).unwrap_or(&at).trim_end_matches('Z');
        let part = format!("{} at {time}", mark.phase.name());
        match sentences.iter_mut().find(|(name, _)| *name == mark.event) {
            Some((_, parts)) => *parts = format!("{parts}, {part}"),
            None => sentences.push((&mark.event, part)),
        }
    }
    let sentences = sentences.into_iter();
    let sentences = sentences.map(|(name, parts)| format!("Event {name}: {parts} (UTC)."));
    let text = sentences.collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// Describes violated invariants.
fn violated(outcome: &Outcome) -> Option<String> {
    let count = u64::try_from(outcome.violations.len()).unwrap_or(u64::MAX);
    let first = outcome.violations.first()?;
    let which = match first.promise {
        Invariant::Seats => "active visitors stay within the limit",
        Invariant::Rate => "admissions of a minute stay within the limit",
        Invariant::Inside => "a visitor with a valid ticket is never queued",
        Invariant::Order => "no visitor behind the watermark is admitted",
        Invariant::NoWaste => "no eligible visitor waits while a slot is free",
        Invariant::Recovery => "the room recovers after a fault",
        Invariant::Reopening => "the room opens again after its store came back",
        Invariant::Count => "every waiting visitor is counted once",
        Invariant::Held => "nobody enters between the prequeue of an event and its start",
        Invariant::Phase => "the phase of an event only moves forward",
        Invariant::Draw => "the draw of an event happens once, of those who came in its prequeue",
        Invariant::RunOff => "after an event, all pass only when nobody waits",
    };
    let count = counted(count, "time", "times");
    let hint = match outcome.allocation {
        AllocationKind::Leases => {
            " This is a bug in Anteroom. Report it with the scenario and the seed."
        }
        _ => "",
    };
    Some(format!(
        "Invariants were violated {count}. The first one: {which}.{hint}"
    ))
}
