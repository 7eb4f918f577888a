//! What is joined, told, told again and forgotten.

use super::*;
use crate::stats::Name;

const NOW: TimestampUs = TimestampUs(1_767_225_600_000_000);

fn slot(name: u128) -> SlotId {
    SlotId {
        name: Name(name),
        index: 7,
    }
}

fn after(secs: u64) -> TimestampUs {
    NOW + DurationUs::from_secs(secs)
}

fn figure(taken: u32) -> NodeCount {
    NodeCount {
        taken,
        given_back: 0,
    }
}

fn told(name: u128, until: TimestampUs, stats: &[(u64, u32)]) -> SlotReport {
    SlotReport {
        id: slot(name),
        until,
        stats: stats
            .iter()
            .map(|(node, taken)| (NodeId(*node), figure(*taken)))
            .collect(),
    }
}

fn board(slots_max: usize) -> CounterTable {
    CounterTable::new(NodeId(1), slots_max)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn stats_of_others_are_joined_and_ones_own_stays_ones_own() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    for (heard, expected) in [
        (told(1, after(60), &[(1, 2), (2, 5)]), 8),
        (told(1, after(60), &[(2, 4), (3, 1)]), 9),
        (told(1, after(60), &[(1, 9), (2, 5)]), 9),
        (told(1, after(60), &[(2, 6)]), 10),
    ] {
        for _ in 0..2 {
            assert!(board.hear(&heard, ReportSource::Total, NOW));
            assert_eq!(board.total(slot(1)), expected, "{heard:?}");
        }
    }
    assert_eq!(
        board.next_to_publish(),
        None,
        "nobody told, all were totals"
    );
}

#[test]
fn a_message_is_sent_once_and_again_if_it_is_lost() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    board.take(slot(1), after(60), 1);
    assert_eq!(board.next_to_tell(secs(0)), None, "it may be rejected yet");
    board.tell(slot(1));
    let expected = Some(told(1, after(60), &[(1, 4)]));
    assert_eq!(board.next_to_tell(secs(0)), expected);
    assert_eq!(board.next_to_tell(secs(0)), None);
    for (at, is_told) in [(2, false), (3, true), (5, false), (6, true)] {
        board.look_after_awaited(secs(at));
        assert_eq!(board.next_to_tell(secs(at)).is_some(), is_told, "{at}");
    }
    assert_eq!(board.told_again(), 2);
    // An older total does not say that it was heard.
    board.hear(&told(1, after(60), &[(1, 3)]), ReportSource::Total, NOW);
    board.look_after_awaited(secs(9));
    assert_eq!(board.next_to_tell(secs(9)), expected);
    // Nor does it count that this node itself read what it told.
    board.hear(&told(1, after(60), &[(1, 4)]), ReportSource::Call, NOW);
    board.look_after_awaited(secs(12));
    assert_eq!(board.next_to_tell(secs(12)), expected);
    board.hear(&told(1, after(60), &[(1, 4)]), ReportSource::Total, NOW);
    board.look_after_awaited(secs(15));
    assert_eq!(board.next_to_tell(secs(15)), None);
    assert_eq!(board.told_again(), 4);
}

#[test]
fn what_is_taken_back_leaves_nothing_but_what_was_there_before() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    board.take(slot(1), after(60), 2);
    board.take_back(slot(1), 2);
    assert_eq!((board.total(slot(1)), board.len()), (3, 1));
    board.take_back(slot(1), 3);
    assert_eq!((board.len(), board.ends.len()), (0, 0));
    board.hear(&told(2, after(60), &[(2, 5)]), ReportSource::Total, NOW);
    board.take(slot(2), after(60), 3);
    board.take_back(slot(2), 3);
    assert_eq!((board.total(slot(2)), board.len()), (5, 1));
    assert_eq!(board.next_to_tell(secs(0)), None);
}

#[test]
fn whoever_aggregates_publishes_all_that_it_knows_even_if_nothing_was_new() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    for _ in 0..2 {
        board.hear(&told(1, after(60), &[(2, 5)]), ReportSource::Call, NOW);
        let expected = told(1, after(60), &[(2, 5), (1, 3)]);
        assert_eq!(board.next_to_publish(), Some(expected));
        assert_eq!(board.next_to_publish(), None);
    }
}

#[test]
fn what_matters_no_more_is_forgotten_and_what_matters_is_not() {
    let mut board = board(10);
    for name in 1..=4 {
        let until = after(u64::try_from(name).unwrap() * 10);
        board.hear(&told(name, until, &[(2, 1)]), ReportSource::Total, NOW);
    }
    // One that is found to matter for longer.
    board.hear(&told(1, after(35), &[(2, 1)]), ReportSource::Total, NOW);
    for (now, kept) in [(9, 4), (10, 4), (20, 3), (34, 2), (35, 1), (40, 0)] {
        board.sweep(after(now));
        assert_eq!(board.len(), kept, "{now}");
    }
    assert!(board.hear(&told(1, NOW, &[(2, 1)]), ReportSource::Call, NOW));
    assert_eq!((board.len(), board.next_to_publish()), (0, None));
}

#[test]
fn memory_is_bounded_and_what_lasts_for_centuries_is_none_of_ours() {
    let mut board = board(3);
    for name in 1..=5 {
        board.hear(&told(name, after(60), &[(2, 1)]), ReportSource::Call, NOW);
    }
    assert_eq!((board.len(), board.without_place()), (3, 2));
    assert!(board.has_place_for(slot(3)) && !board.has_place_for(slot(4)));
    let centuries = TimestampUs(u64::MAX);
    assert!(!board.hear(&told(1, centuries, &[(2, 9)]), ReportSource::Call, NOW));
    assert_eq!(board.total(slot(1)), 1);
    let mut many: Vec<(u64, u32)> = (0..4_000).map(|node| (node + 10, 1)).collect();
    board.hear(&told(1, after(60), &many), ReportSource::Total, NOW);
    many.iter_mut().for_each(|(node, _)| *node += 4_000);
    board.hear(&told(1, after(60), &many), ReportSource::Total, NOW);
    assert_eq!(board.total(slot(1)), 4_095);
}

/// Whoever calls meanwhile waits for one portion, not for all clients there are.
#[test]
fn what_is_forgotten_and_told_again_comes_in_portions() {
    let clients = PORTION * 2 + 1;
    let mut board = board(clients);
    for name in 0..clients {
        let id = slot(name as u128);
        board.take(id, after(60), 1);
        board.tell(id);
    }
    let told_in = |board: &mut CounterTable, at| {
        let next = std::iter::from_fn(|| board.next_to_tell(at));
        next.count()
    };
    assert_eq!(told_in(&mut board, secs(0)), clients);
    for (is_more, count) in [(true, PORTION), (true, PORTION), (false, 1), (false, 0)] {
        assert_eq!(board.look_after_awaited(secs(3)), is_more);
        assert_eq!(told_in(&mut board, secs(3)), count);
    }
    for (is_more, left) in [(true, PORTION + 1), (true, 1), (false, 0), (false, 0)] {
        assert_eq!(board.sweep(after(60)), is_more);
        assert_eq!(board.len(), left);
    }
}

/// A flood of made-up clients at whoever sums up must not make all others believe that it is away.
#[test]
fn what_finds_no_place_is_published_as_it_was_told() {
    let mut board = board(1);
    board.take(slot(1), after(60), 1);
    let beat = told(2, after(60), &[(2, 7)]);
    board.hear(&beat, ReportSource::Total, NOW);
    assert_eq!(board.next_to_publish(), None, "all have it");
    board.hear(&beat, ReportSource::Call, NOW);
    assert_eq!(board.next_to_publish(), Some(beat.clone()));
    assert_eq!(board.next_to_publish(), None);
    for _ in 0..=PASSED_ON_MAX {
        board.hear(&beat, ReportSource::Call, NOW);
    }
    let waiting = std::iter::from_fn(|| board.next_to_publish());
    assert_eq!(waiting.count(), PASSED_ON_MAX);
}
