//! Worked numbers of the source article, against the real allocations.

use std::collections::BTreeMap;

use anteroom_room::allocation::counters::CounterAllocator;
use anteroom_room::allocation::{
    Allocator, AllocatorContext, AnyAllocator, CounterKey, Take, curve, even,
};
use anteroom_room::id::{DataCenterId, NodeId};
use anteroom_room::lease::Lease;
use anteroom_room::ledger::{LeaseTerms, Ledger};
use anteroom_room::rules::{AllocationKind, CurveFactor, Limits, NewUsersWindow, Rules};
use anteroom_room::seats::SeatRow;
use anteroom_room::statistics::{Budget, RoomStatistics, Utilization};
use anteroom_room::sync::{LeaseDemand, LeaseUsage, RecordStamp, Reply, RoomFacts, SyncRequest};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::waiting::WaitingForecast;

const SAN_JOSE: DataCenterId = DataCenterId(1);
const LONDON: DataCenterId = DataCenterId(2);
const DELHI: DataCenterId = DataCenterId(3);
/// 2023-09-11T11:45:54Z.
const NOW: Timestamp = Timestamp(1_694_432_754_000);

fn rules(total: u32, rate: u32) -> Rules {
    Rules {
        limits: Limits {
            total_active_users: total,
            new_users_per_minute: rate,
        },
        ..Rules::default()
    }
}

/// Returns the article's state: limits 200/200, 50 active visitors, 20 came in San Jose and 30 in
/// London.
fn article() -> RoomStatistics {
    RoomStatistics {
        as_of: NOW,
        active_users: 50,
        nodes_total: 10,
        nodes_here: 3,
        admitted_this_minute: 0,
        last_minute: vec![(SAN_JOSE, 20), (LONDON, 30)],
    }
}

/// Returns a minute with `slots` slots, all of them Anywhere.
fn anywhere(slots: u32, nodes: u32) -> RoomStatistics {
    RoomStatistics {
        as_of: NOW,
        active_users: 100 - slots,
        nodes_total: nodes,
        nodes_here: nodes,
        admitted_this_minute: 0,
        last_minute: vec![],
    }
}

/// Sends `arrivals` to one allocation; counters count in `counters`. Returns how many got a slot.
fn admitted(
    allocator: &mut AnyAllocator,
    (rules, statistics, data_center): (&Rules, &RoomStatistics, DataCenterId),
    arrivals: u32,
    counters: &mut BTreeMap<CounterKey, u64>,
) -> u32 {
    let mut lease = Lease::default();
    let mut got = 0;
    for _ in 0..arrivals {
        loop {
            let mut context = AllocatorContext {
                rules,
                statistics,
                data_center,
                lease: &mut lease,
                now: NOW,
            };
            match allocator.take(&mut context) {
                Take::Slot => got += 1,
                Take::TakeNumber(key) => {
                    let next = counters.entry(key).or_insert(0);
                    let number = *next;
                    *next += 1;
                    let AnyAllocator::Counters(allocator) = allocator else {
                        unreachable!("only counters take numbers")
                    };
                    if !allocator.handle_number(key, Some(number)) {
                        continue;
                    }
                    got += 1;
                }
                Take::UsedUp | Take::SyncWithParent => {}
            }
            break;
        }
    }
    got
}

fn alone(
    kind: AllocationKind,
    rules: &Rules,
    statistics: &RoomStatistics,
    dc: DataCenterId,
) -> u32 {
    let mut allocator = AnyAllocator::new(kind);
    admitted(
        &mut allocator,
        (rules, statistics, dc),
        1_000,
        &mut BTreeMap::new(),
    )
}

#[test]
fn the_articles_state_leaves_150_slots_split_15_22_113() {
    let budget = Budget::of(&article(), rules(200, 200).limits);
    assert_eq!(budget.slots, 150);
    assert_eq!(budget.share_of(SAN_JOSE), 15);
    assert_eq!(budget.share_of(LONDON), 22);
    assert_eq!(budget.share_of(DELHI), 0);
    assert_eq!(budget.anywhere, 113);
    let quarter = Utilization {
        used: 50,
        limit: 200,
    };
    assert_eq!(budget.utilization, quarter);
}

#[test]
fn rounding_each_share_half_up_would_invent_a_slot() {
    let half_up = |weight: u32| (150 * weight + 100) / 200;
    let parts = [20, 30, 150].map(half_up);
    assert_eq!(parts, [15, 23, 113]);
    assert_eq!(parts.iter().sum::<u32>(), 151);
    let budget = Budget::of(&article(), rules(200, 200).limits);
    let shares: u32 = budget.shares.iter().map(|(_, slots)| slots).sum();
    assert_eq!(shares + budget.anywhere, 150);
}

#[test]
fn shares_that_sum_to_more_than_one_are_scaled_down() {
    let mut statistics = article();
    statistics.last_minute = vec![(SAN_JOSE, 300), (LONDON, 100)];
    let budget = Budget::of(&statistics, rules(200, 200).limits);
    assert_eq!(budget.share_of(SAN_JOSE) + budget.share_of(LONDON), 150);
    assert_eq!(budget.anywhere, 0);
    statistics.active_users = 300;
    assert_eq!(Budget::of(&statistics, rules(200, 200).limits).slots, 0);
}

#[test]
fn even_gives_san_joses_node_16_slots_and_delhis_11() {
    let rules = rules(200, 200);
    assert_eq!(even::per_node(15, 3, utilization(1, 4), &rules), 5);
    assert_eq!(even::per_node(113, 10, utilization(1, 4), &rules), 11);
    assert_eq!(
        alone(AllocationKind::Even, &rules, &article(), SAN_JOSE),
        16
    );
    assert_eq!(alone(AllocationKind::Even, &rules, &article(), DELHI), 11);
}

fn utilization(used: u32, limit: u32) -> Utilization {
    Utilization { used, limit }
}

#[test]
fn the_curve_gives_more_when_empty_and_never_all() {
    let check = |slots, nodes, utilization, millionths, expected| {
        let rules = Rules {
            curve_factor: CurveFactor { millionths },
            ..Rules::default()
        };
        assert_eq!(curve::per_node(slots, nodes, utilization, &rules), expected);
    };
    check(113, 10, utilization(1, 4), 1_000_000, 45);
    check(10, 2, utilization(1, 10), 204_120, 8);
    check(10, 2, utilization(1, 1), 1_000_000, 5);
    check(10, 2, utilization(1, 10), 1_000_000, 10);
    check(10, 2, utilization(0, 10), 1_000_000, 10);
}

/// Admits arrivals at two nodes with ten slots.
fn two_nodes(
    kind: AllocationKind,
    rules: &Rules,
    statistics: &RoomStatistics,
    arrivals: [u32; 2],
) -> [u32; 2] {
    let mut counters = BTreeMap::new();
    let mut allocators = [AnyAllocator::new(kind), AnyAllocator::new(kind)];
    let mut got = [0; 2];
    for (at, allocator) in allocators.iter_mut().enumerate() {
        got[at] = admitted(
            allocator,
            (rules, statistics, DELHI),
            arrivals[at],
            &mut counters,
        );
    }
    got
}

#[test]
fn two_nodes_share_ten_slots() {
    let full = rules(100, 100);
    let even = anywhere(10, 2);
    assert_eq!(
        two_nodes(AllocationKind::Even, &full, &even, [7, 1]),
        [5, 1]
    );
    // At a tenth of the limit: 10 slots of the minute left, 10 of 100 seats taken.
    let calm = Rules {
        curve_factor: CurveFactor {
            millionths: 204_120,
        },
        ..rules(100, 10)
    };
    let tenth = anywhere(90, 2);
    assert_eq!(
        two_nodes(AllocationKind::Curve, &calm, &tenth, [7, 1]),
        [7, 1]
    );
    assert_eq!(
        two_nodes(AllocationKind::Curve, &calm, &tenth, [8, 7]),
        [8, 7],
        "15 admitted on 10 slots: the known overshoot"
    );
    let sum = |arrivals| {
        let got = two_nodes(AllocationKind::Counters, &full, &even, arrivals);
        got[0] + got[1]
    };
    assert_eq!(sum([7, 1]), 8);
    assert_eq!(sum([8, 7]), 10);
}

#[test]
fn a_number_is_received_and_then_compared() {
    let rules = rules(100, 100);
    let statistics = anywhere(10, 1);
    let mut allocator = CounterAllocator::default();
    let mut lease = Lease::default();
    let mut context = AllocatorContext {
        rules: &rules,
        statistics: &statistics,
        data_center: DELHI,
        lease: &mut lease,
        now: NOW,
    };
    let Take::TakeNumber(key) = allocator.take(&mut context) else {
        panic!("counters take a number")
    };
    assert!(allocator.handle_number(key, Some(9)));
    assert!(!allocator.handle_number(key, Some(10)));
}

#[test]
fn counters_let_one_node_use_the_data_centers_and_the_anywhere_slots() {
    let rules = rules(200, 200);
    for (arrivals, expected) in [(128, 128), (129, 128)] {
        let mut allocator = AnyAllocator::new(AllocationKind::Counters);
        let mut counters = BTreeMap::new();
        let got = admitted(
            &mut allocator,
            (&rules, &article(), SAN_JOSE),
            arrivals,
            &mut counters,
        );
        assert_eq!(got, expected);
    }
}

fn lease_request(child: u64, lease: &mut Lease, slots: u32) -> SyncRequest {
    SyncRequest {
        child: NodeId(child),
        process: NodeId(child),
        replaces: Vec::new(),
        data_center: SAN_JOSE,
        sent_at: NOW,
        stamp: RecordStamp::default(),
        is_of_ledger: false,
        is_join: false,
        known_closed: Timestamp::ZERO,
        is_read_under_parent: true,
        parent: None,
        voided_by: None,
        witnessed_epoch: None,
        number: lease.begin_request(NOW),
        applied_reply: None,
        generation: lease.generation(),
        is_final: !lease.is_live(NOW),
        balance: lease.balance(),
        demand: LeaseDemand {
            slots,
            ..LeaseDemand::default()
        },
        used: LeaseUsage::default(),
        admitted: vec![],
        row: SeatRow::default(),
        closed_through: NOW,
        longest_seat: DurationMs(310_000),
        longest_known: DurationMs(310_000),
        nodes: 1,
        waiting: WaitingForecast::default(),
        revocations: vec![],
        revoked_version: 0,
        rejects_through: 0,
        settings: RoomFacts {
            limits: rules(10, 100).limits,
            window: NewUsersWindow::Minute,
            longest_seat: DurationMs(310_000),
            pacing: true,
            needs_traffic: false,
        },
        is_leaving: false,
    }
}

#[test]
fn leases_admit_ten_of_fifteen_at_two_nodes() {
    let mut ledger = Ledger::new();
    let mut leases = [Lease::default(), Lease::default()];
    for (child, wants) in [(1, 8), (2, 7)] {
        let lease = &mut leases[child - 1];
        loop {
            let request = lease_request(child as u64, lease, wants);
            let (next, reply) = ledger.sync(&request, LeaseTerms::default(), NOW);
            ledger = next;
            let Reply::Granted(answer) = reply else {
                panic!("every request is granted")
            };
            lease.handle_lease_reply(&answer);
            if lease.balance().seats >= wants || answer.snapshot.is_exhausted(NOW) {
                break;
            }
        }
    }
    let [first, second] = &mut leases;
    let take = |lease: &mut Lease, arrivals| -> usize {
        (0..arrivals)
            .filter(|_| lease.take_slot(NOW).is_ok())
            .count()
    };
    assert_eq!(take(first, 8) + take(second, 7), 10);
}
