//! The runs as one JSON object, for programs.

use anteroom_config::RateText;
use serde_json::{Value, json};

use crate::command::{Comparison, Run};

/// Everything that was asked, and what came out.
pub(crate) fn json(comparison: &Comparison) -> String {
    let runs: Vec<Value> = comparison.runs.iter().map(run).collect();
    let value = json!({
        "traffic": comparison.traffic.about,
        "limit": RateText::of(comparison.rate).to_string(),
        "nodes": comparison.nodes,
        "seed": comparison.seed,
        "runs": runs,
    });
    format!("{value:#}\n")
}

fn run(run: &Run) -> Value {
    let figures = run.outcome.figures;
    json!({
        "algorithm": run.algorithm.word(),
        "store": run.store.word(),
        "calls": figures.calls,
        "admitted": figures.admitted,
        "refused": figures.refused,
        "undecided": figures.undecided,
        "wrongly_admitted": figures.wrongly_admitted,
        "wrongly_refused": figures.wrongly_refused,
        "highest_in_any_window": figures.highest,
        "most_in_any_window": run.most,
        "stranded": figures.stranded,
        "messages": figures.messages,
        "lag_ms": figures.lag.0 / 1_000,
        "writes": figures.writes,
        "writes_lost": figures.writes_lost,
    })
}
