//! Servers that are unavailable or do not reply: number of attempts, and waiting time of callers.

use std::sync::Arc;
use std::time::Duration;

use anteroom_store::Store;
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{Behaviour, Impostor, RedisServer};
use tokio::time::{Instant, timeout};

use crate::support::{
    check_unavailable, counter, key, load_when_available, single, store, swap, value, write,
};

/// Most attempts: the first one, and one for each backoff that ends during the requests.
const ATTEMPTS_MAX: u32 = 5;

#[tokio::test]
async fn a_thousand_requests_to_a_crashed_server_make_few_attempts() {
    let crashed = Impostor::start(Behaviour::HangsUp).await;
    let store = store(&single(crashed.port()));
    for _ in 0..1_000 {
        let error = store.load(&key()).await.unwrap_err();
        check_unavailable(&error, "closes the connection without a reply");
    }
    assert!(
        crashed.connections() <= ATTEMPTS_MAX,
        "{}",
        crashed.connections()
    );
}

#[tokio::test]
async fn callers_at_once_share_one_attempt() {
    let silent = Impostor::start(Behaviour::Silent).await;
    let shared = Arc::new(store(&single(silent.port())));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let store = Arc::clone(&shared);
            tokio::spawn(async move { store.load(&key()).await })
        })
        .collect();
    for task in tasks {
        let error = task.await.unwrap().unwrap_err();
        check_unavailable(&error, "within 1000 ms");
    }
    assert_eq!(silent.connections(), 1);
}

/// Callers wait for a quarter of a second at most, so they give up before the timeout.
#[tokio::test]
async fn callers_that_give_up_early_cause_no_further_attempts() {
    let silent = Impostor::start(Behaviour::Silent).await;
    let store = store(&single(silent.port()));
    let mut gave_up = 0;
    for _ in 0..50 {
        let name = counter();
        let request = timeout(Duration::from_millis(10), store.take_number(&name));
        gave_up += u32::from(request.await.is_err());
    }
    assert!(gave_up > 0);
    assert!(silent.connections() <= 2, "{}", silent.connections());
}

#[tokio::test]
async fn a_request_to_a_paused_server_ends_within_its_timeout() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    write(&store, b"value").await.unwrap();
    server.pause();
    let began = Instant::now();
    let error = store.load(&key()).await.unwrap_err();
    let took = began.elapsed();
    check_unavailable(&error, "within 1000 ms");
    // A second, and another one for a busy machine.
    assert!(took < Duration::from_secs(2), "{took:?}");
    // It fails at once while the circuit is open.
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(&error, "within 1000 ms");
    server.resume();
    load_when_available(&store).await;
}

/// The server reads the swap from its socket once it resumes, and carries it out. A second one
/// would conflict, and the caller would mistake its own write for one of another node.
#[tokio::test]
async fn a_swap_without_a_reply_is_not_sent_again() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    let before = write(&store, b"value").await.unwrap();
    server.send_ok(&["CONFIG", "RESETSTAT"]).await;
    server.pause();
    let error = swap(&store, before, b"late").await.unwrap_err();
    check_unavailable(&error, "cannot write to");
    server.resume();
    let loaded = load_when_available(&store).await;
    assert_eq!(value(&loaded), b"late");
    let stats = server.info("commandstats").await;
    assert!(stats.contains("cmdstat_hset:calls=1,"), "{stats}");
    // A swap reads the version, and whether the record was to end.
    assert!(stats.contains("cmdstat_hget:calls=2,"), "{stats}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut server = RedisServer::start().await;
    let store = store(&single(server.port()));
    write(&store, b"value").await.unwrap();
    server.kill();
    eventually("the store notices the crash", async || {
        store.load(&key()).await.is_err()
    })
    .await;
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(&error, "127.0.0.1");
    server.restart().await;
    load_when_available(&store).await;
    write(&store, b"value").await.unwrap();
}
