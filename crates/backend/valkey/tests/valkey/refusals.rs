//! Each way in which a server can be of no use, and what is said then.

use std::fs;

use anteroom_config::ValkeyAddress;
use anteroom_store::{Store, StoreError};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{Impostor, Manner, RedisCluster, RedisSentinel, RedisServer};
use anteroom_valkey::Warning;

use crate::support::{
    check_refused, check_unavailable, cluster, counter, key, sentinel, single, store, told, write,
};

/// An address with name and password.
fn with_password(port: u16, username: Option<&str>, password: &str) -> ValkeyAddress {
    let mut address = single(port);
    address.username = username.map(str::to_owned);
    address.password = Some(password.to_owned());
    address
}

/// What the check at the start says about a store that is of no use, and that calls say the same.
async fn refused(address: &ValkeyAddress) -> StoreError {
    let store = store(address);
    let at_start = store.check().await.unwrap_err();
    let later = store.load(&key()).await.unwrap_err();
    assert_eq!(at_start.to_string(), later.to_string());
    at_start
}

/// What a call says to a store that can be reached.
async fn write_refused(address: &ValkeyAddress) -> StoreError {
    write(&store(address), b"value").await.unwrap_err()
}

#[tokio::test]
async fn a_wrong_password_is_told_without_repeating_it() {
    let server = RedisServer::start_with(&["--requirepass", "correct"]).await;
    let wrong = with_password(server.port(), None, "opensesame");
    let error = refused(&wrong).await;
    check_refused(
        &error,
        "refuses the username or the password",
        "check username and password",
    );
    let unknown = refused(&with_password(server.port(), Some("nobody"), "opensesame")).await;
    check_refused(&unknown, "refuses the username", "in [store]");
    for text in [
        told(&error),
        told(&unknown),
        format!("{error:?} {unknown:?}"),
        format!("{:?}", store(&wrong)),
    ] {
        assert!(!text.contains("opensesame"), "{text}");
        assert!(text.contains(&server.port().to_string()), "{text}");
    }
}

#[tokio::test]
async fn a_password_that_is_missing_or_too_many_is_told() {
    let closed = RedisServer::start_with(&["--requirepass", "correct"]).await;
    let error = refused(&single(closed.port())).await;
    check_refused(&error, "wants a password", "set password");
    let open = RedisServer::start().await;
    let error = refused(&with_password(open.port(), None, "correct")).await;
    check_refused(&error, "has no password", "remove password");
}

#[tokio::test]
async fn rights_that_are_missing_are_told() {
    let check = async |rights: &str| {
        let server = RedisServer::start().await;
        let mut user = vec!["ACL", "SETUSER", "anteroom", "on", ">secret"];
        user.extend(rights.split(' '));
        server.tell(&user).await;
        let address = with_password(server.port(), Some("anteroom"), "secret");
        let error = write_refused(&address).await;
        check_refused(
            &error,
            "does not let this user do what is needed",
            "evalsha",
        );
    };
    check("~anteroom:* +info").await;
    check("~anteroom:* +@all -info").await;
    check("~anteroom:* +@all -hset").await;
    check("~other:* +@all").await;
}

#[tokio::test]
async fn a_server_that_is_no_redis_is_told() {
    let http = Impostor::start(Manner::AnswersHttp).await;
    let error = refused(&single(http.port())).await;
    check_refused(
        &error,
        "does not answer as Valkey and Redis do",
        "check host and port",
    );
    let error = refused(&cluster(http.port())).await;
    check_refused(
        &error,
        "does not answer as Valkey and Redis do",
        "check host and port",
    );
    let error = refused(&sentinel(http.port(), "world")).await;
    check_refused(
        &error,
        "does not answer as Valkey and Redis do",
        "check host and port",
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    // Nobody listens at the second port.
    let server = RedisServer::start().await;
    let error = store(&single(server.second_port()))
        .check()
        .await
        .unwrap_err();
    check_unavailable(&error, "cannot reach redis://127.0.0.1:");
    check_unavailable(&error, "refused");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_told() {
    let old = Impostor::start(Manner::Answers("$22\r\nredis_version:5.0.14\r\n\r\n")).await;
    let error = refused(&single(old.port())).await;
    check_refused(&error, "is too old", "Redis 6.2");
    check_refused(&error, "Redis 5.0.14", "");
}

#[tokio::test]
async fn a_replica_is_told() {
    let master = RedisServer::start().await;
    let replica = RedisServer::start_replica_of(&master).await;
    let address = single(replica.port());
    let error = store(&address).check().await.unwrap_err();
    check_refused(&error, "is a read-only replica", "address of the master");
    let error = write_refused(&address).await;
    check_refused(&error, "is a read-only replica", "address of the master");
}

#[tokio::test]
async fn a_cluster_that_is_addressed_as_one_server_is_told() {
    let servers = RedisCluster::start().await;
    let (owner, _) = servers.owner_of("{shop}").await;
    let other = &servers.servers()[(owner + 1) % 3];
    let error = write_refused(&single(other.port())).await;
    check_refused(&error, "is one server of a cluster", "redis+cluster://");
    let mut address = single(other.port());
    address.database = 1;
    let error = refused(&address).await;
    check_refused(&error, "is one server of a cluster", "redis+cluster://");
}

#[tokio::test]
async fn a_server_addressed_as_a_cluster_or_a_sentinel_is_reported() {
    let server = RedisServer::start().await;
    let error = refused(&cluster(server.port())).await;
    check_refused(&error, "is no cluster", "as redis://");
    let error = refused(&sentinel(server.port(), "world")).await;
    check_refused(&error, "is no sentinel", "check the ports");
}

#[tokio::test]
async fn a_sentinel_addressed_as_a_server_or_wrong_service_is_reported() {
    let master = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &master).await;
    let error = refused(&single(watcher.port())).await;
    check_refused(&error, "is a sentinel", "redis+sentinel://");
    let error = refused(&sentinel(watcher.port(), "shop")).await;
    check_refused(
        &error,
        "watches no service of that name",
        "name of the service",
    );
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told() {
    let server = RedisServer::start().await;
    let mut address = single(server.port());
    address.database = 99;
    let error = refused(&address).await;
    check_refused(
        &error,
        "has no database of that number",
        "end of the address",
    );
}

#[tokio::test]
async fn a_full_server_is_told() {
    let server = RedisServer::start_with(&["--maxmemory", "1"]).await;
    let error = write_refused(&single(server.port())).await;
    check_refused(&error, "is out of memory", "maxmemory");
    let error = store(&single(server.port()))
        .take_number(&counter())
        .await
        .unwrap_err();
    check_refused(&error, "is out of memory", "maxmemory");
}

#[tokio::test]
async fn a_server_with_too_many_clients_is_told() {
    let server = RedisServer::start_with(&["--maxclients", "1"]).await;
    let first = store(&single(server.port()));
    eventually("the store is the only client", async || {
        first.load(&key()).await.is_ok()
    })
    .await;
    let second = store(&single(server.port()));
    let error = second.load(&key()).await.unwrap_err();
    check_unavailable(&error, "max number of clients reached");
}

#[tokio::test]
async fn a_server_that_cannot_save_is_told() {
    let server = RedisServer::start_with(&["--save", "3600 1"]).await;
    server.tell(&["SET", "key", "value"]).await;
    fs::remove_dir_all(server.folder()).unwrap();
    eventually("saving fails", async || {
        server.ask(&["BGSAVE"]).await;
        server
            .info("persistence")
            .await
            .contains("rdb_last_bgsave_status:err")
    })
    .await;
    let error = write_refused(&single(server.port())).await;
    check_refused(&error, "cannot save to its disk", "repair its disk");
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_waited_for() {
    let arguments = [
        "--key-load-delay",
        "50000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let mut server = RedisServer::start_with(&arguments).await;
    let long = "x".repeat(2_000);
    for number in 0..40 {
        server.tell(&["SET", &format!("key-{number}"), &long]).await;
    }
    server
        .tell(&["CONFIG", "SET", "rdbcompression", "no"])
        .await;
    server.tell(&["SAVE"]).await;
    server.restart().await;
    let store = store(&single(server.port()));
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(&error, "once its data are loaded");
    eventually("the data are loaded", async || {
        store.load(&key()).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn keys_that_hold_something_else_are_told() {
    let server = RedisServer::start().await;
    server.tell(&["SET", "anteroom:{shop}:world", "mine"]).await;
    let error = write_refused(&single(server.port())).await;
    check_refused(
        &error,
        "holds something else under our keys",
        "another prefix",
    );
    server.tell(&["DEL", "anteroom:{shop}:world"]).await;
    server
        .tell(&["HSET", "anteroom:{shop}:world", "value", "mine"])
        .await;
    let error = write_refused(&single(server.port())).await;
    check_refused(&error, "does not answer as Valkey and Redis do", "");
}

#[tokio::test]
async fn a_server_that_throws_keys_away_is_warned_of() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]).await;
    let found = store(&single(server.port())).check().await.unwrap();
    let warnings: Vec<_> = found
        .warnings()
        .map(|(_, warning)| warning.clone())
        .collect();
    let policy = "allkeys-lru".to_owned();
    assert_eq!(
        warnings,
        [Warning::Evicts {
            policy,
            memory_max: 0
        }]
    );
    assert!(
        found.to_string().contains("set it to noeviction"),
        "{found}"
    );
}
