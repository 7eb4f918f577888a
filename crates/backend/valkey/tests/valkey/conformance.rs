//! Conformance to the rules of all stores, on every topology.

use std::collections::BTreeSet;
use std::sync::Arc;

use anteroom_room::time::DurationMs;
use anteroom_store::{
    Expected, LeftChanges, LeftId, LeftRequest, Note, RecordKey, RecordVersion, Store, StoreError,
    Swap, conformance,
};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{
    Behaviour, Impostor, RedisCluster, RedisSentinel, RedisServer, Reply,
};

use anteroom_valkey::Valkey;

use crate::support::{cluster, counter, here, key, sentinel, single, store, swap, write};

#[tokio::test]
async fn one_server_is_a_store() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    conformance::check(&store).await.unwrap();
    conformance::check_left_requests(&store).await.unwrap();
    conformance::check_history(&store).await.unwrap();
    conformance::check_ends(&store, |by| pass(&store, by))
        .await
        .unwrap();
}

/// Waits until the clock of a store is this much later.
async fn pass(store: &Valkey, by: DurationMs) {
    let until = store.load(&key()).await.unwrap().now + by;
    eventually("the time passes", async || {
        store.load(&key()).await.unwrap().now >= until
    })
    .await;
}

#[tokio::test]
async fn notes_end_after_15_seconds_and_cost_no_further_round_trip() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    let (key, notes) = (key(), "anteroom:{shop}:world~notes");
    let known = write(&store, b"value").await.unwrap();
    let note = Note {
        name: "node".to_owned(),
        value: b"note".to_vec(),
    };
    // Scripts are known to the server after the first call.
    store.load_changed(&key, known, Some(&note)).await.unwrap();
    let now = store.load(&key).await.unwrap().now.0;
    for (name, left_at) in [("ended", now - 15_001), ("late", now - 10_000)] {
        let value = format!("{left_at} other");
        server.send_ok(&["HSET", notes, name, &value]).await;
    }
    let mut names: Vec<String> = store
        .notes(&key)
        .await
        .unwrap()
        .into_iter()
        .map(|n| n.name)
        .collect();
    names.sort();
    assert_eq!(names, ["late", "node"]);
    server.send_ok(&["CONFIG", "RESETSTAT"]).await;
    store.load_changed(&key, known, Some(&note)).await.unwrap();
    let stats = server.info("commandstats").await;
    let called = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"));
    assert!(called.unwrap().contains("calls=1,"), "{stats}");
    assert_eq!(
        server.send_ok(&["HLEN", notes]).await,
        Reply::Int(2),
        "the ended one is gone"
    );
    let Reply::Int(ms) = server.send_ok(&["PTTL", notes]).await else {
        panic!("no number");
    };
    assert!((10_000..=15_000).contains(&ms), "{ms}");
}

#[tokio::test]
async fn a_server_that_grants_only_the_required_rights_is_a_store() {
    let server = RedisServer::start().await;
    let user = "ACL SETUSER anteroom on >secret ~anteroom:* +evalsha +eval +info +time +hget \
                +hmget +hgetall +hdel \
                +hset +incr +pexpire +persist +select";
    server.send_ok(&user.split(' ').collect::<Vec<_>>()).await;
    server
        .send_ok(&["CONFIG", "SET", "requirepass", "other"])
        .await;
    let mut address = single(server.port());
    address.username = Some("anteroom".to_owned());
    address.password = Some("secret".to_owned());
    address.database = 3;
    let store = store(&address);
    conformance::check(&store).await.unwrap();
    conformance::check_left_requests(&store).await.unwrap();
    conformance::check_history(&store).await.unwrap();
    conformance::check_ends(&store, |by| pass(&store, by))
        .await
        .unwrap();
    let found = store.check().await.unwrap();
    assert_eq!(found.warnings().count(), 0, "{found}");
}

#[tokio::test]
async fn a_master_that_sentinels_watch_is_a_store() {
    let master = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &master).await;
    let mut address = sentinel(watcher.port(), "world");
    conformance::check(&store(&address)).await.unwrap();
    // One unavailable sentinel does no harm.
    if let anteroom_config::Topology::Sentinel { sentinels, .. } = &mut address.topology {
        sentinels.insert(0, here(1));
    }
    store(&address).load(&key()).await.unwrap();
}

#[tokio::test]
async fn a_cluster_is_a_store() {
    let servers = RedisCluster::start().await;
    let store = store(&cluster(servers.servers()[0].port()));
    conformance::check(&store).await.unwrap();
    conformance::check_left_requests(&store).await.unwrap();
    conformance::check_history(&store).await.unwrap();
    // Enough rooms for every server to have some.
    for room in 0..40 {
        let key = RecordKey(format!("room-{room}/world"));
        let absent = store.load(&key).await.unwrap().expected();
        store
            .compare_and_swap(&key, absent, Vec::new())
            .await
            .unwrap();
    }
    for server in servers.servers() {
        let Reply::Int(keys) = server.send_ok(&["DBSIZE"]).await else {
            panic!("no number of keys");
        };
        assert!(keys > 0, "no room is at {}", server.port());
    }
    let found = store.check().await.unwrap();
    assert_eq!(found.servers.len(), 3, "{found}");
}

#[tokio::test]
async fn load_and_swap_cost_one_round_trip_each_over_one_connection() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    write(&store, b"first").await.unwrap();
    server.send_ok(&["CONFIG", "RESETSTAT"]).await;
    let before = store.load(&key()).await.unwrap().expected();
    for _ in 0..98 {
        store.load(&key()).await.unwrap();
    }
    swap(&store, before, b"second").await.unwrap();
    let stats = server.info("commandstats").await;
    let called = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"));
    assert!(called.unwrap().contains("calls=100,"), "{stats}");
    assert!(!stats.contains("cmdstat_eval:"), "{stats}");
    let clients = server.info("clients").await;
    // The store, and this test.
    assert!(clients.contains("connected_clients:2"), "{clients}");
}

#[tokio::test]
async fn records_are_kept_and_counters_expire() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    write(&store, b"value").await.unwrap();
    store.take_number(&counter()).await.unwrap();
    let ttl = async |key: &str| server.send_ok(&["PTTL", key]).await;
    assert_eq!(ttl("anteroom:{shop}:world").await, Reply::Int(-1));
    let Reply::Int(ms) = ttl("anteroom:{shop}#anywhere:28000000").await else {
        panic!("no number");
    };
    assert!((200_000..=300_000).contains(&ms), "{ms}");
}

#[tokio::test]
async fn left_requests_expire_and_cost_no_further_round_trip() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    let expected = write(&store, b"value").await.unwrap();
    let request = LeftRequest {
        id: LeftId(b"1".to_vec()),
        value: b"request".to_vec(),
    };
    let key = key();
    // Scripts are known to the server after the first call.
    store.load_and_leave(&key, None).await.unwrap();
    let late = Expected {
        version: RecordVersion(77),
        ..expected
    };
    let lost = store.swap_and_remove(&key, late, Vec::new(), LeftChanges::default());
    assert!(matches!(lost.await.unwrap(), Swap::Conflict(_)));
    server.send_ok(&["CONFIG", "RESETSTAT"]).await;
    let loaded = store.load_and_leave(&key, Some(request.clone())).await;
    assert_eq!(loaded.unwrap().left, std::slice::from_ref(&request));
    let Reply::Int(ms) = server
        .send_ok(&["PTTL", "anteroom:{shop}:world~left"])
        .await
    else {
        panic!("no number");
    };
    assert!((5_000..=10_000).contains(&ms), "{ms}");
    let changes = LeftChanges {
        applied: vec![request.id],
        leave: None,
    };
    let swap = store.swap_and_remove(&key, expected, b"next".to_vec(), changes);
    assert_eq!(swap.await.unwrap(), Swap::Swapped);
    let exists = server
        .send_ok(&["EXISTS", "anteroom:{shop}:world~left"])
        .await;
    assert_eq!(exists, Reply::Int(0), "nothing stays behind");
    let stats = server.info("commandstats").await;
    let called = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"));
    assert!(called.unwrap().contains("calls=2,"), "{stats}");
    assert!(!stats.contains("cmdstat_eval:"), "{stats}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_take_numbers_at_once_never_get_the_same() {
    let server = RedisServer::start().await;
    let shared = Arc::new(store(&single(server.port())));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let store = Arc::clone(&shared);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                for _ in 0..250 {
                    taken.push(store.take_number(&counter()).await.unwrap());
                }
                taken
            })
        })
        .collect();
    let mut seen = BTreeSet::new();
    for task in tasks {
        for number in task.await.unwrap() {
            assert!(seen.insert(number), "{number} twice");
        }
    }
    assert!(seen.into_iter().eq(0..1_000));
}

#[tokio::test]
async fn no_connection_is_opened_before_the_first_request() {
    let listener = Impostor::start(Behaviour::HangsUp).await;
    let store = store(&single(listener.port()));
    assert_eq!(listener.connections(), 0);
    store.load(&key()).await.unwrap_err();
    eventually("the request arrives", async || listener.connections() == 1).await;
}

#[tokio::test]
async fn a_closed_store_closes_connections_and_returns_closed_errors() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    let expected = write(&store, b"value").await.unwrap();
    store.close().await;
    eventually("its connection ends", async || {
        server.info("clients").await.contains("connected_clients:1")
    })
    .await;
    let errors = [
        store.load(&key()).await.unwrap_err(),
        swap(&store, expected, b"").await.unwrap_err(),
        store.take_number(&counter()).await.unwrap_err(),
        store.check().await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::Closed), "{error}");
    }
    store.close().await;
}
