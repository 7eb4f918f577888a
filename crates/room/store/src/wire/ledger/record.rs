//! Record of a ledger, and its conversions to and from the core's types.
//!
//! Records of the ledger's children are in [`children`](super::children), that of its parent in
//! [`upstream`](super::upstream), shared parts in [`parts`](super::parts).

use std::borrow::Cow;
use std::collections::BTreeMap;

use anteroom_room::id::{DataCenterId, Incarnation, NodeId, VisitorId};
use anteroom_room::ledger::{
    Child, DepartedChild, Group, LedgerParts, Logouts, Probation, Reserve, ReserveCause,
    RevokedList, UnreleasedSeat,
};
use anteroom_room::store::{Durability, Identity, StoreFacts};
use anteroom_room::sync::{Revocation, RoomFacts};
use anteroom_room::time::{DurationMs, Timestamp};
use serde::{Deserialize, Serialize};

use super::children::{ChildRecord, DepartedChildRecord};
use super::parts::{
    NONE, RecentAdmissionsRecord, RevocationRecord, RoomFactsRecord, minutes_in, row_in, row_out,
};
use super::upstream::UpstreamRecord;

#[derive(Serialize, Deserialize)]
pub(super) struct LedgerRecord {
    incarnation: u64,
    store: StoreRecord,
    probation: Option<ProbationRecord>,
    upstream: Option<UpstreamRecord>,
    reserve: Option<ReserveRecord>,
    has_reserved: bool,
    terms: Option<RoomFactsRecord>,
    terms_version: u32,
    longest_seat: u64,
    generation: u32,
    children: Vec<ChildRecord>,
    departed: Vec<DepartedChildRecord>,
    groups: Vec<GroupRecord>,
    settled_minutes: Vec<(u64, u32)>,
    revoked_version: u64,
    revoked: Vec<(RevocationRecord, u64)>,
    unfreed: Vec<UnreleasedSeatRecord>,
    refused_through: u64,
    heed_until: u64,
    missing: Vec<(u64, u64)>,
    heard_at: u64,
    began_at: u64,
    as_of: u64,
    recent: RecentAdmissionsRecord,
}

#[derive(Serialize, Deserialize)]
struct ReserveRecord {
    began_at: u64,
    is_timed: bool,
    ttl: u64,
    cause: CauseRecord,
    ends_at: u64,
}

#[derive(Serialize, Deserialize)]
enum CauseRecord {
    MayBeFirstStart,
    Loss,
    LossWithoutVisitors,
}

#[derive(Serialize, Deserialize)]
struct ProbationRecord {
    began_at: u64,
    keeps_all: bool,
    kept_through: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoreRecord {
    identity: u64,
    durability: DurabilityRecord,
}

#[derive(Serialize, Deserialize)]
enum DurabilityRecord {
    Unknown,
    LosesAtMost(u64),
    KeepsAll,
}

#[derive(Serialize, Deserialize)]
struct GroupRecord {
    data_center: u32,
    ready_through: u64,
    closed_through: u64,
    settled: Vec<(u64, i64)>,
}

#[derive(Serialize, Deserialize)]
struct UnreleasedSeatRecord {
    visitor: [u8; 16],
    data_center: u32,
    seat_ends_at: u64,
    listed_at: u64,
}

fn missing_out(logouts: &Logouts) -> Vec<(u64, u64)> {
    let missing = logouts.missing_processes.iter();
    missing.map(|(node, until)| (node.0, until.0)).collect()
}

fn missing_in(missing: Vec<(u64, u64)>) -> BTreeMap<NodeId, Timestamp> {
    let missing = missing.into_iter();
    missing
        .map(|(node, until)| (NodeId(node), Timestamp(until)))
        .collect()
}

impl From<LedgerParts<'_>> for LedgerRecord {
    fn from(parts: LedgerParts<'_>) -> Self {
        let settled_minutes = parts.settled_minutes.iter();
        let revoked = parts.revoked.iter();
        let unfreed = parts.logouts.unfreed.iter();
        Self {
            incarnation: parts.incarnation.0,
            store: parts.store.into(),
            probation: parts.probation.map(ProbationRecord::from),
            upstream: parts.upstream.as_deref().map(UpstreamRecord::from),
            reserve: parts.reserve.map(ReserveRecord::from),
            has_reserved: parts.has_reserved,
            terms: parts.settings.map(RoomFactsRecord::from),
            terms_version: parts.terms_version,
            longest_seat: parts.longest_seat.0,
            generation: parts.generation,
            children: parts.children.iter().map(ChildRecord::from).collect(),
            departed: parts
                .departed
                .iter()
                .map(DepartedChildRecord::from)
                .collect(),
            groups: parts.groups.iter().map(GroupRecord::from).collect(),
            settled_minutes: settled_minutes.map(|(m, &n)| (m.0, n)).collect(),
            revoked_version: parts.revoked.version(),
            revoked: revoked
                .map(|(entry, came_at)| (RevocationRecord::from(entry), came_at))
                .collect(),
            unfreed: unfreed.map(UnreleasedSeatRecord::from).collect(),
            refused_through: parts.logouts.rejected_through,
            heed_until: parts.logouts.missing_until.0,
            missing: missing_out(&parts.logouts),
            heard_at: parts.clock_at.0,
            began_at: parts.began_at.unwrap_or(Timestamp(NONE)).0,
            as_of: parts.as_of.0,
            recent: (&*parts.recent).into(),
        }
    }
}

impl From<LedgerRecord> for LedgerParts<'static> {
    fn from(record: LedgerRecord) -> Self {
        let children = record.children.into_iter();
        let children = children.map(|child| (NodeId(child.node), Child::from(child)));
        let groups = record.groups.into_iter();
        let groups = groups.map(|group| (DataCenterId(group.data_center), Group::from(group)));
        let settled_minutes = minutes_in(record.settled_minutes).into_iter();
        let departed = record.departed.into_iter().map(DepartedChild::from);
        let revoked = record.revoked.into_iter();
        let revoked = revoked.map(|(entry, came_at)| (Revocation::from(entry), came_at));
        let unfreed = record.unfreed.into_iter().map(UnreleasedSeat::from);
        Self {
            incarnation: Incarnation(record.incarnation),
            store: record.store.into(),
            probation: record.probation.map(Probation::from),
            upstream: record.upstream.map(|upstream| Cow::Owned(upstream.into())),
            reserve: record.reserve.map(Reserve::from),
            has_reserved: record.has_reserved,
            settings: record.terms.map(RoomFacts::from),
            terms_version: record.terms_version,
            longest_seat: DurationMs(record.longest_seat),
            generation: record.generation,
            children: Cow::Owned(children.collect()),
            departed: Cow::Owned(departed.collect()),
            groups: Cow::Owned(groups.collect()),
            settled_minutes: Cow::Owned(settled_minutes.collect()),
            revoked: Cow::Owned(RevokedList::from_parts(record.revoked_version, revoked)),
            logouts: Cow::Owned(Logouts {
                unfreed: unfreed.collect(),
                rejected_through: record.refused_through,
                missing_until: Timestamp(record.heed_until),
                missing_processes: missing_in(record.missing),
            }),
            clock_at: Timestamp(record.heard_at),
            began_at: Some(Timestamp(record.began_at)).filter(|at| *at != Timestamp(NONE)),
            as_of: Timestamp(record.as_of),
            recent: Cow::Owned(record.recent.into()),
        }
    }
}

impl From<&UnreleasedSeat> for UnreleasedSeatRecord {
    fn from(seat: &UnreleasedSeat) -> Self {
        Self {
            visitor: seat.visitor.0,
            data_center: seat.data_center.0,
            seat_ends_at: seat.seat_ends_at.0,
            listed_at: seat.listed_at.unwrap_or(NONE),
        }
    }
}

impl From<UnreleasedSeatRecord> for UnreleasedSeat {
    fn from(record: UnreleasedSeatRecord) -> Self {
        Self {
            visitor: VisitorId(record.visitor),
            data_center: DataCenterId(record.data_center),
            seat_ends_at: Timestamp(record.seat_ends_at),
            listed_at: Some(record.listed_at).filter(|version| *version != NONE),
        }
    }
}

impl From<Reserve> for ReserveRecord {
    fn from(reserve: Reserve) -> Self {
        Self {
            began_at: reserve.began_at.0,
            is_timed: reserve.is_clock_known,
            ttl: reserve.ttl.0,
            cause: match reserve.cause {
                ReserveCause::MayBeFirstStart => CauseRecord::MayBeFirstStart,
                ReserveCause::Loss => CauseRecord::Loss,
                ReserveCause::LossWithoutVisitors => CauseRecord::LossWithoutVisitors,
            },
            ends_at: reserve.ends_at.0,
        }
    }
}

impl From<ReserveRecord> for Reserve {
    fn from(record: ReserveRecord) -> Self {
        Self {
            began_at: Timestamp(record.began_at),
            is_clock_known: record.is_timed,
            ttl: DurationMs(record.ttl),
            cause: match record.cause {
                CauseRecord::MayBeFirstStart => ReserveCause::MayBeFirstStart,
                CauseRecord::Loss => ReserveCause::Loss,
                CauseRecord::LossWithoutVisitors => ReserveCause::LossWithoutVisitors,
            },
            ends_at: Timestamp(record.ends_at),
        }
    }
}

impl From<Probation> for ProbationRecord {
    fn from(probation: Probation) -> Self {
        Self {
            began_at: probation.began_at.0,
            keeps_all: probation.keeps_all,
            kept_through: probation.kept_through.0,
        }
    }
}

impl From<ProbationRecord> for Probation {
    fn from(record: ProbationRecord) -> Self {
        Self {
            began_at: Timestamp(record.began_at),
            keeps_all: record.keeps_all,
            kept_through: Timestamp(record.kept_through),
        }
    }
}

impl From<StoreFacts> for StoreRecord {
    fn from(store: StoreFacts) -> Self {
        Self {
            identity: store.identity.0,
            durability: match store.durability {
                Durability::Unknown => DurabilityRecord::Unknown,
                Durability::LosesAtMost(longest) => DurabilityRecord::LosesAtMost(longest.0),
                Durability::KeepsAll => DurabilityRecord::KeepsAll,
            },
        }
    }
}

impl From<StoreRecord> for StoreFacts {
    fn from(record: StoreRecord) -> Self {
        Self {
            identity: Identity(record.identity),
            durability: match record.durability {
                DurabilityRecord::Unknown => Durability::Unknown,
                DurabilityRecord::LosesAtMost(longest) => {
                    Durability::LosesAtMost(DurationMs(longest))
                }
                DurabilityRecord::KeepsAll => Durability::KeepsAll,
            },
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
            ready_through: Timestamp(record.ready_through),
            closed_through: Timestamp(record.closed_through),
            settled: row_in(record.settled),
        }
    }
}
