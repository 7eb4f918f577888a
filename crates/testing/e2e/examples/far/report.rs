//! Table and JSON of the measured cases.

use std::time::Duration;

use anteroom_demo::checker::Verdict;
use anteroom_e2e::newcomers::Findings;
use anteroom_e2e::table::are_limits_kept;
use anteroom_testkit::load::Latencies;
use serde_json::{Value, json};

use crate::cases::Case;

/// Result of one case.
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) seconds: u64,
    pub(crate) findings: Findings,
    /// Count of the origin.
    pub(crate) verdict: Verdict,
    /// Idle part of the machine's processors while newcomers came, in percent.
    pub(crate) idle: u64,
}

const COLUMNS: &[&str] = &[
    "case",
    "new/s",
    "newcomers",
    "queued",
    "first, though free",
    "from rest",
    "free for all",
    "full at first queue",
    "fill",
    "decision ms p50/p99",
    "inversion ms p50/p99",
    "overtaking",
    "ahead shown/true, error p50/p99",
    "most in 1 s",
    "most in 60 s",
    "most active",
    "late ms p99",
    "idle",
];

/// Returns the head of the table.
pub(crate) fn header() -> String {
    let rule = COLUMNS.iter().enumerate().map(|(column, _)| match column {
        0 => "---",
        _ => "---:",
    });
    let rule: Vec<&str> = rule.collect();
    format!("| {} |\n| {} |\n", COLUMNS.join(" | "), rule.join(" | "))
}

/// Meaning of the columns, in the order of the table.
const LEGEND: &[(&str, &str)] = &[
    (
        "new/s",
        "newcomers per second that this machine sent, at all nodes",
    ),
    ("queued", "newcomers whose first response queued them"),
    (
        "first, though free",
        "those of them who were first in line, with a seat and an admission free",
    ),
    ("from rest", "those of them before the first seat ended"),
    (
        "free for all",
        "queued although all who waited or asked could have been admitted",
    ),
    (
        "full at first queue",
        "seats taken when the first newcomer was queued",
    ),
    (
        "fill",
        "mean of the seats taken while as many visitors were there as seats, or more",
    ),
    ("decision", "from a newcomer's request to the response"),
    (
        "inversion",
        "by how much an admitted visitor came later than one who still waited",
    ),
    (
        "overtaking",
        "newcomers admitted at once while others waited who had come over a second earlier",
    ),
    (
        "ahead",
        "people ahead, as polls show, and the truth (medians); the difference",
    ),
    (
        "most active",
        "as the origin counts, and the limit; more is an error",
    ),
    (
        "late",
        "delay of first requests against the plan, by a machine that is too slow",
    ),
    ("idle", "idle part of the processors while newcomers came"),
];

/// Explains the columns.
pub(crate) fn legend() -> String {
    let mut text = String::from("\n");
    for (column, meaning) in LEGEND {
        text += &format!("{column}: {meaning}\n");
    }
    text
}

/// Returns all rows as JSON.
pub(crate) fn json(rows: &[Row]) -> Value {
    Value::Array(rows.iter().map(Row::json).collect())
}

impl Row {
    fn reached_per_second(&self) -> u64 {
        self.findings.newcomers / self.seconds
    }

    /// Returns the row of the table.
    pub(crate) fn table_row(&self) -> String {
        let found = &self.findings;
        let ahead = found.ahead_medians();
        let ahead = if found.ahead.is_empty() {
            "-".to_owned()
        } else {
            let (p50, p99) = (found.ahead_error(50), found.ahead_error(99));
            format!("{}/{}, {p50}/{p99}", ahead.shown, ahead.truth)
        };
        let cells = [
            self.case.name(),
            self.reached_per_second().to_string(),
            found.newcomers.to_string(),
            found.queued.to_string(),
            found.first_though_free.to_string(),
            found.first_though_free_from_rest.to_string(),
            found.though_free_for_all.to_string(),
            percent(found.utilization_at_first_queue),
            percent(found.fill_while_overloaded),
            quantiles(&found.decision),
            quantiles(&found.inversion),
            found.overtaking.to_string(),
            ahead,
            found.most_in_a_second.to_string(),
            found.most_in_60_s.to_string(),
            format!("{}/{}", self.verdict.most_inside, self.case.seats),
            format!("{:.1}", millis(found.late.quantile(99))),
            format!("{} %", self.idle),
        ];
        let mut row = format!("| {} |", cells.join(" | "));
        if found.failed + found.without_page > 0 {
            row += &format!(
                " {} requests failed, {} admitted visitors got no page",
                found.failed, found.without_page
            );
        }
        row
    }

    fn json(&self) -> Value {
        let (case, found) = (&self.case, &self.findings);
        let ahead = found.ahead_medians();
        json!({
            "case": case.name(),
            "new_per_second_at_node": case.per_second_at_node,
            "nodes": case.nodes * 2,
            "total_active_users": case.seats,
            "new_users_per_minute": case.per_minute,
            "session_duration_s": case.session_secs,
            "queueing_method": case.method,
            "root_round_trip_ms": case.round_trip_ms,
            "stays_s": case.stays_secs,
            "lasted_s": self.seconds,
            "newcomers": found.newcomers,
            "new_per_second_reached": self.reached_per_second(),
            "queued": found.queued,
            "first_though_free": found.first_though_free,
            "first_though_free_from_rest": found.first_though_free_from_rest,
            "though_free_for_all": found.though_free_for_all,
            "utilization_at_first_queue": found.utilization_at_first_queue,
            "fill_while_overloaded": found.fill_while_overloaded,
            "overloaded_ms": millis(found.overloaded_for),
            "decision_ms": quantiles_json(&found.decision),
            "inversion_ms": quantiles_json(&found.inversion),
            "overtaking": found.overtaking,
            "admitted": found.admitted,
            "most_admitted_in_1_s": found.most_in_a_second,
            "most_admitted_in_60_s": found.most_in_60_s,
            "ahead": {
                "count": found.ahead.len(),
                "shown_p50": ahead.shown,
                "true_p50": ahead.truth,
                "error_p50": found.ahead_error(50),
                "error_p99": found.ahead_error(99),
            },
            "most_active": self.verdict.most_inside,
            "most_admitted_in_a_minute": self.verdict.most_admissions_in_a_minute,
            "is_within_limits": are_limits_kept(&self.verdict),
            "late_ms": quantiles_json(&found.late),
            "idle_percent": self.idle,
            "failed_requests": found.failed,
            "without_page": found.without_page,
        })
    }
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0))
}

fn quantiles(times: &Latencies) -> String {
    if times.count() == 0 {
        return "-".to_owned();
    }
    let (p50, p99) = (millis(times.quantile(50)), millis(times.quantile(99)));
    format!("{p50:.1}/{p99:.1}")
}

fn quantiles_json(times: &Latencies) -> Value {
    json!({
        "count": times.count(),
        "p50": millis(times.quantile(50)),
        "p99": millis(times.quantile(99)),
        "max": millis(times.quantile(100)),
    })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
