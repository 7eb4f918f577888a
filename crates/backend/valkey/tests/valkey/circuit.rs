//! Servers that are gone, silent or broken: how often they are asked, and how long callers wait.

use std::sync::Arc;
use std::time::Duration;

use anteroom_store::Store;
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{Impostor, Manner, RedisServer};
use tokio::time::{Instant, timeout};

use crate::support::{
    check_unavailable, counter, key, load_once_it_works, single, store, swap, value, write,
};

/// A handful: the first attempt, and one for each back-off that ends while the calls last.
const HANDFUL: u32 = 5;

#[tokio::test]
async fn a_thousand_calls_to_a_dead_server_make_a_handful_of_attempts() {
    let dead = Impostor::start(Manner::HangsUp).await;
    let store = store(&single(dead.port()));
    for _ in 0..1_000 {
        let error = store.load(&key()).await.unwrap_err();
        check_unavailable(&error, "ends the connection without a word");
    }
    assert!(dead.connections() <= HANDFUL, "{}", dead.connections());
}

#[tokio::test]
async fn callers_at_once_share_one_attempt() {
    let silent = Impostor::start(Manner::SaysNothing).await;
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

/// A visitor is kept waiting for a quarter of a second at most; those who wait for it give up
/// early.
#[tokio::test]
async fn callers_who_give_up_early_do_not_cause_more_attempts() {
    let silent = Impostor::start(Manner::SaysNothing).await;
    let store = store(&single(silent.port()));
    let mut gave_up = 0;
    for _ in 0..50 {
        let name = counter();
        let call = timeout(Duration::from_millis(10), store.take_number(&name));
        gave_up += u32::from(call.await.is_err());
    }
    assert!(gave_up > 0);
    assert!(silent.connections() <= 2, "{}", silent.connections());
}

#[tokio::test]
async fn a_call_to_a_server_that_stands_still_ends_within_its_time() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    write(&store, b"value").await.unwrap();
    server.pause();
    let began = Instant::now();
    let error = store.load(&key()).await.unwrap_err();
    let took = began.elapsed();
    check_unavailable(&error, "within 1000 ms");
    // A second, and as much again for a machine that is busy.
    assert!(took < Duration::from_secs(2), "{took:?}");
    // And at once as long as the circuit is open.
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(&error, "within 1000 ms");
    server.resume();
    load_once_it_works(&store).await;
}

/// The server finds the swap in its socket once it goes on, and carries it out. Sent a second time
/// it would be a conflict, and the caller would take its own write for somebody else's.
#[tokio::test]
async fn a_swap_whose_answer_did_not_come_is_not_sent_again() {
    let server = RedisServer::start().await;
    let store = store(&single(server.port()));
    let before = write(&store, b"value").await.unwrap();
    server.tell(&["CONFIG", "RESETSTAT"]).await;
    server.pause();
    let error = swap(&store, before, b"late").await.unwrap_err();
    check_unavailable(&error, "cannot write to");
    server.resume();
    let loaded = load_once_it_works(&store).await;
    assert_eq!(value(&loaded), b"late");
    let stats = server.info("commandstats").await;
    assert!(stats.contains("cmdstat_hset:calls=1,"), "{stats}");
    assert!(stats.contains("cmdstat_hget:calls=1,"), "{stats}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut server = RedisServer::start().await;
    let store = store(&single(server.port()));
    write(&store, b"value").await.unwrap();
    server.kill();
    eventually("the store notices", async || {
        store.load(&key()).await.is_err()
    })
    .await;
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(&error, "127.0.0.1");
    server.restart().await;
    load_once_it_works(&store).await;
    write(&store, b"value").await.unwrap();
}
