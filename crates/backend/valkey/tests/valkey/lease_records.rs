//! Lease records on real servers.

mod drive;
mod edges;
mod steps;

use anteroom_config::ValkeyAddress;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::conformance::lease_store;
use anteroom_limit_store::lease_store::{
    LeaseKey, LeaseRecords, Loaded, Partition, Swapped, Token, Write,
};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{RedisCluster, RedisSentinel, RedisServer, Reply};
use anteroom_valkey::ValkeyLeases;

use crate::support::{cluster, sentinel, single};

const PARTITION: Partition = Partition(0);
const CLIENT: LeaseKey<'_> = LeaseKey {
    limit: "api",
    key: ClientKey(1),
};
/// Key of that client's record at the server.
const NAME: &str = "anteroom:{lent~0}:api:00000000000000000000000000000001";

fn records(address: &ValkeyAddress) -> ValkeyLeases {
    ValkeyLeases::new(address, "anteroom").unwrap()
}

async fn swap(store: &ValkeyLeases, read: &Loaded, token: u128) -> Swapped {
    let write = Write {
        expected: read.expected(),
        token: Token(token),
        value: b"value",
    };
    let kept_for = DurationUs::from_secs(5);
    store
        .swap(PARTITION, CLIENT, write, kept_for)
        .await
        .unwrap()
}

async fn load(store: &ValkeyLeases) -> Loaded {
    store.load(PARTITION, Some(CLIENT)).await.unwrap()
}

#[tokio::test]
async fn a_server_that_grants_only_the_required_rights_keeps_lease_records() {
    let server = RedisServer::start().await;
    let user = "ACL SETUSER anteroom on >secret ~anteroom:* +evalsha +eval +info +time +get \
                +getrange +set";
    server.send_ok(&user.split(' ').collect::<Vec<_>>()).await;
    let mut address = single(server.port());
    address.username = Some("anteroom".to_owned());
    address.password = Some("secret".to_owned());
    lease_store::check(&records(&address)).await.unwrap();
}

#[tokio::test]
async fn a_master_with_sentinels_keeps_lease_records() {
    let master = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &master).await;
    let store = records(&sentinel(watcher.port(), "world"));
    lease_store::check(&store).await.unwrap();
}

#[tokio::test]
async fn a_cluster_keeps_lease_records_on_partitions_at_all_servers() {
    let servers = RedisCluster::start().await;
    let store = records(&cluster(servers.servers()[0].port()));
    lease_store::check(&store).await.unwrap();
    for partition in 1..store.partitions() - 1 {
        let read = store.load(Partition(partition), None).await.unwrap();
        let write = Write {
            expected: read.expected(),
            token: Token(1),
            value: b"epoch",
        };
        let written = store.swap_epoch(Partition(partition), write).await.unwrap();
        assert_eq!(written, Swapped::Written);
    }
    for server in servers.servers() {
        let Reply::Int(keys) = server.send_ok(&["DBSIZE"]).await else {
            panic!("no number of keys");
        };
        // About a third of them each.
        assert!(keys > 10, "{keys} at {}", server.port());
    }
}

/// A version counter would have reached the same number again.
#[tokio::test]
async fn a_record_deleted_and_created_again_is_another_one() {
    let server = RedisServer::start().await;
    let store = records(&single(server.port()));
    assert_eq!(swap(&store, &load(&store).await, 1).await, Swapped::Written);
    let late = load(&store).await;
    server.send_ok(&["DEL", NAME]).await;
    assert_eq!(swap(&store, &load(&store).await, 2).await, Swapped::Written);
    let swapped = swap(&store, &late, 3).await;
    assert_eq!(
        swapped,
        Swapped::Conflict(with_time_of(&swapped, load(&store).await))
    );
    assert_eq!(load(&store).await.client.unwrap().token, Token(2));
}

/// Sets the time of `loaded` to that of the conflict: two replies differ in it only.
fn with_time_of(swapped: &Swapped, loaded: Loaded) -> Loaded {
    match swapped {
        Swapped::Conflict(current) => Loaded {
            now: current.now,
            ..loaded
        },
        _ => loaded,
    }
}

#[tokio::test]
async fn a_write_based_on_a_read_before_a_flush_is_rejected() {
    let server = RedisServer::start().await;
    let store = records(&single(server.port()));
    let read = store.load(PARTITION, None).await.unwrap();
    let write = Write {
        expected: read.expected(),
        token: Token(7),
        value: b"epoch",
    };
    store.swap_epoch(PARTITION, write).await.unwrap();
    // Without requests, the client's record is missing before and after.
    let read = load(&store).await;
    server.send_ok(&["FLUSHALL"]).await;
    assert!(matches!(swap(&store, &read, 8).await, Swapped::Conflict(_)));
    assert_eq!(load(&store).await.client, None);
}

#[tokio::test]
async fn a_restarted_server_rejects_writes_based_on_earlier_reads() {
    let mut server = RedisServer::start().await;
    let store = records(&single(server.port()));
    let read = load(&store).await;
    server.restart().await;
    eventually("the store replies", async || {
        store.load(PARTITION, None).await.is_ok()
    })
    .await;
    assert_eq!(swap(&store, &read, 1).await, Swapped::OtherStore);
}

#[tokio::test]
async fn load_and_swap_of_lease_records_cost_one_round_trip_each() {
    let server = RedisServer::start().await;
    let store = records(&single(server.port()));
    swap(&store, &load(&store).await, 1).await;
    let Reply::Int(5_000..=6_000) = server.send_ok(&["PTTL", NAME]).await else {
        panic!("the expiry differs");
    };
    server.send_ok(&["CONFIG", "RESETSTAT"]).await;
    let read = load(&store).await;
    assert_eq!(swap(&store, &read, 2).await, Swapped::Written);
    let stats = server.info("commandstats").await;
    let called = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"));
    assert!(called.unwrap().contains("calls=2,"), "{stats}");
}
