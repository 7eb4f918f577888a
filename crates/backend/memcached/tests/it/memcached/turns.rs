//! Requests of one node that wait for each other, and those that do not.

use std::net::Ipv4Addr;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _};
use anteroom_memcached::MemcachedCounts;
use anteroom_testkit::eventually;
use anteroom_testkit::memcached_server::MemcachedServer;
use anteroom_testkit::relay::{Delays, Relay};
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use crate::memcached::support::{call, counts_with_timeout, gcra};

/// A flood at one client is no failure of the store, so requests must not be admitted uncounted.
#[tokio::test]
async fn requests_that_get_no_turn_in_time_are_busy() {
    let server = MemcachedServer::start().await;
    let delays = Delays::each_way(Duration::from_millis(50));
    let relay = Relay::start((Ipv4Addr::LOCALHOST, server.port()).into(), delays).await;
    let counts = counts_with_timeout(&[relay.address().port()], Duration::from_secs(6));
    let policy = gcra(1_000);
    call(&counts, &policy, Cost::Peek).await.unwrap();
    let requests = (0..200).map(|_| call(&counts, &policy, Cost::ONE));
    let mut admitted = 0;
    for result in join_all(requests).await {
        match result {
            Ok(verdict) => admitted += u32::from(verdict.is_allowed()),
            Err(CountsError::Busy { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(admitted > 0);
    let left = call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(left.remaining, 1_000 - admitted);
}

/// Requests that wait for another request learn that the server is unavailable.
#[tokio::test]
async fn a_waiting_request_learns_that_the_server_is_unavailable() {
    let server = MemcachedServer::start().await;
    let counts = counts_with_timeout(&[server.port()], Duration::from_millis(300));
    let policy = gcra(5);
    eventually("the node is connected", async || {
        call(&counts, &policy, Cost::Peek).await.is_ok()
    })
    .await;
    server.pause();
    let mut first = Box::pin(call(&counts, &policy, Cost::ONE));
    assert!(first.as_mut().now_or_never().is_none());
    let error = call(&counts, &policy, Cost::ONE).await.unwrap_err();
    let is_away = matches!(error, CountsError::Unreachable { .. });
    assert!(is_away, "{error:?}");
    let error = first.await.unwrap_err();
    assert!(matches!(error, CountsError::Late { .. }), "{error:?}");
}

async fn one(counts: &MemcachedCounts, key: ClientKey) -> Result<u32, CountsError> {
    let policy = gcra(5);
    let acquire = SharedAcquire {
        limit: "api",
        policy: &policy,
        key,
        cost: Cost::ONE,
    };
    Ok(counts.acquire(&[acquire]).await?[0].remaining)
}

/// This holds even for clients with similar digests.
#[tokio::test]
async fn clients_of_a_hanging_server_do_not_delay_those_of_another() {
    let mut servers = [
        MemcachedServer::start().await,
        MemcachedServer::start().await,
        MemcachedServer::start().await,
    ];
    servers.sort_by_key(MemcachedServer::port);
    let ports = servers.each_ref().map(MemcachedServer::port);
    let counts = &counts_with_timeout(&ports, Duration::from_secs(20));
    let last_bits = |key| {
        let name = counts.name_of("api", key);
        let (_, digits) = name.split_once(':').expect("a prefix and a digest");
        u128::from_str_radix(digits, 16).expect("it is in hex") % 64
    };
    let of_server = |server| {
        let keys = (0..10_000).map(ClientKey);
        keys.filter(move |key| counts.server_of("api", *key) == server)
    };
    let first = of_server(0).next().unwrap();
    let same = of_server(1).find(|key| last_bits(*key) == last_bits(first));
    let others = of_server(2).take(100).chain(same);
    let others: Vec<ClientKey> = others.collect();
    assert_eq!(others.len(), 101);
    for key in [first, others[0], others[100]] {
        assert_eq!(one(counts, key).await.unwrap(), 4);
    }
    servers[0].pause();
    let hanging = of_server(0).take(200);
    let mut hanging: Vec<_> = hanging.map(|key| Box::pin(one(counts, key))).collect();
    for request in &mut hanging {
        assert!(request.as_mut().now_or_never().is_none());
    }
    // None of the hanging requests ends before these have replies.
    for key in others {
        assert!(one(counts, key).await.is_ok());
    }
    drop(hanging);
}
