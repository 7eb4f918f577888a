//! Records from which calls are lent, on real servers.

mod drive;
mod edges;
mod steps;

use anteroom_config::ValkeyAddress;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::conformance::lent;
use anteroom_limit_store::lent::{LeaseKey, LeaseRecords, Loaded, Shelf, Swapped, Token, Write};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{RedisCluster, RedisSentinel, RedisServer, Reply};
use anteroom_valkey::ValkeyLeases;

use crate::support::{cluster, sentinel, single};

const SHELF: Shelf = Shelf(0);
const CLIENT: LeaseKey<'_> = LeaseKey {
    limit: "api",
    key: CallKey(1),
};
/// What that client's record is called at the server.
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
    store.swap(SHELF, CLIENT, write, kept_for).await.unwrap()
}

async fn load(store: &ValkeyLeases) -> Loaded {
    store.load(SHELF, Some(CLIENT)).await.unwrap()
}

#[tokio::test]
async fn a_server_that_allows_only_what_we_need_keeps_lending_records() {
    let server = RedisServer::start().await;
    let user = "ACL SETUSER anteroom on >secret ~anteroom:* +evalsha +eval +info +time +get \
                +getrange +set";
    server.tell(&user.split(' ').collect::<Vec<_>>()).await;
    let mut address = single(server.port());
    address.username = Some("anteroom".to_owned());
    address.password = Some("secret".to_owned());
    lent::check(&records(&address)).await.unwrap();
}

#[tokio::test]
async fn a_master_that_sentinels_watch_keeps_records_to_lend_from() {
    let master = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &master).await;
    let store = records(&sentinel(watcher.port(), "world"));
    lent::check(&store).await.unwrap();
}

#[tokio::test]
async fn a_cluster_keeps_records_to_lend_from_on_shelves_at_all_servers() {
    let servers = RedisCluster::start().await;
    let store = records(&cluster(servers.servers()[0].port()));
    lent::check(&store).await.unwrap();
    for shelf in 1..store.shelves() - 1 {
        let read = store.load(Shelf(shelf), None).await.unwrap();
        let write = Write {
            expected: read.expected(),
            token: Token(1),
            value: b"epoch",
        };
        let written = store.swap_epoch(Shelf(shelf), write).await.unwrap();
        assert_eq!(written, Swapped::Written);
    }
    for server in servers.servers() {
        let Reply::Int(keys) = server.tell(&["DBSIZE"]).await else {
            panic!("no number of keys");
        };
        // A third of them each, about.
        assert!(keys > 10, "{keys} at {}", server.port());
    }
}

/// A version that counts up would have come to the same number again.
#[tokio::test]
async fn a_record_deleted_and_created_again_is_another_one() {
    let server = RedisServer::start().await;
    let store = records(&single(server.port()));
    assert_eq!(swap(&store, &load(&store).await, 1).await, Swapped::Written);
    let late = load(&store).await;
    server.tell(&["DEL", NAME]).await;
    assert_eq!(swap(&store, &load(&store).await, 2).await, Swapped::Written);
    let swapped = swap(&store, &late, 3).await;
    assert_eq!(
        swapped,
        Swapped::Conflict(at_the_same_time(&swapped, load(&store).await))
    );
    assert_eq!(load(&store).await.client.unwrap().token, Token(2));
}

/// Two answers differ in their time alone.
fn at_the_same_time(swapped: &Swapped, loaded: Loaded) -> Loaded {
    match swapped {
        Swapped::Conflict(brought) => Loaded {
            now: brought.now,
            ..loaded
        },
        _ => loaded,
    }
}

#[tokio::test]
async fn what_was_read_before_all_was_flushed_is_written_no_more() {
    let server = RedisServer::start().await;
    let store = records(&single(server.port()));
    let read = store.load(SHELF, None).await.unwrap();
    let write = Write {
        expected: read.expected(),
        token: Token(7),
        value: b"epoch",
    };
    store.swap_epoch(SHELF, write).await.unwrap();
    // Nobody has called, so the client's record is as absent before as after.
    let read = load(&store).await;
    server.tell(&["FLUSHALL"]).await;
    assert!(matches!(swap(&store, &read, 8).await, Swapped::Conflict(_)));
    assert_eq!(load(&store).await.client, None);
}

#[tokio::test]
async fn a_restarted_server_takes_no_write_based_on_its_former_state() {
    let mut server = RedisServer::start().await;
    let store = records(&single(server.port()));
    let read = load(&store).await;
    server.restart().await;
    eventually("the store answers", async || {
        store.load(SHELF, None).await.is_ok()
    })
    .await;
    assert_eq!(swap(&store, &read, 1).await, Swapped::OtherStore);
}

#[tokio::test]
async fn load_and_swap_of_kept_records_cost_one_round_trip_each() {
    let server = RedisServer::start().await;
    let store = records(&single(server.port()));
    swap(&store, &load(&store).await, 1).await;
    let Reply::Int(5_000..=6_000) = server.tell(&["PTTL", NAME]).await else {
        panic!("it is kept for another time");
    };
    server.tell(&["CONFIG", "RESETSTAT"]).await;
    let read = load(&store).await;
    assert_eq!(swap(&store, &read, 2).await, Swapped::Written);
    let stats = server.info("commandstats").await;
    let called = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"));
    assert!(called.unwrap().contains("calls=2,"), "{stats}");
}
