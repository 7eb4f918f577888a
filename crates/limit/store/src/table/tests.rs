//! Tests of a full table: it evicts no entry that still counts.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// Requests of a client; idle at zero.
type Count = u32;

fn is_idle(count: &Count) -> bool {
    *count == 0
}

fn key(of: u128) -> ClientKey {
    // Spread over both halves, as keys are.
    ClientKey(of.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

fn count_one(table: &mut Table<Count>, of: u128) -> Count {
    table.update(key(of), is_idle, |count, _| {
        *count += 1;
        *count
    })
}

fn set(table: &mut Table<Count>, of: u128, to: Count) {
    table.update(key(of), is_idle, |count, _| *count = to);
}

#[test]
fn each_client_is_counted_alone() {
    let mut table = Table::new(8, 4);
    assert_eq!(
        [1, 2, 1, 1].map(|of| count_one(&mut table, of)),
        [1, 1, 2, 3]
    );
    assert_eq!(table.len(), 2);
}

#[test]
fn a_default_state_makes_no_entry() {
    let mut table: Table<Count> = Table::new(8, 4);
    let seen = table.update(key(1), is_idle, |count, _| *count);
    assert_eq!((seen, table.len()), (0, 0));
}

#[test]
fn idle_entries_make_room() {
    let mut table = Table::new(4, 4);
    for of in 0..4 {
        count_one(&mut table, of);
    }
    set(&mut table, 2, 0);
    assert_eq!(count_one(&mut table, 9), 1);
    assert_eq!((table.len(), table.overflowed()), (4, 0));
    assert_eq!(count_one(&mut table, 0), 2);
}

#[test]
fn a_table_does_not_grow_with_clients_that_left() {
    let mut table = Table::new(1_000_000, 4);
    for of in 0..10_000 {
        count_one(&mut table, of);
        set(&mut table, of, 0);
    }
    assert!(table.len() < 10, "{} entries", table.len());
}

#[test]
fn a_flood_neither_grows_a_table_nor_evicts_its_clients() {
    let mut table = Table::new(16, 4);
    for of in 0..16 {
        set(&mut table, of, 50 + u32::try_from(of).unwrap());
    }
    for of in 1_000..3_000 {
        count_one(&mut table, of);
    }
    assert_eq!(table.len(), 16);
    assert_eq!(table.overflow.len(), 4);
    assert_eq!(table.overflowed(), 2_000);
    for of in 0..16 {
        assert_eq!(count_one(&mut table, of), 51 + u32::try_from(of).unwrap());
    }
}

#[test]
fn a_client_that_leaves_an_overflow_entry_keeps_its_count() {
    let mut table = Table::new(1, 1);
    count_one(&mut table, 0);
    for _ in 0..7 {
        count_one(&mut table, 1);
    }
    set(&mut table, 0, 0);
    assert_eq!(count_one(&mut table, 1), 8);
    assert_eq!(table.len(), 1);
}

#[test]
fn memory_of_a_flood_is_freed() {
    let mut table = Table::new(1_000, 8);
    for of in 0..2_000 {
        count_one(&mut table, of);
    }
    assert_eq!(table.len(), 1_000);
    for of in 0..1_000 {
        set(&mut table, of, 0);
    }
    table.overflow.fill(0);
    table.evict_idle(2_000, &is_idle);
    table.shrink(&is_idle);
    assert_eq!((table.len(), table.overflow.len()), (0, 0));
    assert!(table.entries.capacity() < 100);
}

#[test]
fn a_client_put_back_gets_an_entry_without_room() {
    let mut table = Table::new(2, 1);
    for of in 0..3 {
        for _ in 0..=of {
            count_one(&mut table, of);
        }
    }
    assert_eq!((table.take(key(1)), table.len()), (2, 1));
    assert_eq!(
        count_one(&mut table, 7),
        4,
        "as the overflow entry: three requests by then"
    );
    table.put(key(1), 9);
    assert_eq!((count_one(&mut table, 1), table.len()), (10, 3));
    assert_eq!(table.overflow, [3], "it changes nothing for others");
    assert_eq!(
        table.take(key(99)),
        3,
        "it starts as the overflow entry stands"
    );
    assert_eq!(table.index.len(), table.entries.len());
}

proptest! {
    /// Compares with an unbounded map: no client is ever counted too low.
    #[test]
    fn no_client_is_counted_too_low(
        entries in 1_usize..20,
        ops in proptest::collection::vec((0_u128..40, any::<bool>()), 0..400),
    ) {
        let mut table = Table::new(entries, 4);
        let mut truth: HashMap<u128, Count> = HashMap::new();
        for (of, is_request) in ops {
            let true_count = truth.entry(of).or_default();
            if is_request {
                *true_count += 1;
                let counted = count_one(&mut table, of);
                prop_assert!(counted >= *true_count, "{counted} of {true_count}");
            } else if table.own(key(of)).is_some() {
                // Its window has passed.
                set(&mut table, of, 0);
                *true_count = 0;
            }
            prop_assert!(table.len() <= entries);
        }
    }

    #[test]
    fn with_room_for_all_every_client_is_counted_exactly(
        ops in proptest::collection::vec((0_u128..40, 0_u32..3), 0..400),
    ) {
        let mut table = Table::new(64, 4);
        let mut truth: HashMap<u128, Count> = HashMap::new();
        for (of, to) in ops {
            set(&mut table, of, to);
            truth.insert(of, to);
            for (of, count) in &truth {
                let own = table.own(key(*of)).map(|at| table.entries[at].state);
                prop_assert_eq!(own.unwrap_or_default(), *count);
            }
            prop_assert_eq!(table.index.len(), table.entries.len());
        }
    }
}
