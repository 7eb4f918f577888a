//! Tests of the parent's half: its grants, and its counts of children that stopped reporting.

mod far;
mod logouts;
mod missing_reports;
mod probation;
mod recorded;
mod waiting;
mod windows;

use alloc::vec;

use super::*;
use crate::id::VisitorId;
use crate::rules::{Limits, NewUsersWindow};
use crate::sync::{LeaseDemand, LeaseReply, RecordStamp, Revocation};
use crate::waiting::WaitingForecast;

pub(crate) const START: Timestamp = Timestamp(1_694_432_700_000);
const LONGEST: DurationMs = DurationMs(310_000);

/// Makes a forecast of so many visitors who came at START.
fn waiting(count: i64) -> WaitingForecast {
    WaitingForecast::constant(&[(START, count)].into(), START)
}

pub(crate) fn request(child: u64, number: u64, generation: u32) -> SyncRequest {
    SyncRequest {
        child: NodeId(child),
        process: NodeId(child),
        replaces: Vec::new(),
        data_center: DataCenterId(1),
        sent_at: START,
        stamp: RecordStamp::default(),
        is_of_ledger: false,
        is_join: false,
        known_closed: Timestamp::ZERO,
        is_read_under_parent: true,
        parent: (generation != 0).then_some(Incarnation(0)),
        voided_by: None,
        witnessed_epoch: None,
        number,
        applied_reply: (number > 1).then_some(number - 1),
        generation: (generation != 0).then_some(generation),
        is_final: generation == 0,
        balance: LeaseBalance::default(),
        demand: LeaseDemand::default(),
        used: LeaseUsage::default(),
        admitted: vec![],
        row: SeatRow::default(),
        closed_through: START,
        longest_seat: LONGEST,
        longest_known: LONGEST,
        nodes: 1,
        waiting: WaitingForecast::default(),
        revocations: vec![],
        revoked_version: 0,
        rejects_through: 0,
        settings: RoomFacts {
            limits: Limits {
                total_active_users: 10,
                new_users_per_minute: 100,
            },
            window: NewUsersWindow::Minute,
            longest_seat: LONGEST,
            pacing: true,
            needs_traffic: false,
        },
        is_leaving: false,
    }
}

pub(crate) fn grant(ledger: Ledger, request: &SyncRequest, now: Timestamp) -> (Ledger, LeaseReply) {
    let request = SyncRequest {
        sent_at: now,
        ..request.clone()
    };
    match ledger.sync(&request, LeaseTerms::default(), now) {
        (ledger, Reply::Granted(reply)) => (ledger, reply),
        (_, other) => panic!("expected a lease, got {other:?}"),
    }
}

/// Makes a ledger in which child 1 has leased all ten slots and `credits`, and used none.
fn ten_leased(credits: u32) -> Ledger {
    let mut first = request(1, 1, 0);
    first.demand = LeaseDemand {
        slots: 10,
        credits,
        ..LeaseDemand::default()
    };
    let (ledger, reply) = grant(Ledger::new(), &first, START);
    assert_eq!(reply.granted.seats, 10);
    assert_eq!(reply.granted.admissions, 10);
    ledger
}

#[test]
fn leased_slots_are_not_granted_again() {
    let mut other = request(2, 1, 0);
    other.demand.slots = 5;
    let (ledger, reply) = grant(ten_leased(0), &other, START);
    assert_eq!(reply.granted.seats, 0);
    assert!(reply.snapshot.is_exhausted(START));
    assert_eq!(ledger.seats_leased(), 10);
}

#[test]
fn an_active_visitor_gets_a_seat_before_all_others() {
    let mut movers = request(1, 1, 0);
    (movers.demand.movers_now, movers.demand.movers_expected) = (2, 5);
    let (ledger, reply) = grant(Ledger::new(), &movers, START);
    assert_eq!((reply.granted.seats, reply.granted.admissions), (2, 0));
    assert_eq!(reply.snapshot.seats_free, 3, "for waiting visitors");
    let mut waiting = request(2, 1, 0);
    waiting.demand.slots = 9;
    let (ledger, reply) = grant(ledger, &waiting, START);
    assert_eq!(reply.granted.seats, 3);
    movers = request(1, 2, 1);
    movers.balance.seats = 2;
    movers.demand.movers_now = 4;
    let (ledger, reply) = grant(ledger, &movers, START);
    assert_eq!(reply.granted.seats, 4);
    assert_eq!((ledger.seats_free(), ledger.unmet().movers_now), (1, 0));
}

#[test]
fn a_seat_kept_for_a_mover_meets_no_other_demand() {
    let mut first = request(1, 1, 0);
    first.demand.movers_now = 1;
    let (ledger, reply) = grant(Ledger::new(), &first, START);
    assert_eq!((reply.granted.seats, reply.granted.admissions), (1, 0));
    let mut next = request(1, 2, 1);
    next.balance.seats = 1;
    (next.demand.slots, next.demand.movers_reserved) = (1, 1);
    let (ledger, reply) = grant(ledger, &next, START);
    assert_eq!((reply.granted.seats, reply.granted.admissions), (1, 1));
    assert_eq!(ledger.unmet().slots, 0);
    // Without a waiting visitor it gets no admission for the seat that is kept.
    let mut idle = request(1, 3, 1);
    idle.balance.seats = 1;
    idle.demand.movers_reserved = 1;
    let (_, reply) = grant(ledger, &idle, START);
    assert_eq!((reply.granted.seats, reply.granted.admissions), (0, 0));
}

#[test]
fn a_lease_given_up_is_void_and_so_are_its_claims() {
    let ledger = ten_leased(0);
    let late = START + LEASE_TTL;
    let mut claim = request(1, 2, 1);
    claim.balance.seats = 10;
    let (ledger, reply) = ledger.sync(&claim, LeaseTerms::default(), late);
    assert_eq!(
        reply,
        Reply::Void {
            child: NodeId(1),
            number: 2,
            incarnation: Incarnation(0),
            store: StoreFacts::UNWRITTEN,
        }
    );
    assert_eq!(ledger.phantoms(), 10, "nothing was returned");
    claim.number = 3;
    claim.is_final = true;
    claim.row.add(late + DurationMs(5_000));
    let (ledger, _) = grant(ledger, &claim, late);
    assert_eq!(
        ledger.phantoms(),
        0,
        "its final report replaces its possible seats"
    );
    assert_eq!((ledger.active(), ledger.seats_leased()), (1, 0));
}

#[test]
fn a_request_that_comes_twice_or_out_of_order_changes_nothing() {
    let ledger = ten_leased(0);
    let before = ledger.clone();
    let again = request(1, 1, 0);
    let (ledger, reply) = ledger.sync(&again, LeaseTerms::default(), START);
    assert_eq!(reply, Reply::Stale);
    assert_eq!(ledger, before);
}

#[test]
fn an_interval_frees_its_seats_when_the_slowest_child_closed_it() {
    let end = START + DurationMs(5_000);
    let mut fast = request(1, 1, 0);
    fast.row.add(end);
    let (ledger, _) = grant(Ledger::new(), &fast, START);
    let (ledger, _) = grant(ledger, &request(2, 1, 0), START);
    fast = SyncRequest {
        number: 2,
        generation: Some(1),
        closed_through: end,
        ..fast
    };
    let (ledger, _) = grant(ledger, &fast, end);
    assert_eq!(
        ledger.active(),
        1,
        "the other child may still accept its ticket"
    );
    let mut slow = request(2, 2, 2);
    slow.closed_through = end;
    let (ledger, _) = grant(ledger, &slow, end + DurationMs(300));
    assert_eq!(ledger.active(), 0);
}

#[test]
fn a_goodbye_leaves_seats_but_no_phantoms() {
    let mut goodbye = request(1, 2, 1);
    goodbye.is_leaving = true;
    goodbye.row.add(START + DurationMs(100_000));
    goodbye.waiting = waiting(7);
    let (ledger, _) = grant(ten_leased(5), &goodbye, START + DurationMs(1));
    assert_eq!(
        (ledger.active(), ledger.phantoms(), ledger.seats_leased()),
        (1, 0, 0)
    );
    let (_, reply) = grant(ledger, &request(2, 1, 0), START + DurationMs(2));
    assert_eq!(
        *reply.snapshot.queue,
        [(START, 7)].into(),
        "waiting visitors keep their order"
    );
}

#[test]
fn a_new_epoch_grants_no_slots_until_all_earlier_leases_have_ended() {
    let mut ledger = Ledger::new();
    let (old, _) = grant(ledger, &request(1, 1, 0), START);
    ledger = old;
    ledger.begin_epoch(Incarnation(7), LeaseTerms::default());
    let reopens_at = START + LEASE_TTL + LONGEST;
    let mut first = request(2, 1, 0);
    first.demand = LeaseDemand {
        slots: 5,
        credits: 3,
        ..LeaseDemand::default()
    };
    let (ledger, reply) = grant(ledger, &first, START);
    assert_eq!((reply.granted.seats, reply.granted.credits), (0, 3));
    assert_eq!(reply.snapshot.reopens_at, Some(reopens_at));
    // A late message does not show the time of the loss; one that names this incarnation does.
    first.parent = Some(Incarnation(7));
    first.generation = reply.generation;
    first.is_final = false;
    first.number = 2;
    let (ledger, _) = grant(ledger, &first, START);
    first.number = 3;
    first.is_final = true;
    let all_clocks = reopens_at + closing::CLOCKS_APART;
    let (ledger, reply) = grant(ledger, &first, all_clocks);
    assert_eq!(
        reply.granted.seats, 0,
        "its node has not closed the ended intervals"
    );
    first.number = 4;
    first.closed_through = all_clocks;
    let (_, reply) = grant(ledger, &first, all_clocks);
    assert_eq!(reply.granted.seats, 5);
    assert_eq!(reply.snapshot.epoch, Epoch(7));
}

#[test]
fn while_visitors_wait_admissions_are_granted_at_an_even_pace() {
    let mut first = request(1, 1, 0);
    first.demand.slots = 60;
    first.settings.limits.total_active_users = 1_000;
    first.settings.limits.new_users_per_minute = 600;
    first.balance.minute = START.minute();
    first.waiting = waiting(500);
    let (ledger, reply) = grant(Ledger::new(), &first, START + DurationMs(1_000));
    assert_eq!(
        reply.granted.admissions, 15,
        "1 s of 60, and half a second ahead"
    );
    first.number = 2;
    first.generation = Some(1);
    first.is_final = false;
    first.balance = reply.granted;
    first.settings.pacing = false;
    let (_, reply) = grant(ledger, &first, START + DurationMs(1_000));
    assert_eq!(reply.granted.admissions, 45);
}

#[test]
fn a_revocation_frees_one_seat_once_even_if_two_nodes_report_it() {
    let end = START + DurationMs(100_000);
    let revocation = Revocation {
        visitor: VisitorId([5; 16]),
        seat_ends_at: Some(end),
        until: START + LONGEST,
    };
    let mut first = request(1, 1, 0);
    first.row.add(end);
    first.row.add(end);
    first.revocations = vec![revocation];
    let (ledger, reply) = grant(Ledger::new(), &first, START);
    assert_eq!(ledger.active(), 1);
    assert_eq!(reply.revoked, Some((1, vec![revocation])));
    let mut other = request(2, 1, 0);
    other.revocations = vec![revocation];
    let (ledger, _) = grant(ledger, &other, START);
    assert_eq!(ledger.active(), 1);
}

#[test]
fn a_late_revocation_does_not_free_a_second_seat() {
    let late = START + LONGEST;
    let mut first = request(1, 1, 0);
    first.closed_through = late;
    first.row.add(late + DurationMs(5_000));
    first.revocations = vec![Revocation {
        visitor: VisitorId([5; 16]),
        seat_ends_at: Some(late + DurationMs(5_000)),
        until: late - closing::CLOCKS_APART,
    }];
    let (ledger, _) = grant(Ledger::new(), &first, late);
    assert_eq!(ledger.active(), 1);
}

#[test]
fn a_phantom_ends_no_sooner_than_its_seats_interval() {
    // A gives a seat and ends without a report; B, whose clock lags, extends it.
    let (seat_end, moved_to) = (START + LONGEST, START + LONGEST + DurationMs(100_000));
    let mut a = request(1, 1, 0);
    a.demand.slots = 1;
    let (ledger, _) = grant(Ledger::new(), &a, START);
    let ended_at = START + LEASE_TTL;
    let mut b = request(2, 1, 0);
    b.row.shift(seat_end, moved_to);
    let (ledger, _) = grant(ledger, &b, ended_at);
    assert_eq!(ledger.active() + ledger.phantoms(), 1);
    b.number = 2;
    b.is_final = true;
    let (ledger, _) = grant(ledger, &b, ended_at + LONGEST + DurationMs(1));
    assert_eq!(ledger.active() + ledger.phantoms(), 1, "not closed yet");
    b.number = 3;
    b.closed_through = ended_at + LONGEST;
    b.row.drop_through(b.closed_through);
    let (ledger, _) = grant(ledger, &b, ended_at + LONGEST + DurationMs(2));
    assert_eq!(ledger.active() + ledger.phantoms(), 1);
}

#[test]
fn a_clock_that_is_an_hour_ahead_closes_nothing_before_its_time() {
    let mut ahead = request(1, 1, 0);
    ahead.row.add(START + DurationMs(100_000));
    ahead.closed_through = START + DurationMs(3_600_000);
    ahead.sent_at = ahead.closed_through;
    // The other children's clocks show an earlier time.
    let (ledger, _) = grant(Ledger::new(), &request(2, 1, 0), START);
    let (ledger, _) = ledger.sync(&ahead, LeaseTerms::default(), START);
    assert_eq!(ledger.clock_at, START);
    assert_eq!(ledger.closed_through(DataCenterId(1)), START);
    assert_eq!(ledger.active(), 1);
}

#[test]
fn only_requests_to_this_incarnation_advance_record_time() {
    let (ledger, _) = grant(Ledger::new(), &request(1, 1, 0), START);
    let mut other = request(1, 2, 1);
    other.stamp.time = Some(START + LEASE_TTL);
    assert_eq!(ledger.time_of(&other), START + LEASE_TTL);
    other.parent = Some(Incarnation(9));
    assert_eq!(ledger.time_of(&other), START, "the time of another record");
    other.parent = Some(Incarnation::ALONE);
    other.stamp.time = Some(START - LEASE_TTL);
    assert_eq!(ledger.time_of(&other), START, "it came late");
}

#[test]
fn while_configurations_differ_the_lower_limit_applies() {
    let (ledger, _) = grant(Ledger::new(), &request(1, 1, 0), START);
    let mut higher = request(2, 1, 0);
    higher.settings.limits.total_active_users = 1_000;
    higher.settings.limits.new_users_per_minute = 1_000;
    higher.demand.slots = 500;
    let (_, reply) = grant(ledger, &higher, START);
    assert_eq!((reply.granted.seats, reply.granted.admissions), (10, 10));
}

#[test]
fn a_burst_at_one_of_many_nodes_gets_all_free_slots() {
    let mut ledger = Ledger::new();
    for node in 2..9 {
        ledger = grant(ledger, &request(node, 1, 0), START).0;
    }
    let mut burst = request(1, 1, 0);
    burst.demand.slots = 10;
    let (_, reply) = grant(ledger, &burst, START);
    assert_eq!(reply.granted.seats, 10);
}

#[test]
fn a_lowered_limit_grants_nothing_before_enough_sessions_end() {
    let mut ledger = ten_leased(0);
    for number in 2..4 {
        let mut next = request(1, number, 1);
        next.demand.slots = 5;
        next.settings.limits.total_active_users = 3;
        for _ in 0..4 {
            next.row.add(START + DurationMs(100_000));
        }
        let (after, reply) = grant(ledger, &next, START);
        assert_eq!(reply.granted.seats, 0);
        ledger = after;
    }
    assert_eq!(ledger.active(), 4);
}
