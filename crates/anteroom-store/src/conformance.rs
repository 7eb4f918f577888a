//! What every store must do. A new store runs this list and adds one line.

use std::collections::BTreeSet;

use anteroom_core::allocation::{CounterKey, CounterScope};
use anteroom_core::time::Minute;

use crate::store::{CounterName, RecordKey, RecordVersion, Store, StoreError, Swap};

/// Runs the whole list against an empty store.
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
    records_do_not_touch_each_other(store).await?;
    the_clock_does_not_run_backwards_and_the_identity_stays(store).await?;
    no_number_is_handed_out_twice(store).await
}

fn key(name: &str) -> RecordKey {
    RecordKey(name.to_owned())
}

async fn a_record_is_absent_until_it_is_written(store: &dyn Store) -> Result<(), StoreError> {
    let key = key("absent");
    assert_eq!(store.load(&key).await?.record, None);
    let swap = store.compare_and_swap(&key, RecordVersion(0), b"one".to_vec());
    assert_eq!(swap.await?, Swap::Swapped);
    let record = store.load(&key).await?.record.expect("it was written");
    assert_eq!(record.value, b"one");
    assert_ne!(record.version, RecordVersion(0));
    Ok(())
}

async fn a_write_against_an_old_version_changes_nothing(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let key = key("contended");
    let first = store.compare_and_swap(&key, RecordVersion(0), b"one".to_vec());
    assert_eq!(first.await?, Swap::Swapped);
    let version = store.load(&key).await?.record.expect("written").version;
    for stale in [RecordVersion(0), RecordVersion(version.0 + 7)] {
        let swap = store.compare_and_swap(&key, stale, b"two".to_vec()).await?;
        assert_eq!(swap, Swap::Conflict);
    }
    let swap = store.compare_and_swap(&key, version, b"three".to_vec());
    assert_eq!(swap.await?, Swap::Swapped);
    let swap = store.compare_and_swap(&key, version, b"four".to_vec());
    assert_eq!(swap.await?, Swap::Conflict);
    let record = store.load(&key).await?.record.expect("written");
    assert_eq!(record.value, b"three");
    Ok(())
}

async fn records_do_not_touch_each_other(store: &dyn Store) -> Result<(), StoreError> {
    for name in ["a", "b"] {
        let (key, value) = (key(name), name.as_bytes().to_vec());
        let swap = store.compare_and_swap(&key, RecordVersion(0), value);
        assert_eq!(swap.await?, Swap::Swapped);
    }
    let record = store.load(&key("a")).await?.record.expect("written");
    assert_eq!(record.value, b"a");
    Ok(())
}

async fn the_clock_does_not_run_backwards_and_the_identity_stays(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let first = store.load(&key("clock")).await?;
    let second = store.load(&key("clock")).await?;
    assert!(second.now >= first.now);
    assert_eq!(second.identity, first.identity);
    Ok(())
}

async fn no_number_is_handed_out_twice(store: &dyn Store) -> Result<(), StoreError> {
    let minute = store.load(&key("clock")).await?.now.minute();
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
