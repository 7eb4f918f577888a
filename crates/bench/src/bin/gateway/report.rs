//! Report of the measurements and targets, as tables and as JSON.

use std::fmt::Write as _;

use anteroom_bench::Machine;
use serde::Serialize;

use crate::idle::Idle;
use crate::races::{Race, Result};
use crate::waiting::Waiting;

/// Target of the memory of a million waiting visitors.
const WAITING_BYTES_MAX: u64 = 64 << 20;
/// Target of the memory of ten thousand idle connections.
const IDLE_BYTES_MAX: u64 = 40 << 20;
const IDLE_CONNECTIONS: u64 = 10_000;

const NGINX: &str = "nginx";
const BARE: &str = "bare hyper";

/// All measurements.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// Requests per second in all races.
    pub(crate) rate: u64,
    pub(crate) races: Vec<Race>,
    pub(crate) idle: Vec<Idle>,
    pub(crate) waiting: Option<Waiting>,
}

impl Race {
    /// Returns the processor time per request relative to a peer.
    fn ratio(&self, result: &Result, name: &str) -> Option<f64> {
        let peer = self.results.iter().find(|other| other.name == name)?;
        Some(result.cpu_s_per_million / peer.cpu_s_per_million)
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "\n**{}**, {} bytes, {} connections\n\n\
             | | CPU s per million | range | to nginx | to bare hyper | p50 µs | p99 µs | MiB |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            self.name, self.body_bytes, self.connections
        )?;
        for result in &self.results {
            let ratio = |name| {
                let ratio = self.ratio(result, name);
                ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
            };
            writeln!(
                text,
                "| {}{} | {:.1} | {:.1} to {:.1} | {} | {} | {} | {} | {:.1} |",
                result.name,
                if result.is_saturated {
                    ", saturated"
                } else {
                    ""
                },
                result.cpu_s_per_million,
                result.cpu_range.0,
                result.cpu_range.1,
                ratio(NGINX),
                ratio(BARE),
                result.burst.p50_us,
                result.burst.p99_us,
                mib(result.resident_bytes),
            )?;
        }
        for result in self.results.iter().filter(|result| result.is_saturated) {
            writeln!(
                text,
                "\n{} is saturated: {} of {} requests were sent in its median round",
                result.name, result.burst.requests, result.burst.due
            )?;
        }
        let first = self.results.first();
        let ratio = first.and_then(|first| self.ratio(first, NGINX));
        if let (Some(ratio), Some(target)) = (ratio, self.to_nginx_max) {
            let verdict = verdict(ratio <= target);
            writeln!(
                text,
                "\nat most {target:.2} times nginx: {verdict} ({ratio:.2})"
            )?;
        }
        Ok(())
    }
}

impl Report {
    /// # Errors
    ///
    /// If a number cannot be encoded, which does not happen.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
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
        writeln!(
            text,
            "{cores} cores, load average before: {load}, {} requests/s",
            self.rate
        )?;
        for race in &self.races {
            race.write(text)?;
        }
        self.write_idle(text)?;
        let Some(waiting) = &self.waiting else {
            return Ok(());
        };
        let all = &waiting.in_process;
        let above = all.bytes.saturating_sub(all.idle_bytes);
        writeln!(
            text,
            "\n**{} waiting visitors**\n\n\
             over sockets, one after the other: {:.1} MiB above idle\n\
             all at once in one process (the node counts {}): {:.1} MiB above idle; at most \
             {:.0}: {}\n\
             {:.0} polls per second at the given intervals (peak {}); two processors serve \
             {:.0} ({:.1} CPU s per million): {}",
            all.came,
            mib(waiting.bytes.saturating_sub(waiting.idle_bytes)),
            all.said_waiting,
            mib(above),
            mib(WAITING_BYTES_MAX),
            verdict(above <= WAITING_BYTES_MAX),
            all.asked_per_s,
            all.most_per_s,
            waiting.answered_per_s,
            waiting.cpu_s_per_million_questions,
            verdict(all.asked_per_s < waiting.answered_per_s),
        )
    }

    fn write_idle(&self, text: &mut String) -> std::fmt::Result {
        let Some(first) = self.idle.first() else {
            return Ok(());
        };
        writeln!(
            text,
            "\n**{} idle connections, each after one request**\n\n\
             | | MiB before | MiB above | bytes each |\n| --- | ---: | ---: | ---: |",
            first.connections
        )?;
        for idle in &self.idle {
            writeln!(
                text,
                "| {} | {:.1} | {:.1} | {} |",
                idle.name,
                mib(idle.before_bytes),
                mib(idle.above_bytes()),
                idle.bytes_each()
            )?;
        }
        let above = first.bytes_each() * IDLE_CONNECTIONS;
        writeln!(
            text,
            "\nat most {:.0} MiB above for {IDLE_CONNECTIONS}: {} ({:.1})",
            mib(IDLE_BYTES_MAX),
            verdict(above <= IDLE_BYTES_MAX),
            mib(above)
        )
    }
}

impl Idle {
    fn above_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.before_bytes)
    }

    fn bytes_each(&self) -> u64 {
        self.above_bytes() / self.connections.max(1) as u64
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Burst;
    use crate::waiting::InProcess;

    fn result(name: &str, cpu: f64) -> Result {
        Result {
            name: name.to_owned(),
            burst: Burst {
                requests: 1,
                due: 2,
                p50_us: 2,
                p99_us: 3,
            },
            is_saturated: name == BARE,
            cpu_s_per_million: cpu,
            cpu_range: (cpu, cpu),
            resident_bytes: 5 << 20,
        }
    }

    fn report(cpu: f64) -> Report {
        let mib = 1 << 20;
        Report {
            machine: Machine {
                cores: 2,
                load_before: None,
            },
            rate: 9_600,
            races: vec![Race {
                name: "through",
                body_bytes: 1_024,
                connections: 64,
                to_nginx_max: Some(0.9),
                results: vec![
                    result("anteroom", cpu),
                    result(BARE, 20.0),
                    result(NGINX, 10.0),
                ],
            }],
            idle: vec![Idle {
                name: "anteroom".to_owned(),
                connections: 5_000,
                before_bytes: 10 * mib,
                bytes: 10 * mib + 41 * mib / 2,
            }],
            waiting: Some(Waiting {
                came: 1_000_000,
                idle_bytes: 10 * mib,
                bytes: 80 * mib,
                answered_per_s: 9_000.0,
                in_process: InProcess {
                    came: 1_000_000,
                    said_waiting: 999_000,
                    idle_bytes: 10 * mib,
                    bytes: 80 * mib,
                    asked_per_s: 10_000.0,
                    most_per_s: 40_000,
                },
                cpu_s_per_million_questions: 1.0,
            }),
        }
    }

    #[test]
    fn a_target_is_met_by_the_ratio_to_nginx() {
        assert!(report(8.9).text().contains("times nginx: met (0.89)"));
        let text = report(11.2).text();
        for expected in [
            "times nginx: MISSED (1.12)",
            "| anteroom | 11.2 | 11.2 to 11.2 | 1.12 | 0.56 | 2 | 3 | 5.0 |",
            "| bare hyper, saturated | 20.0",
            "bare hyper is saturated: 1 of 2 requests",
            "at most 40 MiB above for 10000: MISSED (41.0)",
            "70.0 MiB above idle; at most 64: MISSED",
            "serve 9000 (1.0 CPU s per million): MISSED",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        report(1.0).json().unwrap();
    }
}
