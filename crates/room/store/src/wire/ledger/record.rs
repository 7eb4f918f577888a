//! The structs that are written down, and the conversions to and from the core's.
//!
//! Those of the ledger's children are in [`children`](super::children), those of its parent in
//! [`upstream`](super::upstream).

use std::collections::BTreeMap;

use anteroom_room::id::{DataCenterId, Life, NodeId, VisitorId};
use anteroom_room::ledger::{
    Child, Departed, Group, Ledger, LeftWaiting, Logouts, Reserve, RevokedList, Unfreed,
};
use anteroom_room::rules::Limits;
use anteroom_room::seats::SeatRow;
use anteroom_room::sync::{Revocation, Terms};
use anteroom_room::time::{Millis, Minute, Span};
use anteroom_room::watermark::WaitingCounts;
use serde::{Deserialize, Serialize};

use super::children::{ChildRecord, DepartedRecord};
use super::upstream::UpstreamRecord;

#[derive(Serialize, Deserialize)]
pub(super) struct LedgerRecord {
    life: u64,
    upstream: Option<UpstreamRecord>,
    reserve: Option<ReserveRecord>,
    has_reserved: bool,
    terms: Option<TermsRecord>,
    terms_version: u32,
    longest_seat: u64,
    generation: u32,
    children: Vec<ChildRecord>,
    departed: Vec<DepartedRecord>,
    groups: Vec<GroupRecord>,
    settled_minutes: Vec<(u64, u32)>,
    revoked_version: u64,
    revoked: Vec<(RevocationRecord, u64)>,
    unfreed: Vec<UnfreedRecord>,
    refused_through: u64,
    heed_until: u64,
    missing: Vec<(u64, u64)>,
    left_waiting: Vec<(u64, u32)>,
    left_waiting_until: u64,
    heard_at: u64,
    began_at: u64,
    as_of: u64,
}

#[derive(Serialize, Deserialize)]
struct ReserveRecord {
    began_at: u64,
    is_timed: bool,
    ttl: u64,
    is_certain: bool,
    ends_at: u64,
}

#[derive(Serialize, Deserialize)]
struct GroupRecord {
    data_center: u32,
    ready_through: u64,
    closed_through: u64,
    settled: Vec<(u64, i64)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TermsRecord {
    total_active_users: u32,
    new_users_per_minute: u32,
    longest_seat: u64,
    pacing: bool,
    needs_traffic: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RevocationRecord {
    visitor: [u8; 16],
    seat_ends_at: u64,
    until: u64,
}

#[derive(Serialize, Deserialize)]
struct UnfreedRecord {
    visitor: [u8; 16],
    data_center: u32,
    seat_ends_at: u64,
    listed_at: u64,
}

pub(super) fn row_out(row: &SeatRow) -> Vec<(u64, i64)> {
    row.iter().map(|(end, count)| (end.0, count)).collect()
}

pub(super) fn row_in(row: Vec<(u64, i64)>) -> SeatRow {
    row.into_iter()
        .map(|(end, count)| (Millis(end), count))
        .collect()
}

pub(super) fn waiting_out(counts: &WaitingCounts) -> Vec<(u64, u32)> {
    counts.iter().map(|(rank, count)| (rank.0, count)).collect()
}

pub(super) fn waiting_in(counts: Vec<(u64, u32)>) -> WaitingCounts {
    counts
        .into_iter()
        .map(|(rank, count)| (Millis(rank), count))
        .collect()
}

fn missing_out(logouts: &Logouts) -> Vec<(u64, u64)> {
    let missing = logouts.missing.iter();
    missing.map(|(node, until)| (node.0, until.0)).collect()
}

fn missing_in(missing: Vec<(u64, u64)>) -> BTreeMap<NodeId, Millis> {
    let missing = missing.into_iter();
    missing
        .map(|(node, until)| (NodeId(node), Millis(until)))
        .collect()
}

pub(super) fn minutes_out(minutes: &[(Minute, u32)]) -> Vec<(u64, u32)> {
    minutes
        .iter()
        .map(|&(minute, count)| (minute.0, count))
        .collect()
}

pub(super) fn minutes_in(minutes: Vec<(u64, u32)>) -> Vec<(Minute, u32)> {
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
            life: ledger.life.0,
            upstream: ledger.upstream.as_deref().map(UpstreamRecord::from),
            reserve: ledger.reserve.map(ReserveRecord::from),
            has_reserved: ledger.has_reserved,
            terms: ledger.terms.map(TermsRecord::from),
            terms_version: ledger.terms_version,
            longest_seat: ledger.longest_seat.0,
            generation: ledger.generation,
            children: ledger.children.iter().map(ChildRecord::from).collect(),
            departed: ledger.departed.iter().map(DepartedRecord::from).collect(),
            groups: ledger.groups.iter().map(GroupRecord::from).collect(),
            settled_minutes: minutes_out(&settled_minutes),
            revoked_version: ledger.revoked.version(),
            revoked: ledger
                .revoked
                .iter()
                .map(|(entry, came_at)| (RevocationRecord::from(entry), came_at))
                .collect(),
            unfreed: ledger
                .logouts
                .unfreed
                .iter()
                .map(UnfreedRecord::from)
                .collect(),
            refused_through: ledger.logouts.refused_through,
            heed_until: ledger.logouts.heed_until.0,
            missing: missing_out(&ledger.logouts),
            left_waiting: waiting_out(&ledger.left_waiting.counts),
            left_waiting_until: ledger.left_waiting.until.0,
            heard_at: ledger.heard_at.0,
            began_at: ledger.began_at.0,
            as_of: ledger.as_of.0,
        }
    }
}

impl From<LedgerRecord> for Ledger {
    fn from(record: LedgerRecord) -> Self {
        let mut ledger = Self::new();
        ledger.life = Life(record.life);
        ledger.upstream = record.upstream.map(|upstream| Box::new(upstream.into()));
        ledger.reserve = record.reserve.map(Reserve::from);
        ledger.has_reserved = record.has_reserved;
        ledger.terms = record.terms.map(Terms::from);
        ledger.terms_version = record.terms_version;
        ledger.longest_seat = Span(record.longest_seat);
        ledger.generation = record.generation;
        let children = record.children.into_iter();
        ledger.children = children
            .map(|child| (NodeId(child.node), Child::from(child)))
            .collect();
        ledger.departed = record.departed.into_iter().map(Departed::from).collect();
        let groups = record.groups.into_iter();
        ledger.groups = groups
            .map(|group| (DataCenterId(group.data_center), Group::from(group)))
            .collect();
        ledger.settled_minutes = minutes_in(record.settled_minutes).into_iter().collect();
        let revoked = record.revoked.into_iter();
        let revoked = revoked.map(|(entry, came_at)| (Revocation::from(entry), came_at));
        ledger.revoked = RevokedList::from_parts(record.revoked_version, revoked);
        let unfreed = record.unfreed.into_iter();
        ledger.logouts = Logouts {
            unfreed: unfreed.map(Unfreed::from).collect(),
            refused_through: record.refused_through,
            heed_until: Millis(record.heed_until),
            missing: missing_in(record.missing),
        };
        ledger.left_waiting = LeftWaiting {
            counts: waiting_in(record.left_waiting),
            until: Millis(record.left_waiting_until),
        };
        ledger.heard_at = Millis(record.heard_at);
        ledger.began_at = Millis(record.began_at);
        ledger.as_of = Millis(record.as_of);
        ledger.rebuild_sums();
        ledger
    }
}

impl From<&Unfreed> for UnfreedRecord {
    fn from(seat: &Unfreed) -> Self {
        Self {
            visitor: seat.visitor.0,
            data_center: seat.data_center.0,
            seat_ends_at: seat.seat_ends_at.0,
            listed_at: seat.listed_at,
        }
    }
}

impl From<UnfreedRecord> for Unfreed {
    fn from(record: UnfreedRecord) -> Self {
        Self {
            visitor: VisitorId(record.visitor),
            data_center: DataCenterId(record.data_center),
            seat_ends_at: Millis(record.seat_ends_at),
            listed_at: record.listed_at,
        }
    }
}

impl From<Reserve> for ReserveRecord {
    fn from(reserve: Reserve) -> Self {
        Self {
            began_at: reserve.began_at.0,
            is_timed: reserve.is_timed,
            ttl: reserve.ttl.0,
            is_certain: reserve.is_certain,
            ends_at: reserve.ends_at.0,
        }
    }
}

impl From<ReserveRecord> for Reserve {
    fn from(record: ReserveRecord) -> Self {
        Self {
            began_at: Millis(record.began_at),
            is_timed: record.is_timed,
            ttl: Span(record.ttl),
            is_certain: record.is_certain,
            ends_at: Millis(record.ends_at),
        }
    }
}

impl From<(&DataCenterId, &Group)> for GroupRecord {
    fn from((data_center, group): (&DataCenterId, &Group)) -> Self {
        Self {
            data_center: data_center.0,
            ready_through: group.ready_through.0,
            closed_through: group.closed_through.0,
            settled: row_out(&group.settled),
        }
    }
}

impl From<GroupRecord> for Group {
    fn from(record: GroupRecord) -> Self {
        Self {
            ready_through: Millis(record.ready_through),
            closed_through: Millis(record.closed_through),
            settled: row_in(record.settled),
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
            needs_traffic: terms.needs_traffic,
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
            needs_traffic: record.needs_traffic,
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
