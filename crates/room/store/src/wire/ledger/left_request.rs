//! Request of a child that is left beside a record: a version byte, then postcard.
//!
//! Bytes that cannot be read are no error. Their sender writes by itself, as if it had left
//! nothing.

use anteroom_room::id::{DataCenterId, Epoch, Incarnation, NodeId};
use anteroom_room::ledger_exchange::LEFT_BYTES_MAX;
use anteroom_room::store::Identity;
use anteroom_room::sync::{
    Kept, LeaseDemand, LeaseUsage, MINUTES_KEPT, PassedWindows, RecordStamp, Revocation,
    SyncRequest,
};
use anteroom_room::time::{DurationMs, Timestamp};
use serde::{Deserialize, Serialize};

use super::children::LeaseBalanceRecord;
use super::parts::{
    RevocationRecord, RoomFactsRecord, WaitingForecastRecord, minutes_in, minutes_out, row_in,
    row_out,
};

/// Version that this program writes and reads.
const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct RequestRecord {
    child: u64,
    process: u64,
    replaces: Vec<u64>,
    data_center: u32,
    sent_at: u64,
    stamp: StampRecord,
    is_of_ledger: bool,
    is_join: bool,
    known_closed: u64,
    is_read_under_parent: bool,
    parent: Option<u64>,
    voided_by: Option<u64>,
    witnessed_epoch: Option<u32>,
    number: u64,
    applied_reply: Option<u64>,
    generation: Option<u32>,
    is_final: bool,
    balance: LeaseBalanceRecord,
    demand: DemandRecord,
    used: (u64, u64),
    admitted: Vec<(u64, u32)>,
    row: Vec<(u64, i64)>,
    closed_through: u64,
    longest_seat: u64,
    longest_known: u64,
    nodes: u32,
    waiting: WaitingForecastRecord,
    revocations: Vec<RevocationRecord>,
    revoked_version: u64,
    rejects_through: u64,
    settings: RoomFactsRecord,
    is_leaving: bool,
}

#[derive(Serialize, Deserialize)]
struct StampRecord {
    time: Option<u64>,
    store: Option<u64>,
    safe_generation: Option<u32>,
    kept: Option<(u64, u64)>,
    carried: Option<u64>,
    /// Times of [`PassedWindows`]: of a second, and of a minute.
    passed: (Option<u64>, Option<u64>),
}

#[derive(Serialize, Deserialize)]
struct DemandRecord {
    slots: u32,
    next_minute: u32,
    movers_now: u32,
    movers_expected: u32,
    movers_reserved: u32,
    credits: u32,
}

/// Encodes a request; `None` if it is too long to be left.
///
/// # Panics
///
/// Never: every request can be serialised.
#[must_use]
pub fn encode(request: &SyncRequest) -> Option<Vec<u8>> {
    let record = RequestRecord::from(request);
    let bytes = postcard::to_extend(&record, vec![VERSION]);
    let bytes = bytes.expect("writing into memory cannot fail");
    (bytes.len() <= LEFT_BYTES_MAX).then_some(bytes)
}

/// Decodes a request; `None` if the bytes are none of this version.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<SyncRequest> {
    let (&VERSION, rest) = bytes.split_first()? else {
        return None;
    };
    if bytes.len() > LEFT_BYTES_MAX {
        return None;
    }
    let (record, []) = postcard::take_from_bytes::<RequestRecord>(rest).ok()? else {
        return None;
    };
    (record.admitted.len() <= MINUTES_KEPT).then(|| record.into())
}

impl From<&SyncRequest> for RequestRecord {
    fn from(request: &SyncRequest) -> Self {
        let revocations = request.revocations.iter().copied();
        Self {
            child: request.child.0,
            process: request.process.0,
            replaces: request.replaces.iter().map(|process| process.0).collect(),
            data_center: request.data_center.0,
            sent_at: request.sent_at.0,
            stamp: request.stamp.into(),
            is_of_ledger: request.is_of_ledger,
            is_join: request.is_join,
            known_closed: request.known_closed.0,
            is_read_under_parent: request.is_read_under_parent,
            parent: request.parent.map(|incarnation| incarnation.0),
            voided_by: request.voided_by.map(|incarnation| incarnation.0),
            witnessed_epoch: request.witnessed_epoch.map(|epoch| epoch.0),
            number: request.number,
            applied_reply: request.applied_reply,
            generation: request.generation,
            is_final: request.is_final,
            balance: request.balance.into(),
            demand: request.demand.into(),
            used: (request.used.seats, request.used.credits),
            admitted: minutes_out(&request.admitted),
            row: row_out(&request.row),
            closed_through: request.closed_through.0,
            longest_seat: request.longest_seat.0,
            longest_known: request.longest_known.0,
            nodes: request.nodes,
            waiting: (&request.waiting).into(),
            revocations: revocations.map(RevocationRecord::from).collect(),
            revoked_version: request.revoked_version,
            rejects_through: request.rejects_through,
            settings: request.settings.into(),
            is_leaving: request.is_leaving,
        }
    }
}

impl From<RequestRecord> for SyncRequest {
    fn from(record: RequestRecord) -> Self {
        let revocations = record.revocations.into_iter();
        Self {
            child: NodeId(record.child),
            process: NodeId(record.process),
            replaces: record.replaces.into_iter().map(NodeId).collect(),
            data_center: DataCenterId(record.data_center),
            sent_at: Timestamp(record.sent_at),
            stamp: record.stamp.into(),
            is_of_ledger: record.is_of_ledger,
            is_join: record.is_join,
            known_closed: Timestamp(record.known_closed),
            is_read_under_parent: record.is_read_under_parent,
            parent: record.parent.map(Incarnation),
            voided_by: record.voided_by.map(Incarnation),
            witnessed_epoch: record.witnessed_epoch.map(Epoch),
            number: record.number,
            applied_reply: record.applied_reply,
            generation: record.generation,
            is_final: record.is_final,
            balance: record.balance.into(),
            demand: record.demand.into(),
            used: LeaseUsage {
                seats: record.used.0,
                credits: record.used.1,
            },
            admitted: minutes_in(record.admitted),
            row: row_in(record.row),
            closed_through: Timestamp(record.closed_through),
            longest_seat: DurationMs(record.longest_seat),
            longest_known: DurationMs(record.longest_known),
            nodes: record.nodes,
            waiting: record.waiting.into(),
            revocations: revocations.map(Revocation::from).collect(),
            revoked_version: record.revoked_version,
            rejects_through: record.rejects_through,
            settings: record.settings.into(),
            is_leaving: record.is_leaving,
        }
    }
}

impl From<RecordStamp> for StampRecord {
    fn from(stamp: RecordStamp) -> Self {
        Self {
            time: stamp.time.map(|at| at.0),
            store: stamp.store.map(|identity| identity.0),
            safe_generation: stamp.safe_generation,
            kept: stamp.kept.map(|kept| (kept.store.0, kept.through.0)),
            carried: stamp.carried,
            passed: (
                stamp.passed.second.map(|at| at.0),
                stamp.passed.minute.map(|at| at.0),
            ),
        }
    }
}

impl From<StampRecord> for RecordStamp {
    fn from(record: StampRecord) -> Self {
        let kept = |(store, through)| Kept {
            store: Identity(store),
            through: Timestamp(through),
        };
        Self {
            time: record.time.map(Timestamp),
            store: record.store.map(Identity),
            safe_generation: record.safe_generation,
            kept: record.kept.map(kept),
            carried: record.carried,
            passed: PassedWindows {
                second: record.passed.0.map(Timestamp),
                minute: record.passed.1.map(Timestamp),
            },
        }
    }
}

impl From<LeaseDemand> for DemandRecord {
    fn from(demand: LeaseDemand) -> Self {
        Self {
            slots: demand.slots,
            next_minute: demand.next_minute,
            movers_now: demand.movers_now,
            movers_expected: demand.movers_expected,
            movers_reserved: demand.movers_reserved,
            credits: demand.credits,
        }
    }
}

impl From<DemandRecord> for LeaseDemand {
    fn from(record: DemandRecord) -> Self {
        Self {
            slots: record.slots,
            next_minute: record.next_minute,
            movers_now: record.movers_now,
            movers_expected: record.movers_expected,
            movers_reserved: record.movers_reserved,
            credits: record.credits,
        }
    }
}

#[cfg(test)]
mod tests;
