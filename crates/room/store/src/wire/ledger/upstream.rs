//! A data center's place under the world, as it is written down.

use std::sync::Arc;

use anteroom_room::estimate::LOOK_AHEAD;
use anteroom_room::id::{DataCenterId, Epoch, Life};
use anteroom_room::lease::{Lease, LeaseParts, Pending};
use anteroom_room::ledger::{Upstream, UpstreamDemand};
use anteroom_room::sync::{Outlook, Revocation, Used, Wants};
use anteroom_room::time::{Millis, Span};
use anteroom_room::watermark::Watermark;
use serde::{Deserialize, Serialize};

use super::children::HeldRecord;
use super::parts::{NONE, RevocationRecord, minutes_in, minutes_out, waiting_in, waiting_out};

#[derive(Serialize, Deserialize)]
pub(super) struct UpstreamRecord {
    data_center: u32,
    lease: LeaseRecord,
    parent: Option<u64>,
    is_read_under_parent: bool,
    answered: u64,
    used: (u64, u64),
    outlook: OutlookRecord,
    outlook_at: u64,
    asked_at: u64,
    trip: u64,
    has_wished: bool,
    told_nodes: u32,
    told_closed: u64,
    has_freed: bool,
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
    held: HeldRecord,
    ends_at: u64,
    longest_seat: u64,
    newest: u64,
    pending: Option<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct OutlookRecord {
    as_of: u64,
    root_as_of: u64,
    watermark: WatermarkRecord,
    slots: u32,
    slots_in_round: u32,
    slots_ahead: [u32; LOOK_AHEAD.len()],
    next_free_at: u64,
    slots_to_spare: u32,
    inside: u32,
    phantoms: u32,
    lent: u32,
    seats_free: u32,
    seats_owed: u32,
    admissions_free: u32,
    admitted: Vec<(u64, u32)>,
    waiting: u32,
    line: Vec<(u64, u32)>,
    closed_through: u64,
    epoch: u32,
    reopens_at: Option<u64>,
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

impl From<&Upstream> for UpstreamRecord {
    fn from(upstream: &Upstream) -> Self {
        let wants = |wants: Wants| (wants.slots, wants.credits);
        let unconfirmed = upstream.unconfirmed.iter().copied();
        Self {
            data_center: upstream.data_center.0,
            lease: upstream.lease.to_parts().into(),
            parent: upstream.parent.map(|life| life.0),
            is_read_under_parent: upstream.is_read_under_parent,
            answered: upstream.answered.unwrap_or(NONE),
            used: (upstream.used.seats, upstream.used.credits),
            outlook: OutlookRecord::from(&upstream.outlook),
            outlook_at: upstream.outlook_at.0,
            asked_at: upstream.asked_at.0,
            trip: upstream.trip.0,
            has_wished: upstream.has_wished,
            told_nodes: upstream.told_nodes,
            told_closed: upstream.told_closed.0,
            has_freed: upstream.has_freed,
            witnessed: upstream.witnessed.map(|epoch| epoch.0),
            unconfirmed: unconfirmed.map(RevocationRecord::from).collect(),
            revoked_version: upstream.revoked_version,
            telling: upstream.telling,
            told: upstream.told,
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
        let wants = |(slots, credits)| Wants {
            slots,
            credits,
            ..Wants::default()
        };
        let (index, now, before, height) = record.demand;
        let unconfirmed = record.unconfirmed.into_iter();
        Self {
            data_center: DataCenterId(record.data_center),
            lease: Lease::from_parts(record.lease.into()),
            parent: record.parent.map(Life),
            is_read_under_parent: record.is_read_under_parent,
            answered: Some(record.answered).filter(|number| *number != NONE),
            used: Used {
                seats: record.used.0,
                credits: record.used.1,
            },
            outlook: record.outlook.into(),
            outlook_at: Millis(record.outlook_at),
            asked_at: Millis(record.asked_at),
            trip: Span(record.trip),
            has_wished: record.has_wished,
            told_nodes: record.told_nodes,
            told_closed: Millis(record.told_closed),
            has_freed: record.has_freed,
            witnessed: record.witnessed.map(Epoch),
            unconfirmed: unconfirmed.map(Revocation::from).collect(),
            revoked_version: record.revoked_version,
            telling: record.telling,
            told: record.told,
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
            held: parts.held.into(),
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
            sent_at: Millis(sent_at),
        };
        Self {
            generation: Some(record.generation).filter(|generation| *generation != 0),
            held: record.held.into(),
            ends_at: Millis(record.ends_at),
            longest_seat: Span(record.longest_seat),
            newest: record.newest,
            pending: record.pending.map(pending),
        }
    }
}

impl From<&Outlook> for OutlookRecord {
    fn from(outlook: &Outlook) -> Self {
        let watermark = match outlook.watermark {
            Watermark::Nobody => WatermarkRecord::Nobody,
            Watermark::UpTo(bucket) => WatermarkRecord::UpTo(bucket.0),
            Watermark::Open => WatermarkRecord::Open,
        };
        let traffic = outlook.traffic.iter();
        Self {
            as_of: outlook.as_of.0,
            root_as_of: outlook.root_as_of.0,
            watermark,
            slots: outlook.slots,
            slots_in_round: outlook.slots_in_round,
            slots_ahead: outlook.slots_ahead,
            next_free_at: outlook.next_free_at.0,
            slots_to_spare: outlook.slots_to_spare,
            inside: outlook.inside,
            phantoms: outlook.phantoms,
            lent: outlook.lent,
            seats_free: outlook.seats_free,
            seats_owed: outlook.seats_owed,
            admissions_free: outlook.admissions_free,
            admitted: minutes_out(&outlook.admitted),
            waiting: outlook.waiting,
            line: waiting_out(&outlook.line),
            closed_through: outlook.closed_through.0,
            epoch: outlook.epoch.0,
            reopens_at: outlook.reopens_at.map(|at| at.0),
            nodes: outlook.nodes,
            nodes_here: outlook.nodes_here,
            traffic: traffic.map(|&(id, count)| (id.0, count)).collect(),
            longest_known: outlook.longest_known.0,
            closing_lag: outlook.closing_lag.0,
            refused_through: outlook.refused_through,
        }
    }
}

impl From<OutlookRecord> for Outlook {
    fn from(record: OutlookRecord) -> Self {
        let watermark = match record.watermark {
            WatermarkRecord::Nobody => Watermark::Nobody,
            WatermarkRecord::UpTo(bucket) => Watermark::UpTo(Millis(bucket)),
            WatermarkRecord::Open => Watermark::Open,
        };
        let traffic = record.traffic.into_iter();
        Self {
            as_of: Millis(record.as_of),
            root_as_of: Millis(record.root_as_of),
            watermark,
            slots: record.slots,
            slots_in_round: record.slots_in_round,
            slots_ahead: record.slots_ahead,
            next_free_at: Millis(record.next_free_at),
            slots_to_spare: record.slots_to_spare,
            inside: record.inside,
            phantoms: record.phantoms,
            lent: record.lent,
            seats_free: record.seats_free,
            seats_owed: record.seats_owed,
            admissions_free: record.admissions_free,
            admitted: minutes_in(record.admitted),
            waiting: record.waiting,
            line: Arc::new(waiting_in(record.line)),
            closed_through: Millis(record.closed_through),
            epoch: Epoch(record.epoch),
            reopens_at: record.reopens_at.map(Millis),
            nodes: record.nodes,
            nodes_here: record.nodes_here,
            traffic: Arc::new(traffic.map(|(id, n)| (DataCenterId(id), n)).collect()),
            longest_known: Span(record.longest_known),
            closing_lag: Span(record.closing_lag),
            refused_through: record.refused_through,
        }
    }
}
