//! Records of a ledger's children, present and departed.
//!
//! The record of the ledger itself is in [`record`](super::record).

use anteroom_room::id::{DataCenterId, NodeId};
use anteroom_room::ledger::{Child, DepartedChild};
use anteroom_room::sync::{LeaseBalance, LeaseDemand, LeaseUsage};
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use serde::{Deserialize, Serialize};

use super::parts::{
    ReportedWaitingRecord, RoomFactsRecord, minutes_in, minutes_out, row_in, row_out,
};

#[derive(Serialize, Deserialize)]
pub(super) struct ChildRecord {
    pub(super) node: u64,
    process: u64,
    data_center: u32,
    generation: u32,
    number: u64,
    held: LeaseBalanceRecord,
    granted: LeaseBalanceRecord,
    used_seats: u64,
    used_credits: u64,
    ends_at: u64,
    quiet_at: u64,
    ends_there_at: u64,
    longest_seat: u64,
    row: Vec<(u64, i64)>,
    admitted: Vec<(u64, u32)>,
    closed_through: u64,
    sent_at: u64,
    is_clock_trusted: bool,
    nodes: u32,
    waiting: ReportedWaitingRecord,
    wants_slots: u32,
    wants_ahead: u32,
    wants_first: u32,
    wants_later: u32,
    wants_kept: u32,
    wants_credits: u32,
    refuses_through: u64,
    terms: RoomFactsRecord,
    terms_version: u32,
    has_reported: bool,
    is_safe: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LeaseBalanceRecord {
    seats: u32,
    admissions: u32,
    ahead: u32,
    minute: u64,
    credits: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DepartedChildRecord {
    node: u64,
    data_center: u32,
    generation: u32,
    number: u64,
    row: Vec<(u64, i64)>,
    phantoms: u32,
    ends_at: u64,
    admitted: Vec<(u64, u32)>,
    waiting: ReportedWaitingRecord,
}

impl From<LeaseBalance> for LeaseBalanceRecord {
    fn from(held: LeaseBalance) -> Self {
        Self {
            seats: held.seats,
            admissions: held.admissions,
            ahead: held.next_minute,
            minute: held.minute.0,
            credits: held.credits,
        }
    }
}

impl From<LeaseBalanceRecord> for LeaseBalance {
    fn from(record: LeaseBalanceRecord) -> Self {
        Self {
            seats: record.seats,
            admissions: record.admissions,
            next_minute: record.ahead,
            minute: Minute(record.minute),
            credits: record.credits,
        }
    }
}

impl From<(&NodeId, &Child)> for ChildRecord {
    fn from((node, child): (&NodeId, &Child)) -> Self {
        Self {
            node: node.0,
            process: child.process.0,
            data_center: child.data_center.0,
            generation: child.generation,
            number: child.number,
            held: child.balance.into(),
            granted: child.granted.into(),
            used_seats: child.used.seats,
            used_credits: child.used.credits,
            ends_at: child.ends_at.0,
            quiet_at: child.quiet_at.0,
            ends_there_at: child.ends_at_child_at.0,
            longest_seat: child.longest_seat.0,
            row: row_out(&child.row),
            admitted: minutes_out(&child.admitted),
            closed_through: child.closed_through.0,
            sent_at: child.sent_at.0,
            is_clock_trusted: child.is_clock_trusted,
            nodes: child.nodes,
            waiting: (&child.waiting).into(),
            wants_slots: child.demand.slots,
            wants_ahead: child.demand.next_minute,
            wants_first: child.demand.movers_now,
            wants_later: child.demand.movers_expected,
            wants_kept: child.demand.movers_reserved,
            wants_credits: child.demand.credits,
            refuses_through: child.rejects_through,
            terms: child.settings.into(),
            terms_version: child.terms_version,
            has_reported: child.has_reported,
            is_safe: child.is_safe,
        }
    }
}

impl From<ChildRecord> for Child {
    fn from(record: ChildRecord) -> Self {
        Self {
            process: NodeId(record.process),
            data_center: DataCenterId(record.data_center),
            generation: record.generation,
            number: record.number,
            balance: record.held.into(),
            granted: record.granted.into(),
            used: LeaseUsage {
                seats: record.used_seats,
                credits: record.used_credits,
            },
            ends_at: Timestamp(record.ends_at),
            quiet_at: Timestamp(record.quiet_at),
            ends_at_child_at: Timestamp(record.ends_there_at),
            longest_seat: DurationMs(record.longest_seat),
            row: row_in(record.row),
            admitted: minutes_in(record.admitted),
            closed_through: Timestamp(record.closed_through),
            sent_at: Timestamp(record.sent_at),
            is_clock_trusted: record.is_clock_trusted,
            nodes: record.nodes,
            waiting: record.waiting.into(),
            demand: LeaseDemand {
                slots: record.wants_slots,
                next_minute: record.wants_ahead,
                movers_now: record.wants_first,
                movers_expected: record.wants_later,
                movers_reserved: record.wants_kept,
                credits: record.wants_credits,
            },
            rejects_through: record.refuses_through,
            settings: record.terms.into(),
            terms_version: record.terms_version,
            has_reported: record.has_reported,
            is_safe: record.is_safe,
        }
    }
}

impl From<&DepartedChild> for DepartedChildRecord {
    fn from(gone: &DepartedChild) -> Self {
        Self {
            node: gone.node.0,
            data_center: gone.data_center.0,
            generation: gone.generation,
            number: gone.number,
            row: row_out(&gone.row),
            phantoms: gone.phantoms,
            ends_at: gone.ends_at.0,
            admitted: minutes_out(&gone.admitted),
            waiting: (&gone.waiting).into(),
        }
    }
}

impl From<DepartedChildRecord> for DepartedChild {
    fn from(record: DepartedChildRecord) -> Self {
        Self {
            node: NodeId(record.node),
            data_center: DataCenterId(record.data_center),
            generation: record.generation,
            number: record.number,
            row: row_in(record.row),
            phantoms: record.phantoms,
            ends_at: Timestamp(record.ends_at),
            admitted: minutes_in(record.admitted),
            waiting: record.waiting.into(),
        }
    }
}
