//! Capacity of a table: which clients get a counter, and for how long.

use super::*;

#[test]
fn a_table_without_peers_forgets_expired_counters() {
    // Ten new clients each second, which send five requests in as many seconds.
    const NEW_PER_SECOND: u64 = 10;
    for policy in [policies(10)[0], policies(10)[3]] {
        let mut table = table(1, 2_500);
        let (mut live_most, mut kept_most) = (0, 0);
        for second in 0..1_200_u64 {
            let now = START + DurationUs::from_secs(second);
            for client in second.saturating_sub(4) * NEW_PER_SECOND..(second + 1) * NEW_PER_SECOND {
                let verdict = acquire(&mut table, &policy, client.into(), Cost::ONE, now);
                assert!(verdict.is_allowed());
            }
            let live = table.cells.values().filter(|cell| cell.forget_at > now);
            live_most = live_most.max(live.count());
            kept_most = kept_most.max(table.len());
        }
        assert_eq!(table.event_counts.of(Event::Overflow), 0);
        // Where all expire at once, half of them are expired until the others have come.
        assert!(kept_most <= 2 * live_most, "{kept_most} of {live_most}");
    }
}

/// Returns a full table and a time at which all its counters have expired without a sweep.
fn full_of_expired(policy: &Policy) -> (CounterTable, TimestampUs) {
    let mut table = table(1, 1_000);
    for client in 0..5_000 {
        acquire(&mut table, policy, client, Cost::ONE, START);
    }
    assert!(table.is_full());
    assert_eq!(table.event_counts.of(Event::Overflow), 4_000);
    (table, START + DurationUs::from_secs(300))
}

#[test]
fn requests_to_a_full_table_free_expired_counters() {
    let policy = policies(1)[0];
    let (mut table, after) = full_of_expired(&policy);
    // The sweep meets the overflow entries first, which free no room for a client. A client creates
    // no counter after its first request.
    table.sweep_cursor = 1_000;
    for _ in 0..100 {
        acquire(&mut table, &policy, 5_000, Cost::ONE, after);
    }
    let overflowed = table.event_counts.of(Event::Overflow);
    for client in 6_000..6_900 {
        acquire(&mut table, &policy, client, Cost::ONE, after);
    }
    // One in 64 belongs to the same overflow entry.
    let overflowed = table.event_counts.of(Event::Overflow) - overflowed;
    assert!(overflowed < 50, "{overflowed}");
}

#[test]
fn reports_to_a_full_table_free_expired_counters() {
    let policy = policies(1)[0];
    let (mut full, after) = full_of_expired(&policy);
    let mut other = table(2, 1_000);
    for client in 10_000..10_500 {
        acquire(&mut other, &policy, client, Cost::ONE, after);
    }
    let bodies = other.report_to_newcomer(after, usize::MAX).0;
    bodies
        .iter()
        .for_each(|body| receive(&mut full, body, after));
    // Up to 64, until the overflow entries have expired, which free no room for a client.
    assert!(full.event_counts.of(Event::CounterDropped) <= 64);
}

#[test]
fn a_sweep_leaves_no_counter_out_of_the_repetition() {
    let (short, long) = (
        policies(10)[0],
        SubWindows::new(Rate::new(10, DurationUs::from_secs(3_600)).unwrap(), 4).unwrap(),
    );
    let long = Policy::SubWindows(long);
    let mut table = table(1, 10_000);
    for client in 0..400 {
        // Alternate them, so that expired counters are on both sides of the cursor.
        let policy = if client % 2 == 0 { &short } else { &long };
        acquire(&mut table, policy, client, Cost::ONE, START);
    }
    let mut passed = BTreeSet::new();
    let mut pass = |table: &mut CounterTable, now| {
        passed.extend(table.cells.get_index(table.cursor).map(|(id, _)| *id));
        table.advance_cursor(now);
    };
    for _ in 0..200 {
        pass(&mut table, START);
    }
    // Counters that the cursor has passed are swept, and the last ones move to their indexes.
    let after = START + DurationUs::from_secs(300);
    table.sweep_cursor = 0;
    for client in 1_000..1_040 {
        acquire(&mut table, &short, client, Cost::ONE, after);
    }
    assert!(table.sweep_cursor < table.cursor && table.len() < 440 - 30);
    while table.cursor < table.len() {
        pass(&mut table, after);
    }
    assert!(table.cells.keys().all(|id| passed.contains(id)));
}

#[test]
fn reports_of_a_clock_a_day_ahead_are_dropped() {
    let day = DurationUs::from_secs(86_400);
    for policy in policies(10) {
        let mut tables = tables(2);
        let taken = acquire(&mut tables[1], &policy, 1, Cost::take(10), START + day);
        assert!(taken.is_allowed());
        let bodies = tables[1].report_to_newcomer(START + day, usize::MAX).0;
        assert_eq!(bodies.len(), 1);
        receive(&mut tables[0], &bodies[0], START);
        assert!(tables[0].is_empty());
        assert_eq!(tables[0].event_counts.of(Event::CounterDropped), 1);
        let left = acquire(&mut tables[0], &policy, 1, Cost::Peek, START + day);
        assert_eq!(left.remaining, 10);
    }
}

#[test]
fn overflow_entries_end_once_there_is_room_again() {
    for policy in [policies(10)[1], policies(10)[2], policies(10)[3]] {
        let mut table = table(1, 5_000);
        for client in 0..10_000 {
            acquire(&mut table, &policy, client, Cost::ONE, START);
        }
        assert_eq!(table.overflow_count, 64);
        // Several clients of each overflow entry send requests in each window.
        let mut overflowed = 0;
        for second in 1..600_u64 {
            let now = START + DurationUs::from_secs(second);
            for newcomer in 0..10 {
                let client = u128::from(10_000 + second * 10 + newcomer);
                acquire(&mut table, &policy, client, Cost::ONE, now);
            }
            // As a node does regularly; it removes expired counters.
            table.report_round(now, std::time::Duration::from_secs(1));
            if second == 300 {
                overflowed = table.event_counts.of(Event::Overflow);
            }
        }
        assert_eq!(
            table.event_counts.of(Event::Overflow),
            overflowed,
            "{policy:?}"
        );
        // Some entries may still exist, but none is live.
        let after = START + DurationUs::from_secs(600);
        let mut cells = table.cells.iter();
        let counts = cells.any(|(id, cell)| is_overflow(id.name) && cell.forget_at > after);
        assert!(!counts, "{policy:?}");
    }
}

#[test]
fn a_client_that_leaves_an_overflow_entry_keeps_its_count() {
    let policy = policies(3)[1];
    let mut tables = [table(1, 1), table(2, 10)];
    let at = |seconds| START + DurationUs::from_secs(seconds);
    assert!(acquire(&mut tables[0], &policy, 0, Cost::ONE, at(0)).is_allowed());
    // The table is full, so the overflow entry counts these.
    for _ in 0..2 {
        assert!(acquire(&mut tables[0], &policy, 1, Cost::ONE, at(60)).is_allowed());
    }
    assert_eq!(tables[0].event_counts.of(Event::Overflow), 2);
    report_all(&mut tables, at(60));
    // Now there is room; of the two requests one and two thirds still count.
    tables[0].sweep(at(130));
    assert!(!tables[0].is_full());
    let request =
        |table: &mut CounterTable| acquire(table, &policy, 1, Cost::ONE, at(130)).is_allowed();
    assert!(request(&mut tables[0]));
    assert_eq!(
        tables[0].event_counts.of(Event::Overflow),
        2,
        "it has its own counter"
    );
    assert!(!request(&mut tables[0]));
    // The client gets no more at another node that learns of it now.
    report_all(&mut tables, at(130));
    assert!(!request(&mut tables[1]));
    // The overflow entry has expired, and its count with it.
    let left = acquire(&mut tables[0], &policy, 1, Cost::Peek, at(200)).remaining;
    assert_eq!(left, 2);
}
