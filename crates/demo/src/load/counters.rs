//! Counters of the simulated visitors, for the summary.
//!
//! A visitor is always at exactly one stage, so the stages add up to all visitors.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Serialize, Serializer};

use crate::quantiles::{Durations, Quantiles};

/// Stage of a visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// Has not arrived yet.
    NotArrived,
    /// Has requested a page and has no response yet.
    Arriving,
    /// Waits in the queue.
    Waiting,
    /// Admitted.
    Inside,
    /// Left the queue before its turn.
    GaveUp,
    /// Was admitted, and has left.
    Finished,
    /// Left because of errors.
    Failed,
}

/// Kind of a failed request.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RequestErrorKind {
    /// The connection could not be established.
    Connect,
    /// The response did not arrive in time.
    TimedOut,
    /// The connection broke, or the response was not HTTP.
    Broken,
    /// The response to a request for the position was not valid.
    UnreadablePosition,
    /// The response was not a page but had this status.
    Status(u16),
}

/// Counts of the simulated visitors.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct LoadReport {
    /// Planned visitors.
    pub visitors: u32,
    /// Visitors who arrived.
    pub arrived: u32,
    /// Those of them without a response yet.
    pub arriving: u32,
    /// Visitors in the queue.
    pub waiting: u32,
    /// Active visitors.
    pub inside: u32,
    /// Visitors who left the queue before their turn.
    pub gave_up: u32,
    /// Visitors who were admitted and have left.
    pub finished: u32,
    /// Visitors who left because of errors.
    pub failed: u32,
    /// Visitors who were admitted at least once.
    pub admitted: u32,
    /// Times that a visitor was queued although its seat had not ended. Must be 0.
    pub queued_with_ticket: u32,
    /// Times that a visitor came back after its seat had ended and was queued.
    pub seat_expired: u32,
    /// Times that a visitor got its turn and was queued when it entered again.
    pub turn_withdrawn: u32,
    /// Time from the first request to the first page of the shop, of all admitted visitors.
    pub wait: Option<Quantiles>,
    /// Requests sent.
    pub requests: u64,
    /// Failed requests, by kind.
    pub errors: BTreeMap<RequestErrorKind, u64>,
}

/// Collector of the visitors' counts.
#[derive(Debug)]
pub(super) struct LoadCounters(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    not_arrived: u32,
    record: LoadReport,
    waits: Durations,
    last_wait: Option<Duration>,
}

impl LoadCounters {
    /// Creates the counters; no visitor has arrived.
    pub(super) fn new(visitors: u32) -> Self {
        Self(Mutex::new(Counts {
            not_arrived: visitors,
            record: LoadReport {
                visitors,
                ..LoadReport::default()
            },
            waits: Durations::new(),
            last_wait: None,
        }))
    }

    /// Counts a visitor that goes from one stage to another.
    pub(super) fn moved(&self, from: Stage, to: Stage) {
        let mut counts = self.0.lock();
        *counts.stage(from) -= 1;
        *counts.stage(to) += 1;
    }

    /// Counts a visitor that is admitted for the first time.
    pub(super) fn admitted(&self, wait: Duration) {
        let mut counts = self.0.lock();
        counts.record.admitted += 1;
        counts.waits.record(wait);
        counts.last_wait = Some(wait);
    }

    /// Counts a visitor that had a seat and was queued.
    pub(super) fn queued_again(&self, had_seat: bool) {
        let mut counts = self.0.lock();
        if had_seat {
            counts.record.queued_with_ticket += 1;
        } else {
            counts.record.seat_expired += 1;
        }
    }

    /// Counts a visitor that got its turn and was queued when it entered.
    pub(super) fn turn_withdrawn(&self) {
        self.0.lock().record.turn_withdrawn += 1;
    }

    /// Counts a request.
    pub(super) fn requested(&self) {
        self.0.lock().record.requests += 1;
    }

    /// Counts a failed request.
    pub(super) fn failed(&self, kind: RequestErrorKind) {
        *self.0.lock().record.errors.entry(kind).or_default() += 1;
    }

    /// Returns the wait of the visitor who was admitted last.
    pub(super) fn last_wait(&self) -> Option<Duration> {
        self.0.lock().last_wait
    }

    /// Returns all counts, at one moment.
    pub(super) fn record(&self) -> LoadReport {
        let counts = self.0.lock();
        LoadReport {
            arrived: counts.record.visitors - counts.not_arrived,
            wait: counts.waits.quantiles(),
            ..counts.record.clone()
        }
    }
}

impl Counts {
    const fn stage(&mut self, stage: Stage) -> &mut u32 {
        match stage {
            Stage::NotArrived => &mut self.not_arrived,
            Stage::Arriving => &mut self.record.arriving,
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
            Self::UnreadablePosition => f.write_str("unreadable_place"),
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
        counters.moved(Stage::NotArrived, Stage::Arriving);
        counters.moved(Stage::NotArrived, Stage::Arriving);
        counters.moved(Stage::Arriving, Stage::Inside);
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
