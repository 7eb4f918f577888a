//! Rows of the table: names, values and notes, for the terminal and for the page.

use crate::chart::number::{duration, grouped, percent};
use anteroom_config::words;
use anteroom_sim::outcome::{Outcome, RunStatistics, Violation};

/// Rows under one heading.
#[derive(Debug)]
pub(super) struct Group {
    /// Heading of the group.
    pub(super) title: &'static str,
    /// Rows from top to bottom.
    pub(super) rows: &'static [Row],
}

/// Row of the table.
#[derive(Debug)]
pub(super) struct Row {
    /// Name of the row; 40 characters at most.
    pub(super) name: &'static str,
    /// Index into [`NOTES`].
    pub(super) note: Option<usize>,
    /// Source of its value; 13 characters at most for realistic numbers.
    value: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    RunStatistics(fn(&RunStatistics) -> Cell),
    Outcome(fn(&Outcome) -> Cell),
}

impl Row {
    /// Returns its value in a column.
    pub(super) fn cell(&self, outcome: &Outcome) -> Cell {
        match self.value {
            Source::RunStatistics(value) => value(&outcome.stats),
            Source::Outcome(value) => value(outcome),
        }
    }
}

/// Value of a row in a column.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Cell {
    /// Text of the value.
    pub(super) text: String,
    /// Whether an invariant or a limit was violated, so that it is highlighted.
    pub(super) is_bad: bool,
}

/// Text of an unknown value.
const UNKNOWN: &str = "-";

/// Explanations, in the order of the numbers in the table.
pub(super) const NOTES: [&str; 9] = [
    "The allocation of slots among nodes. With even, each node gets an equal part. With curve, \
     each node gets more than that while the room is far from its limit. With counters, shared \
     counters give out numbers. With leases, nodes lease slots ahead of demand. Only leases never \
     exceed a limit.",
    "The limits at the start. A scenario can change them. The charts have the limits in force at \
     each moment.",
    "Violations of the product's invariants, counted up to 100. Only leases keep limits as an \
     invariant.",
    "New visitors who were queued although no earlier visitor waited and a slot was free, as a \
     share of all new visitors. A slot is a seat and an admission, anywhere. There was no reason \
     to queue them.",
    "New visitors who were queued while a slot was free, as a share of all new visitors. Nearly \
     all of them queue behind earlier visitors, who take that slot with their next request. So a \
     high share is no fault. Admissions that pacing reserves for the rest of the minute count as \
     free.",
    "The larger of two shares when the first visitor was queued: seats taken of all seats, and \
     this minute's admissions of all admissions. 100 % is ideal.",
    "Mean use of the limit that binds while visitors waited. It is measured from a minute after \
     the first visitor was queued.",
    "By how much later an admitted visitor had come than the oldest visitor who still polled. \
     For 99 % of admissions it was at most this. When a queue runs empty, new visitors enter \
     beside eligible ones who have not polled yet.",
    "Round trips to stores that a new visitor waited for before its first response.",
];

/// All groups of the table.
pub(super) const GROUPS: [Group; 6] = [
    Group {
        title: "Visitors",
        rows: &[
            row("came", |f| count(f.visitors)),
            row("queued", |f| count(f.queued)),
            row("admitted", |f| count(f.admitted)),
            row("left while waiting", |f| count(f.abandoned)),
            row("queued with a valid ticket", |f| {
                bad_count(f.queued_with_ticket)
            }),
        ],
    },
    Group {
        title: "Limits",
        rows: &[
            of("limit: active at once", Some(1), |outcome| {
                plain(grouped(outcome.limits.total_active_users.into()))
            }),
            row("most active at once", |f| count(f.inside_max.into())),
            of("above that limit, at most", None, |outcome| {
                above(outcome.stats.above_seats, outcome.limits.total_active_users)
            }),
            of("limit: admissions a minute", Some(1), |outcome| {
                plain(grouped(outcome.limits.new_users_per_minute.into()))
            }),
            row("most admissions in a minute", |f| {
                count(f.admitted_in_a_minute_max.into())
            }),
            of("above that limit, at most", None, |outcome| {
                above(
                    outcome.stats.above_rate,
                    outcome.limits.new_users_per_minute,
                )
            }),
            of("violated invariants", Some(2), |outcome| {
                bad_count(len(&outcome.violations))
            }),
        ],
    },
    Group {
        title: "Queueing too early, too late",
        rows: &[
            noted("queued first in line though free", 3, |f| {
                plain(percent(f.queued_although_free_and_first))
            }),
            noted("queued while a slot was free", 4, |f| {
                plain(percent(f.queued_although_free))
            }),
            noted("utilization when queueing began", 5, |f| {
                share(f.utilization_at_first_queue)
            }),
            noted("fill while overloaded", 6, |f| {
                share(f.fill_while_overloaded)
            }),
        ],
    },
    Group {
        title: "Wait of admitted visitors who waited",
        rows: &[
            row("half of them less than", |f| time(f.wait_ms_p50)),
            row("90 % of them less than", |f| time(f.wait_ms_p90)),
            row("99 % of them less than", |f| time(f.wait_ms_p99)),
            row("the longest", |f| time(f.wait_ms_max)),
            noted("order inversion, 99 %", 7, |f| {
                time(f.order_inversion_ms_p99)
            }),
            row("announced ranges that held the truth", |f| {
                share(f.announced_waits.map(|waits| waits.right))
            }),
        ],
    },
    Group {
        title: "Cost of decisions",
        rows: &[
            noted("added latency of new visitors, half", 8, |f| {
                time(Some(f.added_latency_ms_p50))
            }),
            noted("added latency of new visitors, 99 %", 8, |f| {
                time(Some(f.added_latency_ms_p99))
            }),
            row("store requests per node and second", |f| {
                rate(f.local_requests_per_node_and_second)
            }),
            row("root requests per data center and second", |f| {
                rate(f.global_requests_per_data_center_and_second)
            }),
        ],
    },
    Group {
        title: "Simulation",
        rows: &[row("events", |f| count(f.events))],
    },
];

const fn row(name: &'static str, value: fn(&RunStatistics) -> Cell) -> Row {
    Row {
        name,
        note: None,
        value: Source::RunStatistics(value),
    }
}

const fn noted(name: &'static str, note: usize, value: fn(&RunStatistics) -> Cell) -> Row {
    Row {
        name,
        note: Some(note),
        value: Source::RunStatistics(value),
    }
}

const fn of(name: &'static str, note: Option<usize>, value: fn(&Outcome) -> Cell) -> Row {
    Row {
        name,
        note,
        value: Source::Outcome(value),
    }
}

/// Returns the name of a column.
pub(super) const fn column(outcome: &Outcome) -> &'static str {
    words::allocation(outcome.allocation)
}

const fn plain(text: String) -> Cell {
    Cell {
        text,
        is_bad: false,
    }
}

fn count(number: u64) -> Cell {
    plain(grouped(number))
}

fn bad_count(number: u64) -> Cell {
    Cell {
        text: grouped(number),
        is_bad: number > 0,
    }
}

/// Formats the excess over a limit: `never`, or `14 (7.0 %)`.
fn above(by: u32, limit: u32) -> Cell {
    if by == 0 {
        return plain("never".to_owned());
    }
    let part = percent(f64::from(by) / f64::from(limit.max(1)));
    Cell {
        text: format!("{} ({part})", grouped(by.into())),
        is_bad: true,
    }
}

fn share(share: Option<f64>) -> Cell {
    plain(share.map_or_else(|| UNKNOWN.to_owned(), percent))
}

fn time(ms: Option<u64>) -> Cell {
    plain(ms.map_or_else(|| UNKNOWN.to_owned(), duration))
}

fn rate(per_second: f64) -> Cell {
    plain(format!("{per_second:.2}"))
}

fn len(violations: &[Violation]) -> u64 {
    u64::try_from(violations.len()).unwrap_or(u64::MAX)
}
