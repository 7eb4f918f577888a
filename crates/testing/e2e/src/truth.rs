//! Truth of announced waits on real processes: what responses announced to visitors, and when they
//! went in.
//!
//! The simulator measures the same with its own clock. Here nodes are processes, and visitors know
//! only what the responses say. [`cases`] has the runs, [`run`] starts one, and [`report`] prints
//! it.

pub mod cases;
pub mod raw;
pub mod report;
pub mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anteroom_testkit::load::{Latencies, NewcomerLog, RequestOutcome, Visit, WaitNotice};

/// Width of a range that is useful, apart from half of its wait; the simulator has the same.
const USEFUL_WIDTH: Duration = Duration::from_secs(60);
const MINUTE: u64 = 60;

/// Findings in a log.
#[derive(Clone, Debug, Default)]
pub struct TruthFindings {
    /// Visitors who came.
    pub visitors: u64,
    /// Visitors who were admitted.
    pub entered: u64,
    /// First range of each admitted visitor.
    pub first: RangeCounts,
    /// All ranges of admitted visitors.
    pub all: RangeCounts,
    /// First range of each, in whole minutes as the sentence of the page names it.
    pub first_sentence: RangeCounts,
    /// All ranges, in whole minutes as the sentence of the page names them.
    pub all_sentences: RangeCounts,
    /// Responses to visitors who waited for their turn and were counted.
    pub responses: u64,
    /// Those of them without a range.
    pub without_range: u64,
    /// Those of them that named a reason for a longer wait.
    pub with_reason: u64,
    /// Positions that rose and named a reason.
    pub rises_with_reason: u64,
    /// Positions that rose and named none.
    pub rises_without_reason: u64,
    /// Differences between the middle of the first range and the wait that followed.
    pub first_error: Latencies,
    /// Requests without a response that a visitor understands.
    pub failed: u64,
}

/// Ranges by how they came true.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RangeCounts {
    /// Ranges that held the admission.
    pub right: u64,
    /// Ranges whose visitor was admitted earlier.
    pub early: u64,
    /// Ranges whose visitor was admitted later.
    pub late: u64,
    /// Ranges that are wider than half of their wait and a minute, right or not.
    pub wide: u64,
}

/// Range of a wait.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: Duration,
    middle: Duration,
    high: Duration,
}

impl TruthFindings {
    /// Examines a log.
    #[must_use]
    pub fn of(log: &NewcomerLog) -> Self {
        let mut findings = Self::default();
        for visit in &log.visits {
            findings.visitors += 1;
            findings.examine(visit);
        }
        findings
    }

    fn examine(&mut self, visit: &Visit) {
        let admitted_at = visit.admitted_at();
        self.entered += u64::from(admitted_at.is_some());
        let mut is_first = true;
        let mut position_before = None;
        for (at, outcome) in visit.exchanges.iter().filter_map(|one| one.response) {
            let notice = match outcome {
                RequestOutcome::Queued(notice) => notice,
                RequestOutcome::Failed => {
                    self.failed += 1;
                    continue;
                }
                RequestOutcome::Admitted => continue,
            };
            self.compare_positions(&mut position_before, notice);
            if !notice.is_moving || notice.position.is_none() {
                continue;
            }
            self.responses += 1;
            self.with_reason += u64::from(notice.has_reason);
            let Some(wait) = notice.wait else {
                self.without_range += 1;
                continue;
            };
            let Some(took) = admitted_at.map(|admitted_at| admitted_at.saturating_sub(at)) else {
                continue;
            };
            let range = Range {
                low: wait.low,
                middle: wait.middle,
                high: wait.high,
            };
            let sentence = wait.minutes.map(|(from, to)| Range {
                low: Duration::from_secs(from * MINUTE),
                middle: wait.middle,
                high: Duration::from_secs(to * MINUTE),
            });
            self.all.note(range, took);
            if let Some(sentence) = sentence {
                self.all_sentences.note(sentence, took);
            }
            if std::mem::take(&mut is_first) {
                self.first.note(range, took);
                self.first_error.note(took.abs_diff(wait.middle));
                if let Some(sentence) = sentence {
                    self.first_sentence.note(sentence, took);
                }
            }
        }
    }

    /// Compares a position with the one that was shown before.
    fn compare_positions(&mut self, before: &mut Option<u64>, notice: WaitNotice) {
        let Some(position) = notice.position else {
            return;
        };
        if before
            .replace(position)
            .is_some_and(|known| position > known)
        {
            if notice.has_reason {
                self.rises_with_reason += 1;
            } else {
                self.rises_without_reason += 1;
            }
        }
    }
}

impl RangeCounts {
    /// Returns the number of ranges.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.right + self.early + self.late
    }

    fn note(&mut self, range: Range, took: Duration) {
        let useful = range.middle / 2 + USEFUL_WIDTH;
        self.wide += u64::from(range.high.saturating_sub(range.low) > useful);
        if took < range.low {
            self.early += 1;
        } else if took > range.high {
            self.late += 1;
        } else {
            self.right += 1;
        }
    }
}
