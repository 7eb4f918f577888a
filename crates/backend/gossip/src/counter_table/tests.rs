//! Tables that exchange reports over a faulty network, or not at all.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::SharedAcquire;
use proptest::collection::vec;
use proptest::prelude::*;

mod capacity;

use super::*;
use crate::message::Message;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

const START: TimestampUs = TimestampUs(1_767_225_600_000_000);

fn policies(requests: u32) -> [Policy; 4] {
    let rate = Rate::new(requests, DurationUs::from_secs(60)).unwrap();
    [
        Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(SubWindows::new(rate, 4).unwrap()),
        Policy::SubWindows(SubWindows::strict(rate, 4).unwrap()),
    ]
}

fn table(me: u64, counters_max: usize) -> CounterTable {
    let secret = Secret::new(b"a secret of nodes").unwrap();
    CounterTable::new(WriterId(me), &secret, counters_max)
}

fn tables(count: u64) -> Vec<CounterTable> {
    (1..=count).map(|me| table(me, 1_000)).collect()
}

fn acquire(
    table: &mut CounterTable,
    policy: &Policy,
    key: u128,
    cost: Cost,
    now: TimestampUs,
) -> Verdict {
    let acquire = SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(key),
        cost,
    };
    let mut verdicts = Vec::new();
    table.acquire_all(&[acquire], now, &mut verdicts);
    verdicts[0]
}

fn receive(table: &mut CounterTable, body: &[u8], now: TimestampUs) {
    let Some(Message::Counters { reports, .. }) = Message::read(body) else {
        panic!("a table reports counters");
    };
    for report in &reports {
        table.merge_report(report, now);
    }
}

/// Reports all counters of each table to all others.
fn report_all(tables: &mut [CounterTable], now: TimestampUs) {
    for from in 0..tables.len() {
        let (bodies, rest) = tables[from].report_to_newcomer(now, usize::MAX);
        assert_eq!(rest, 0);
        for table in tables.iter_mut() {
            bodies.iter().for_each(|body| receive(table, body, now));
        }
    }
}

/// Reports the changes of each table to all others at once.
fn report_changes(tables: &mut [CounterTable], now: TimestampUs) {
    for from in 0..tables.len() {
        let bodies = tables[from].report_changes(now);
        for table in tables.iter_mut() {
            bodies.iter().for_each(|body| receive(table, body, now));
        }
    }
}

/// Step of a random test.
#[derive(Clone, Debug)]
enum Step {
    /// A client sends a request to a node.
    Request {
        node: usize,
        key: u128,
        cost: i64,
    },
    /// A node sends its changes; they are in flight then.
    Report {
        node: usize,
    },
    /// A message in flight reaches a node, and stays in flight: it is duplicated.
    Reach {
        which: usize,
        node: usize,
    },
    /// A message in flight is lost.
    Lose {
        which: usize,
    },
    Wait {
        millis: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_usize, 0..3_u128, -3..6_i64)
            .prop_map(|(node, key, cost)| Step::Request { node, key, cost }),
        2 => (0..3_usize).prop_map(|node| Step::Report { node }),
        4 => (any::<usize>(), 0..3_usize).prop_map(|(which, node)| Step::Reach { which, node }),
        1 => any::<usize>().prop_map(|which| Step::Lose { which }),
        1 => (0..9_000_u64).prop_map(|millis| Step::Wait { millis }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A node never counts more for a writer than the writer did, and all nodes converge.
    #[test]
    fn tables_converge_despite_lost_doubled_and_late_messages(
        policy in 0..4_usize,
        steps in vec(step(), 1..120),
    ) {
        let policy = policies(20)[policy];
        let mut tables = tables(3);
        let mut under_way: Vec<Vec<u8>> = Vec::new();
        let mut now = START;
        for step in steps {
            match step {
                Step::Request { node, key, cost } => {
                    acquire(&mut tables[node], &policy, key, Cost::from(cost), now);
                }
                Step::Report { node } => under_way.extend(tables[node].report_changes(now)),
                Step::Reach { which, node } if !under_way.is_empty() => {
                    let body = &under_way[which % under_way.len()];
                    receive(&mut tables[node], body, now);
                }
                Step::Lose { which } if !under_way.is_empty() => {
                    under_way.swap_remove(which % under_way.len());
                }
                Step::Wait { millis } => now = now + DurationUs(millis * 1_000),
                Step::Reach { .. } | Step::Lose { .. } => {}
            }
            // Each table's own shares are the truth, and no other table has larger ones.
            for cell in tables.iter().flat_map(|table| table.cells.iter()) {
                for share in cell.1.shares() {
                    let writer = usize::try_from(share.writer.0 - 1).unwrap();
                    let own = tables[writer].cells.get(cell.0);
                    let is_same = |own: &&crate::cell::Share| own.writer == share.writer;
                    let own = own.and_then(|own| own.shares().iter().find(is_same));
                    if let Some(own) = own {
                        prop_assert!(share.added <= own.added && share.refunded <= own.refunded);
                    }
                }
            }
        }
        // All three nodes are alive, and their reports of themselves are enough.
        let alive: BTreeSet<WriterId> = (1..=3).map(WriterId).collect();
        tables.iter_mut().for_each(|table| table.set_alive(alive.clone()));
        report_all(&mut tables, now);
        let sums: Vec<_> = tables.iter_mut().map(|table| {
            for _ in 0..2 * table.len() + 1 {
                table.advance_cursor(now);
            }
            table.sums()
        }).collect();
        prop_assert_eq!(&sums[0], &sums[1]);
        prop_assert_eq!(&sums[0], &sums[2]);
        for client in 0..3 {
            let peek = |table| acquire(table, &policy, client, Cost::Peek, now);
            let left: Vec<Verdict> = tables.iter_mut().map(peek).collect();
            prop_assert_eq!(left[0], left[1]);
            prop_assert_eq!(left[0], left[2]);
        }
    }

    /// Includes refunds.
    #[test]
    fn a_node_alone_decides_as_the_algorithm_does(
        policy in 0..4_usize,
        requests in vec((0..9_000_u64, -4..8_i64), 1..80),
    ) {
        let policy = policies(10)[policy];
        let mut table = table(1, 1_000);
        let mut state = Default::default();
        let mut now = START;
        for (millis, cost) in requests {
            now = now + DurationUs(millis * 997);
            table.advance_cursor(now);
            let cost = Cost::from(cost);
            let expected = policy.step(&mut state, now, cost);
            prop_assert_eq!(acquire(&mut table, &policy, 1, cost, now), expected, "{:?}", cost);
        }
    }

    /// Several nodes decide as one node would.
    #[test]
    fn nodes_without_delay_decide_as_the_algorithm_does(
        policy in 0..4_usize,
        requests in vec((0..9_000_u64, 0..8_i64, 0..3_usize, any::<bool>()), 1..80),
    ) {
        let policy = policies(10)[policy];
        let mut tables = tables(3);
        let mut state = Default::default();
        let mut now = START;
        for (millis, cost, node, is_refunded) in requests {
            now = now + DurationUs(millis * 997);
            let cost = Cost::from(cost);
            let costs = match cost {
                // A client refunds at the node that it acquired from.
                Cost::Take(taken) if is_refunded => vec![cost, Cost::Refund(taken)],
                _ => vec![cost],
            };
            for cost in costs {
                let expected = policy.step(&mut state, now, cost);
                let verdict = acquire(&mut tables[node], &policy, 1, cost, now);
                prop_assert_eq!(verdict, expected, "{:?}", cost);
                report_changes(&mut tables, now);
                if !expected.is_allowed() {
                    break;
                }
            }
        }
    }
}

#[test]
fn all_limits_are_acquired_or_none_and_a_rejection_is_not_reported() {
    let mut table = table(1, 1_000);
    let policy = policies(3)[0];
    let acquire = |limit, cost| SharedAcquire {
        limit,
        policy: &policy,
        key: ClientKey(1),
        cost: Cost::take(cost),
    };
    let mut verdicts = Vec::new();
    table.acquire_all(
        &[acquire("a", 2), acquire("b", 4), acquire("a", 1)],
        START,
        &mut verdicts,
    );
    let admitted: Vec<bool> = verdicts.iter().map(Verdict::is_allowed).collect();
    assert_eq!(admitted, [true, false, true]);
    assert!(table.is_empty(), "rejected requests create no counter");
    assert_eq!(table.report_changes(START), Vec::<Vec<u8>>::new());
}

#[test]
fn a_node_behind_counts_requests_of_nodes_ahead() {
    let (strict, sliding, sub) = (policies(10)[3], policies(10)[1], policies(10)[2]);
    for policy in [strict, sliding, sub] {
        let mut tables = tables(2);
        let behind = START - DurationUs(1);
        let ahead = behind + CLOCKS_APART_MAX;
        for _ in 0..10 {
            assert!(acquire(&mut tables[1], &policy, 1, Cost::ONE, ahead).is_allowed());
        }
        report_changes(&mut tables, START);
        let verdict = acquire(&mut tables[0], &policy, 1, Cost::ONE, behind);
        assert!(!verdict.is_allowed(), "{policy:?}");
    }
}

#[test]
fn a_flood_shares_overflow_entries_and_known_clients_keep_their_counts() {
    let policy = policies(2)[1];
    let mut table = table(1, 100);
    for _ in 0..2 {
        assert!(acquire(&mut table, &policy, 0, Cost::ONE, START).is_allowed());
    }
    let request = |table: &mut CounterTable, key, now| {
        acquire(table, &policy, key, Cost::ONE, now).is_allowed()
    };
    let admitted = (1..10_000)
        .filter(|key| request(&mut table, *key, START))
        .count();
    // 99 more have a counter, and 64 overflow entries admit two requests each.
    assert_eq!(admitted, 99 + 2 * 64);
    assert_eq!(table.len(), 100 + 64);
    assert!(!request(&mut table, 0, START), "its counter is known");
    assert!(
        request(&mut table, 7, START),
        "it is known, and has one request left"
    );
    // In the next window known clients keep their own counters.
    let later = START + DurationUs::from_secs(60 + 59);
    assert!(request(&mut table, 0, later));
    // Once all counters have expired there is room again.
    let after = START + DurationUs::from_secs(300);
    for _ in 0..1_000 {
        table.advance_cursor(after);
    }
    assert!(table.is_empty() && table.overflow_count == 0);
    assert!((1..=100).all(|key| request(&mut table, key, after)));
}

#[test]
fn reports_of_peers_never_exceed_the_capacity() {
    let policy = policies(2)[0];
    let mut tables = [table(1, 50), table(2, 1_000)];
    for key in 0..200 {
        acquire(&mut tables[1], &policy, key, Cost::ONE, START);
    }
    report_all(&mut tables, START);
    assert_eq!(tables[0].len(), 50);
    assert_eq!(tables[0].event_counts.of(Event::CounterDropped), 150);
    // The window has ended, or begins far in the future.
    let mut small = table(3, 50);
    let bodies = tables[1].report_to_newcomer(START, usize::MAX).0;
    for now in [START + DurationUs::from_secs(66), TimestampUs(0)] {
        receive(&mut small, &bodies[0], now);
        assert!(small.is_empty());
    }
}

#[test]
fn a_change_is_sent_three_times_newest_first_then_in_turn() {
    let policy = policies(100)[0];
    let mut table = table(1, 100_000);
    for key in 0..3_000 {
        acquire(&mut table, &policy, key, Cost::ONE, START);
    }
    let names = |bodies: &[Vec<u8>]| -> Vec<u128> {
        let reports = bodies.iter().flat_map(|body| match Message::read(body) {
            Some(Message::Counters { reports, .. }) => reports,
            _ => panic!("a table reports counters"),
        });
        reports.map(|report| report.id.name).collect()
    };
    let first = names(&table.report_changes(START));
    assert_eq!(first[0], table.names.client("api", ClientKey(2_999)));
    // No counter is sent again before all were sent once.
    let mut all = first;
    let rounds = (3 * 3_000_usize).div_ceil(all.len());
    for _ in 1..rounds {
        all.extend(names(&table.report_changes(START)));
    }
    let once: BTreeSet<u128> = all[..3_000].iter().copied().collect();
    assert_eq!((once.len(), all.len()), (3_000, 9_000));
    assert!(table.report_changes(START).is_empty());
    // The repetition covers all counters.
    let interval = std::time::Duration::from_millis(100);
    let round = (0..100).flat_map(|_| names(&table.report_round(START, interval)));
    assert_eq!(round.collect::<BTreeSet<u128>>().len(), 3_000);
}

#[test]
fn a_node_reports_for_departed_nodes() {
    let policy = policies(10)[0];
    let mut tables = tables(2);
    acquire(&mut tables[1], &policy, 1, Cost::take(4), START);
    acquire(&mut tables[0], &policy, 1, Cost::take(3), START);
    report_changes(&mut tables, START);
    let mut left = |alive: &[u64]| {
        let mut newcomer = table(3, 1_000);
        tables[0].set_alive(alive.iter().map(|writer| WriterId(*writer)).collect());
        let bodies = tables[0].report_to_newcomer(START, usize::MAX).0;
        bodies
            .iter()
            .for_each(|body| receive(&mut newcomer, body, START));
        acquire(&mut newcomer, &policy, 1, Cost::Peek, START).remaining
    };
    assert_eq!(left(&[2]), 7, "the other node reports for itself");
    assert_eq!(left(&[]), 3, "it has departed");
}

#[test]
fn a_counter_takes_the_documented_memory() {
    // Includes the hash and the slot in the table, part of which is empty.
    let bytes = size_of::<CounterId>() + size_of::<Cell>() + 8 + 16;
    assert!(bytes <= 150, "{bytes}");
}
