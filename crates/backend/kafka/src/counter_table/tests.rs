//! Joining, sending, resending and forgetting of counts.

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

fn count(taken: u32) -> NodeCount {
    NodeCount { taken, refunded: 0 }
}

fn report(name: u128, until: TimestampUs, stats: &[(u64, u32)]) -> SlotReport {
    SlotReport {
        id: slot(name),
        until,
        stats: stats
            .iter()
            .map(|(node, taken)| (NodeId(*node), count(*taken)))
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
fn counts_of_others_are_joined_and_the_own_count_is_kept() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    for (received, expected) in [
        (report(1, after(60), &[(1, 2), (2, 5)]), 8),
        (report(1, after(60), &[(2, 4), (3, 1)]), 9),
        (report(1, after(60), &[(1, 9), (2, 5)]), 9),
        (report(1, after(60), &[(2, 6)]), 10),
    ] {
        for _ in 0..2 {
            assert!(board.receive(&received, ReportSource::Total, NOW));
            assert_eq!(board.total(slot(1)), expected, "{received:?}");
        }
    }
    assert_eq!(board.next_to_publish(), None, "all were totals, no reports");
}

#[test]
fn a_message_is_sent_once_and_again_if_it_is_lost() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    board.take(slot(1), after(60), 1);
    assert_eq!(
        board.next_to_send(secs(0)),
        None,
        "it may still be rejected"
    );
    board.queue_report(slot(1));
    let expected = Some(report(1, after(60), &[(1, 4)]));
    assert_eq!(board.next_to_send(secs(0)), expected);
    assert_eq!(board.next_to_send(secs(0)), None);
    for (at, is_sent) in [(2, false), (3, true), (5, false), (6, true)] {
        board.resend_overdue(secs(at));
        assert_eq!(board.next_to_send(secs(at)).is_some(), is_sent, "{at}");
    }
    assert_eq!(board.resent(), 2);
    // An older total does not confirm it.
    board.receive(&report(1, after(60), &[(1, 3)]), ReportSource::Total, NOW);
    board.resend_overdue(secs(9));
    assert_eq!(board.next_to_send(secs(9)), expected);
    // Nor does this node's own report, read from the topic of calls.
    board.receive(&report(1, after(60), &[(1, 4)]), ReportSource::Call, NOW);
    board.resend_overdue(secs(12));
    assert_eq!(board.next_to_send(secs(12)), expected);
    board.receive(&report(1, after(60), &[(1, 4)]), ReportSource::Total, NOW);
    board.resend_overdue(secs(15));
    assert_eq!(board.next_to_send(secs(15)), None);
    assert_eq!(board.resent(), 4);
}

#[test]
fn undone_acquires_leave_the_table_as_before() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    board.take(slot(1), after(60), 2);
    board.undo_take(slot(1), 2);
    assert_eq!((board.total(slot(1)), board.len()), (3, 1));
    board.undo_take(slot(1), 3);
    assert_eq!((board.len(), board.ends.len()), (0, 0));
    board.receive(&report(2, after(60), &[(2, 5)]), ReportSource::Total, NOW);
    board.take(slot(2), after(60), 3);
    board.undo_take(slot(2), 3);
    assert_eq!((board.total(slot(2)), board.len()), (5, 1));
    assert_eq!(board.next_to_send(secs(0)), None);
}

#[test]
fn an_aggregator_publishes_all_it_knows_even_without_news() {
    let mut board = board(10);
    board.take(slot(1), after(60), 3);
    for _ in 0..2 {
        board.receive(&report(1, after(60), &[(2, 5)]), ReportSource::Call, NOW);
        let expected = report(1, after(60), &[(2, 5), (1, 3)]);
        assert_eq!(board.next_to_publish(), Some(expected));
        assert_eq!(board.next_to_publish(), None);
    }
}

#[test]
fn expired_slots_are_forgotten_and_valid_ones_are_kept() {
    let mut board = board(10);
    for name in 1..=4 {
        let until = after(u64::try_from(name).unwrap() * 10);
        board.receive(&report(name, until, &[(2, 1)]), ReportSource::Total, NOW);
    }
    // A report that extends the validity.
    board.receive(&report(1, after(35), &[(2, 1)]), ReportSource::Total, NOW);
    for (now, kept) in [(9, 4), (10, 4), (20, 3), (34, 2), (35, 1), (40, 0)] {
        board.sweep(after(now));
        assert_eq!(board.len(), kept, "{now}");
    }
    assert!(board.receive(&report(1, NOW, &[(2, 1)]), ReportSource::Call, NOW));
    assert_eq!((board.len(), board.next_to_publish()), (0, None));
}

#[test]
fn memory_is_bounded_and_implausible_validity_is_rejected() {
    let mut board = board(3);
    for name in 1..=5 {
        board.receive(&report(name, after(60), &[(2, 1)]), ReportSource::Call, NOW);
    }
    assert_eq!((board.len(), board.without_room()), (3, 2));
    assert!(board.has_room_for(slot(3)) && !board.has_room_for(slot(4)));
    let centuries = TimestampUs(u64::MAX);
    assert!(!board.receive(&report(1, centuries, &[(2, 9)]), ReportSource::Call, NOW));
    assert_eq!(board.total(slot(1)), 1);
    let mut many: Vec<(u64, u32)> = (0..4_000).map(|node| (node + 10, 1)).collect();
    board.receive(&report(1, after(60), &many), ReportSource::Total, NOW);
    many.iter_mut().for_each(|(node, _)| *node += 4_000);
    board.receive(&report(1, after(60), &many), ReportSource::Total, NOW);
    assert_eq!(board.total(slot(1)), 4_095);
}

/// A request waits for one portion at most, not for all clients.
#[test]
fn forgetting_and_resending_happen_in_portions() {
    let clients = PORTION * 2 + 1;
    let mut board = board(clients);
    for name in 0..clients {
        let id = slot(name as u128);
        board.take(id, after(60), 1);
        board.queue_report(id);
    }
    let sent_at = |board: &mut CounterTable, at| {
        let next = std::iter::from_fn(|| board.next_to_send(at));
        next.count()
    };
    assert_eq!(sent_at(&mut board, secs(0)), clients);
    for (is_more, count) in [(true, PORTION), (true, PORTION), (false, 1), (false, 0)] {
        assert_eq!(board.resend_overdue(secs(3)), is_more);
        assert_eq!(sent_at(&mut board, secs(3)), count);
    }
    for (is_more, left) in [(true, PORTION + 1), (true, 1), (false, 0), (false, 0)] {
        assert_eq!(board.sweep(after(60)), is_more);
        assert_eq!(board.len(), left);
    }
}

/// A flood of made-up clients at the aggregator must not make other nodes believe that it is
/// unavailable.
#[test]
fn a_report_without_room_is_forwarded_unchanged() {
    let mut board = board(1);
    board.take(slot(1), after(60), 1);
    let beat = report(2, after(60), &[(2, 7)]);
    board.receive(&beat, ReportSource::Total, NOW);
    assert_eq!(board.next_to_publish(), None, "all nodes have it");
    board.receive(&beat, ReportSource::Call, NOW);
    assert_eq!(board.next_to_publish(), Some(beat.clone()));
    assert_eq!(board.next_to_publish(), None);
    for _ in 0..=FORWARDED_MAX {
        board.receive(&beat, ReportSource::Call, NOW);
    }
    let waiting = std::iter::from_fn(|| board.next_to_publish());
    assert_eq!(waiting.count(), FORWARDED_MAX);
}
