//! Round trips of ledgers, and damaged records.

use std::borrow::Cow;

use anteroom_room::id::{DataCenterId, Epoch, Incarnation, NodeId, VisitorId};
use anteroom_room::lease::{Lease, LeaseParts, Pending};
use anteroom_room::ledger::{
    Child, DepartedChild, Group, LedgerParts, Logouts, Probation, RecentAdmissions, Reserve,
    ReserveCause, RevokedList, UnreleasedSeat, UpstreamDemand,
};
use anteroom_room::rules::{Limits, NewUsersWindow};
use anteroom_room::seats::SeatRow;
use anteroom_room::store::{Durability, Identity, StoreFacts};
use anteroom_room::sync::{
    ClosedBy, LeaseBalance, LeaseDemand, LeaseUsage, Revocation, RoomFacts, Snapshot,
};
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use anteroom_room::waiting::{NOBODY, ReportedWaiting, WaitingForecast};
use anteroom_room::watermark::Watermark;

use super::*;

fn terms() -> RoomFacts {
    RoomFacts {
        limits: Limits {
            total_active_users: 200,
            new_users_per_minute: 100,
        },
        window: NewUsersWindow::Sliding,
        longest_seat: DurationMs(310_000),
        pacing: true,
        needs_traffic: true,
    }
}

fn row() -> SeatRow {
    [(Timestamp(70_000), 3), (Timestamp(75_000), -1)]
        .into_iter()
        .collect()
}

fn waiting(count: i64) -> ReportedWaiting {
    let mut counts = NOBODY;
    counts[0] = count;
    counts[3] = 1;
    let ranks = [(Timestamp(500), counts), (Timestamp(1_000), counts)];
    let begin = (Timestamp(60_000), DurationMs(6_400));
    ReportedWaiting {
        forecast: WaitingForecast::from_parts(begin, ranks.into_iter()),
        sent_at: Timestamp(60_001),
        ahead_ms: -7_200_000,
        counted_at: Timestamp(60_700),
    }
}

fn child() -> Child {
    Child {
        process: NodeId(77),
        data_center: DataCenterId(7),
        generation: 5,
        number: 77,
        balance: LeaseBalance {
            seats: 1,
            admissions: 2,
            next_minute: 9,
            minute: Minute(3),
            credits: 4,
        },
        granted: LeaseBalance {
            seats: 11,
            admissions: 13,
            next_minute: 15,
            minute: Minute(3),
            credits: 17,
        },
        used: LeaseUsage {
            seats: 12,
            credits: 13,
        },
        ends_at: Timestamp(10_000),
        quiet_at: Timestamp(8),
        rejects_through: 7,
        ends_at_child_at: Timestamp(10_001),
        longest_seat: DurationMs(310_000),
        row: row(),
        admitted: vec![(Minute(3), 4)],
        closed_through: Timestamp(60_000),
        sent_at: Timestamp(60_001),
        is_clock_trusted: true,
        nodes: 3,
        waiting: waiting(9),
        demand: LeaseDemand {
            next_minute: 21,
            slots: 7,
            credits: 8,
            movers_now: 2,
            movers_expected: 5,
            movers_reserved: 1,
        },
        settings: terms(),
        terms_version: 2,
        has_reported: true,
        is_safe: true,
    }
}

fn departed() -> DepartedChild {
    DepartedChild {
        node: NodeId(1),
        data_center: DataCenterId(7),
        generation: 4,
        number: 3,
        row: row(),
        phantoms: 6,
        ends_at: Timestamp(80_000),
        admitted: vec![(Minute(2), 1)],
        waiting: waiting(-2),
    }
}

/// Root ledger in which no field has its default.
fn full() -> Ledger {
    let empty = Ledger::new();
    let mut parts = empty.to_parts();
    parts.incarnation = Incarnation(1 << 40);
    parts.reserve = Some(Reserve {
        began_at: Timestamp(8),
        is_clock_known: true,
        ttl: DurationMs(10_000),
        cause: ReserveCause::Loss,
        ends_at: Timestamp(9),
    });
    parts.has_reserved = true;
    parts.store = StoreFacts {
        identity: Identity(77),
        durability: Durability::LosesAtMost(DurationMs(3_000)),
    };
    parts.probation = Some(Probation {
        began_at: Timestamp(64_500),
        keeps_all: true,
        kept_through: Timestamp(63_000),
    });
    parts.clock_at = Timestamp(64_000);
    parts.settings = Some(terms());
    parts.terms_version = 3;
    parts.longest_seat = DurationMs(310_000);
    parts.generation = 5;
    parts.children.to_mut().insert(NodeId(u64::MAX), child());
    parts.departed.to_mut().push(departed());
    let group = Group {
        ready_through: Timestamp(61_000),
        closed_through: Timestamp(60_000),
        settled: row(),
    };
    parts.groups.to_mut().insert(DataCenterId(7), group);
    parts.settled_minutes.to_mut().insert(Minute(1), 11);
    let entry = Revocation {
        visitor: VisitorId([3; 16]),
        seat_ends_at: Some(Timestamp(70_000)),
        until: Timestamp(90_000),
    };
    parts.revoked = Cow::Owned(RevokedList::from_parts(8, [(entry, 7)]));
    parts.logouts = Cow::Owned(Logouts {
        unfreed: vec![UnreleasedSeat {
            visitor: VisitorId([3; 16]),
            data_center: DataCenterId(7),
            seat_ends_at: Timestamp(70_000),
            listed_at: Some(8),
        }],
        rejected_through: 6,
        missing_processes: [(NodeId(8), Timestamp(9))].into(),
        missing_until: Timestamp(66_000),
    });
    parts.as_of = Timestamp(65_000);
    parts.recent = Cow::Owned(RecentAdmissions {
        slots: vec![(Timestamp(60_500), 3), (Timestamp(64_900), 2)],
        second_from: Timestamp(63_700),
        held: vec![(Timestamp(66_000), 4)],
        open_from: Minute(1),
    });
    Ledger::from_parts(parts).unwrap()
}

/// Ledger of a data center in which no field has its default, except the reserve, which only the
/// root has.
fn below_root() -> Ledger {
    let ledger = full();
    let empty = Ledger::below_root(Incarnation(1 << 40), DataCenterId(7));
    let mut upstream = empty.upstream().unwrap().clone();
    upstream.lease = Lease::from_parts(LeaseParts {
        generation: Some(3),
        balance: LeaseBalance {
            seats: 5,
            admissions: 6,
            next_minute: 10,
            minute: Minute(7),
            credits: 8,
        },
        ends_at: Timestamp(600_000),
        longest_seat: DurationMs(310_000),
        newest: 44,
        pending: Some(Pending {
            number: 44,
            sent_at: Timestamp(64_000),
        }),
    });
    upstream.parent = Some(Incarnation(1 << 50));
    upstream.is_read_under_parent = true;
    upstream.applied_reply = Some(43);
    upstream.used = LeaseUsage {
        seats: 100,
        credits: 200,
    };
    upstream.snapshot = Snapshot {
        as_of: Timestamp(63_000),
        watermark: Watermark::UpTo(Timestamp(50_000)),
        admitted: vec![(Minute(1), 9)],
        traffic: std::sync::Arc::new(vec![(DataCenterId(7), 9)]),
        reopens_at: Some(Timestamp(70_000)),
        closed_by: Some(ClosedBy::MissingReports(2)),
        epoch: Epoch(4),
        seats_free: 17,
        is_second_used_up: true,
        slots_ahead: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        ends_ahead: [3; 16],
        seats_owed: 2,
        rejected_through: 3,
        ..Snapshot::default()
    };
    upstream.snapshot_at = Timestamp(63_500);
    upstream.has_demand = true;
    upstream.reported_nodes = 3;
    upstream.witnessed_epoch = Some(Epoch(3));
    upstream.unconfirmed = ledger.to_parts().revoked.to_vec();
    upstream.revoked_version = 5;
    (upstream.pending_version, upstream.known_to_children) = ((5, 8), 4);
    upstream.demand = UpstreamDemand {
        index: 63,
        now: LeaseDemand {
            slots: 1,
            credits: 2,
            ..LeaseDemand::default()
        },
        before: LeaseDemand {
            slots: 3,
            credits: 4,
            ..LeaseDemand::default()
        },
        height: 7,
    };
    let parts = LedgerParts {
        upstream: Some(Cow::Owned(upstream)),
        reserve: None,
        ..ledger.to_parts()
    };
    Ledger::from_parts(parts).unwrap()
}

#[test]
fn a_ledger_survives_a_round_trip() {
    for ledger in [Ledger::new(), full(), below_root()] {
        assert_eq!(decode(&encode(&ledger)), Ok(ledger));
    }
}

#[test]
fn a_damaged_record_is_an_error_and_not_an_empty_ledger() {
    let bytes = encode(&below_root());
    for cut in 1..bytes.len() {
        assert_eq!(decode(&bytes[..cut]), Err(LedgerRecordError::Damaged));
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(decode(&longer), Err(LedgerRecordError::Damaged));
    assert_eq!(decode(&[]), Err(LedgerRecordError::Version { found: 0 }));
    assert_eq!(
        decode(&[8, 8]),
        Err(LedgerRecordError::Version { found: 8 })
    );
}

#[test]
fn a_record_that_breaks_an_invariant_is_an_error() {
    let check = |damage: fn(&mut LedgerParts<'_>)| {
        let ledger = full();
        let mut parts = ledger.to_parts();
        damage(&mut parts);
        let error = decode(&encode_parts(parts)).unwrap_err();
        assert!(matches!(error, LedgerRecordError::Unsound(_)), "{error:?}");
    };
    check(|parts| parts.generation = 4);
    check(|parts| parts.longest_seat = DurationMs(1));
    check(|parts| parts.began_at = Some(parts.clock_at + DurationMs(1)));
    check(|parts| parts.departed.to_mut()[0].node = NodeId(u64::MAX));
    check(|parts| {
        parts.upstream = below_root()
            .to_parts()
            .upstream
            .map(Cow::into_owned)
            .map(Cow::Owned)
    });
    check(|parts| parts.departed.to_mut()[0].admitted = vec![(Minute(3), u32::MAX)]);
    check(|parts| {
        let group = parts.groups.to_mut().get_mut(&DataCenterId(7)).unwrap();
        group.closed_through = Timestamp(65_000);
    });
    check(|parts| {
        let row = [(Timestamp(70_000), i64::MAX)];
        parts.departed.to_mut()[0].row = row.into_iter().collect();
    });
}

#[test]
fn a_damaged_byte_never_panics() {
    let bytes = encode(&below_root());
    for at in 1..bytes.len() {
        for flipped in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flipped;
            // Most of them decode to another ledger.
            let _ = decode(&damaged);
        }
    }
}
