//! Targets and whether they are met. A missed target is printed for a person to assess and is no
//! failure, as machines differ.

use std::fmt;

use serde::Serialize;

use crate::report::Report;
use crate::runs::newcomers::{Moment, Row};

/// Median latency of new visitors below the limit, with leases: no round trip.
const P50_US_MAX: f64 = 20.0;
/// Bounded wait, and what a scheduler may add to it.
const WAIT_US_MAX: f64 = 250_000.0 + SCHEDULING_US;
/// Delay by scheduling: a timer counts whole milliseconds, and two busy cores are shared with
/// servers and relays.
const SCHEDULING_US: f64 = 10_000.0;
/// Least ratio of the CPU time of counters to that of leases.
const CPU_PARTS_MIN: f64 = 20.0;
/// Store requests per second and node, of an active room.
const REQUESTS_MAX: f64 = 10.0;
/// Store requests per second and node of an idle room: its keep-alive, two requests every third of
/// a lease.
const IDLE_REQUESTS_MAX: f64 = 1.0;

/// Target and its measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) target: String,
    /// Worst measured value, in the unit of the target.
    pub(crate) measured: f64,
    pub(crate) is_met: bool,
}

impl Verdict {
    fn at_most(target: String, measured: f64, limit: f64) -> Self {
        Self {
            target,
            measured,
            is_met: measured <= limit,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_met { "met" } else { "MISSED" };
        write!(f, "{}: {word} ({:.2})", self.target, self.measured)
    }
}

/// Returns all targets with their results.
pub(crate) fn verdicts(report: &Report) -> Vec<Verdict> {
    let leases = |row: &&Row| row.allocation == "leases";
    let rows: Vec<&Row> = report.newcomers.rows.iter().filter(leases).collect();
    let worst = |value: fn(&Row) -> f64, moments: &[Moment]| {
        let of_moments = rows.iter().filter(|row| moments.contains(&row.moment));
        of_moments.map(|row| value(row)).fold(0.0, f64::max)
    };
    let round_trip = report.newcomers.local_meanwhile.p50_us;
    let all = [
        Moment::Steady,
        Moment::Begins,
        Moment::MinuteEnds,
        Moment::AtLimit,
    ];
    let below = rows.iter().filter(|row| row.moment != Moment::AtLimit);
    let queued: u64 = below.map(|row| row.queued).sum();
    let busy = report.calls.iter().filter(|row| row.per_second > 0);
    let busy = busy.map(|row| row.local_per_node + row.global_per_node);
    let idle = report.calls.iter().filter(|row| row.per_second == 0);
    let idle = idle.map(|row| row.local_per_node + row.global_per_node);
    let parts = 1.0 / report.cpu.ratio();
    vec![
        Verdict::at_most(
            format!("leases below the limit, p50 at most {P50_US_MAX:.0} us"),
            worst(|row| row.took.p50_us, &[Moment::Steady]),
            P50_US_MAX,
        ),
        Verdict::at_most(
            format!("leases below the limit, p99 at most one local round trip, {round_trip:.0} us"),
            worst(|row| row.took.p99_us, &[Moment::Steady]),
            round_trip,
        ),
        Verdict::at_most(
            format!("leases always, the longest at most {WAIT_US_MAX:.0} us"),
            worst(|row| row.took.max_us, &all),
            WAIT_US_MAX,
        ),
        Verdict::at_most(
            "leases below the limit, visitors queued".to_owned(),
            queued as f64,
            0.0,
        ),
        Verdict {
            target: format!("leases use at most 1/{CPU_PARTS_MIN:.0} of the CPU time of counters"),
            measured: parts,
            is_met: parts >= CPU_PARTS_MIN,
        },
        Verdict::at_most(
            format!(
                "requests of an active room per second and node, at most about {REQUESTS_MAX:.0}"
            ),
            busy.fold(0.0, f64::max),
            REQUESTS_MAX,
        ),
        Verdict::at_most(
            format!("requests of an idle room per second and node, at most {IDLE_REQUESTS_MAX:.0}"),
            idle.fold(0.0, f64::max),
            IDLE_REQUESTS_MAX,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[track_caller]
    fn check_missed(change: impl FnOnce(&mut Report), text: &str) {
        let mut report = report();
        change(&mut report);
        let missed: Vec<String> = verdicts(&report)
            .iter()
            .filter(|verdict| !verdict.is_met)
            .map(Verdict::to_string)
            .collect();
        assert_eq!(missed.len(), 1, "{missed:?}");
        assert!(missed[0].contains(text), "{missed:?}");
    }

    #[test]
    fn good_results_meet_every_target() {
        let all = verdicts(&report());
        assert!(all.iter().all(|verdict| verdict.is_met), "{all:?}");
        assert_eq!(
            all[0].to_string(),
            "leases below the limit, p50 at most 20 us: met (6.00)"
        );
    }

    #[test]
    fn each_missed_target_is_named_with_its_value() {
        check_missed(
            |report| report.newcomers.rows[1].took.p50_us = 21.0,
            "p50 at most 20 us: MISSED (21.00)",
        );
        check_missed(
            |report| report.newcomers.rows[1].took.p99_us = 221.0,
            "one local round trip, 220 us: MISSED (221.00)",
        );
        check_missed(
            |report| report.newcomers.rows[2].took.max_us = 300_000.0,
            "the longest at most 260000 us: MISSED (300000.00)",
        );
        check_missed(
            |report| report.newcomers.rows[1].queued = 3,
            "visitors queued: MISSED (3.00)",
        );
        check_missed(
            |report| report.cpu.leases.local_s = 0.1,
            "at most 1/20 of the CPU time of counters: MISSED (16.00)",
        );
        check_missed(
            |report| report.calls[2].local_per_node = 10.0,
            "an active room per second and node, at most about 10: MISSED (10.25)",
        );
        check_missed(
            |report| report.calls[0].local_per_node = 0.6 + 0.5,
            "an idle room",
        );
    }

    #[test]
    fn counters_and_full_rooms_have_no_latency_targets() {
        let mut report = report();
        report.newcomers.rows[0].took.p50_us = 1e6;
        report.newcomers.rows[2].took.p99_us = 2e5;
        assert!(verdicts(&report).iter().all(|verdict| verdict.is_met));
    }
}
