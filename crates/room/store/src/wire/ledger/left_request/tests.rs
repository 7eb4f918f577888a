//! Round trips of left requests, and bytes that are none.

use anteroom_room::id::VisitorId;
use anteroom_room::rules::{Limits, NewUsersWindow};
use anteroom_room::sync::{LeaseBalance, RoomFacts};
use anteroom_room::time::Minute;
use anteroom_room::waiting::{NOBODY, WaitingForecast};

use super::*;

/// Forecast with `count` visitors in each of these ranks at first.
fn waiting(ranks: u64, count: i64) -> WaitingForecast {
    let mut counts = NOBODY;
    // They run out one after the other, as if they had come within a minute.
    for (left, known) in counts.iter_mut().enumerate() {
        *known = count - i64::try_from(left).unwrap();
    }
    let ranks = (0..ranks).map(|index| (Timestamp(42 + 5_000 * index), counts));
    WaitingForecast::from_parts((Timestamp(60_000), DurationMs(42)), ranks)
}

/// Settings of a room without defaults.
fn settings() -> RoomFacts {
    RoomFacts {
        limits: Limits {
            total_active_users: 49,
            new_users_per_minute: 50,
        },
        window: NewUsersWindow::Sliding,
        longest_seat: DurationMs(51),
        pacing: true,
        needs_traffic: true,
    }
}

/// Stamp without defaults.
fn stamp() -> RecordStamp {
    RecordStamp {
        time: Some(Timestamp(6)),
        store: Some(Identity(7)),
        safe_generation: Some(8),
        kept: Some(Kept {
            store: Identity(9),
            through: Timestamp(10),
        }),
        carried: Some(11),
        passed: PassedWindows {
            second: Some(Timestamp(58)),
            minute: Some(Timestamp(59)),
        },
    }
}

/// Request in which no field has its default.
fn full() -> SyncRequest {
    SyncRequest {
        child: NodeId(u64::MAX),
        process: NodeId(2),
        replaces: vec![NodeId(3)],
        data_center: DataCenterId(4),
        sent_at: Timestamp(60_005),
        stamp: stamp(),
        is_of_ledger: true,
        is_join: true,
        known_closed: Timestamp(12),
        is_read_under_parent: true,
        parent: Some(Incarnation(13)),
        voided_by: Some(Incarnation(14)),
        witnessed_epoch: Some(Epoch(15)),
        number: 16,
        applied_reply: Some(17),
        generation: Some(18),
        is_final: true,
        balance: LeaseBalance {
            seats: 19,
            admissions: 20,
            next_minute: 21,
            minute: Minute(22),
            credits: 23,
        },
        demand: LeaseDemand {
            slots: 24,
            next_minute: 25,
            movers_now: 26,
            movers_expected: 27,
            movers_reserved: 28,
            credits: 29,
        },
        used: LeaseUsage {
            seats: 30,
            credits: 31,
        },
        admitted: vec![(Minute(32), 33)],
        row: [(Timestamp(34), 35), (Timestamp(36), -37)]
            .into_iter()
            .collect(),
        closed_through: Timestamp(38),
        longest_seat: DurationMs(39),
        longest_known: DurationMs(40),
        nodes: 41,
        waiting: waiting(1, 43),
        revocations: vec![Revocation {
            visitor: VisitorId([44; 16]),
            seat_ends_at: Some(Timestamp(45)),
            until: Timestamp(46),
        }],
        revoked_version: 47,
        rejects_through: 48,
        settings: settings(),
        is_leaving: true,
    }
}

#[test]
fn a_request_survives_a_round_trip() {
    let bytes = encode(&full()).unwrap();
    assert_eq!(decode(&bytes), Some(full()));
}

#[test]
fn bytes_that_are_no_request_are_none() {
    let bytes = encode(&full()).unwrap();
    for cut in 0..bytes.len() {
        assert_eq!(decode(&bytes[..cut]), None, "{cut}");
    }
    let mut other = bytes;
    other.push(0);
    assert_eq!(decode(&other), None);
    other.pop();
    other[0] = VERSION + 1;
    assert_eq!(decode(&other), None);
}

#[test]
fn a_request_of_a_busy_data_center_is_short_enough_and_a_longer_one_is_not_left() {
    let mut request = full();
    let at = |index: u64| Timestamp(1_694_432_700_000 + index * 5_000);
    request.row = (0..64).map(|index| (at(index), 1_000)).collect();
    request.waiting = waiting(64, 1_000);
    request.admitted = vec![(Minute(28_240_545), 10_000); MINUTES_KEPT];
    let length = encode(&request).map(|bytes| bytes.len());
    assert!(
        length.is_some_and(|length| length < LEFT_BYTES_MAX * 3 / 4),
        "{length:?}"
    );
    request.revocations = vec![request.revocations[0]; 400];
    assert!(encode(&request).is_none());
}

#[test]
fn more_minutes_than_a_child_reports_are_none() {
    let mut request = full();
    request.admitted = vec![(Minute(1), 1); MINUTES_KEPT + 1];
    assert_eq!(decode(&encode(&request).unwrap()), None);
}
