//! Which figures stand in the table, under which names, and what do they mean? One registry for the
//! terminal and for the page.

use crate::chart::number::{duration, grouped, percent};
use anteroom_config::words;
use anteroom_sim::outcome::{Figures, Outcome, Violation};

/// Rows under one heading.
#[derive(Debug)]
pub(super) struct Group {
    /// The heading.
    pub(super) title: &'static str,
    /// From top to bottom.
    pub(super) rows: &'static [Row],
}

/// A figure.
#[derive(Debug)]
pub(super) struct Row {
    /// Its name; 40 characters at most.
    pub(super) name: &'static str,
    /// Index into [`NOTES`].
    pub(super) note: Option<usize>,
    /// Where its value comes from; 13 characters at most where numbers are of a size that occurs.
    value: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Figures(fn(&Figures) -> Cell),
    Outcome(fn(&Outcome) -> Cell),
}

impl Row {
    /// Its value in a column.
    pub(super) fn cell(&self, outcome: &Outcome) -> Cell {
        match self.value {
            Source::Figures(value) => value(&outcome.stats),
            Source::Outcome(value) => value(outcome),
        }
    }
}

/// A value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Cell {
    /// As written.
    pub(super) text: String,
    /// Whether a promise or a limit was broken: to be seen at once.
    pub(super) is_bad: bool,
}

/// What is not there.
const UNKNOWN: &str = "-";

/// What needs to be explained, in the order of the numbers in the table.
pub(super) const NOTES: [&str; 9] = [
    "How slots are shared among nodes. even: each node gets an equal part. curve: more than that \
     while the room is far from its limit. counters: shared counters give out numbers. leases: \
     slots \
     are lent ahead of demand; the only one that promises never to exceed a limit.",
    "The limits at the start. A scenario can change them under way; limits in force at a moment \
     are \
     in the charts.",
    "Promises of the product that were broken, counted up to 100. Only leases makes promises about \
     limits.",
    "Newcomers who had to wait although a seat and an admission were free in the world at that \
     moment, as a share of all newcomers. What pacing keeps for the rest of the minute is free \
     too, \
     and kept on purpose.",
    "Those of them who came while nobody waited who had come earlier: needless by any measure. A \
     share \
     of all newcomers too. The others waited behind somebody, which is what a queue is.",
    "The larger of seats taken over seats and of this minute's admissions over admissions, when \
     the \
     first visitor had to wait. 100 % is what one wishes for.",
    "How well the limit that binds was used while somebody waited, from a minute after the first \
     visitor had to.",
    "Somebody got in although another one, who was still asking, had come this much earlier; 99 % \
     of \
     admissions were at most this unfair. When a line runs out, newcomers go in beside those who \
     are \
     called and have not asked yet.",
    "Round trips to stores that a newcomer waited for before it got its first answer.",
];

/// The table.
pub(super) const GROUPS: [Group; 6] = [
    Group {
        title: "Visitors",
        rows: &[
            row("came", |f| count(f.visitors)),
            row("were told to wait", |f| count(f.queued)),
            row("got in", |f| count(f.admitted)),
            row("left while they waited", |f| count(f.abandoned)),
            row("thrown out with a valid ticket", |f| {
                bad_count(f.thrown_out)
            }),
        ],
    },
    Group {
        title: "Limits",
        rows: &[
            of("limit: inside at once", Some(1), |outcome| {
                plain(grouped(outcome.limits.total_active_users.into()))
            }),
            row("most inside at once", |f| count(f.inside_max.into())),
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
            of("broken promises", Some(2), |outcome| {
                bad_count(len(&outcome.violations))
            }),
        ],
    },
    Group {
        title: "Queueing too early, too late",
        rows: &[
            noted("queued although a slot was free", 3, |f| {
                plain(percent(f.queued_although_free))
            }),
            noted("  of them first in line", 4, |f| {
                plain(percent(f.queued_although_free_and_first))
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
        title: "Wait of those who got in after waiting",
        rows: &[
            row("half of them less than", |f| time(f.wait_ms_p50)),
            row("90 % of them less than", |f| time(f.wait_ms_p90)),
            row("99 % of them less than", |f| time(f.wait_ms_p99)),
            row("the longest", |f| time(f.wait_ms_max)),
            noted("order inversion, 99 %", 7, |f| {
                time(f.order_inversion_ms_p99)
            }),
        ],
    },
    Group {
        title: "What the decision costs",
        rows: &[
            noted("added latency of newcomers, half", 8, |f| {
                time(Some(f.added_latency_ms_p50))
            }),
            noted("added latency of newcomers, 99 %", 8, |f| {
                time(Some(f.added_latency_ms_p99))
            }),
            row("store calls per node and second", |f| {
                rate(f.local_calls_per_node_and_second)
            }),
            row("world calls per data center and second", |f| {
                rate(f.global_calls_per_data_center_and_second)
            }),
        ],
    },
    Group {
        title: "Simulation",
        rows: &[row("events", |f| count(f.events))],
    },
];

const fn row(name: &'static str, value: fn(&Figures) -> Cell) -> Row {
    Row {
        name,
        note: None,
        value: Source::Figures(value),
    }
}

const fn noted(name: &'static str, note: usize, value: fn(&Figures) -> Cell) -> Row {
    Row {
        name,
        note: Some(note),
        value: Source::Figures(value),
    }
}

const fn of(name: &'static str, note: Option<usize>, value: fn(&Outcome) -> Cell) -> Row {
    Row {
        name,
        note,
        value: Source::Outcome(value),
    }
}

/// The name of a column.
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

/// By how much a limit was exceeded: `never`, or `14 (7.0 %)`.
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
