//! Boards that hear each other in every way that a network has, and none.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::SharedAcquire;
use proptest::collection::vec;
use proptest::prelude::*;

mod places;

use super::*;
use crate::message::Message;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

const START: TimestampUs = TimestampUs(1_767_225_600_000_000);

fn policies(calls: u32) -> [Policy; 4] {
    let rate = Rate::new(calls, DurationUs::from_secs(60)).unwrap();
    [
        Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(SubWindows::new(rate, 4).unwrap()),
        Policy::SubWindows(SubWindows::strict(rate, 4).unwrap()),
    ]
}

fn board(me: u64, counters_max: usize) -> CounterTable {
    let secret = Secret::new(b"a secret of boards").unwrap();
    CounterTable::new(WriterId(me), &secret, counters_max)
}

fn boards(count: u64) -> Vec<CounterTable> {
    (1..=count).map(|me| board(me, 1_000)).collect()
}

fn charge(
    board: &mut CounterTable,
    policy: &Policy,
    key: u128,
    cost: Cost,
    now: TimestampUs,
) -> Verdict {
    let charge = SharedAcquire {
        limit: "api",
        policy,
        key: CallKey(key),
        cost,
    };
    let mut verdicts = Vec::new();
    board.charge_all(&[charge], now, &mut verdicts);
    verdicts[0]
}

fn hear(board: &mut CounterTable, body: &[u8], now: TimestampUs) {
    let Some(Message::Counters { told, .. }) = Message::read(body) else {
        panic!("a board tells counters");
    };
    for one in &told {
        board.hear(one, now);
    }
}

/// Each tells all others all that it knows.
fn tell_all(boards: &mut [CounterTable], now: TimestampUs) {
    for from in 0..boards.len() {
        let (bodies, rest) = boards[from].tell_newcomer(now, usize::MAX);
        assert_eq!(rest, 0);
        for board in boards.iter_mut() {
            bodies.iter().for_each(|body| hear(board, body, now));
        }
    }
}

/// Each that has news tells them, and all hear at once.
fn tell_news(boards: &mut [CounterTable], now: TimestampUs) {
    for from in 0..boards.len() {
        let bodies = boards[from].tell_news(now);
        for board in boards.iter_mut() {
            bodies.iter().for_each(|body| hear(board, body, now));
        }
    }
}

/// What happens to boards.
#[derive(Clone, Debug)]
enum Step {
    /// A client calls at a node.
    Call {
        node: usize,
        key: u128,
        cost: i64,
    },
    /// A node tells its news; they are under way then.
    Tell {
        node: usize,
    },
    /// Something that is under way reaches somebody, and stays under way (it comes again).
    Reach {
        which: usize,
        node: usize,
    },
    /// Something that is under way is lost.
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
            .prop_map(|(node, key, cost)| Step::Call { node, key, cost }),
        2 => (0..3_usize).prop_map(|node| Step::Tell { node }),
        4 => (any::<usize>(), 0..3_usize).prop_map(|(which, node)| Step::Reach { which, node }),
        1 => any::<usize>().prop_map(|which| Step::Lose { which }),
        1 => (0..9_000_u64).prop_map(|millis| Step::Wait { millis }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// However messages come, what is heard is never more than what was counted, and all agree in
    /// the end.
    #[test]
    fn boards_agree_in_the_end_whatever_is_lost_doubled_or_late(
        policy in 0..4_usize,
        steps in vec(step(), 1..120),
    ) {
        let policy = policies(20)[policy];
        let mut boards = boards(3);
        let mut under_way: Vec<Vec<u8>> = Vec::new();
        let mut now = START;
        for step in steps {
            match step {
                Step::Call { node, key, cost } => {
                    charge(&mut boards[node], &policy, key, Cost::from(cost), now);
                }
                Step::Tell { node } => under_way.extend(boards[node].tell_news(now)),
                Step::Reach { which, node } if !under_way.is_empty() => {
                    let body = &under_way[which % under_way.len()];
                    hear(&mut boards[node], body, now);
                }
                Step::Lose { which } if !under_way.is_empty() => {
                    under_way.swap_remove(which % under_way.len());
                }
                Step::Wait { millis } => now = now + DurationUs(millis * 1_000),
                Step::Reach { .. } | Step::Lose { .. } => {}
            }
            // What each has counted itself is the truth, and nobody believes that there is more of
            // it.
            for cell in boards.iter().flat_map(|board| board.cells.iter()) {
                for share in cell.1.shares() {
                    let writer = usize::try_from(share.writer.0 - 1).unwrap();
                    let own = boards[writer].cells.get(cell.0);
                    let is_same = |own: &&crate::cell::Share| own.writer == share.writer;
                    let own = own.and_then(|own| own.shares().iter().find(is_same));
                    if let Some(own) = own {
                        prop_assert!(share.added <= own.added && share.back <= own.back);
                    }
                }
            }
        }
        // Every one of the three still speaks, and what each says of itself is enough.
        let alive: BTreeSet<WriterId> = (1..=3).map(WriterId).collect();
        boards.iter_mut().for_each(|board| board.set_alive(alive.clone()));
        tell_all(&mut boards, now);
        let sums: Vec<_> = boards.iter_mut().map(|board| {
            for _ in 0..2 * board.len() + 1 {
                board.turn_hand(now);
            }
            board.sums()
        }).collect();
        prop_assert_eq!(&sums[0], &sums[1]);
        prop_assert_eq!(&sums[0], &sums[2]);
        for client in 0..3 {
            let peek = |board| charge(board, &policy, client, Cost::Peek, now);
            let left: Vec<Verdict> = boards.iter_mut().map(peek).collect();
            prop_assert_eq!(left[0], left[1]);
            prop_assert_eq!(left[0], left[2]);
        }
    }

    /// Alone, a node says what the algorithm says, refunds and all.
    #[test]
    fn a_node_alone_says_what_the_algorithm_says(
        policy in 0..4_usize,
        calls in vec((0..9_000_u64, -4..8_i64), 1..80),
    ) {
        let policy = policies(10)[policy];
        let mut board = board(1, 1_000);
        let mut state = Default::default();
        let mut now = START;
        for (millis, cost) in calls {
            now = now + DurationUs(millis * 997);
            board.turn_hand(now);
            let cost = Cost::from(cost);
            let expected = policy.step(&mut state, now, cost);
            prop_assert_eq!(charge(&mut board, &policy, 1, cost, now), expected, "{:?}", cost);
        }
    }

    /// If every message comes at once, several nodes say together what one would.
    #[test]
    fn nodes_that_hear_at_once_say_what_the_algorithm_says(
        policy in 0..4_usize,
        calls in vec((0..9_000_u64, 0..8_i64, 0..3_usize, any::<bool>()), 1..80),
    ) {
        let policy = policies(10)[policy];
        let mut boards = boards(3);
        let mut state = Default::default();
        let mut now = START;
        for (millis, cost, node, is_refunded) in calls {
            now = now + DurationUs(millis * 997);
            let cost = Cost::from(cost);
            let costs = match cost {
                // Whoever gives back does so where he called.
                Cost::Take(taken) if is_refunded => vec![cost, Cost::Refund(taken)],
                _ => vec![cost],
            };
            for cost in costs {
                let expected = policy.step(&mut state, now, cost);
                let verdict = charge(&mut boards[node], &policy, 1, cost, now);
                prop_assert_eq!(verdict, expected, "{:?}", cost);
                tell_news(&mut boards, now);
                if !expected.is_admitted() {
                    break;
                }
            }
        }
    }
}

#[test]
fn all_are_charged_or_none_and_nobody_hears_of_none() {
    let mut board = board(1, 1_000);
    let policy = policies(3)[0];
    let one = |limit, cost| SharedAcquire {
        limit,
        policy: &policy,
        key: CallKey(1),
        cost: Cost::take(cost),
    };
    let mut verdicts = Vec::new();
    board.charge_all(
        &[one("a", 2), one("b", 4), one("a", 1)],
        START,
        &mut verdicts,
    );
    let admitted: Vec<bool> = verdicts.iter().map(Verdict::is_admitted).collect();
    assert_eq!(admitted, [true, false, true]);
    assert!(board.is_empty(), "they take no place either");
    assert_eq!(board.tell_news(START), Vec::<Vec<u8>>::new());
}

#[test]
fn a_node_behind_sees_calls_of_nodes_ahead_within_its_limit() {
    let (strict, sliding, sub) = (policies(10)[3], policies(10)[1], policies(10)[2]);
    for policy in [strict, sliding, sub] {
        let mut boards = boards(2);
        let behind = START - DurationUs(1);
        let ahead = behind + CLOCKS_APART_MAX;
        for _ in 0..10 {
            assert!(charge(&mut boards[1], &policy, 1, Cost::ONE, ahead).is_admitted());
        }
        tell_news(&mut boards, START);
        let verdict = charge(&mut boards[0], &policy, 1, Cost::ONE, behind);
        assert!(!verdict.is_admitted(), "{policy:?}");
    }
}

#[test]
fn a_flood_is_counted_together_and_frees_nobody_over_his_limit() {
    let policy = policies(2)[1];
    let mut board = board(1, 100);
    for _ in 0..2 {
        assert!(charge(&mut board, &policy, 0, Cost::ONE, START).is_admitted());
    }
    let call = |board: &mut CounterTable, key, now| {
        charge(board, &policy, key, Cost::ONE, now).is_admitted()
    };
    let admitted = (1..10_000)
        .filter(|key| call(&mut board, *key, START))
        .count();
    // 99 more have a counter, and 64 crowds may call twice each.
    assert_eq!(admitted, 99 + 2 * 64);
    assert_eq!(board.len(), 100 + 64);
    assert!(!call(&mut board, 0, START), "he is known");
    assert!(
        call(&mut board, 7, START),
        "he is known, and has one call left"
    );
    // In the next window those who are known go on by themselves.
    let later = START + DurationUs::from_secs(60 + 59);
    assert!(call(&mut board, 0, later));
    // When all is over there is place again.
    let after = START + DurationUs::from_secs(300);
    for _ in 0..1_000 {
        board.turn_hand(after);
    }
    assert!(board.is_empty() && board.crowds == 0);
    assert!((1..=100).all(|key| call(&mut board, key, after)));
}

#[test]
fn what_others_tell_takes_no_more_than_the_table_holds() {
    let policy = policies(2)[0];
    let mut boards = [board(1, 50), board(2, 1_000)];
    for key in 0..200 {
        charge(&mut boards[1], &policy, key, Cost::ONE, START);
    }
    tell_all(&mut boards, START);
    assert_eq!(boards[0].len(), 50);
    assert_eq!(boards[0].event_counts.of(Event::CounterDropped), 150);
    // Its time is over, or will never come.
    let mut small = board(3, 50);
    let bodies = boards[1].tell_newcomer(START, usize::MAX).0;
    for now in [START + DurationUs::from_secs(66), TimestampUs(0)] {
        hear(&mut small, &bodies[0], now);
        assert!(small.is_empty());
    }
}

#[test]
fn a_counter_is_told_three_times_newest_first_then_in_turn() {
    let policy = policies(100)[0];
    let mut board = board(1, 100_000);
    for key in 0..3_000 {
        charge(&mut board, &policy, key, Cost::ONE, START);
    }
    let told = |bodies: &[Vec<u8>]| -> Vec<u128> {
        let told = bodies.iter().flat_map(|body| match Message::read(body) {
            Some(Message::Counters { told, .. }) => told,
            _ => panic!("a board tells counters"),
        });
        told.map(|one| one.id.name).collect()
    };
    let first = told(&board.tell_news(START));
    assert_eq!(first[0], board.names.client("api", CallKey(2_999)));
    // Nobody is told again before all were told once.
    let mut all = first;
    let rounds = (3 * 3_000_usize).div_ceil(all.len());
    for _ in 1..rounds {
        all.extend(told(&board.tell_news(START)));
    }
    let once: BTreeSet<u128> = all[..3_000].iter().copied().collect();
    assert_eq!((once.len(), all.len()), (3_000, 9_000));
    assert!(board.tell_news(START).is_empty());
    // What was lost all the same comes round.
    let interval = std::time::Duration::from_millis(100);
    let round = (0..100).flat_map(|_| told(&board.tell_round(START, interval)));
    assert_eq!(round.collect::<BTreeSet<u128>>().len(), 3_000);
}

#[test]
fn a_node_speaks_for_those_who_are_gone() {
    let policy = policies(10)[0];
    let mut boards = boards(2);
    charge(&mut boards[1], &policy, 1, Cost::take(4), START);
    charge(&mut boards[0], &policy, 1, Cost::take(3), START);
    tell_news(&mut boards, START);
    let mut left = |alive: &[u64]| {
        let mut newcomer = board(3, 1_000);
        boards[0].set_alive(alive.iter().map(|writer| WriterId(*writer)).collect());
        let bodies = boards[0].tell_newcomer(START, usize::MAX).0;
        bodies
            .iter()
            .for_each(|body| hear(&mut newcomer, body, START));
        charge(&mut newcomer, &policy, 1, Cost::Peek, START).remaining
    };
    assert_eq!(left(&[2]), 7, "the other one speaks for itself");
    assert_eq!(left(&[]), 3, "it is gone");
}

#[test]
fn a_counter_takes_as_much_as_is_said() {
    // With the hash and the place in the table, of which a part is empty.
    let bytes = size_of::<CounterId>() + size_of::<Cell>() + 8 + 16;
    assert!(bytes <= 150, "{bytes}");
}
