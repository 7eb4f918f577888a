//! Report as JSON. Names of fields are stable: new ones may come, none goes or changes its meaning.
//!
//! ```text
//! scenario     name, about, seed, starts_at (RFC 3339), length_ms, sample_every_ms,
//!              data_centers: [{name, nodes, share}]
//! assumptions  sentences for people
//! outcomes     one for each room, setting and allocation, in the order of the table:
//!   room, allocation ("even" | "curve" | "counters" | "leases")
//!   settings      [{key, value}]: what was changed against the file, as typed
//!   limits        {total_active_users, new_users_per_minute}, at the start
//!   figures       numbers of the table; shares are in 0..=1, times in ms; null = unknown
//!   samples       [{at_ms, inside, seats_limit, waiting, ...}], by time since the start
//!   data_centers  [{name, samples: [{admitted, arrived, waiting}]}], at the times of `samples`
//!   violations    [{promise ("I1" to "I6"), at_ms, seen}]: violated invariants, the first hundred
//! ```

use anteroom_config::time_text::rfc3339_millis;
use anteroom_config::words;
use anteroom_sim::outcome::{DataCenterOutcome, EventMark, Invariant, Outcome, Violation};
use anteroom_sim::scenario::model::{DataCenterPlan, Scenario};
use serde_json::{Value, json};

use crate::ASSUMPTIONS;

/// Returns outcomes as JSON. The head of `json.rs` lists the fields: `scenario`, `assumptions` and
/// `outcomes`, each of these with `room`, `allocation`, `settings`, `limits`, `stats`, `samples`,
/// `data_centers` and `violations`.
#[must_use]
pub fn json(scenario: &Scenario, outcomes: &[Outcome]) -> Value {
    json!({
        "scenario": {
            "name": scenario.name,
            "about": scenario.about,
            "seed": scenario.seed,
            "starts_at": rfc3339_millis(scenario.starts_at),
            "length_ms": scenario.length.0,
            "sample_every_ms": scenario.sample_every.0,
            "data_centers": scenario.data_centers.iter().map(plan).collect::<Vec<_>>(),
        },
        "assumptions": ASSUMPTIONS,
        "outcomes": outcomes.iter().map(outcome).collect::<Vec<_>>(),
    })
}

fn plan(plan: &DataCenterPlan) -> Value {
    json!({ "name": plan.name, "nodes": plan.nodes, "share": plan.share })
}

fn outcome(outcome: &Outcome) -> Value {
    let setting = |(key, value): &(String, String)| json!({ "key": key, "value": value });
    json!({
        "room": outcome.room,
        "allocation": words::allocation(outcome.allocation),
        "settings": outcome.settings.iter().map(setting).collect::<Vec<_>>(),
        "limits": {
            "total_active_users": outcome.limits.total_active_users,
            "new_users_per_minute": outcome.limits.new_users_per_minute,
        },
        "stats": outcome.stats,
        "samples": outcome.samples,
        "data_centers": outcome.data_centers.iter().map(data_center).collect::<Vec<_>>(),
        "events": outcome.events.iter().map(event).collect::<Vec<_>>(),
        "violations": outcome.violations.iter().map(violation).collect::<Vec<_>>(),
    })
}

fn data_center(data_center: &DataCenterOutcome) -> Value {
    json!({ "name": data_center.name, "samples": data_center.samples })
}

fn event(mark: &EventMark) -> Value {
    json!({ "name": mark.event, "phase": mark.phase.name(), "at_ms": mark.at_ms })
}

fn violation(violation: &Violation) -> Value {
    json!({
        "invariant": promise(violation.promise),
        "at_ms": violation.at_ms,
        "seen": violation.seen,
    })
}

/// Returns the number of an invariant.
pub(super) const fn promise(promise: Invariant) -> &'static str {
    match promise {
        Invariant::Seats => "I1",
        Invariant::Rate => "I2",
        Invariant::Inside => "I3",
        Invariant::Order => "I4",
        Invariant::NoWaste => "I5",
        Invariant::Recovery => "I6",
        Invariant::Reopening => "I7",
        Invariant::Count => "I8",
        Invariant::Held => "I9",
        Invariant::Phase => "I10",
        Invariant::Draw => "I11",
        Invariant::RunOff => "I12",
    }
}
