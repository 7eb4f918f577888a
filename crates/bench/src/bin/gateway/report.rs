//! Report of the measurements and targets, as tables and as JSON.

use std::fmt::Write as _;

use anteroom_bench::Machine;
use serde::Serialize;

use crate::races::{Race, Result};
use crate::waiting::Waiting;

/// Target of the processor time of a passed request, relative to hyper alone.
const THROUGH_MAX: f64 = 1.10;
const PAGE_MAX: f64 = 1.25;
/// Target of the memory of a million waiting visitors.
const WAITING_BYTES_MAX: u64 = 64 << 20;

const BASELINE: &str = "bare hyper";

/// All measurements.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) races: Vec<Race>,
    pub(crate) waiting: Option<Waiting>,
}

impl Race {
    /// Returns the processor time per request relative to hyper alone.
    fn ratio(&self, result: &Result) -> Option<f64> {
        let baseline = self.results.iter().find(|other| other.name == BASELINE)?;
        Some(result.cpu_s_per_million / baseline.cpu_s_per_million)
    }

    fn write(&self, text: &mut String, target: f64) -> std::fmt::Result {
        writeln!(
            text,
            "\n**{}**, {} bytes\n\n\
             | | CPU s per million | range | to hyper alone | requests/s | p50 µs | p99 \
             µs |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            self.course, self.body_bytes
        )?;
        for result in &self.results {
            let ratio = self
                .ratio(result)
                .map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            writeln!(
                text,
                "| {} | {:.1} | {:.1} to {:.1} | {ratio} | {:.0} | {:.0} | {:.0} |",
                result.name,
                result.cpu_s_per_million,
                result.cpu_range.0,
                result.cpu_range.1,
                result.burst.per_s,
                result.burst.p50_us,
                result.burst.p99_us,
            )?;
        }
        if let Some(ratio) = self.results.first().and_then(|first| self.ratio(first)) {
            let verdict = verdict(ratio <= target);
            writeln!(
                text,
                "\nat most {target:.2} times hyper alone: {verdict} ({ratio:.2})"
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
        writeln!(text, "{cores} cores, load average before: {load}")?;
        for (race, target) in self.races.iter().zip([THROUGH_MAX, PAGE_MAX, PAGE_MAX]) {
            race.write(text, target)?;
        }
        let Some(waiting) = &self.waiting else {
            return Ok(());
        };
        let all = &waiting.in_process;
        let above = all.bytes.saturating_sub(all.idle_bytes);
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
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
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Burst;
    use crate::waiting::InProcess;

    fn result(name: &str, cpu: f64) -> Result {
        Result {
            name: name.to_owned(),
            burst: Burst {
                requests: 1,
                per_s: 1.0,
                p50_us: 2.0,
                p99_us: 3.0,
            },
            cpu_s_per_million: cpu,
            cpu_range: (cpu, cpu),
        }
    }

    #[test]
    fn a_target_is_met_by_the_ratio_to_hyper_alone() {
        let report = |cpu| Report {
            machine: Machine {
                cores: 2,
                load_before: None,
            },
            races: vec![Race {
                course: "through",
                body_bytes: 1_024,
                results: vec![result("anteroom", cpu), result(BASELINE, 10.0)],
            }],
            waiting: Some(Waiting {
                came: 1_000_000,
                idle_bytes: 10 << 20,
                bytes: 80 << 20,
                answered_per_s: 9_000.0,
                in_process: InProcess {
                    came: 1_000_000,
                    said_waiting: 999_000,
                    idle_bytes: 10 << 20,
                    bytes: 80 << 20,
                    asked_per_s: 10_000.0,
                    most_per_s: 40_000,
                },
                cpu_s_per_million_questions: 1.0,
            }),
        };
        assert!(report(10.9).text().contains("hyper alone: met (1.09)"));
        let text = report(11.2).text();
        assert!(text.contains("hyper alone: MISSED (1.12)"), "{text}");
        assert!(
            text.contains("70.0 MiB above idle; at most 64: MISSED"),
            "{text}"
        );
        assert!(
            text.contains("serve 9000 (1.0 CPU s per million): MISSED"),
            "{text}"
        );
        report(1.0).json().unwrap();
    }
}
