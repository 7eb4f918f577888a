//! What became of the crowd? Counters that visitors write and the summary reads.
//!
//! A visitor is always at exactly one stage, so the stages add up to the crowd.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Serialize, Serializer};

use crate::quantiles::{Durations, Quantiles};

/// Where a visitor is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// Still at home.
    Away,
    /// Has asked for a page and got no answer yet.
    ArrivalKind,
    /// In the line.
    Waiting,
    /// Admitted.
    Inside,
    /// Left the line before its turn.
    GaveUp,
    /// Was inside and left.
    Finished,
    /// Met errors until it went home.
    Failed,
}

/// How a request failed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RequestErrorKind {
    /// No connection.
    Connect,
    /// No answer in time.
    TimedOut,
    /// The connection broke, or what came was not HTTP.
    Broken,
    /// The answer to somebody who asked for its place was not what it should be.
    UnreadablePlace,
    /// The answer was no page but this status.
    Status(u16),
}

/// What became of the crowd.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct LoadReport {
    /// How many were planned.
    pub visitors: u32,
    /// How many came.
    pub arrived: u32,
    /// How many of these have no answer yet.
    pub arriving: u32,
    /// How many are in the line.
    pub waiting: u32,
    /// How many are inside.
    pub inside: u32,
    /// How many left the line before their turn.
    pub gave_up: u32,
    /// How many were inside and left.
    pub finished: u32,
    /// How many went home because of errors.
    pub failed: u32,
    /// How many got in at least once.
    pub admitted: u32,
    /// How often somebody was queued although its seat had not ended. Must be 0.
    pub thrown_out: u32,
    /// How often somebody came back after its seat had ended and had to queue.
    pub seat_ran_out: u32,
    /// How often somebody was told to come in and then had to wait on.
    pub called_in_vain: u32,
    /// From the first request to the first page of the shop, of all who got in.
    pub wait: Option<Quantiles>,
    /// Requests sent.
    pub requests: u64,
    /// Those that failed, by kind.
    pub errors: BTreeMap<RequestErrorKind, u64>,
}

/// Collects what visitors report.
#[derive(Debug)]
pub(super) struct LoadCounters(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    away: u32,
    record: LoadReport,
    waits: Durations,
    last_wait: Option<Duration>,
}

impl LoadCounters {
    /// Everybody is at home.
    pub(super) fn new(visitors: u32) -> Self {
        Self(Mutex::new(Counts {
            away: visitors,
            record: LoadReport {
                visitors,
                ..LoadReport::default()
            },
            waits: Durations::new(),
            last_wait: None,
        }))
    }

    /// One visitor goes from one stage to another.
    pub(super) fn moved(&self, from: Stage, to: Stage) {
        let mut counts = self.0.lock();
        *counts.stage(from) -= 1;
        *counts.stage(to) += 1;
    }

    /// One visitor got in for the first time.
    pub(super) fn admitted(&self, wait: Duration) {
        let mut counts = self.0.lock();
        counts.record.admitted += 1;
        counts.waits.record(wait);
        counts.last_wait = Some(wait);
    }

    /// Somebody who had a seat was queued.
    pub(super) fn queued_again(&self, had_seat: bool) {
        let mut counts = self.0.lock();
        if had_seat {
            counts.record.thrown_out += 1;
        } else {
            counts.record.seat_ran_out += 1;
        }
    }

    /// Somebody was told to come in and had to wait on.
    pub(super) fn called_in_vain(&self) {
        self.0.lock().record.called_in_vain += 1;
    }

    /// A request goes out.
    pub(super) fn requested(&self) {
        self.0.lock().record.requests += 1;
    }

    /// A request failed.
    pub(super) fn failed(&self, kind: RequestErrorKind) {
        *self.0.lock().record.errors.entry(kind).or_default() += 1;
    }

    /// How long the last visitor who got in had waited.
    pub(super) fn last_wait(&self) -> Option<Duration> {
        self.0.lock().last_wait
    }

    /// All of it, at one moment.
    pub(super) fn record(&self) -> LoadReport {
        let counts = self.0.lock();
        LoadReport {
            arrived: counts.record.visitors - counts.away,
            wait: counts.waits.quantiles(),
            ..counts.record.clone()
        }
    }
}

impl Counts {
    const fn stage(&mut self, stage: Stage) -> &mut u32 {
        match stage {
            Stage::Away => &mut self.away,
            Stage::ArrivalKind => &mut self.record.arriving,
            Stage::Waiting => &mut self.record.waiting,
            Stage::Inside => &mut self.record.inside,
            Stage::GaveUp => &mut self.record.gave_up,
            Stage::Finished => &mut self.record.finished,
            Stage::Failed => &mut self.record.failed,
        }
    }
}

impl fmt::Display for RequestErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect_failed"),
            Self::TimedOut => f.write_str("timed_out"),
            Self::Broken => f.write_str("broken"),
            Self::UnreadablePlace => f.write_str("unreadable_place"),
            Self::Status(status) => write!(f, "status_{status}"),
        }
    }
}

impl Serialize for RequestErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_is_at_one_stage_at_a_time() {
        let counters = LoadCounters::new(3);
        counters.moved(Stage::Away, Stage::ArrivalKind);
        counters.moved(Stage::Away, Stage::ArrivalKind);
        counters.moved(Stage::ArrivalKind, Stage::Inside);
        let record = counters.record();
        assert_eq!((record.arrived, record.arriving, record.inside), (2, 1, 1));
        assert_eq!(record.wait, None);
    }

    #[test]
    fn errors_are_named_in_json() {
        let counters = LoadCounters::new(0);
        counters.failed(RequestErrorKind::Status(502));
        counters.failed(RequestErrorKind::Status(502));
        counters.failed(RequestErrorKind::TimedOut);
        let json = serde_json::to_value(counters.record()).unwrap();
        assert_eq!(
            json["errors"],
            serde_json::json!({ "status_502": 2, "timed_out": 1 })
        );
    }
}
