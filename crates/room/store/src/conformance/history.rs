//! Conformance suite of histories.

use anteroom_room::id::NodeId;
use anteroom_room::time::Minute;

use crate::history::{
    HistoryBound, HistoryGrain, HistoryName, HistoryRow, HistoryRows, HistorySpan,
    history_bytes_of, history_kept_from,
};
use crate::store::{Store, StoreError};

/// Bound that no test reaches, for one room.
const AMPLE: HistoryBound = HistoryBound {
    bytes: 64 << 20,
    rooms: 1,
};
/// First minute of a day, so that each store has it at the begin of what it keeps together.
const DAY: Minute = Minute(28_240_560 / 1_440 * 1_440);

/// Runs the suite for histories against an empty store.
///
/// # Errors
///
/// [`StoreError`] if the store fails where it should work.
///
/// # Panics
///
/// If the store does not do what it must: this is a test.
pub async fn check_history(store: &dyn Store) -> Result<(), StoreError> {
    rows_are_read_in_order_and_byte_for_byte(store).await?;
    a_later_row_of_the_same_node_and_minute_replaces_one(store).await?;
    rooms_and_grains_are_independent(store).await?;
    rows_beyond_their_age_are_dropped(store).await?;
    the_oldest_rows_make_room_for_new_ones(store).await
}

fn name(text: &str) -> HistoryName {
    HistoryName(text.to_owned())
}

fn row(grain: HistoryGrain, begins: u64, node: u64, value: &[u8]) -> HistoryRow {
    HistoryRow {
        grain,
        begins: Minute(begins),
        node: NodeId(node),
        value: value.to_vec(),
    }
}

fn minute(begins: u64, node: u64, value: &[u8]) -> HistoryRow {
    row(HistoryGrain::Minute, begins, node, value)
}

fn of(room: &str, rows: &[HistoryRow]) -> [HistoryRows; 1] {
    [HistoryRows {
        name: name(room),
        rows: rows.to_vec(),
    }]
}

async fn read(
    store: &dyn Store,
    room: &str,
    grain: HistoryGrain,
    (from, until): (u64, u64),
) -> Result<Vec<HistoryRow>, StoreError> {
    let span = HistorySpan {
        grain,
        from: Minute(from),
        until: Minute(until),
    };
    store.history(&name(room), span).await
}

async fn rows_are_read_in_order_and_byte_for_byte(store: &dyn Store) -> Result<(), StoreError> {
    let grain = HistoryGrain::Minute;
    let (begin, end) = (DAY.0 + 30, DAY.0 + 200);
    assert_eq!(read(store, "order", grain, (0, u64::MAX)).await?, []);
    let all: Vec<u8> = (0..=255).collect();
    let rows: Vec<_> = (begin..end)
        .flat_map(|at| [minute(at, 1, &all), minute(at, u64::MAX, b"")])
        .collect();
    let backwards: Vec<_> = rows.iter().rev().cloned().collect();
    store.put_history(&of("order", &backwards), AMPLE).await?;
    assert_eq!(read(store, "order", grain, (begin, end)).await?, rows);
    assert_eq!(read(store, "order", grain, (0, u64::MAX)).await?, rows);
    let part = read(store, "order", grain, (begin + 1, begin + 2)).await?;
    assert_eq!(part, rows[2..4], "from the first minute, without the last");
    assert_eq!(
        read(store, "order", grain, (begin + 1, begin + 1)).await?,
        []
    );
    Ok(())
}

async fn a_later_row_of_the_same_node_and_minute_replaces_one(
    store: &dyn Store,
) -> Result<(), StoreError> {
    let old = [minute(DAY.0, 1, b"old"), minute(DAY.0, 2, b"other")];
    store.put_history(&of("again", &old), AMPLE).await?;
    let new = [minute(DAY.0, 1, b"newer")];
    for _ in 0..2 {
        store.put_history(&of("again", &new), AMPLE).await?;
    }
    let found = read(store, "again", HistoryGrain::Minute, (0, u64::MAX)).await?;
    assert_eq!(found, [new[0].clone(), old[1].clone()]);
    Ok(())
}

async fn rooms_and_grains_are_independent(store: &dyn Store) -> Result<(), StoreError> {
    let [short, long] = HistoryGrain::ALL.map(|grain| row(grain, DAY.0, 1, b"one"));
    let other = minute(DAY.0, 1, b"two");
    let all = [
        of("one", &[short.clone(), long.clone()]),
        of("one/0001", std::slice::from_ref(&other)),
    ];
    store.put_history(&all.concat(), AMPLE).await?;
    let span = (DAY.0, DAY.0 + 1);
    let found = read(store, "one", HistoryGrain::Minute, span).await?;
    assert_eq!(found, [short]);
    let found = read(store, "one", HistoryGrain::Quarter, span).await?;
    assert_eq!(found, [long]);
    let found = read(store, "one/0001", HistoryGrain::Minute, span).await?;
    assert_eq!(found, [other]);
    assert_eq!(read(store, "on", HistoryGrain::Minute, span).await?, []);
    Ok(())
}

async fn rows_beyond_their_age_are_dropped(store: &dyn Store) -> Result<(), StoreError> {
    for grain in HistoryGrain::ALL {
        let old = [row(grain, DAY.0, 1, b"old")];
        store.put_history(&of("age", &old), AMPLE).await?;
        let newest = DAY.0 + grain.kept_for();
        let kept_from = history_kept_from(grain, Minute(newest));
        assert_eq!(kept_from, DAY);
        let edge = [row(grain, newest, 1, b"edge")];
        store.put_history(&of("age", &edge), AMPLE).await?;
        let found = read(store, "age", grain, (0, u64::MAX)).await?;
        assert_eq!(found, [old, edge].concat(), "not before its age");
        // A store may keep what it keeps together a little longer: at most a day.
        let later = [row(grain, newest + 1_440, 1, b"later")];
        store.put_history(&of("age", &later), AMPLE).await?;
        let found = read(store, "age", grain, (0, newest)).await?;
        assert_eq!(found, [], "{grain:?}");
    }
    Ok(())
}

async fn the_oldest_rows_make_room_for_new_ones(store: &dyn Store) -> Result<(), StoreError> {
    let value = [7; 500];
    // Later than all rows of the tests before, which are of other rooms.
    let begin = DAY.0 + 100 * 1_440;
    let hours = 12;
    let each = history_bytes_of(&name("bound"), &value);
    let bound = HistoryBound {
        bytes: each * 60 * 4,
        rooms: 1,
    };
    for hour in 0..hours {
        let rows: Vec<_> = (0..60)
            .map(|at| minute(begin + hour * 60 + at, 1, &value))
            .collect();
        store.put_history(&of("bound", &rows), bound).await?;
        let found = read(store, "bound", HistoryGrain::Minute, (0, u64::MAX)).await?;
        let bytes: u64 = found.len() as u64 * each;
        assert!(bytes <= bound.bytes, "{bytes} bytes");
        assert!(
            found.ends_with(&rows),
            "the newest hour fits, so it is there"
        );
        let most = (hour + 1).min(3) * 60;
        assert!(found.len() as u64 >= most, "no more is dropped than needed");
    }
    Ok(())
}
