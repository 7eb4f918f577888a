//! The structs that are written down, and the conversions to and from the core's.

use std::collections::BTreeMap;

use anteroom_core::id::{Epoch, NodeId, VisitorId};
use anteroom_core::ledger::{Child, Departed, Ledger, LeftWaiting, RevokedList};
use anteroom_core::rules::Limits;
use anteroom_core::seats::SeatRow;
use anteroom_core::sync::{Held, Revocation, Terms};
use anteroom_core::time::{Millis, Minute, Span};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct LedgerRecord {
    epoch: u32,
    reopens_at: Option<u64>,
    terms: Option<TermsRecord>,
    longest_seat: u64,
    generation: u32,
    children: Vec<ChildRecord>,
    departed: Vec<DepartedRecord>,
    settled: Vec<(u64, i64)>,
    settled_minutes: Vec<(u64, u32)>,
    closed_through: u64,
    revoked_version: u64,
    revoked: Vec<RevocationRecord>,
    left_waiting: Vec<(u64, u32)>,
    left_waiting_until: u64,
    as_of: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TermsRecord {
    total_active_users: u32,
    new_users_per_minute: u32,
    longest_seat: u64,
    pacing: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ChildRecord {
    node: u64,
    generation: u32,
    number: u64,
    held: HeldRecord,
    ends_at: u64,
    longest_seat: u64,
    row: Vec<(u64, i64)>,
    admitted: Vec<(u64, u32)>,
    closed_through: u64,
    waiting: Vec<(u64, u32)>,
    handed: Vec<(u64, u32)>,
    wants: u32,
    terms: TermsRecord,
}

#[derive(Serialize, Deserialize)]
pub(super) struct HeldRecord {
    seats: u32,
    admissions: u32,
    minute: u64,
    credits: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DepartedRecord {
    node: u64,
    generation: u32,
    number: u64,
    row: Vec<(u64, i64)>,
    phantoms: u32,
    ends_at: u64,
    admitted: Vec<(u64, u32)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RevocationRecord {
    visitor: [u8; 16],
    seat_ends_at: u64,
    until: u64,
}

fn row_out(row: &SeatRow) -> Vec<(u64, i64)> {
    row.iter().map(|(end, count)| (end.0, count)).collect()
}

fn row_in(row: Vec<(u64, i64)>) -> SeatRow {
    row.into_iter()
        .map(|(end, count)| (Millis(end), count))
        .collect()
}

fn waiting_out(counts: &BTreeMap<Millis, u32>) -> Vec<(u64, u32)> {
    counts
        .iter()
        .map(|(rank, &count)| (rank.0, count))
        .collect()
}

fn waiting_in(counts: Vec<(u64, u32)>) -> BTreeMap<Millis, u32> {
    counts
        .into_iter()
        .map(|(rank, count)| (Millis(rank), count))
        .collect()
}

fn minutes_out(minutes: &[(Minute, u32)]) -> Vec<(u64, u32)> {
    minutes
        .iter()
        .map(|&(minute, count)| (minute.0, count))
        .collect()
}

fn minutes_in(minutes: Vec<(u64, u32)>) -> Vec<(Minute, u32)> {
    minutes
        .into_iter()
        .map(|(minute, count)| (Minute(minute), count))
        .collect()
}

impl From<&Ledger> for LedgerRecord {
    fn from(ledger: &Ledger) -> Self {
        let settled_minutes: Vec<_> = ledger
            .settled_minutes
            .iter()
            .map(|(&m, &n)| (m, n))
            .collect();
        Self {
            epoch: ledger.epoch.0,
            reopens_at: ledger.reopens_at.map(|at| at.0),
            terms: ledger.terms.map(TermsRecord::from),
            longest_seat: ledger.longest_seat.0,
            generation: ledger.generation,
            children: ledger.children.iter().map(ChildRecord::from).collect(),
            departed: ledger.departed.iter().map(DepartedRecord::from).collect(),
            settled: row_out(&ledger.settled),
            settled_minutes: minutes_out(&settled_minutes),
            closed_through: ledger.closed_through.0,
            revoked_version: ledger.revoked.version(),
            revoked: ledger
                .revoked
                .to_vec()
                .into_iter()
                .map(RevocationRecord::from)
                .collect(),
            left_waiting: waiting_out(&ledger.left_waiting.counts),
            left_waiting_until: ledger.left_waiting.until.0,
            as_of: ledger.as_of.0,
        }
    }
}

impl From<LedgerRecord> for Ledger {
    fn from(record: LedgerRecord) -> Self {
        Self {
            epoch: Epoch(record.epoch),
            reopens_at: record.reopens_at.map(Millis),
            terms: record.terms.map(Terms::from),
            longest_seat: Span(record.longest_seat),
            generation: record.generation,
            children: record
                .children
                .into_iter()
                .map(|child| (NodeId(child.node), Child::from(child)))
                .collect(),
            departed: record.departed.into_iter().map(Departed::from).collect(),
            settled: row_in(record.settled),
            settled_minutes: minutes_in(record.settled_minutes).into_iter().collect(),
            closed_through: Millis(record.closed_through),
            revoked: RevokedList::from_parts(
                record.revoked_version,
                record.revoked.into_iter().map(Revocation::from),
            ),
            left_waiting: LeftWaiting {
                counts: waiting_in(record.left_waiting),
                until: Millis(record.left_waiting_until),
            },
            as_of: Millis(record.as_of),
        }
    }
}

impl From<Terms> for TermsRecord {
    fn from(terms: Terms) -> Self {
        Self {
            total_active_users: terms.limits.total_active_users,
            new_users_per_minute: terms.limits.new_users_per_minute,
            longest_seat: terms.longest_seat.0,
            pacing: terms.pacing,
        }
    }
}

impl From<TermsRecord> for Terms {
    fn from(record: TermsRecord) -> Self {
        Self {
            limits: Limits {
                total_active_users: record.total_active_users,
                new_users_per_minute: record.new_users_per_minute,
            },
            longest_seat: Span(record.longest_seat),
            pacing: record.pacing,
        }
    }
}

impl From<Held> for HeldRecord {
    fn from(held: Held) -> Self {
        Self {
            seats: held.seats,
            admissions: held.admissions,
            minute: held.minute.0,
            credits: held.credits,
        }
    }
}

impl From<HeldRecord> for Held {
    fn from(record: HeldRecord) -> Self {
        Self {
            seats: record.seats,
            admissions: record.admissions,
            minute: Minute(record.minute),
            credits: record.credits,
        }
    }
}

impl From<(&NodeId, &Child)> for ChildRecord {
    fn from((node, child): (&NodeId, &Child)) -> Self {
        Self {
            node: node.0,
            generation: child.generation,
            number: child.number,
            held: child.held.into(),
            ends_at: child.ends_at.0,
            longest_seat: child.longest_seat.0,
            row: row_out(&child.row),
            admitted: minutes_out(&child.admitted),
            closed_through: child.closed_through.0,
            waiting: waiting_out(&child.waiting),
            handed: waiting_out(&child.handed),
            wants: child.wants,
            terms: child.terms.into(),
        }
    }
}

impl From<ChildRecord> for Child {
    fn from(record: ChildRecord) -> Self {
        Self {
            generation: record.generation,
            number: record.number,
            held: record.held.into(),
            ends_at: Millis(record.ends_at),
            longest_seat: Span(record.longest_seat),
            row: row_in(record.row),
            admitted: minutes_in(record.admitted),
            closed_through: Millis(record.closed_through),
            waiting: waiting_in(record.waiting),
            handed: waiting_in(record.handed),
            wants: record.wants,
            terms: record.terms.into(),
        }
    }
}

impl From<&Departed> for DepartedRecord {
    fn from(gone: &Departed) -> Self {
        Self {
            node: gone.node.0,
            generation: gone.generation,
            number: gone.number,
            row: row_out(&gone.row),
            phantoms: gone.phantoms,
            ends_at: gone.ends_at.0,
            admitted: minutes_out(&gone.admitted),
        }
    }
}

impl From<DepartedRecord> for Departed {
    fn from(record: DepartedRecord) -> Self {
        Self {
            node: NodeId(record.node),
            generation: record.generation,
            number: record.number,
            row: row_in(record.row),
            phantoms: record.phantoms,
            ends_at: Millis(record.ends_at),
            admitted: minutes_in(record.admitted),
        }
    }
}

impl From<Revocation> for RevocationRecord {
    fn from(entry: Revocation) -> Self {
        Self {
            visitor: entry.visitor.0,
            seat_ends_at: entry.seat_ends_at.0,
            until: entry.until.0,
        }
    }
}

impl From<RevocationRecord> for Revocation {
    fn from(record: RevocationRecord) -> Self {
        Self {
            visitor: VisitorId(record.visitor),
            seat_ends_at: Millis(record.seat_ends_at),
            until: Millis(record.until),
        }
    }
}
