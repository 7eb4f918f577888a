//! Report of the measurements, as tables and as JSON.

use std::fmt::Write as _;

use anteroom_bench::Machine;
use serde::Serialize;

use crate::latency::Quantiles;
use crate::runs::capacity::{Beyond, Capacity, Run};
use crate::runs::cpu::{Cost, Cpu};
use crate::runs::newcomers::{Moment, Newcomers};
use crate::runs::store_requests;
use crate::verdict::{Verdict, verdicts};

/// All measurements.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) newcomers: Newcomers,
    pub(crate) cpu: Cpu,
    pub(crate) calls: Vec<store_requests::Row>,
    pub(crate) capacity: Vec<Capacity>,
}

/// Report with the targets.
#[derive(Serialize)]
struct ReportWithTargets<'a> {
    #[serde(flatten)]
    report: &'a Report,
    targets: Vec<Verdict>,
}

impl Report {
    /// # Errors
    ///
    /// If a number cannot be encoded, which does not happen.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&ReportWithTargets {
            report: self,
            targets: verdicts(self),
        })
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text)
            .expect("writing to a String does not fail");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let Machine { cores, load_before } = &self.machine;
        let load = load_before.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.2}"));
        writeln!(text, "{cores} cores, load average before: {load}\n")?;
        text.push_str(&newcomers_table(&self.newcomers));
        self.write_cpu(text)?;
        self.write_requests(text)?;
        self.write_capacity(text)?;
        for verdict in verdicts(self) {
            writeln!(text, "{verdict}")?;
        }
        Ok(())
    }

    fn write_cpu(&self, text: &mut String) -> std::fmt::Result {
        let Cpu {
            nodes,
            per_node,
            counters,
            leases,
            idle_s_per_s,
        } = &self.cpu;
        writeln!(
            text,
            "CPU time of redis-server, {per_node} new visitors per second at each of {nodes} \
             nodes\n\n\
             | allocation | visitors | queued | local CPU s | global CPU s | CPU s per million |\n\
             | --- | ---: | ---: | ---: | ---: | ---: |"
        )?;
        for (name, cost) in [("counters", counters), ("leases", leases)] {
            let Cost {
                visitors,
                queued,
                local_s,
                world_s,
                ..
            } = cost;
            let per_million = cost.per_million();
            writeln!(
                text,
                "| {name} | {visitors} | {queued} | {local_s:.3} | {world_s:.3} | \
                 {per_million:.2} |"
            )?;
        }
        let (all, net) = (1.0 / self.cpu.ratio(), 1.0 / self.cpu.ratio_without_idle());
        writeln!(
            text,
            "\nleases use 1/{all:.1} of counters; 1/{net:.1} without the {idle_s_per_s:.4} CPU \
             seconds per second that the three idle servers use\n"
        )
    }

    fn write_requests(&self, text: &mut String) -> std::fmt::Result {
        text.push_str(
            "Store requests per second and node, leases\n\n\
             | new per second | decided per second | queued | local store | global store |\n\
             | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for row in &self.calls {
            writeln!(
                text,
                "| {} | {:.0} | {} | {:.2} | {:.2} |",
                row.per_second,
                row.answered_per_s,
                row.queued,
                row.local_per_node,
                row.global_per_node
            )?;
        }
        text.push('\n');
        Ok(())
    }

    fn write_capacity(&self, text: &mut String) -> std::fmt::Result {
        text.push_str(
            "Capacity of the redis-server of a data center: rooms under load times nodes\n\n\
             | by | nodes | rooms | rooms x nodes | cores | us per second, room and node | \
             requests per second, room and node | global cores | record, bytes | queued |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for capacity in &self.capacity {
            for run in &capacity.runs {
                write_run(text, "nodes", run)?;
            }
            if let Some(beyond) = &capacity.beyond {
                write_run(text, "requests alone", &beyond.echo_of_large)?;
                write_run(text, "requests alone", &beyond.echo)?;
            }
        }
        for Capacity { nodes, beyond, .. } in &self.capacity {
            let Some(Beyond { room_nodes, .. }) = beyond else {
                writeln!(
                    text,
                    "\nhalf a core with {nodes} nodes: unknown, this machine did not keep up"
                )?;
                continue;
            };
            let rooms = room_nodes / *nodes as f64;
            writeln!(
                text,
                "\nhalf a core with {nodes} nodes: {room_nodes:.0} rooms x nodes ({rooms:.0} \
                 rooms), by \
                 linear extrapolation of the first two"
            )?;
        }
        text.push('\n');
        Ok(())
    }
}

fn write_run(text: &mut String, by: &str, run: &Run) -> std::fmt::Result {
    writeln!(
        text,
        "| {by} | {} | {} | {} | {:.3} | {:.0} | {:.2} | {:.3} | {} | {} |",
        run.nodes,
        run.rooms,
        run.nodes * run.rooms,
        run.local_cores,
        run.micros_per_room_node(),
        run.calls,
        run.world_cores,
        run.record_bytes,
        run.queued
    )
}

impl Moment {
    fn name(self) -> &'static str {
        match self {
            Self::Steady => "below the limit",
            Self::Begins => "traffic begins",
            Self::MinuteEnds => "a minute ends",
            Self::AtLimit => "room full",
        }
    }
}

/// Formats the added latency of new visitors as a table.
pub(crate) fn newcomers_table(newcomers: &Newcomers) -> String {
    let mut text = String::new();
    write_newcomers(newcomers, &mut text).expect("writing to a String does not fail");
    text
}

fn write_newcomers(newcomers: &Newcomers, text: &mut String) -> std::fmt::Result {
    text.push_str(
        "Added latency of new visitors, microseconds\n\n\
         | when | allocation | new per second | p50 | p99 | p99.9 | max | admitted | queued |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in &newcomers.rows {
        let (when, took) = (row.moment.name(), stats(&row.took));
        let (allocation, per_second) = (row.allocation, row.per_second);
        let (admitted, queued) = (row.admitted, row.queued);
        writeln!(
            text,
            "| {when} | {allocation} | {per_second} | {took} | {admitted} | {queued} |"
        )?;
    }
    let links = [
        ("a local round trip, idle", &newcomers.local_idle),
        ("a local round trip, meanwhile", &newcomers.local_meanwhile),
    ];
    for (name, took) in links {
        writeln!(text, "| {name} | | | {} | | |", stats(took))?;
    }
    text.push('\n');
    Ok(())
}

fn stats(took: &Quantiles) -> String {
    let Quantiles {
        p50_us,
        p99_us,
        p999_us,
        max_us,
        ..
    } = took;
    format!("{p50_us:.1} | {p99_us:.1} | {p999_us:.1} | {max_us:.0}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::runs::newcomers::Row;

    fn row(moment: Moment, allocation: &'static str, p50_us: f64, p99_us: f64) -> Row {
        Row {
            moment,
            allocation,
            per_second: 1_000,
            took: Quantiles {
                count: 6_000,
                p50_us,
                p99_us,
                p999_us: p99_us * 2.0,
                max_us: p99_us * 3.0,
            },
            admitted: 6_000,
            queued: 0,
        }
    }

    fn run(rooms: usize, local_cores: f64) -> Run {
        Run {
            nodes: 2,
            rooms,
            local_cores,
            world_cores: 0.01,
            calls: 9.0,
            queued: 0,
            record_bytes: 900,
        }
    }

    /// Returns results that meet every target.
    pub(crate) fn report() -> Report {
        let link = |p50_us| Quantiles {
            count: 1_000,
            p50_us,
            ..Quantiles::default()
        };
        let cost = |local_s| Cost {
            visitors: 64_000,
            queued: 0,
            seconds: 16.0,
            local_s,
            world_s: 0.0,
        };
        let calls = |per_second, local_per_node| store_requests::Row {
            per_second,
            answered_per_s: f64::from(per_second),
            queued: 0,
            local_per_node,
            global_per_node: 0.25,
        };
        Report {
            machine: Machine {
                cores: 2,
                load_before: Some(0.25),
            },
            newcomers: Newcomers {
                local_idle: link(180.0),
                local_meanwhile: link(220.0),
                rows: vec![
                    row(Moment::Steady, "counters", 250.0, 900.0),
                    row(Moment::Steady, "leases", 6.0, 50.0),
                    row(Moment::AtLimit, "leases", 40.0, 80_000.0),
                ],
            },
            cpu: Cpu {
                nodes: 4,
                per_node: 1_000,
                counters: cost(1.6),
                leases: cost(0.064),
                idle_s_per_s: 0.001,
            },
            calls: vec![calls(0, 0.6), calls(100, 8.5), calls(100_000, 8.6)],
            capacity: vec![Capacity {
                nodes: 2,
                runs: [run(10, 0.1), run(20, 0.2)],
                beyond: Some(Beyond {
                    room_nodes: 100.0,
                    echo_of_large: run(20, 0.19),
                    echo: run(50, 0.45),
                }),
            }],
        }
    }

    #[test]
    fn tables_contain_all_measurements() {
        let text = report().text();
        for line in [
            "2 cores, load average before: 0.25",
            "| below the limit | leases | 1000 | 6.0 | 50.0 | 100.0 | 150 | 6000 | 0 |",
            "| counters | 64000 | 0 | 1.600 | 0.000 | 25.00 |",
            "leases use 1/25.0 of counters; 1/33.0 without the 0.0010 CPU seconds per second",
            "| 100000 | 100000 | 0 | 8.60 | 0.25 |",
            "| nodes | 2 | 20 | 40 | 0.200 | 5000 | 9.00 | 0.010 | 900 | 0 |",
            "| requests alone | 2 | 50 | 100 | 0.450 | 4500 | 9.00 | 0.010 | 900 | 0 |",
            "half a core with 2 nodes: 100 rooms x nodes (50 rooms)",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_machine_that_falls_behind_leaves_the_capacity_unknown() {
        let mut report = report();
        report.capacity[0].beyond = None;
        let text = report.text();
        assert!(text.contains("with 2 nodes: unknown"), "{text}");
    }

    #[test]
    fn json_has_all_measurements_and_targets() {
        let json: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
        assert_eq!(json["newcomers"]["rows"][1]["took"]["p50_us"], 6.0);
        assert_eq!(json["targets"][0]["is_met"], true);
    }
}
