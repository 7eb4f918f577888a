//! Conformance suite of stores. A new store runs it with one line of code.

mod history;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use anteroom_config::overrides::{Actor, Entry, Record as _, RoomOverrides};
use anteroom_room::allocation::{CounterKey, CounterScope};
use anteroom_room::time::{DurationMs, Minute};

use crate::overrides::{ChangeError, RoomOverrideStore};
use crate::store::{
    CounterName, Expected, Identity, LEFT_MAX, LeftChanges, LeftId, LeftRequest, NOTES_MAX, Note,
    RecordKey, RecordVersion, Store, StoreError, Swap,
};
pub use history::check_history;

/// Runs the suite for records and counters against an empty store.
///
/// # Errors
///
/// [`StoreError`] if the store fails where it should work.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check(store: &dyn Store) -> Result<(), StoreError> {
    a_record_is_absent_until_it_is_written(store).await?;
    a_write_against_an_old_version_changes_nothing(store).await?;
    a_load_of_what_is_known_returns_nothing(store).await?;
    a_kept_record_is_written_once_and_loads_like_any_other(store).await?;
    records_are_independent(store).await?;
    a_write_that_expects_another_store_changes_nothing(store).await?;
    values_are_stored_byte_for_byte(store).await?;
    exactly_one_of_many_concurrent_writers_wins(store).await?;
    the_identity_is_stable(store).await?;
    no_number_is_taken_twice(store).await
}

/// Runs the suite for requests and notes that are left beside a record, against an empty store that
/// several processes share.
///
/// # Errors
///
/// [`StoreError`] if the store fails where it should work.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check_left_requests(store: &dyn Store) -> Result<(), StoreError> {
    nothing_is_left_without_a_request(store).await?;
    left_requests_are_returned_with_the_record(store).await?;
    a_write_removes_what_it_applied_and_nothing_else(store).await?;
    a_lost_write_removes_nothing_and_leaves_its_request(store).await?;
    a_write_to_another_store_changes_no_requests(store).await?;
    no_more_requests_are_left_than_allowed(store).await?;
    requests_are_stored_byte_for_byte(store).await?;
    a_note_lies_beside_its_record_until_its_reader_removes_it(store).await?;
    no_more_notes_are_left_than_allowed(store).await
}

/// Runs the suite for a room's overrides. `again` is the same store over another connection or in
/// the next process.
///
/// # Errors
///
/// [`ChangeError`] if the store fails where it should work.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check_overrides(
    store: Arc<dyn Store>,
    again: Arc<dyn Store>,
) -> Result<(), ChangeError<Infallible>> {
    let (one, other) = (
        RoomOverrideStore::new(store, "shop/1"),
        RoomOverrideStore::new(again, "shop/1"),
    );
    let failed = ChangeError::Store;
    assert_eq!(one.read().await.map_err(failed)?, None);
    let nothing = RoomOverrides::default();
    let next = |before: &RoomOverrides, _| Ok(changed(before, "one"));
    let first = one.change(&nothing, next).await?;
    assert_eq!(other.read().await.map_err(failed)?, Some(first.clone()));

    // Two concurrent changes are both applied, one after the other.
    let (left, right) = tokio::join!(
        one.change(&first, |before, _| Ok(changed(before, "left"))),
        other.change(&first, |before, _| Ok(changed(before, "right"))),
    );
    let mut versions = [left?.version, right?.version];
    versions.sort_unstable();
    assert_eq!(versions, [2, 3]);
    let log = other.log().await.map_err(failed)?;
    let mut texts: Vec<&str> = log
        .entries
        .iter()
        .map(|entry| entry.what.as_str())
        .collect();
    assert_eq!(log.entries.iter().map(|entry| entry.version).max(), Some(3));
    texts.sort_unstable();
    assert_eq!(texts, ["left", "one", "right"]);

    // An older version never replaces a newer one, and a newer one is restored.
    let newest = one.read().await.map_err(failed)?.expect("it was written");
    one.restore(&first).await.map_err(failed)?;
    assert_eq!(other.read().await.map_err(failed)?, Some(newest.clone()));
    let ahead = RoomOverrides {
        version: 9,
        ..newest
    };
    assert!(ahead.is_newer_than(&one.read().await.map_err(failed)?.unwrap_or_default()));
    other.restore(&ahead).await.map_err(failed)?;
    assert_eq!(one.read().await.map_err(failed)?, Some(ahead.clone()));
    let tenth = one
        .change(&ahead, |before, _| Ok(changed(before, "ten")))
        .await?;
    assert_eq!(tenth.version, 10);
    Ok(())
}

fn changed(before: &RoomOverrides, what: &str) -> RoomOverrides {
    let version = before.version + 1;
    RoomOverrides {
        version,
        message: Some(what.to_owned()),
        newest: Some(Entry {
            version,
            at: 0,
            who: Actor::default(),
            what: what.to_owned(),
            changes: Vec::new(),
            room_id: None,
        }),
        ..before.clone()
    }
}

fn key(name: &str) -> RecordKey {
    RecordKey(name.to_owned())
}

/// Writes a record, whatever its present version is.
async fn write(store: &dyn Store, key: &RecordKey, value: &[u8]) -> Result<Swap, StoreError> {
    let expected = store.load(key).await?.expected();
    store.compare_and_swap(key, expected, value.to_vec()).await
}

async fn read(store: &dyn Store, key: &RecordKey) -> Result<Vec<u8>, StoreError> {
    let record = store.load(key).await?.record;
    Ok(record.expect("it was written").value)
}

async fn a_record_is_absent_until_it_is_written(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("absent");
    let loaded = store.load(&key).await?;
    assert_eq!(loaded.record, None);
    let swap = store.compare_and_swap(&key, loaded.expected(), b"one".to_vec());
    assert_eq!(swap.await?, Swap::Swapped);
    let record = store.load(&key).await?.record.expect("it was written");
    assert_eq!(record.value, b"one");
    assert_ne!(record.version, RecordVersion::ABSENT);
    Ok(())
}

async fn a_write_against_an_old_version_changes_nothing(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let key = key("contended");
    let absent = store.load(&key).await?.expected();
    let first = store.compare_and_swap(&key, absent, b"one".to_vec());
    assert_eq!(first.await?, Swap::Swapped);
    let present = store.load(&key).await?.expected();
    let unknown = Expected {
        version: RecordVersion(present.version.0 + 7),
        ..present
    };
    for stale in [absent, unknown] {
        let swap = store.compare_and_swap(&key, stale, b"two".to_vec()).await?;
        assert_conflict(swap, b"one", present);
    }
    let swap = store.compare_and_swap(&key, present, b"three".to_vec());
    assert_eq!(swap.await?, Swap::Swapped);
    let swap = store.compare_and_swap(&key, present, b"four".to_vec());
    let now = store.load(&key).await?.expected();
    assert_conflict(swap.await?, b"three", now);
    assert_eq!(read(store, &key).await?, b"three");
    Ok(())
}

/// Asserts that a late write returns the present record, which saves a load.
fn assert_conflict(swap: Swap, value: &[u8], expected: Expected) {
    let Swap::Conflict(present) = swap else {
        panic!("{swap:?}");
    };
    assert_eq!(present.expected(), expected);
    assert_eq!(present.record.expect("it was written").value, value);
}

async fn a_load_of_what_is_known_returns_nothing(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("known");
    let absent = store.load(&key).await?.expected();
    assert_eq!(store.load_changed(&key, absent, None).await?, None);
    write(store, &key, b"one").await?;
    let found = store.load_changed(&key, absent, None).await?;
    let found = found.expect("the record is new");
    let value = found.record.as_ref().map(|record| &record.value[..]);
    assert_eq!(value, Some(&b"one"[..]));
    let again = store.load_changed(&key, found.expected(), None).await?;
    assert_eq!(again, None);
    let of_another = Expected {
        identity: Identity(found.identity.0 ^ 1),
        ..found.expected()
    };
    let again = store.load_changed(&key, of_another, None).await?;
    let again = again.map(|loaded| loaded.expected());
    assert_eq!(again, Some(found.expected()));
    write(store, &key, b"two").await?;
    let changed = store.load_changed(&key, found.expected(), None).await?;
    assert!(changed.is_some_and(|changed| changed.expected() != found.expected()));
    Ok(())
}

async fn a_kept_record_is_written_once_and_loads_like_any_other(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let (key, day) = (key("kept/page/1"), DurationMs::from_secs(86_400));
    assert!(!store.keep_for(&key, None, day).await?);
    assert_eq!(store.load(&key).await?.record, None);
    for value in [Some(&b"one"[..]), Some(b"two"), None] {
        assert!(store.keep_for(&key, value, day).await?);
        assert_eq!(read(store, &key).await?, b"one");
    }
    let present = store.load(&key).await?.expected();
    assert_ne!(present.version, RecordVersion::ABSENT);
    let swap = store.compare_and_swap(&key, present, b"three".to_vec());
    assert_eq!(swap.await?, Swap::Swapped);
    assert_eq!(read(store, &key).await?, b"three");
    Ok(())
}

async fn a_note_lies_beside_its_record_until_its_reader_removes_it(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let (key, other) = (key("notes/1"), key("notes/2"));
    let note = |name: &str, value: &[u8]| Note {
        name: name.to_owned(),
        value: value.to_vec(),
    };
    let absent = store.load(&key).await?.expected();
    let (a, b) = (note("a", b"one"), note("b", b"\0 two\r\n"));
    for left in [&a, &b] {
        // A note alone changes no record.
        assert_eq!(store.load_changed(&key, absent, Some(left)).await?, None);
    }
    assert_eq!(sorted_notes(store, &key).await?, [a, b.clone()]);
    assert_eq!(sorted_notes(store, &other).await?, []);
    assert_eq!(write(store, &key, b"value").await?, Swap::Swapped);
    let newer = note("a", b"newer");
    let found = store.load_changed(&key, absent, Some(&newer)).await?;
    let value = found
        .and_then(|found| found.record)
        .map(|found| found.value);
    assert_eq!(value.as_deref(), Some(&b"value"[..]));
    assert_eq!(sorted_notes(store, &key).await?, [newer, b.clone()]);
    store
        .load_changed(&key, absent, Some(&note("a", b"")))
        .await?;
    assert_eq!(sorted_notes(store, &key).await?, [b]);
    Ok(())
}

async fn sorted_notes(store: &dyn Store, key: &RecordKey) -> Result<Vec<Note>, StoreError> {
    let mut notes = store.notes(key).await?;
    notes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(notes)
}

async fn no_more_notes_are_left_than_allowed(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("notes-full");
    let known = store.load(&key).await?.expected();
    for number in 0..=NOTES_MAX {
        let note = Note {
            name: number.to_string(),
            value: b"note".to_vec(),
        };
        store.load_changed(&key, known, Some(&note)).await?;
    }
    let notes = store.notes(&key).await?;
    assert_eq!(notes.len(), NOTES_MAX);
    Ok(())
}

/// Runs the suite for the ends of records and notes. `pass` waits until the clock of the store is
/// this much later.
///
/// # Errors
///
/// [`StoreError`] if the store fails where it should work.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check_ends<F: Future<Output = ()>>(
    store: &dyn Store,
    pass: impl Fn(DurationMs) -> F,
) -> Result<(), StoreError> {
    let lifetime = DurationMs(300);
    let (ends, renewed, swapped) = (key("ends/page/1"), key("ends/page/2"), key("ends/page/3"));
    for key in [&ends, &renewed, &swapped] {
        assert!(store.keep_for(key, Some(b"value"), lifetime).await?);
    }
    assert!(
        store
            .keep_for(&renewed, None, DurationMs::from_secs(60))
            .await?
    );
    assert_eq!(write(store, &swapped, b"other").await?, Swap::Swapped);
    pass(DurationMs(lifetime.0 + 50)).await;
    assert_eq!(store.load(&ends).await?.record, None);
    assert!(!store.keep_for(&ends, None, lifetime).await?);
    assert_eq!(read(store, &renewed).await?, b"value");
    assert_eq!(read(store, &swapped).await?, b"other");
    // The name is free again.
    assert_eq!(write(store, &ends, b"again").await?, Swap::Swapped);
    assert_eq!(read(store, &ends).await?, b"again");
    Ok(())
}

async fn records_are_independent(store: &dyn Store) -> Result<(), StoreError> {
    for name in ["a", "b"] {
        let swap = write(store, &key(name), name.as_bytes()).await?;
        assert_eq!(swap, Swap::Swapped);
    }
    assert_eq!(read(store, &key("a")).await?, b"a");
    Ok(())
}

async fn a_write_that_expects_another_store_changes_nothing(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let key = key("identity");
    let present = store.load(&key).await?.expected();
    let other_store = Expected {
        identity: Identity(present.identity.0 ^ 1),
        ..present
    };
    let swap = store.compare_and_swap(&key, other_store, b"one".to_vec());
    assert_eq!(swap.await?, Swap::OtherStore);
    assert_eq!(store.load(&key).await?.record, None);
    Ok(())
}

async fn values_are_stored_byte_for_byte(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("bytes");
    let all: Vec<u8> = (0..=255).collect();
    // As long as the record of a large room.
    let long = all.repeat(400);
    for value in [&all[..], &[], &long, b"\r\n$-1\r\n"] {
        assert_eq!(write(store, &key, value).await?, Swap::Swapped);
        assert_eq!(read(store, &key).await?, value);
    }
    Ok(())
}

async fn exactly_one_of_many_concurrent_writers_wins(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("race");
    for _ in 0..20 {
        let expected = store.load(&key).await?.expected();
        let value = |writer: u8| store.compare_and_swap(&key, expected, vec![writer]);
        let (a, b, c, d) = tokio::join!(value(0), value(1), value(2), value(3));
        let swaps = (0u8..).zip([a?, b?, c?, d?]);
        let won = swaps.filter(|(_, swap)| *swap == Swap::Swapped);
        let won: Vec<u8> = won.map(|(writer, _)| writer).collect();
        assert_eq!(won.len(), 1, "{won:?}");
        assert_eq!(read(store, &key).await?, won);
    }
    Ok(())
}

async fn the_identity_is_stable(store: &dyn Store) -> Result<(), StoreError> {
    let first = store.load(&key("clock")).await?;
    let second = store.load(&key("clock")).await?;
    assert_eq!(second.identity, first.identity);
    Ok(())
}

async fn no_number_is_taken_twice(store: &dyn Store) -> Result<(), StoreError> {
    let minute = Minute(28_240_545);
    let name = |minute: Minute| CounterName {
        room: "shop".to_owned(),
        key: CounterKey {
            scope: CounterScope::Anywhere,
            minute,
        },
    };
    let mut seen = BTreeSet::new();
    for _ in 0..200 {
        assert!(seen.insert(store.take_number(&name(minute)).await?));
    }
    assert_eq!(
        seen.last(),
        Some(&199),
        "counting begins with 0 and has no gaps"
    );
    assert_eq!(store.take_number(&name(minute.next())).await?, 0);
    Ok(())
}

fn left_request(id: &[u8], value: &[u8]) -> LeftRequest {
    LeftRequest {
        id: LeftId(id.to_vec()),
        value: value.to_vec(),
    }
}

/// Leaves a request beside a record.
async fn leave(store: &dyn Store, key: &RecordKey, id: &[u8]) -> Result<(), StoreError> {
    let request = left_request(id, b"request");
    let loaded = store.load_and_leave(key, Some(request.clone())).await?;
    assert!(loaded.left.contains(&request), "{:?}", loaded.left);
    Ok(())
}

/// Returns the names of the requests that are left, sorted.
async fn left(store: &dyn Store, key: &RecordKey) -> Result<Vec<Vec<u8>>, StoreError> {
    let loaded = store.load_and_leave(key, None).await?;
    let mut names: Vec<_> = loaded.left.into_iter().map(|left| left.id.0).collect();
    names.sort_unstable();
    Ok(names)
}

async fn nothing_is_left_without_a_request(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("nothing-left");
    let loaded = store.load_and_leave(&key, None).await?;
    assert_eq!((loaded.record, loaded.left), (None, Vec::new()));
    Ok(())
}

async fn left_requests_are_returned_with_the_record(store: &dyn Store) -> Result<(), StoreError> {
    let (key, other) = (key("left/1"), key("left/2"));
    leave(store, &key, b"a").await?;
    assert_eq!(write(store, &key, b"value").await?, Swap::Swapped);
    leave(store, &key, b"b").await?;
    let loaded = store.load_and_leave(&key, None).await?;
    let plain = store.load(&key).await?;
    assert_eq!(loaded.expected(), plain.expected());
    assert_eq!(loaded.record.expect("it was written").value, b"value");
    assert_eq!(left(store, &key).await?, [b"a", b"b"]);
    assert_eq!(plain.left, [], "a plain load returns none");
    assert_eq!(left(store, &other).await?, [[0; 0]; 0], "of another record");
    Ok(())
}

async fn a_write_removes_what_it_applied_and_nothing_else(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let key = key("applied");
    for id in [b"a", b"b", b"c"] {
        leave(store, &key, id).await?;
    }
    let expected = store.load(&key).await?.expected();
    let changes = LeftChanges {
        applied: vec![LeftId(b"a".to_vec()), LeftId(b"c".to_vec())],
        leave: Some(left_request(b"own", b"")),
    };
    let swap = store.swap_and_remove(&key, expected, b"value".to_vec(), changes);
    assert_eq!(swap.await?, Swap::Swapped);
    assert_eq!(read(store, &key).await?, b"value");
    assert_eq!(left(store, &key).await?, [b"b"]);
    let expected = store.load(&key).await?.expected();
    let swap = store.swap_and_remove(&key, expected, Vec::new(), LeftChanges::default());
    assert_eq!(swap.await?, Swap::Swapped);
    assert_eq!(left(store, &key).await?, [b"b"]);
    Ok(())
}

async fn a_lost_write_removes_nothing_and_leaves_its_request(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let key = key("lost-race");
    leave(store, &key, b"a").await?;
    let old = store.load(&key).await?.expected();
    assert_eq!(write(store, &key, b"first").await?, Swap::Swapped);
    let present = store.load(&key).await?.expected();
    for (own, expected) in [(None, vec!["a"]), (Some(b"own"), vec!["a", "own"])] {
        let changes = LeftChanges {
            applied: vec![LeftId(b"a".to_vec())],
            leave: own.map(|id| left_request(id, b"own request")),
        };
        let swap = store.swap_and_remove(&key, old, b"second".to_vec(), changes);
        let Swap::Conflict(loaded) = swap.await? else {
            panic!("another writer was first");
        };
        let mut names: Vec<_> = loaded.left.iter().map(|left| left.id.0.clone()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            expected
                .iter()
                .map(|name| name.as_bytes())
                .collect::<Vec<_>>()
        );
        assert_conflict(Swap::Conflict(loaded), b"first", present);
    }
    Ok(())
}

async fn a_write_to_another_store_changes_no_requests(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("left-elsewhere");
    leave(store, &key, b"a").await?;
    let present = store.load(&key).await?.expected();
    let other_store = Expected {
        identity: Identity(present.identity.0 ^ 1),
        ..present
    };
    let changes = LeftChanges {
        applied: vec![LeftId(b"a".to_vec())],
        leave: Some(left_request(b"own", b"")),
    };
    let swap = store.swap_and_remove(&key, other_store, Vec::new(), changes);
    assert_eq!(swap.await?, Swap::OtherStore);
    assert_eq!(left(store, &key).await?, [b"a"]);
    Ok(())
}

async fn no_more_requests_are_left_than_allowed(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("left-full");
    for index in 0..LEFT_MAX {
        leave(store, &key, &index.to_be_bytes()).await?;
    }
    let more = left_request(b"more", b"request");
    let loaded = store.load_and_leave(&key, Some(more)).await?;
    assert_eq!(loaded.left.len(), LEFT_MAX);
    assert!(loaded.left.iter().all(|left| left.id.0 != b"more"));
    Ok(())
}

async fn requests_are_stored_byte_for_byte(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("left-bytes");
    let all: Vec<u8> = (0..=255).collect();
    for value in [&all[..], &[], b"\r\n$-1\r\n"] {
        let request = left_request(&all[250..], value);
        let loaded = store.load_and_leave(&key, Some(request.clone())).await?;
        assert_eq!(loaded.left.last(), Some(&request));
        let loaded = store.load_and_leave(&key, None).await?;
        assert_eq!(loaded.left, [request]);
    }
    Ok(())
}
