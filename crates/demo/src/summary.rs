//! Summary of a demo: the counts of the origin and of the visitors, as a table and as JSON.
//!
//! It adds nothing up: each number is as it was measured.

use std::fmt;
use std::process::ExitCode;

use anteroom_room::time::DurationMs;
use serde::Serialize;

use super::checker::Verdict;
use super::gateways::GatewayStats;
use super::layout::Layout;
use super::load::LoadReport;
use super::quantiles::Quantiles;

/// Result of a demo.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Whether the limits held, as far as the origin could see; see [`Verdict::is_within_limits`].
    pub is_within_limits: bool,
    /// Whether more visitors were active at once than `total_active_users`.
    pub is_over_total_active_users: bool,
    /// Whether more visitors were admitted in a minute than `new_users_per_minute`.
    pub is_over_new_users_per_minute: bool,
    /// Whether the demo was ended before its time.
    pub is_interrupted: bool,
    /// Length of the demo, in ms.
    pub duration_ms: u64,
    /// Session duration of the room, in ms.
    pub session_duration_ms: u64,
    /// Nodes that shared the limits, in all data centers together.
    pub nodes: u32,
    /// Number of data centers.
    pub data_centers: u32,
    /// Counts of the origin, with the limits.
    pub origin: Verdict,
    /// Response times of the origin.
    pub origin_response: Option<Quantiles>,
    /// Counts of the simulated visitors.
    pub visitors: LoadReport,
    /// Stats of the gateways at the end, visitors by browser included: admissions of all gateways,
    /// the rest as the first one knows it.
    pub gateway: GatewayStats,
}

/// Values of a summary that are not counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunContext {
    pub(super) is_interrupted: bool,
    pub(super) duration_ms: u64,
    pub(super) session_duration: DurationMs,
    pub(super) layout: Layout,
}

impl Summary {
    pub(super) const fn new(
        circumstances: RunContext,
        origin: Verdict,
        origin_response: Option<Quantiles>,
        visitors: LoadReport,
        gateway: GatewayStats,
    ) -> Self {
        Self {
            is_within_limits: origin.is_within_limits(),
            is_over_total_active_users: origin.is_over_total_active_users(),
            is_over_new_users_per_minute: origin.is_over_new_users_per_minute(),
            is_interrupted: circumstances.is_interrupted,
            duration_ms: circumstances.duration_ms,
            session_duration_ms: circumstances.session_duration.0,
            nodes: circumstances.layout.nodes(),
            data_centers: circumstances.layout.data_centers,
            origin,
            origin_response,
            visitors,
            gateway,
        }
    }

    /// Whether both promises held: no visitor too many, and no visitor with a seat queued.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        self.is_within_limits && self.visitors.queued_with_ticket == 0
    }

    /// Returns 0 if the summary is good, 1 if not.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::from(!self.is_good()))
    }

    /// Returns one JSON object in one line.
    ///
    /// # Panics
    ///
    /// Never: a summary is numbers, flags and text keys, which JSON can hold.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a summary holds only numbers, flags and text keys")
    }

    const fn layout(&self) -> Layout {
        Layout {
            data_centers: self.data_centers,
            // A summary that was not made here may say 0.
            nodes_in_each: match self.data_centers {
                0 => 0,
                data_centers => self.nodes / data_centers,
            },
        }
    }

    fn verdict_line(&self) -> &'static str {
        if self.is_over_total_active_users || self.is_over_new_users_per_minute {
            "A limit was exceeded."
        } else if self.origin.late_requests > 0 {
            "A visitor was let through after the end of its seat."
        } else if self.origin.unjudged_requests > 0 {
            "Some requests had no visitor headers: nothing is proved."
        } else if self.visitors.queued_with_ticket > 0 {
            "The limits were kept, but a visitor with a seat was queued."
        } else if self.origin.requests == 0 {
            "No visitor reached the origin: nothing is proved."
        } else {
            "The limits were kept."
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let early = if self.is_interrupted {
            ", ended early"
        } else {
            ""
        };
        write!(f, "After {}", seconds(self.duration_ms))?;
        let layout = self.layout();
        if !layout.is_alone() {
            write!(f, " on {layout}")?;
        }
        writeln!(f, "{early}:")?;
        writeln!(f)?;
        writeln!(f, "{:<34}{:>8}{:>8}", "The origin counted", "", "limit")?;
        let origin = &self.origin;
        limit_row(
            f,
            "most inside at once",
            origin.most_inside,
            origin.total_active_users,
        )?;
        limit_row(
            f,
            "most admissions in a minute",
            origin.most_admissions_in_a_minute,
            origin.new_users_per_minute,
        )?;
        row(f, "requests after the seat's end", origin.late_requests)?;
        row(
            f,
            "requests without visitor headers",
            origin.unjudged_requests,
        )?;
        row(f, "requests", origin.requests)?;
        quantiles_row(f, "response time", self.origin_response)?;
        writeln!(f)?;
        writeln!(f, "The visitors")?;
        let visitors = &self.visitors;
        row(f, "arrived", visitors.arrived)?;
        row(f, "admitted", visitors.admitted)?;
        row(f, "waiting at the end", visitors.waiting)?;
        row(f, "gave up waiting", visitors.gave_up)?;
        row(f, "left because of errors", visitors.failed)?;
        row(
            f,
            "queued although they had a seat",
            visitors.queued_with_ticket,
        )?;
        quantiles_row(f, "wait until admitted", visitors.wait)?;
        for (kind, count) in &visitors.errors {
            row(f, &format!("error {kind}"), count)?;
        }
        writeln!(f)?;
        write!(f, "{}", self.verdict_line())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(f, "  {name:<32}{value:>8}")
}

fn limit_row(f: &mut fmt::Formatter<'_>, name: &str, value: usize, limit: u32) -> fmt::Result {
    let flag = if value > limit as usize {
        "  EXCEEDED"
    } else {
        ""
    };
    writeln!(f, "  {name:<32}{value:>8}{limit:>8}{flag}")
}

fn quantiles_row(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    quantiles: Option<Quantiles>,
) -> fmt::Result {
    let Some(quantiles) = quantiles else {
        return row(f, name, "none");
    };
    writeln!(
        f,
        "  {name:<32}{:>8}  (half; 90 %: {}, 99 %: {}, longest: {})",
        seconds(quantiles.p50_ms),
        seconds(quantiles.p90_ms),
        seconds(quantiles.p99_ms),
        seconds(quantiles.max_ms),
    )
}

/// Formats milliseconds up to a second, then seconds with one decimal, rounded down.
fn seconds(ms: u64) -> String {
    if ms < 1_000 {
        format!("{ms} ms")
    } else {
        format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
    }
}

#[cfg(test)]
mod tests {
    use anteroom_room::rules::Limits;
    use anteroom_room::time::Timestamp;

    use super::*;
    use crate::checker::Checker;

    fn summary(change: impl FnOnce(&mut Verdict, &mut LoadReport)) -> Summary {
        summary_of(Layout::ALONE, change)
    }

    fn summary_of(layout: Layout, change: impl FnOnce(&mut Verdict, &mut LoadReport)) -> Summary {
        let limits = Limits {
            total_active_users: 50,
            new_users_per_minute: 300,
        };
        let mut verdict = Checker::new(DurationMs::from_secs(10)).verdict(limits, Timestamp(1));
        verdict.requests = 900;
        verdict.most_inside = 50;
        verdict.most_admissions_in_a_minute = 211;
        let mut visitors = LoadReport::default();
        change(&mut verdict, &mut visitors);
        let circumstances = RunContext {
            is_interrupted: false,
            duration_ms: 60_012,
            session_duration: DurationMs::from_secs(10),
            layout,
        };
        Summary::new(
            circumstances,
            verdict,
            None,
            visitors,
            GatewayStats::default(),
        )
    }

    #[test]
    fn a_count_at_the_limit_is_within_it() {
        let summary = summary(|_, _| {});
        assert!(summary.is_good());
        assert!(!summary.is_over_total_active_users);
        let table = summary.to_string();
        assert!(
            table.contains("most inside at once                   50      50\n"),
            "{table}"
        );
        assert!(table.ends_with("The limits were kept."), "{table}");
    }

    #[test]
    fn several_nodes_are_shown_and_one_is_not() {
        let alone = summary(|_, _| {});
        assert!(alone.to_string().starts_with("After 60.0 s:\n"), "{alone}");
        let layout = Layout {
            data_centers: 2,
            nodes_in_each: 3,
        };
        let six = summary_of(layout, |_, _| {});
        let said = "After 60.0 s on 6 nodes in 2 data centers:\n";
        assert!(six.to_string().starts_with(said), "{six}");
        let json: serde_json::Value = serde_json::from_str(&six.to_json()).unwrap();
        assert_eq!(
            (&json["nodes"], &json["data_centers"]),
            (&6.into(), &2.into())
        );
    }

    #[test]
    fn a_broken_promise_is_not_good_and_is_shown() {
        type Change = fn(&mut Verdict, &mut LoadReport);
        let cases: [(Change, &str); 5] = [
            (
                |verdict, _| verdict.most_inside = 51,
                "A limit was exceeded.",
            ),
            (
                |verdict, _| verdict.most_admissions_in_a_minute = 301,
                "A limit was exceeded.",
            ),
            (
                |verdict, _| verdict.late_requests = 1,
                "after the end of its seat.",
            ),
            (
                |verdict, _| verdict.unjudged_requests = 1,
                "nothing is proved.",
            ),
            (
                |_, visitors| visitors.queued_with_ticket = 1,
                "a visitor with a seat was queued.",
            ),
        ];
        for (change, text) in cases {
            let summary = summary(change);
            assert!(!summary.is_good(), "{text}");
            assert!(summary.to_string().ends_with(text), "{summary}");
        }
    }

    #[test]
    fn an_origin_without_visitors_proves_nothing() {
        let summary = summary(|verdict, _| verdict.requests = 0);
        assert!(
            summary
                .to_string()
                .ends_with("No visitor reached the origin: nothing is proved.")
        );
    }

    #[test]
    fn the_json_is_one_line_with_limits_and_counts() {
        let json = summary(|_, _| {}).to_json();
        assert!(!json.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["origin"]["most_inside"], 50);
        assert_eq!(value["origin"]["total_active_users"], 50);
        assert_eq!(value["is_within_limits"], true);
        assert_eq!(value["visitors"]["wait"], serde_json::Value::Null);
    }
}
