//! Servers that are restarted, replaced, or lose their scripts.

use anteroom_store::{Store, Swap};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{RedisSentinel, RedisServer};

use crate::support::{
    counter, key, load_when_available, sentinel, single, store, swap, value, write,
};

/// Arguments of a server that persists its data.
const KEEPS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

#[tokio::test]
async fn flushed_scripts_are_sent_again_transparently() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    let expected = write(&store, b"one").await.unwrap();
    server.send_ok(&["SCRIPT", "FLUSH"]).await;
    assert_eq!(swap(&store, expected, b"two").await.unwrap(), Swap::Swapped);
    assert_eq!(store.take_number(&counter()).await.unwrap(), 0);
    server.send_ok(&["SCRIPT", "FLUSH"]).await;
    assert_eq!(value(&store.load(&key()).await.unwrap()), b"two");
    assert_eq!(store.take_number(&counter()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_restarted_server_is_another_one_even_with_all_data() {
    let mut server = RedisServer::start_with(KEEPS).await;
    let store = store(&single(server.port()));
    let before = write(&store, b"value").await.unwrap();
    server.restart().await;
    let loaded = load_when_available(&store).await;
    assert_eq!(value(&loaded), b"value");
    let after = loaded.expected();
    assert_eq!(after.version, before.version);
    assert_ne!(after.identity, before.identity);
    assert_eq!(
        swap(&store, before, b"late").await.unwrap(),
        Swap::OtherStore
    );
    assert_eq!(swap(&store, after, b"next").await.unwrap(), Swap::Swapped);
}

/// The process and its run id stay, and the data are those of another server.
#[tokio::test]
async fn a_master_that_was_a_replica_for_a_while_is_another_server() {
    let first = RedisServer::start().await;
    let other = RedisServer::start().await;
    let store = store(&single(first.port()));
    let before = write(&store, b"value").await.unwrap();
    let port = other.port().to_string();
    first.send_ok(&["REPLICAOF", "127.0.0.1", &port]).await;
    eventually("it has the data of the other one", async || {
        let info = first.info("replication").await;
        info.contains("master_link_status:up")
    })
    .await;
    let error = write(&store, b"next").await.unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    first.send_ok(&["REPLICAOF", "NO", "ONE"]).await;
    let after = load_when_available(&store).await;
    assert_eq!(after.record, None);
    assert_ne!(after.identity, before.identity);
    // Every connection sees the same server.
    let again = crate::support::store(&single(first.port()));
    assert_eq!(again.load(&key()).await.unwrap().identity, after.identity);
}

#[tokio::test]
async fn a_server_that_lost_its_data_rejects_writes_based_on_earlier_reads() {
    let mut server = RedisServer::start().await;
    let store = store(&single(server.port()));
    let absent = store.load(&key()).await.unwrap().expected();
    server.restart().await;
    let now = load_when_available(&store).await;
    assert_eq!(now.expected().version, absent.version);
    assert_eq!(
        swap(&store, absent, b"late").await.unwrap(),
        Swap::OtherStore
    );
}

/// Starts a master, its sentinel, and a replica that the sentinel knows.
async fn master_with_sentinel() -> (RedisServer, RedisSentinel, RedisServer) {
    let master = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &master).await;
    let replica = RedisServer::start_replica_of(&master).await;
    eventually("the sentinel knows the replica", async || {
        watcher.replicas().await == 1
    })
    .await;
    (master, watcher, replica)
}

#[tokio::test]
async fn a_replica_that_replaces_a_crashed_master_is_another_server() {
    let (mut master, watcher, replica) = master_with_sentinel().await;
    let store = store(&sentinel(watcher.port(), "world"));
    let before = write(&store, b"value").await.unwrap();
    eventually("the replica has the record", async || {
        replica
            .send(&["EXISTS", "anteroom:{shop}:world"])
            .await
            .text()
            == "1"
    })
    .await;

    master.kill();
    eventually("the replica takes over", async || {
        watcher.master().await == Some(replica.port())
    })
    .await;
    let loaded = load_when_available(&store).await;
    assert_eq!(value(&loaded), b"value");
    assert_eq!(loaded.expected().version, before.version);
    assert_ne!(loaded.identity, before.identity);
    assert_eq!(
        swap(&store, before, b"late").await.unwrap(),
        Swap::OtherStore
    );
    write(&store, b"next").await.unwrap();
}

/// The old master keeps running as a replica that still replies to loads.
#[tokio::test]
async fn a_demoted_master_is_replaced() {
    let (_master, watcher, replica) = master_with_sentinel().await;
    let store = store(&sentinel(watcher.port(), "world"));
    let before = write(&store, b"value").await.unwrap();

    eventually("the sentinel begins a failover", async || {
        watcher
            .send_command(&["SENTINEL", "FAILOVER", "world"])
            .await
            .text()
            == "OK"
    })
    .await;
    eventually("the replica is written to", async || {
        let Ok(loaded) = store.load(&key()).await else {
            return false;
        };
        let swapped = swap(&store, loaded.expected(), b"next").await;
        loaded.identity != before.identity && matches!(swapped, Ok(Swap::Swapped))
    })
    .await;
    assert_eq!(watcher.master().await, Some(replica.port()));
    let next = replica
        .send_ok(&["HGET", "anteroom:{shop}:world", "value"])
        .await;
    assert_eq!(next.text(), "next");
}

/// A master that was cut off from its sentinels does not know that it was replaced. Here the
/// sentinel is reconfigured to watch another one.
#[tokio::test]
async fn a_master_that_was_replaced_without_notice_is_left() {
    let old = RedisServer::start().await;
    let new = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &old).await;
    let store = store(&sentinel(watcher.port(), "world"));
    let before = write(&store, b"value").await.unwrap();
    watcher.send_command(&["SENTINEL", "REMOVE", "world"]).await;
    let port = new.port().to_string();
    watcher
        .send_command(&["SENTINEL", "MONITOR", "world", "127.0.0.1", &port, "1"])
        .await;
    eventually("the new master is used", async || {
        let loaded = store.load(&key()).await;
        loaded.is_ok_and(|loaded| loaded.identity != before.identity)
    })
    .await;
    write(&store, b"value").await.unwrap();
    assert_eq!(new.send_ok(&["DBSIZE"]).await.text(), "1");
}
