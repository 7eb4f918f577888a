//! Addresses of test servers, and helpers for stores.

use std::error::Error;

use anteroom_config::{HostPort, StorePromise, Topology, ValkeyAddress};
use anteroom_room::allocation::{CounterKey, CounterScope};
use anteroom_room::time::Minute;
use anteroom_store::{CounterName, Expected, Loaded, RecordKey, Store, StoreError, Swap};
use anteroom_testkit::eventually;
use anteroom_valkey::Valkey;

/// Returns the address of a server of this machine.
pub(crate) fn here(port: u16) -> HostPort {
    HostPort {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

/// Returns an address without password, database and TLS.
pub(crate) fn address(topology: Topology) -> ValkeyAddress {
    ValkeyAddress {
        topology,
        database: 0,
        username: None,
        password: None,
        tls: None,
        promise: StorePromise::default(),
    }
}

/// Returns the address of one server.
pub(crate) fn single(port: u16) -> ValkeyAddress {
    address(Topology::Single(here(port)))
}

/// Returns the address of a master with a sentinel.
pub(crate) fn sentinel(port: u16, service: &str) -> ValkeyAddress {
    address(Topology::Sentinel {
        sentinels: vec![here(port)],
        service: service.to_owned(),
    })
}

/// Returns the address of a cluster.
pub(crate) fn cluster(port: u16) -> ValkeyAddress {
    address(Topology::Cluster {
        servers: vec![here(port)],
    })
}

/// Returns a store at an address.
pub(crate) fn store(address: &ValkeyAddress) -> Valkey {
    Valkey::new(address, "anteroom").unwrap()
}

/// Returns the record that most tests use; its key at the server is `anteroom:{shop}:world`.
pub(crate) fn key() -> RecordKey {
    RecordKey("shop/world".to_owned())
}

/// Returns the counter that most tests use.
pub(crate) fn counter() -> CounterName {
    CounterName {
        room: "shop".to_owned(),
        key: CounterKey {
            scope: CounterScope::Anywhere,
            minute: Minute(28_000_000),
        },
    }
}

/// Writes if the record is as expected.
pub(crate) async fn swap(
    store: &Valkey,
    expected: Expected,
    value: &[u8],
) -> Result<Swap, StoreError> {
    store
        .compare_and_swap(&key(), expected, value.to_vec())
        .await
}

/// Writes over the current record, and returns the expectation of the next write.
pub(crate) async fn write(store: &Valkey, value: &[u8]) -> Result<Expected, StoreError> {
    let expected = store.load(&key()).await?.expected();
    assert_eq!(swap(store, expected, value).await?, Swap::Swapped);
    Ok(store.load(&key()).await?.expected())
}

/// Returns the value of an existing record.
pub(crate) fn value(loaded: &Loaded) -> &[u8] {
    &loaded.record.as_ref().expect("it was written").value
}

/// Loads until the store is available.
pub(crate) async fn load_when_available(store: &Valkey) -> Loaded {
    eventually("the store replies", async || {
        store.load(&key()).await.is_ok()
    })
    .await;
    store.load(&key()).await.unwrap()
}

/// Formats an error with its causes, as the log shows it.
pub(crate) fn full_text(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Checks that `error` is a rejection that contains `reason` and `remedy`.
pub(crate) fn check_rejected(error: &StoreError, reason: &str, remedy: &str) {
    let text = full_text(error);
    assert!(matches!(error, StoreError::Rejected { .. }), "{text}");
    assert!(text.contains(reason), "{text}");
    assert!(text.contains(remedy), "{text}");
}

/// Checks that `error` is transient and contains `reason`.
pub(crate) fn check_unavailable(error: &StoreError, reason: &str) {
    let text = full_text(error);
    assert!(matches!(error, StoreError::Unavailable { .. }), "{text}");
    assert!(text.contains(reason), "{text}");
}
