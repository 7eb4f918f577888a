//! What happened in a run: figures for the table, samples for the charts, broken promises.
//!
//! Plain data; how it is shown is known above.

use anteroom_room::rules::{AllocationKind, Limits};
use anteroom_room::time::{DurationMs, Timestamp};
use serde::Serialize;

/// One room under one allocation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The room.
    pub room: String,
    /// How slots were shared.
    pub allocation: AllocationKind,
    /// What `--set` changed against the file, as typed: key and value.
    pub settings: Vec<(String, String)>,
    /// The limits at the start.
    pub limits: Limits,
    /// Wall clock at the start.
    pub starts_at: Timestamp,
    /// How long it ran.
    pub length: DurationMs,
    /// For the table.
    pub stats: Figures,
    /// For the charts, by time.
    pub samples: Vec<Sample>,
    /// For the charts by data center, in the scenario's order.
    pub data_centers: Vec<DataCenterOutcome>,
    /// Broken promises, the first hundred. Empty for `leases`, or there is a bug.
    pub violations: Vec<Violation>,
}

/// The figures of the table. Shares are in 0..=1; a figure that cannot be known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Visitors who came (each counted once, however often it asked).
    pub visitors: u64,
    /// Of those, the ones who were told to wait when they came.
    pub queued: u64,
    /// Visitors who got in.
    pub admitted: u64,
    /// Most visitors inside at once.
    pub inside_max: u32,
    /// The most by which `total_active_users` was exceeded; 0 = never.
    pub above_seats: u32,
    /// Most admissions in a calendar minute.
    pub admitted_in_a_minute_max: u32,
    /// The most by which `new_users_per_minute` was exceeded; 0 = never.
    pub above_rate: u32,
    /// Newcomers who had to wait although a seat and an admission were free in the world, as a
    /// share of all newcomers.
    pub queued_although_free: f64,
    /// Of those, the ones who came while nobody waited who had come earlier.
    pub queued_although_free_and_first: f64,
    /// Utilization of the room (the larger of seats and this minute's admissions over their limits)
    /// when the first visitor had to wait.
    pub utilization_at_first_queue: Option<f64>,
    /// Seats taken over seats, or admissions over admissions, whichever limit binds, on average
    /// over the time in which somebody waits (from a minute after the first had to).
    pub fill_while_overloaded: Option<f64>,
    /// Wait of those who got in after waiting, in ms: half of them less than this.
    pub wait_ms_p50: Option<u64>,
    /// 90 % of them.
    pub wait_ms_p90: Option<u64>,
    /// 99 % of them.
    pub wait_ms_p99: Option<u64>,
    /// The longest.
    pub wait_ms_max: Option<u64>,
    /// Visitors who left while they waited.
    pub abandoned: u64,
    /// Somebody got in although another one, who was still asking, had come this much earlier: half
    /// of all admissions by no more than this, in ms.
    pub order_inversion_ms_p50: Option<u64>,
    /// 99 % of them.
    pub order_inversion_ms_p99: Option<u64>,
    /// The largest.
    pub order_inversion_ms_max: Option<u64>,
    /// Time that the decision itself took (round trips to stores), of all newcomers, in ms.
    pub added_latency_ms_p50: u64,
    /// The same, 99 %.
    pub added_latency_ms_p99: u64,
    /// Calls to the data center's store, per node and second.
    pub local_calls_per_node_and_second: f64,
    /// Calls to the global store, per data center and second.
    pub global_calls_per_data_center_and_second: f64,
    /// Visitors with a valid ticket who were refused.
    pub thrown_out: u64,
    /// Events that were simulated.
    pub events: u64,
}

/// The room at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Since the start, in ms.
    pub at_ms: u64,
    /// Visitors inside.
    pub inside: u32,
    /// `total_active_users` in force.
    pub seats_limit: u32,
    /// Visitors who wait.
    pub waiting: u32,
    /// Admissions in the minute that ends here or contains this moment.
    pub admitted_this_minute: u32,
    /// `new_users_per_minute` in force.
    pub rate_limit: u32,
    /// Newcomers since the last sample.
    pub arrived: u32,
    /// Admissions since the last sample.
    pub admitted: u32,
    /// Mean wait of those who got in after waiting since the last sample, in ms; 0 if nobody did.
    pub wait_ms: u64,
}

/// One data center.
#[derive(Clone, Debug, Default)]
pub struct DataCenterOutcome {
    /// Its name.
    pub name: String,
    /// By time, as [`Outcome::samples`].
    pub samples: Vec<DataCenterSample>,
}

/// A data center at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DataCenterSample {
    /// Admissions since the last sample.
    pub admitted: u32,
    /// Newcomers since the last sample.
    pub arrived: u32,
    /// Visitors who wait there.
    pub waiting: u32,
}

/// A broken promise.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// Since the start, in ms.
    pub at_ms: u64,
    /// What was seen, in one line.
    pub seen: String,
}

/// The promises of the product, each with a checker of its own.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Promise {
    /// I1: visitors inside never exceed `total_active_users`; after it was lowered they never rise
    /// above what they were.
    Seats,
    /// I2: admissions of a minute never exceed `new_users_per_minute`.
    Rate,
    /// I3: a visitor with a valid ticket is never queued, and keeps it while it keeps coming.
    Inside,
    /// I4: nobody goes in from behind the watermark.
    Order,
    /// I5: an eligible visitor is not refused while a slot is free.
    NoWaste,
    /// I6: a fault ends: leases come back, intervals are freed, admissions go on.
    Recovery,
}
