//! Who takes a place on a board, and for how long?

use super::*;

#[test]
fn a_board_that_tells_nobody_forgets_what_is_over() {
    // Ten clients come each second, and call five times in as many seconds.
    const COMING: u64 = 10;
    for policy in [policies(10)[0], policies(10)[3]] {
        let mut board = board(1, 2_500);
        let (mut live_most, mut kept_most) = (0, 0);
        for second in 0..1_200_u64 {
            let now = START + DurationUs::from_secs(second);
            for client in second.saturating_sub(4) * COMING..(second + 1) * COMING {
                let verdict = charge(&mut board, &policy, client.into(), Cost::ONE, now);
                assert!(verdict.is_admitted());
            }
            let live = board.cells.values().filter(|cell| cell.forget_at > now);
            live_most = live_most.max(live.count());
            kept_most = kept_most.max(board.len());
        }
        assert_eq!(board.event_counts.of(Event::Crowded), 0);
        // Where all end at once half are over until the others have come.
        assert!(kept_most <= 2 * live_most, "{kept_most} of {live_most}");
    }
}

/// At which all that is counted is over, and nobody has looked at it since.
fn full_of_what_is_over(policy: &Policy) -> (CounterTable, TimestampUs) {
    let mut board = board(1, 1_000);
    for client in 0..5_000 {
        charge(&mut board, policy, client, Cost::ONE, START);
    }
    assert!(board.is_full());
    assert_eq!(board.event_counts.of(Event::Crowded), 4_000);
    (board, START + DurationUs::from_secs(300))
}

#[test]
fn at_a_full_board_calls_make_places_of_what_is_over() {
    let policy = policies(1)[0];
    let (mut board, after) = full_of_what_is_over(&policy);
    // First come the crowds' counters, which make no place for a client; and he makes no new one
    // after his first call.
    board.broom = 1_000;
    for _ in 0..100 {
        charge(&mut board, &policy, 5_000, Cost::ONE, after);
    }
    let crowded = board.event_counts.of(Event::Crowded);
    for client in 6_000..6_900 {
        charge(&mut board, &policy, client, Cost::ONE, after);
    }
    // One in 64 belongs to his crowd.
    let crowded = board.event_counts.of(Event::Crowded) - crowded;
    assert!(crowded < 50, "{crowded}");
}

#[test]
fn a_full_board_makes_places_for_others_news_from_ended_ones() {
    let policy = policies(1)[0];
    let (mut full, after) = full_of_what_is_over(&policy);
    let mut other = board(2, 1_000);
    for client in 10_000..10_500 {
        charge(&mut other, &policy, client, Cost::ONE, after);
    }
    let bodies = other.tell_newcomer(after, usize::MAX).0;
    bodies.iter().for_each(|body| hear(&mut full, body, after));
    // Until the crowds' counters are over as well, which make no place for a client.
    assert!(full.event_counts.of(Event::CounterDropped) <= 64);
}

#[test]
fn what_is_swept_away_leaves_nobody_out_of_the_round() {
    let (short, long) = (
        policies(10)[0],
        SubWindows::new(Rate::new(10, DurationUs::from_secs(3_600)).unwrap(), 4).unwrap(),
    );
    let long = Policy::SubWindows(long);
    let mut board = board(1, 10_000);
    for client in 0..400 {
        // Both by turns, so that what goes stands before and behind the hand.
        let policy = if client % 2 == 0 { &short } else { &long };
        charge(&mut board, policy, client, Cost::ONE, START);
    }
    let mut passed = BTreeSet::new();
    let mut pass = |board: &mut CounterTable, now| {
        passed.extend(board.cells.get_index(board.hand).map(|(id, _)| *id));
        board.turn_hand(now);
    };
    for _ in 0..200 {
        pass(&mut board, START);
    }
    // What the hand has passed is swept away, and the last ones take its place.
    let after = START + DurationUs::from_secs(300);
    board.broom = 0;
    for client in 1_000..1_040 {
        charge(&mut board, &short, client, Cost::ONE, after);
    }
    assert!(board.broom < board.hand && board.len() < 440 - 30);
    while board.hand < board.len() {
        pass(&mut board, after);
    }
    assert!(board.cells.keys().all(|id| passed.contains(id)));
}

#[test]
fn of_a_node_whose_clock_is_a_day_ahead_nothing_is_kept() {
    let day = DurationUs::from_secs(86_400);
    for policy in policies(10) {
        let mut boards = boards(2);
        let taken = charge(&mut boards[1], &policy, 1, Cost::take(10), START + day);
        assert!(taken.is_admitted());
        let bodies = boards[1].tell_newcomer(START + day, usize::MAX).0;
        assert_eq!(bodies.len(), 1);
        hear(&mut boards[0], &bodies[0], START);
        assert!(boards[0].is_empty());
        assert_eq!(boards[0].event_counts.of(Event::CounterDropped), 1);
        let left = charge(&mut boards[0], &policy, 1, Cost::Peek, START + day);
        assert_eq!(left.remaining, 10);
    }
}

#[test]
fn a_crowd_ends_when_there_is_place_again_however_many_newcomers_come() {
    for policy in [policies(10)[1], policies(10)[2], policies(10)[3]] {
        let mut board = board(1, 5_000);
        for client in 0..10_000 {
            charge(&mut board, &policy, client, Cost::ONE, START);
        }
        assert_eq!(board.crowds, 64);
        // Several of each crowd come in each window.
        let mut crowded = 0;
        for second in 1..600_u64 {
            let now = START + DurationUs::from_secs(second);
            for newcomer in 0..10 {
                let client = u128::from(10_000 + second * 10 + newcomer);
                charge(&mut board, &policy, client, Cost::ONE, now);
            }
            // As a node does all the time; what is over goes by that.
            board.tell_round(now, std::time::Duration::from_secs(1));
            if second == 300 {
                crowded = board.event_counts.of(Event::Crowded);
            }
        }
        assert_eq!(board.event_counts.of(Event::Crowded), crowded, "{policy:?}");
        // Some may lie about still; none counts.
        let after = START + DurationUs::from_secs(600);
        let mut cells = board.cells.iter();
        let counts = cells.any(|(id, cell)| is_crowd(id.name) && cell.forget_at > after);
        assert!(!counts, "{policy:?}");
    }
}

#[test]
fn who_leaves_his_crowd_takes_along_what_it_has_called() {
    let policy = policies(3)[1];
    let mut boards = [board(1, 1), board(2, 10)];
    let at = |seconds| START + DurationUs::from_secs(seconds);
    assert!(charge(&mut boards[0], &policy, 0, Cost::ONE, at(0)).is_admitted());
    // There is no place, so these are the crowd's.
    for _ in 0..2 {
        assert!(charge(&mut boards[0], &policy, 1, Cost::ONE, at(60)).is_admitted());
    }
    assert_eq!(boards[0].event_counts.of(Event::Crowded), 2);
    tell_all(&mut boards, at(60));
    // Now there is; of the two calls one and two thirds count still.
    boards[0].sweep(at(130));
    assert!(!boards[0].is_full());
    let call =
        |board: &mut CounterTable| charge(board, &policy, 1, Cost::ONE, at(130)).is_admitted();
    assert!(call(&mut boards[0]));
    assert_eq!(
        boards[0].event_counts.of(Event::Crowded),
        2,
        "he is counted by himself"
    );
    assert!(!call(&mut boards[0]));
    // Nor may he call more at another node that hears of him now.
    tell_all(&mut boards, at(130));
    assert!(!call(&mut boards[1]));
    // The crowd is over, and its calls with it.
    let left = charge(&mut boards[0], &policy, 1, Cost::Peek, at(200)).remaining;
    assert_eq!(left, 2);
}
