//! Does a full table forget nobody who counts?

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// What a client has called; idle at nothing.
type Calls = u32;

fn is_idle(calls: &Calls) -> bool {
    *calls == 0
}

fn key(of: u128) -> CallKey {
    // Spread over both halves, as keys are.
    CallKey(of.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

fn call(table: &mut Table<Calls>, of: u128) -> Calls {
    table.update(key(of), is_idle, |calls, _| {
        *calls += 1;
        *calls
    })
}

fn set(table: &mut Table<Calls>, of: u128, to: Calls) {
    table.update(key(of), is_idle, |calls, _| *calls = to);
}

#[test]
fn each_client_is_counted_alone() {
    let mut table = Table::new(8, 4);
    assert_eq!([1, 2, 1, 1].map(|of| call(&mut table, of)), [1, 1, 2, 3]);
    assert_eq!(table.len(), 2);
}

#[test]
fn whoever_is_as_one_who_never_called_gets_no_entry() {
    let mut table: Table<Calls> = Table::new(8, 4);
    let seen = table.update(key(1), is_idle, |calls, _| *calls);
    assert_eq!((seen, table.len()), (0, 0));
}

#[test]
fn entries_that_may_be_forgotten_make_place() {
    let mut table = Table::new(4, 4);
    for of in 0..4 {
        call(&mut table, of);
    }
    set(&mut table, 2, 0);
    assert_eq!(call(&mut table, 9), 1);
    assert_eq!((table.len(), table.crowded()), (4, 0));
    assert_eq!(call(&mut table, 0), 2);
}

#[test]
fn a_table_does_not_grow_with_all_clients_that_ever_came() {
    let mut table = Table::new(1_000_000, 4);
    for of in 0..10_000 {
        call(&mut table, of);
        set(&mut table, of, 0);
    }
    assert!(table.len() < 10, "{} entries", table.len());
}

#[test]
fn a_flood_neither_grows_a_table_nor_forgets_who_is_in_it() {
    let mut table = Table::new(16, 4);
    for of in 0..16 {
        set(&mut table, of, 50 + u32::try_from(of).unwrap());
    }
    for of in 1_000..3_000 {
        call(&mut table, of);
    }
    assert_eq!(table.len(), 16);
    assert_eq!(table.crowd.len(), 4);
    assert_eq!(table.crowded(), 2_000);
    for of in 0..16 {
        assert_eq!(call(&mut table, of), 51 + u32::try_from(of).unwrap());
    }
}

#[test]
fn whoever_leaves_the_crowd_takes_along_what_it_was_charged_there() {
    let mut table = Table::new(1, 1);
    call(&mut table, 0);
    for _ in 0..7 {
        call(&mut table, 1);
    }
    set(&mut table, 0, 0);
    assert_eq!(call(&mut table, 1), 8);
    assert_eq!(table.len(), 1);
}

#[test]
fn memory_of_a_flood_is_given_back() {
    let mut table = Table::new(1_000, 8);
    for of in 0..2_000 {
        call(&mut table, of);
    }
    assert_eq!(table.len(), 1_000);
    for of in 0..1_000 {
        set(&mut table, of, 0);
    }
    table.crowd.fill(0);
    table.look(2_000, &is_idle);
    table.shrink(&is_idle);
    assert_eq!((table.len(), table.crowd.len()), (0, 0));
    assert!(table.entries.capacity() < 100);
}

#[test]
fn a_client_put_back_is_remembered_even_without_a_place() {
    let mut table = Table::new(2, 1);
    for of in 0..3 {
        for _ in 0..=of {
            call(&mut table, of);
        }
    }
    assert_eq!((table.take(key(1)), table.len()), (2, 1));
    assert_eq!(
        call(&mut table, 7),
        4,
        "as the crowd's: three calls by then"
    );
    table.put(key(1), 9);
    assert_eq!((call(&mut table, 1), table.len()), (10, 3));
    assert_eq!(table.crowd, [3], "nobody else is charged or spared for it");
    assert_eq!(
        table.take(key(99)),
        3,
        "whoever was in the crowd begins as it stands"
    );
    assert_eq!(table.places.len(), table.entries.len());
}

proptest! {
    /// Against a map that forgets nobody: nobody is ever believed to have called less often.
    #[test]
    fn nobody_is_believed_to_have_called_less(
        entries in 1_usize..20,
        ops in proptest::collection::vec((0_u128..40, any::<bool>()), 0..400),
    ) {
        let mut table = Table::new(entries, 4);
        let mut truth: HashMap<u128, Calls> = HashMap::new();
        for (of, calls) in ops {
            let true_calls = truth.entry(of).or_default();
            if calls {
                *true_calls += 1;
                let counted = call(&mut table, of);
                prop_assert!(counted >= *true_calls, "{counted} of {true_calls}");
            } else if table.own(key(of)).is_some() {
                // Its window has passed.
                set(&mut table, of, 0);
                *true_calls = 0;
            }
            prop_assert!(table.len() <= entries);
        }
    }

    #[test]
    fn with_place_for_all_everybody_is_counted_exactly(
        ops in proptest::collection::vec((0_u128..40, 0_u32..3), 0..400),
    ) {
        let mut table = Table::new(64, 4);
        let mut truth: HashMap<u128, Calls> = HashMap::new();
        for (of, to) in ops {
            set(&mut table, of, to);
            truth.insert(of, to);
            for (of, calls) in &truth {
                let own = table.own(key(*of)).map(|at| table.entries[at].state);
                prop_assert_eq!(own.unwrap_or_default(), *calls);
            }
            prop_assert_eq!(table.places.len(), table.entries.len());
        }
    }
}
