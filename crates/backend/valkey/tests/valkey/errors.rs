//! Unusable servers, and their error messages.

use std::fs;

use anteroom_config::ValkeyAddress;
use anteroom_store::{Durability, Store, StoreError};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{
    Behaviour, Impostor, RedisCluster, RedisSentinel, RedisServer,
};
use anteroom_valkey::Warning;

use crate::support::{
    check_rejected, check_unavailable, cluster, counter, full_text, key, load_when_available,
    sentinel, single, store, write,
};

/// Returns an address with name and password.
fn with_password(port: u16, username: Option<&str>, password: &str) -> ValkeyAddress {
    let mut address = single(port);
    address.username = username.map(str::to_owned);
    address.password = Some(password.to_owned());
    address
}

/// Returns the error of the check at the start, after comparing it with that of a request.
async fn check_error(address: &ValkeyAddress) -> StoreError {
    let store = store(address);
    let at_start = store.check().await.unwrap_err();
    let later = store.load(&key()).await.unwrap_err();
    assert_eq!(at_start.to_string(), later.to_string());
    at_start
}

/// Returns the error of a write to a store that passes the check.
async fn write_error(address: &ValkeyAddress) -> StoreError {
    write(&store(address), b"value").await.unwrap_err()
}

#[tokio::test]
async fn a_wrong_password_is_reported_without_repeating_it() {
    let server = RedisServer::start_with(&["--requirepass", "correct"]).await;
    let wrong = with_password(server.port(), None, "opensesame");
    let error = check_error(&wrong).await;
    check_rejected(
        &error,
        "rejects the username or the password",
        "check username and password",
    );
    let unknown = check_error(&with_password(server.port(), Some("nobody"), "opensesame")).await;
    check_rejected(&unknown, "rejects the username", "in [store]");
    for text in [
        full_text(&error),
        full_text(&unknown),
        format!("{error:?} {unknown:?}"),
        format!("{:?}", store(&wrong)),
    ] {
        assert!(!text.contains("opensesame"), "{text}");
        assert!(text.contains(&server.port().to_string()), "{text}");
    }
}

#[tokio::test]
async fn a_missing_or_superfluous_password_is_reported() {
    let closed = RedisServer::start_with(&["--requirepass", "correct"]).await;
    let error = check_error(&single(closed.port())).await;
    check_rejected(&error, "requires a password", "set password");
    let open = RedisServer::start().await;
    let error = check_error(&with_password(open.port(), None, "correct")).await;
    check_rejected(&error, "has no password", "remove password");
}

#[tokio::test]
async fn missing_rights_are_reported() {
    let check = async |rights: &str| {
        let server = RedisServer::start().await;
        let mut user = vec!["ACL", "SETUSER", "anteroom", "on", ">secret"];
        user.extend(rights.split(' '));
        server.send_ok(&user).await;
        let address = with_password(server.port(), Some("anteroom"), "secret");
        let error = write_error(&address).await;
        check_rejected(
            &error,
            "does not grant this user the required rights",
            "EVALSHA",
        );
    };
    check("~anteroom:* +info").await;
    check("~anteroom:* +@all -info").await;
    check("~anteroom:* +@all -hset").await;
    check("~other:* +@all").await;
}

#[tokio::test]
async fn a_server_of_another_protocol_is_reported() {
    let http = Impostor::start(Behaviour::AnswersHttp).await;
    let error = check_error(&single(http.port())).await;
    check_rejected(
        &error,
        "does not reply as Valkey and Redis do",
        "check host and port",
    );
    let error = check_error(&cluster(http.port())).await;
    check_rejected(
        &error,
        "does not reply as Valkey and Redis do",
        "check host and port",
    );
    let error = check_error(&sentinel(http.port(), "world")).await;
    check_rejected(
        &error,
        "does not reply as Valkey and Redis do",
        "check host and port",
    );
}

#[tokio::test]
async fn an_unavailable_server_is_reported() {
    // No process listens at the second port.
    let server = RedisServer::start().await;
    let error = store(&single(server.second_port()))
        .check()
        .await
        .unwrap_err();
    check_unavailable(&error, "cannot reach redis://127.0.0.1:");
    check_unavailable(&error, "refused");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_reported() {
    let old = Impostor::start(Behaviour::Answers("$22\r\nredis_version:5.0.14\r\n\r\n")).await;
    let error = check_error(&single(old.port())).await;
    check_rejected(&error, "is too old", "Redis 6.2");
    check_rejected(&error, "Redis 5.0.14", "");
}

#[tokio::test]
async fn a_replica_is_reported() {
    let master = RedisServer::start().await;
    let replica = RedisServer::start_replica_of(&master).await;
    let address = single(replica.port());
    let error = store(&address).check().await.unwrap_err();
    check_rejected(&error, "is a read-only replica", "address of the master");
    let error = write_error(&address).await;
    check_rejected(&error, "is a read-only replica", "address of the master");
}

#[tokio::test]
async fn a_cluster_addressed_as_one_server_is_reported() {
    let servers = RedisCluster::start().await;
    let (owner, _) = servers.owner_of("{shop}").await;
    let other = &servers.servers()[(owner + 1) % 3];
    let error = write_error(&single(other.port())).await;
    check_rejected(&error, "is one server of a cluster", "redis+cluster://");
    let mut address = single(other.port());
    address.database = 1;
    let error = check_error(&address).await;
    check_rejected(&error, "is one server of a cluster", "redis+cluster://");
}

#[tokio::test]
async fn a_server_addressed_as_a_cluster_or_a_sentinel_is_reported() {
    let server = RedisServer::start().await;
    let error = check_error(&cluster(server.port())).await;
    check_rejected(&error, "is no cluster", "as redis://");
    let error = check_error(&sentinel(server.port(), "world")).await;
    check_rejected(&error, "is no sentinel", "check the ports");
}

#[tokio::test]
async fn a_sentinel_addressed_as_a_server_or_wrong_service_is_reported() {
    let master = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &master).await;
    let error = check_error(&single(watcher.port())).await;
    check_rejected(&error, "is a sentinel", "redis+sentinel://");
    let error = check_error(&sentinel(watcher.port(), "shop")).await;
    check_rejected(
        &error,
        "knows no service of that name",
        "name of the service",
    );
}

#[tokio::test]
async fn a_missing_database_is_reported() {
    let server = RedisServer::start().await;
    let mut address = single(server.port());
    address.database = 99;
    let error = check_error(&address).await;
    check_rejected(
        &error,
        "has no database of that number",
        "end of the address",
    );
}

#[tokio::test]
async fn a_full_server_is_reported() {
    let server = RedisServer::start_with(&["--maxmemory", "1"]).await;
    let error = write_error(&single(server.port())).await;
    check_rejected(&error, "is out of memory", "maxmemory");
    let error = store(&single(server.port()))
        .take_number(&counter())
        .await
        .unwrap_err();
    check_rejected(&error, "is out of memory", "maxmemory");
}

#[tokio::test]
async fn a_server_with_too_many_clients_is_reported() {
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
async fn a_server_that_cannot_save_is_reported() {
    let server = RedisServer::start_with(&["--save", "3600 1"]).await;
    server.send_ok(&["SET", "key", "value"]).await;
    fs::remove_dir_all(server.folder()).unwrap();
    eventually("saving fails", async || {
        server.send(&["BGSAVE"]).await;
        server
            .info("persistence")
            .await
            .contains("rdb_last_bgsave_status:err")
    })
    .await;
    let error = write_error(&single(server.port())).await;
    check_rejected(&error, "cannot save to its disk", "repair its disk");
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_a_transient_error() {
    let arguments = [
        "--key-load-delay",
        "50000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let mut server = RedisServer::start_with(&arguments).await;
    let long = "x".repeat(2_000);
    for number in 0..40 {
        server
            .send_ok(&["SET", &format!("key-{number}"), &long])
            .await;
    }
    server
        .send_ok(&["CONFIG", "SET", "rdbcompression", "no"])
        .await;
    server.send_ok(&["SAVE"]).await;
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
async fn the_settings_of_a_server_that_loads_its_log_are_read_afterwards() {
    let arguments = [
        "--appendonly",
        "yes",
        "--rdbcompression",
        "no",
        "--key-load-delay",
        "50000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let mut server = RedisServer::start_with(&arguments).await;
    for number in 0..40 {
        let name = format!("key-{number}");
        server.send_ok(&["SET", &name, &"x".repeat(2_000)]).await;
    }
    // Of a log without a snapshot at its begin, it loads 1,024 commands before it answers.
    server.send(&["BGREWRITEAOF"]).await;
    eventually("the log is rewritten", async || {
        let info = server.info("persistence").await;
        let is_done = ["aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"];
        is_done.iter().all(|line| info.contains(line))
    })
    .await;
    let promise = store(&single(server.port())).load(&key()).await.unwrap();
    let promise = promise.durability;
    assert!(matches!(promise, Durability::LosesAtMost(_)), "{promise:?}");
    server.restart().await;
    let store = store(&single(server.port()));
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(&error, "once its data are loaded");
    assert_eq!(load_when_available(&store).await.durability, promise);
}

#[tokio::test]
async fn values_of_another_program_are_reported() {
    let server = RedisServer::start().await;
    server
        .send_ok(&["SET", "anteroom:{shop}:world", "mine"])
        .await;
    let error = write_error(&single(server.port())).await;
    check_rejected(
        &error,
        "has values of another program under our keys",
        "another prefix",
    );
    server.send_ok(&["DEL", "anteroom:{shop}:world"]).await;
    server
        .send_ok(&["HSET", "anteroom:{shop}:world", "value", "mine"])
        .await;
    let error = write_error(&single(server.port())).await;
    check_rejected(&error, "does not reply as Valkey and Redis do", "");
}

#[tokio::test]
async fn a_server_that_evicts_keys_is_a_warning() {
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
