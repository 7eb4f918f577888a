//! Record of what a data center's ledger knows of its parent, the root.

use std::sync::Arc;

use anteroom_room::estimate::LOOK_AHEAD;
use anteroom_room::id::{DataCenterId, Epoch, Incarnation};
use anteroom_room::lease::{Lease, LeaseParts, Pending};
use anteroom_room::ledger::{Upstream, UpstreamDemand};
use anteroom_room::store::StoreFacts;
use anteroom_room::sync::{ClosedBy, LeaseDemand, LeaseUsage, Revocation, Snapshot};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::wait_forecast::END_PARTS;
use anteroom_room::watermark::Watermark;
use serde::{Deserialize, Serialize};

use super::children::LeaseBalanceRecord;
use super::parts::{NONE, RevocationRecord, minutes_in, minutes_out, waiting_in, waiting_out};
use super::record::StoreRecord;

#[derive(Serialize, Deserialize)]
pub(super) struct UpstreamRecord {
    data_center: u32,
    lease: LeaseRecord,
    parent: Option<u64>,
    answered: u64,
    used: (u64, u64),
    snapshot: SnapshotRecord,
    snapshot_at: u64,
    asked_at: u64,
    trip: u64,
    is_far: bool,
    has_wished: bool,
    told_nodes: u32,
    told_closed: u64,
    has_freed: bool,
    is_read_under_parent: bool,
    store: Option<StoreRecord>,
    root_time: u64,
    is_safe: bool,
    witnessed: Option<u32>,
    unconfirmed: Vec<RevocationRecord>,
    revoked_version: u64,
    telling: (u64, u64),
    told: u64,
    demand: (u64, (u32, u32), (u32, u32), u32),
}

#[derive(Serialize, Deserialize)]
struct LeaseRecord {
    generation: u32,
    held: LeaseBalanceRecord,
    ends_at: u64,
    longest_seat: u64,
    newest: u64,
    pending: Option<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct SnapshotRecord {
    as_of: u64,
    root_as_of: u64,
    watermark: WatermarkRecord,
    slots: u32,
    slots_in_round: u32,
    slots_ahead: [u32; LOOK_AHEAD.len()],
    next_free_at: u64,
    ends_ahead: [u32; END_PARTS],
    slots_to_spare: u32,
    inside: u32,
    phantoms: u32,
    lent: u32,
    seats_free: u32,
    seats_owed: u32,
    admissions_free: u32,
    is_second_used_up: bool,
    admitted: Vec<(u64, u32)>,
    waiting: u32,
    line: Vec<(u64, i64)>,
    closed_through: u64,
    epoch: u32,
    reopens_at: Option<u64>,
    closed_by: Option<ClosedByRecord>,
    nodes: u32,
    nodes_here: u32,
    traffic: Vec<(u32, u32)>,
    longest_known: u64,
    closing_lag: u64,
    refused_through: u64,
}

#[derive(Serialize, Deserialize)]
enum WatermarkRecord {
    Nobody,
    UpTo(u64),
    Open,
}

#[derive(Serialize, Deserialize)]
enum ClosedByRecord {
    MaybeFirstStart,
    LostRecord,
    LostRecordWithoutVisitors,
    MissingReports(u32),
    UnsafeName,
}

impl From<ClosedBy> for ClosedByRecord {
    fn from(by: ClosedBy) -> Self {
        match by {
            ClosedBy::MaybeFirstStart => Self::MaybeFirstStart,
            ClosedBy::LostRecord => Self::LostRecord,
            ClosedBy::LostRecordWithoutVisitors => Self::LostRecordWithoutVisitors,
            ClosedBy::MissingReports(missing) => Self::MissingReports(missing),
            ClosedBy::UnsafeName => Self::UnsafeName,
        }
    }
}

impl From<ClosedByRecord> for ClosedBy {
    fn from(record: ClosedByRecord) -> Self {
        match record {
            ClosedByRecord::MaybeFirstStart => Self::MaybeFirstStart,
            ClosedByRecord::LostRecord => Self::LostRecord,
            ClosedByRecord::LostRecordWithoutVisitors => Self::LostRecordWithoutVisitors,
            ClosedByRecord::MissingReports(missing) => Self::MissingReports(missing),
            ClosedByRecord::UnsafeName => Self::UnsafeName,
        }
    }
}

impl From<&Upstream> for UpstreamRecord {
    fn from(upstream: &Upstream) -> Self {
        let wants = |wants: LeaseDemand| (wants.slots, wants.credits);
        let unconfirmed = upstream.unconfirmed.iter().copied();
        Self {
            data_center: upstream.data_center.0,
            lease: upstream.lease.to_parts().into(),
            parent: upstream.parent.map(|incarnation| incarnation.0),
            answered: upstream.applied_reply.unwrap_or(NONE),
            used: (upstream.used.seats, upstream.used.credits),
            snapshot: SnapshotRecord::from(&upstream.snapshot),
            snapshot_at: upstream.snapshot_at.0,
            asked_at: upstream.requested_at.0,
            trip: upstream.round_trip.0,
            is_far: upstream.is_far,
            has_wished: upstream.has_demand,
            told_nodes: upstream.reported_nodes,
            told_closed: upstream.reported_closed.0,
            has_freed: upstream.has_freed,
            is_read_under_parent: upstream.is_read_under_parent,
            store: upstream.store.map(StoreRecord::from),
            root_time: upstream.root_time.0,
            is_safe: upstream.is_safe,
            witnessed: upstream.witnessed_epoch.map(|epoch| epoch.0),
            unconfirmed: unconfirmed.map(RevocationRecord::from).collect(),
            revoked_version: upstream.revoked_version,
            telling: upstream.pending_version,
            told: upstream.known_to_children,
            demand: (
                upstream.demand.index,
                wants(upstream.demand.now),
                wants(upstream.demand.before),
                upstream.demand.height,
            ),
        }
    }
}

impl From<UpstreamRecord> for Upstream {
    fn from(record: UpstreamRecord) -> Self {
        let wants = |(slots, credits)| LeaseDemand {
            slots,
            credits,
            ..LeaseDemand::default()
        };
        let (index, now, before, height) = record.demand;
        let unconfirmed = record.unconfirmed.into_iter();
        Self {
            data_center: DataCenterId(record.data_center),
            lease: Lease::from_parts(record.lease.into()),
            parent: record.parent.map(Incarnation),
            is_read_under_parent: record.is_read_under_parent,
            store: record.store.map(StoreFacts::from),
            root_time: Timestamp(record.root_time),
            is_safe: record.is_safe,
            applied_reply: Some(record.answered).filter(|number| *number != NONE),
            used: LeaseUsage {
                seats: record.used.0,
                credits: record.used.1,
            },
            snapshot: record.snapshot.into(),
            snapshot_at: Timestamp(record.snapshot_at),
            requested_at: Timestamp(record.asked_at),
            round_trip: DurationMs(record.trip),
            is_far: record.is_far,
            has_demand: record.has_wished,
            reported_nodes: record.told_nodes,
            reported_closed: Timestamp(record.told_closed),
            has_freed: record.has_freed,
            witnessed_epoch: record.witnessed.map(Epoch),
            unconfirmed: unconfirmed.map(Revocation::from).collect(),
            revoked_version: record.revoked_version,
            pending_version: record.telling,
            known_to_children: record.told,
            demand: UpstreamDemand {
                index,
                now: wants(now),
                before: wants(before),
                height,
            },
        }
    }
}

impl From<LeaseParts> for LeaseRecord {
    fn from(parts: LeaseParts) -> Self {
        Self {
            generation: parts.generation.unwrap_or(0),
            held: parts.balance.into(),
            ends_at: parts.ends_at.0,
            longest_seat: parts.longest_seat.0,
            newest: parts.newest,
            pending: parts.pending.map(|p| (p.number, p.sent_at.0)),
        }
    }
}

impl From<LeaseRecord> for LeaseParts {
    fn from(record: LeaseRecord) -> Self {
        let pending = |(number, sent_at)| Pending {
            number,
            sent_at: Timestamp(sent_at),
        };
        Self {
            generation: Some(record.generation).filter(|generation| *generation != 0),
            balance: record.held.into(),
            ends_at: Timestamp(record.ends_at),
            longest_seat: DurationMs(record.longest_seat),
            newest: record.newest,
            pending: record.pending.map(pending),
        }
    }
}

impl From<&Snapshot> for SnapshotRecord {
    fn from(snapshot: &Snapshot) -> Self {
        let watermark = match snapshot.watermark {
            Watermark::Nobody => WatermarkRecord::Nobody,
            Watermark::UpTo(bucket) => WatermarkRecord::UpTo(bucket.0),
            Watermark::Open => WatermarkRecord::Open,
        };
        let traffic = snapshot.traffic.iter();
        Self {
            as_of: snapshot.as_of.0,
            root_as_of: snapshot.root_as_of.0,
            watermark,
            slots: snapshot.slots,
            slots_in_round: snapshot.slots_in_round,
            slots_ahead: snapshot.slots_ahead,
            next_free_at: snapshot.next_free_at.0,
            ends_ahead: snapshot.ends_ahead,
            slots_to_spare: snapshot.slots_to_spare,
            inside: snapshot.active,
            phantoms: snapshot.phantoms,
            lent: snapshot.leased,
            seats_free: snapshot.seats_free,
            seats_owed: snapshot.seats_owed,
            admissions_free: snapshot.admissions_free,
            is_second_used_up: snapshot.is_second_used_up,
            admitted: minutes_out(&snapshot.admitted),
            waiting: snapshot.waiting,
            line: waiting_out(&snapshot.queue),
            closed_through: snapshot.closed_through.0,
            epoch: snapshot.epoch.0,
            reopens_at: snapshot.reopens_at.map(|at| at.0),
            closed_by: snapshot.closed_by.map(ClosedByRecord::from),
            nodes: snapshot.nodes,
            nodes_here: snapshot.nodes_here,
            traffic: traffic.map(|&(id, count)| (id.0, count)).collect(),
            longest_known: snapshot.longest_known.0,
            closing_lag: snapshot.closing_lag.0,
            refused_through: snapshot.rejected_through,
        }
    }
}

impl From<SnapshotRecord> for Snapshot {
    fn from(record: SnapshotRecord) -> Self {
        let watermark = match record.watermark {
            WatermarkRecord::Nobody => Watermark::Nobody,
            WatermarkRecord::UpTo(bucket) => Watermark::UpTo(Timestamp(bucket)),
            WatermarkRecord::Open => Watermark::Open,
        };
        let traffic = record.traffic.into_iter();
        Self {
            as_of: Timestamp(record.as_of),
            root_as_of: Timestamp(record.root_as_of),
            watermark,
            slots: record.slots,
            slots_in_round: record.slots_in_round,
            slots_ahead: record.slots_ahead,
            next_free_at: Timestamp(record.next_free_at),
            ends_ahead: record.ends_ahead,
            slots_to_spare: record.slots_to_spare,
            active: record.inside,
            phantoms: record.phantoms,
            leased: record.lent,
            seats_free: record.seats_free,
            seats_owed: record.seats_owed,
            admissions_free: record.admissions_free,
            is_second_used_up: record.is_second_used_up,
            admitted: minutes_in(record.admitted),
            waiting: record.waiting,
            queue: Arc::new(waiting_in(record.line)),
            closed_through: Timestamp(record.closed_through),
            epoch: Epoch(record.epoch),
            reopens_at: record.reopens_at.map(Timestamp),
            closed_by: record.closed_by.map(ClosedBy::from),
            nodes: record.nodes,
            nodes_here: record.nodes_here,
            traffic: Arc::new(traffic.map(|(id, n)| (DataCenterId(id), n)).collect()),
            longest_known: DurationMs(record.longest_known),
            closing_lag: DurationMs(record.closing_lag),
            rejected_through: record.refused_through,
        }
    }
}
