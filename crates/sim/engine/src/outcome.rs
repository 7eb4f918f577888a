//! Results of a run: statistics for the table, samples for the charts, violated invariants.
//!
//! Plain data; `anteroom-sim-report` shows it.

use anteroom_room::event::EventPhase;
use anteroom_room::rules::{AllocationKind, Limits};
use anteroom_room::time::{DurationMs, Timestamp};
use serde::Serialize;

/// Results of one room under one allocation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Name of the room.
    pub room: String,
    /// Allocation of slots among nodes.
    pub allocation: AllocationKind,
    /// Keys and values that `--set` changed against the file, as typed.
    pub settings: Vec<(String, String)>,
    /// Limits at the start.
    pub limits: Limits,
    /// Wall clock at the start.
    pub starts_at: Timestamp,
    /// Length of the run.
    pub length: DurationMs,
    /// Statistics for the table.
    pub stats: RunStatistics,
    /// Samples for the charts, by time.
    pub samples: Vec<Sample>,
    /// Samples by data center for the charts, in the scenario's order.
    pub data_centers: Vec<DataCenterOutcome>,
    /// Phases that events have reached, by time.
    pub events: Vec<EventMark>,
    /// Violated invariants, the first hundred. A violation with `leases` is a bug.
    pub violations: Vec<Violation>,
}

/// Statistics of the table. Shares are in 0..=1; an unknown value is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunStatistics {
    /// Visitors who came, each counted once, however many requests it sent.
    pub visitors: u64,
    /// Visitors who were queued when they came.
    pub queued: u64,
    /// Visitors who were admitted.
    pub admitted: u64,
    /// Most active visitors at once.
    pub inside_max: u32,
    /// Largest excess over `total_active_users`; 0 = never.
    pub above_seats: u32,
    /// Most admissions in a calendar minute.
    pub admitted_in_a_minute_max: u32,
    /// Most admissions in any second of true time.
    pub admitted_in_a_second_max: u32,
    /// Largest excess over `new_users_per_minute`; 0 = never.
    pub above_rate: u32,
    /// Share of new visitors who were queued although a seat and an admission were free somewhere.
    pub queued_although_free: f64,
    /// Share of new visitors who were queued so while no earlier visitor waited.
    pub queued_although_free_and_first: f64,
    /// Utilization of the room (the larger of seats and this minute's admissions over their limits)
    /// when the first visitor was queued.
    pub utilization_at_first_queue: Option<f64>,
    /// Mean of seats taken over seats, or admissions over admissions, whichever limit binds, while
    /// visitors wait. It is measured from a minute after the first visitor was queued. Seats that a
    /// data center holds unused while it is cut off count in neither.
    pub fill_while_overloaded: Option<f64>,
    /// Median wait of admitted visitors who waited, in ms.
    pub wait_ms_p50: Option<u64>,
    /// 90th percentile of that wait.
    pub wait_ms_p90: Option<u64>,
    /// 99th percentile of that wait.
    pub wait_ms_p99: Option<u64>,
    /// Longest such wait.
    pub wait_ms_max: Option<u64>,
    /// Announced waits by how they came true; `None` if none was announced.
    pub announced_waits: Option<AnnouncedWaits>,
    /// Visitors who left the queue.
    pub abandoned: u64,
    /// Median of the order inversion in ms: by how much later an admitted visitor had come than the
    /// oldest one who still polled.
    pub order_inversion_ms_p50: Option<u64>,
    /// 99th percentile of the order inversion.
    pub order_inversion_ms_p99: Option<u64>,
    /// Largest order inversion.
    pub order_inversion_ms_max: Option<u64>,
    /// 99th percentile of the time in ms for which visitors who came over a second later had been
    /// admitted when a visitor was.
    pub passed_over_ms_p99: Option<u64>,
    /// Longest such time.
    pub passed_over_ms_max: Option<u64>,
    /// Median time that a decision about a new visitor took (round trips to stores), in ms.
    pub added_latency_ms_p50: u64,
    /// 99th percentile of that time.
    pub added_latency_ms_p99: u64,
    /// Requests to the data center's store, per node and second.
    pub local_requests_per_node_and_second: f64,
    /// Requests to the global store, per data center and second.
    pub global_requests_per_data_center_and_second: f64,
    /// Visitors with a valid ticket who were queued.
    pub queued_with_ticket: u64,
    /// Simulated events.
    pub events: u64,
}

/// Announced waits by how they came true: each range in a response to a visitor who was admitted
/// later. Shares are in 0..=1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AnnouncedWaits {
    /// Share of ranges that contained the admission and were not wider than half the wait plus a
    /// minute.
    pub right: f64,
    /// Share of ranges that began after the admission.
    pub early: f64,
    /// Share of ranges that ended before the admission.
    pub late: f64,
    /// Share of responses to visitors who waited for their turn without a range.
    pub unknown: f64,
    /// Share of those responses that named a reason for a longer wait.
    pub risen: f64,
}

/// State of the room at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Time since the start, in ms.
    pub at_ms: u64,
    /// Active visitors.
    pub inside: u32,
    /// `total_active_users` in force.
    pub seats_limit: u32,
    /// Waiting visitors.
    pub waiting: u32,
    /// Admissions in the minute that ends here or contains this moment.
    pub admitted_this_minute: u32,
    /// `new_users_per_minute` in force.
    pub rate_limit: u32,
    /// New visitors since the last sample.
    pub arrived: u32,
    /// Admissions since the last sample.
    pub admitted: u32,
    /// Mean wait of visitors admitted from the queue since the last sample, in ms; 0 if there were
    /// none.
    pub wait_ms: u64,
}

/// Phase that an event has reached at the first of its nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EventMark {
    /// Name of the event.
    pub event: String,
    /// Phase.
    pub phase: EventPhase,
    /// Time since the start, in ms; 0 if it began before.
    pub at_ms: u64,
}

/// Results of one data center.
#[derive(Clone, Debug, Default)]
pub struct DataCenterOutcome {
    /// Name of the data center.
    pub name: String,
    /// Samples by time, as [`Outcome::samples`].
    pub samples: Vec<DataCenterSample>,
}

/// State of a data center at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DataCenterSample {
    /// Admissions since the last sample.
    pub admitted: u32,
    /// New visitors since the last sample.
    pub arrived: u32,
    /// Waiting visitors of the data center.
    pub waiting: u32,
}

/// Violation of an invariant.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Violation {
    /// Invariant that was violated.
    pub promise: Invariant,
    /// Time since the start, in ms.
    pub at_ms: u64,
    /// Description of the violation, in one line.
    pub seen: String,
}

/// Invariants of the product; each has its own checker.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Invariant {
    /// I1: active visitors never exceed `total_active_users`; after it was lowered their number
    /// never rises.
    Seats,
    /// I2: admissions of a minute never exceed `new_users_per_minute`, and those of any second a
    /// tenth of it.
    Rate,
    /// I3: a visitor with a valid ticket is never queued, and keeps it while it keeps coming.
    Inside,
    /// I4: no visitor behind the watermark is admitted.
    Order,
    /// I5: an eligible visitor is not queued while a slot is free.
    NoWaste,
    /// I6: a fault ends: leases are returned, intervals are freed, admissions continue.
    Recovery,
    /// I7: a ledger whose store came back as another server grants again as soon as the rules say.
    Reopening,
    /// I8: every waiting visitor is counted once.
    Count,
    /// I9: nobody enters between the prequeue of an event and its start.
    Held,
    /// I10: the phase of an event only moves forward.
    Phase,
    /// I11: the draw of an event happens once, of those who came between prequeue and start.
    Draw,
    /// I12: after an event, a room lets everybody pass only when nobody waits.
    RunOff,
}
