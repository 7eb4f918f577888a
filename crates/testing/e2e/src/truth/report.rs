//! Table and JSON of runs.

use std::time::Duration;

use anteroom_testkit::load::Latencies;
use serde_json::{Value, json};

use super::RangeCounts;
use super::run::Outcome;
use crate::table::are_limits_kept;

/// Share of ranges that are right, in percent: the goal.
const GOAL_PERCENT: u64 = 90;

const COLUMNS: &[&str] = &[
    "run",
    "visitors",
    "entered",
    "right: first, all",
    "early",
    "late",
    "no range",
    "too wide",
    "sentence: right, too wide",
    "error of the first: p50, p99",
    "rises: named, not named",
    "by the nodes: right, early, late",
    "most active",
    "most in a minute",
    "seconds",
    "idle",
    "goal",
];

/// Meaning of the columns, in the order of the table.
const LEGEND: &[(&str, &str)] = &[
    (
        "right",
        "ranges that held the admission: the first of each visitor, and all of them",
    ),
    (
        "early, late",
        "ranges whose visitor was admitted before or after them: of the first, of all",
    ),
    (
        "no range",
        "responses without one, of those to visitors who waited for their turn and were counted",
    ),
    (
        "too wide",
        "ranges that are wider than half of their wait and a minute",
    ),
    (
        "sentence",
        "the same for the range in whole minutes that the page shows, of all",
    ),
    (
        "error of the first",
        "difference between the middle of the first range and the wait that followed",
    ),
    (
        "rises",
        "positions that rose after they had been shown, with a reason and without",
    ),
    (
        "by the nodes",
        "first ranges, by anteroom_announced_waits_total of all nodes",
    ),
    (
        "most active, most in a minute",
        "as the origin counts, and the limit; more is an error",
    ),
    (
        "goal",
        "90 % of the first ranges and of all are right, and not too wide",
    ),
];

/// Returns the head of the table.
#[must_use]
pub fn header() -> String {
    let rule = COLUMNS.iter().enumerate().map(|(column, _)| match column {
        0 => "---",
        _ => "---:",
    });
    let rule: Vec<&str> = rule.collect();
    format!("| {} |\n| {} |\n", COLUMNS.join(" | "), rule.join(" | "))
}

/// Explains the columns.
#[must_use]
pub fn legend() -> String {
    let mut text = String::from("\n");
    for (column, meaning) in LEGEND {
        text += &format!("{column}: {meaning}\n");
    }
    text
}

/// Returns all runs as JSON.
#[must_use]
pub fn json(outcomes: &[Outcome]) -> Value {
    Value::Array(outcomes.iter().map(Outcome::json).collect())
}

impl Outcome {
    /// Whether nine in ten of the ranges are right and useful.
    #[must_use]
    pub fn meets_goal(&self) -> bool {
        let is_met = |ranges: RangeCounts| {
            let useful = ranges.right.saturating_sub(ranges.wide);
            ranges.count() > 0 && useful * 100 >= ranges.count() * GOAL_PERCENT
        };
        is_met(self.findings.first) && is_met(self.findings.all)
    }

    /// Returns the row of the table.
    #[must_use]
    pub fn table_row(&self) -> String {
        let found = &self.findings;
        let both = |part: fn(&RangeCounts) -> u64| {
            let of = |ranges: &RangeCounts| percent(part(ranges), ranges.count());
            format!("{}, {}", of(&found.first), of(&found.all))
        };
        let sentences = &found.all_sentences;
        let [right, early, late] = self.by_nodes;
        let verdict = &self.verdict;
        let cells = [
            self.case.name(),
            found.visitors.to_string(),
            found.entered.to_string(),
            both(|ranges| ranges.right),
            both(|ranges| ranges.early),
            both(|ranges| ranges.late),
            percent(found.without_range, found.responses),
            percent(found.all.wide, found.all.count()),
            format!(
                "{}, {}",
                percent(sentences.right, sentences.count()),
                percent(sentences.wide, sentences.count())
            ),
            format!(
                "{:.1} s, {:.1} s",
                seconds(&found.first_error, 50),
                seconds(&found.first_error, 99)
            ),
            format!(
                "{}, {}",
                found.rises_with_reason, found.rises_without_reason
            ),
            format!("{right}, {early}, {late}"),
            format!("{}/{}", verdict.most_inside, verdict.total_active_users),
            format!(
                "{}/{}",
                verdict.most_admissions_in_a_minute, verdict.new_users_per_minute
            ),
            self.lasted.as_secs().to_string(),
            format!("{} %", self.idle),
            if self.meets_goal() { "met" } else { "MISSED" }.to_owned(),
        ];
        let mut row = format!("| {} |", cells.join(" | "));
        if found.failed > 0 {
            row += &format!(" {} requests failed", found.failed);
        }
        row
    }

    fn json(&self) -> Value {
        let (case, found) = (&self.case, &self.findings);
        let [right, early, late] = self.by_nodes;
        json!({
            "run": case.name(),
            "deployment": case.deployment.name(),
            "opens_after_s": case.opens_after.as_ref().map(Duration::as_secs),
            "session_duration_s": case.session_secs,
            "visitors": found.visitors,
            "entered": found.entered,
            "first_ranges": ranges(&found.first),
            "all_ranges": ranges(&found.all),
            "first_sentences": ranges(&found.first_sentence),
            "all_sentences": ranges(&found.all_sentences),
            "responses": found.responses,
            "without_range": found.without_range,
            "with_reason": found.with_reason,
            "position_rises_with_reason": found.rises_with_reason,
            "position_rises_without_reason": found.rises_without_reason,
            "first_error_s": {
                "p50": seconds(&found.first_error, 50),
                "p99": seconds(&found.first_error, 99),
                "max": seconds(&found.first_error, 100),
            },
            "by_nodes": { "right": right, "early": early, "late": late },
            "total_active_users": self.verdict.total_active_users,
            "most_active": self.verdict.most_inside,
            "new_users_per_minute": self.verdict.new_users_per_minute,
            "most_admitted_in_a_minute": self.verdict.most_admissions_in_a_minute,
            "is_within_limits": are_limits_kept(&self.verdict),
            "meets_goal": self.meets_goal(),
            "lasted_s": self.lasted.as_secs_f64(),
            "idle_percent": self.idle,
            "failed_requests": found.failed,
        })
    }
}

fn ranges(ranges: &RangeCounts) -> Value {
    json!({
        "count": ranges.count(),
        "right": ranges.right,
        "early": ranges.early,
        "late": ranges.late,
        "too_wide": ranges.wide,
    })
}

fn percent(part: u64, of: u64) -> String {
    if of == 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", part as f64 * 100.0 / of as f64)
}

fn seconds(times: &Latencies, percent: usize) -> f64 {
    times.quantile(percent).as_secs_f64()
}
