//! Addresses of servers of a test, and what tests do with a store.

use std::error::Error;

use anteroom_config::{HostPort, Topology, ValkeyAddress};
use anteroom_room::allocation::{CounterKey, CounterScope};
use anteroom_room::time::Minute;
use anteroom_store::{CounterName, Expected, Loaded, RecordKey, Store, StoreError, Swap};
use anteroom_testkit::eventually;
use anteroom_valkey::Valkey;

/// A server of this machine.
pub(crate) fn here(port: u16) -> HostPort {
    HostPort {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

/// An address without password, database and TLS.
pub(crate) fn address(topology: Topology) -> ValkeyAddress {
    ValkeyAddress {
        topology,
        database: 0,
        username: None,
        password: None,
        tls: None,
    }
}

/// The address of one server.
pub(crate) fn single(port: u16) -> ValkeyAddress {
    address(Topology::Single(here(port)))
}

/// The address of a master that sentinels watch.
pub(crate) fn sentinel(port: u16, service: &str) -> ValkeyAddress {
    address(Topology::Sentinel {
        sentinels: vec![here(port)],
        service: service.to_owned(),
    })
}

/// The address of a cluster.
pub(crate) fn cluster(port: u16) -> ValkeyAddress {
    address(Topology::Cluster {
        servers: vec![here(port)],
    })
}

/// A store.
pub(crate) fn store(address: &ValkeyAddress) -> Valkey {
    Valkey::new(address, "anteroom").unwrap()
}

/// The record that most tests use; at the server it is called `anteroom:{shop}:world`.
pub(crate) fn key() -> RecordKey {
    RecordKey("shop/world".to_owned())
}

/// The counter that most tests use.
pub(crate) fn counter() -> CounterName {
    CounterName {
        room: "shop".to_owned(),
        key: CounterKey {
            scope: CounterScope::Anywhere,
            minute: Minute(28_000_000),
        },
    }
}

/// Writes if what is there is as expected.
pub(crate) async fn swap(
    store: &Valkey,
    expected: Expected,
    value: &[u8],
) -> Result<Swap, StoreError> {
    store
        .compare_and_swap(&key(), expected, value.to_vec())
        .await
}

/// Writes against what is there now, and returns what a next write must find.
pub(crate) async fn write(store: &Valkey, value: &[u8]) -> Result<Expected, StoreError> {
    let expected = store.load(&key()).await?.expected();
    assert_eq!(swap(store, expected, value).await?, Swap::Swapped);
    Ok(store.load(&key()).await?.expected())
}

/// The value of a record that is there.
pub(crate) fn value(loaded: &Loaded) -> &[u8] {
    &loaded.record.as_ref().expect("it was written").value
}

/// Loads until that works.
pub(crate) async fn load_once_it_works(store: &Valkey) -> Loaded {
    eventually("the store answers", async || {
        store.load(&key()).await.is_ok()
    })
    .await;
    store.load(&key()).await.unwrap()
}

/// An error and what caused it, as the log shows it.
pub(crate) fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Checks that `error` is a refusal that says `refusal` and names a remedy with `remedy` in it.
pub(crate) fn check_refused(error: &StoreError, refusal: &str, remedy: &str) {
    let text = told(error);
    assert!(matches!(error, StoreError::Refused { .. }), "{text}");
    assert!(text.contains(refusal), "{text}");
    assert!(text.contains(remedy), "{text}");
}

/// Checks that `error` may go away by itself, and says `reason`.
pub(crate) fn check_unavailable(error: &StoreError, reason: &str) {
    let text = told(error);
    assert!(matches!(error, StoreError::Unavailable { .. }), "{text}");
    assert!(text.contains(reason), "{text}");
}
