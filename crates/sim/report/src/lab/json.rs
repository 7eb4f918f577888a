//! Runs as one JSON object.

use serde_json::{Map, Value, json};

use crate::lab::comparison::{Comparison, LeftOut, Run};

/// Returns inputs and results. `docs/reference/commands-simulate.md` describes each field.
pub(crate) fn json(comparison: &Comparison) -> String {
    let mut fields: Map<String, Value> = comparison.input.values().collect();
    let runs = comparison.runs.iter().map(run).collect();
    let left_out = comparison.left_out.iter().map(left_out).collect();
    fields.extend([
        ("traffic".to_owned(), json!(comparison.traffic.about)),
        ("runs".to_owned(), runs),
        ("left_out".to_owned(), left_out),
    ]);
    format!("{:#}\n", Value::Object(fields))
}

fn left_out(left_out: &LeftOut) -> Value {
    json!({
        "algorithm": left_out.algorithm.name(),
        "store": left_out.store.word(),
        "reason": left_out.reason,
    })
}

fn run(run: &Run) -> Value {
    let stats = run.outcome.stats;
    json!({
        "algorithm": run.algorithm.name(),
        "store": run.store.word(),
        "requests": stats.requests,
        "allowed": stats.admitted,
        "rejected": stats.rejected,
        "undecided": stats.undecided,
        "wrongly_allowed": stats.wrongly_allowed,
        "wrongly_rejected": stats.wrongly_rejected,
        "highest_in_any_window": stats.highest,
        "most_in_any_window": run.most,
        "stranded": stats.stranded,
        "messages": stats.messages,
        "lag_ms": stats.lag.0 / 1_000,
        "writes": stats.writes,
        "writes_lost": stats.writes_lost,
    })
}
