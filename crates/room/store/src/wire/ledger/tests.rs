//! Does a ledger survive being written and read, and is damage noticed?

use std::borrow::Cow;

use anteroom_room::id::{DataCenterId, Epoch, Life, NodeId, VisitorId};
use anteroom_room::lease::{Lease, LeaseParts, Pending};
use anteroom_room::ledger::{
    Child, Departed, Group, LedgerParts, Logouts, Reserve, RevokedList, Unfreed, UpstreamDemand,
};
use anteroom_room::rules::Limits;
use anteroom_room::seats::SeatRow;
use anteroom_room::sync::{Held, Outlook, Revocation, Terms, Used, Wants};
use anteroom_room::time::{Millis, Minute, Span};
use anteroom_room::watermark::Watermark;

use super::*;

fn terms() -> Terms {
    Terms {
        limits: Limits {
            total_active_users: 200,
            new_users_per_minute: 100,
        },
        longest_seat: Span(310_000),
        pacing: true,
        needs_traffic: true,
    }
}

fn row() -> SeatRow {
    [(Millis(70_000), 3), (Millis(75_000), -1)]
        .into_iter()
        .collect()
}

fn child() -> Child {
    Child {
        process: NodeId(77),
        data_center: DataCenterId(7),
        generation: 5,
        number: 77,
        held: Held {
            seats: 1,
            admissions: 2,
            ahead: 9,
            minute: Minute(3),
            credits: 4,
        },
        used: Used {
            seats: 12,
            credits: 13,
        },
        ends_at: Millis(10_000),
        quiet_at: Millis(8),
        refuses_through: 7,
        ends_there_at: Millis(10_001),
        longest_seat: Span(310_000),
        row: row(),
        admitted: vec![(Minute(3), 4)],
        closed_through: Millis(60_000),
        sent_at: Millis(60_001),
        is_clock_trusted: true,
        nodes: 3,
        waiting: [(Millis(1_000), 9)].into(),
        handed: [(Millis(500), 2)].into(),
        wants: Wants {
            ahead: 21,
            slots: 7,
            credits: 8,
            first: 2,
            later: 5,
            kept: 1,
        },
        terms: terms(),
        terms_version: 2,
    }
}

fn departed() -> Departed {
    Departed {
        node: NodeId(1),
        data_center: DataCenterId(7),
        generation: 4,
        number: 3,
        row: row(),
        phantoms: 6,
        ends_at: Millis(80_000),
        admitted: vec![(Minute(2), 1)],
    }
}

/// A ledger in which no field has its default.
fn full() -> Ledger {
    let empty = Ledger::new();
    let mut parts = empty.to_parts();
    parts.life = Life(1 << 40);
    parts.reserve = Some(Reserve {
        began_at: Millis(8),
        is_timed: true,
        ttl: Span(10_000),
        is_certain: true,
        ends_at: Millis(9),
    });
    parts.has_reserved = true;
    parts.heard_at = Millis(64_000);
    parts.terms = Some(terms());
    parts.terms_version = 3;
    parts.longest_seat = Span(310_000);
    parts.generation = 5;
    parts.children.to_mut().insert(NodeId(u64::MAX), child());
    parts.departed.to_mut().push(departed());
    let group = Group {
        ready_through: Millis(61_000),
        closed_through: Millis(60_000),
        settled: row(),
    };
    parts.groups.to_mut().insert(DataCenterId(7), group);
    parts.settled_minutes.to_mut().insert(Minute(1), 11);
    let entry = Revocation {
        visitor: VisitorId([3; 16]),
        seat_ends_at: Some(Millis(70_000)),
        until: Millis(90_000),
    };
    parts.revoked = Cow::Owned(RevokedList::from_parts(8, [(entry, 7)]));
    parts.logouts = Cow::Owned(Logouts {
        unfreed: vec![Unfreed {
            visitor: VisitorId([3; 16]),
            data_center: DataCenterId(7),
            seat_ends_at: Millis(70_000),
            listed_at: Some(8),
        }],
        refused_through: 6,
        missing: [(NodeId(8), Millis(9))].into(),
        heed_until: Millis(66_000),
    });
    let left_waiting = parts.left_waiting.to_mut();
    left_waiting.counts.add(Millis(2_000), 5);
    left_waiting.until = Millis(120_000);
    parts.as_of = Millis(65_000);
    Ledger::from_parts(parts).unwrap()
}

/// The ledger of a data center in which no field has its default but the reserve, which only the
/// root holds.
fn below_world() -> Ledger {
    let ledger = full();
    let empty = Ledger::below_world(Life(1 << 40), DataCenterId(7));
    let mut upstream = empty.upstream().unwrap().clone();
    upstream.lease = Lease::from_parts(LeaseParts {
        generation: Some(3),
        held: Held {
            seats: 5,
            admissions: 6,
            ahead: 10,
            minute: Minute(7),
            credits: 8,
        },
        ends_at: Millis(600_000),
        longest_seat: Span(310_000),
        newest: 44,
        pending: Some(Pending {
            number: 44,
            sent_at: Millis(64_000),
        }),
    });
    upstream.parent = Some(Life(1 << 50));
    upstream.is_read_under_parent = true;
    upstream.answered = Some(43);
    upstream.used = Used {
        seats: 100,
        credits: 200,
    };
    upstream.outlook = Outlook {
        as_of: Millis(63_000),
        watermark: Watermark::UpTo(Millis(50_000)),
        admitted: vec![(Minute(1), 9)],
        traffic: std::sync::Arc::new(vec![(DataCenterId(7), 9)]),
        reopens_at: Some(Millis(70_000)),
        epoch: Epoch(4),
        seats_free: 17,
        slots_ahead: [1, 2, 3, 4],
        seats_owed: 2,
        refused_through: 3,
        ..Outlook::default()
    };
    upstream.outlook_at = Millis(63_500);
    upstream.has_wished = true;
    upstream.told_nodes = 3;
    upstream.witnessed = Some(Epoch(3));
    upstream.unconfirmed = ledger.to_parts().revoked.to_vec();
    upstream.revoked_version = 5;
    (upstream.telling, upstream.told) = ((5, 8), 4);
    upstream.demand = UpstreamDemand {
        index: 63,
        now: Wants {
            slots: 1,
            credits: 2,
            ..Wants::default()
        },
        before: Wants {
            slots: 3,
            credits: 4,
            ..Wants::default()
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
fn a_ledger_survives_being_written_and_read() {
    for ledger in [Ledger::new(), full(), below_world()] {
        assert_eq!(decode(&encode(&ledger)), Ok(ledger));
    }
}

#[test]
fn a_damaged_record_is_an_error_and_no_empty_ledger() {
    let bytes = encode(&below_world());
    for cut in 1..bytes.len() {
        assert_eq!(decode(&bytes[..cut]), Err(LedgerRecordError::Damaged));
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(decode(&longer), Err(LedgerRecordError::Damaged));
    assert_eq!(decode(&[]), Err(LedgerRecordError::Version { found: 0 }));
    assert_eq!(
        decode(&[9, 9]),
        Err(LedgerRecordError::Version { found: 9 })
    );
}

/// What parts of a ledger are written down as, whatever they are.
fn written(parts: LedgerParts<'_>) -> Vec<u8> {
    postcard::to_extend(&LedgerRecord::from(parts), vec![VERSION]).unwrap()
}

#[test]
fn a_record_that_no_ledger_writes_is_damaged() {
    let check = |break_it: fn(&mut LedgerParts<'_>)| {
        let ledger = full();
        let mut parts = ledger.to_parts();
        break_it(&mut parts);
        let error = decode(&written(parts)).unwrap_err();
        assert!(matches!(error, LedgerRecordError::Unsound(_)), "{error:?}");
    };
    check(|parts| parts.generation = 4);
    check(|parts| parts.longest_seat = Span(1));
    check(|parts| parts.began_at = Some(parts.heard_at + Span(1)));
    check(|parts| parts.departed.to_mut()[0].node = NodeId(u64::MAX));
    check(|parts| {
        parts.upstream = below_world()
            .to_parts()
            .upstream
            .map(Cow::into_owned)
            .map(Cow::Owned)
    });
    check(|parts| parts.departed.to_mut()[0].admitted = vec![(Minute(3), u32::MAX)]);
    check(|parts| {
        let group = parts.groups.to_mut().get_mut(&DataCenterId(7)).unwrap();
        group.closed_through = Millis(65_000);
    });
    check(|parts| {
        let row = [(Millis(70_000), i64::MAX)];
        parts.departed.to_mut()[0].row = row.into_iter().collect();
    });
}

#[test]
fn no_damage_of_one_byte_ends_in_a_panic() {
    let bytes = encode(&below_world());
    for at in 1..bytes.len() {
        for flipped in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flipped;
            // Most of them are other ledgers.
            let _ = decode(&damaged);
        }
    }
}
