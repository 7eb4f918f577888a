//! Calls of one node that wait for each other, and those that need not.

use std::net::Ipv4Addr;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _};
use anteroom_memcached::MemcachedCounts;
use anteroom_testkit::eventually;
use anteroom_testkit::memcached_server::MemcachedServer;
use anteroom_testkit::relay::{Delays, Relay};
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use crate::memcached::support::{call, gcra, patient_for};

/// A flood at one client is no failure of the store, for which calls may be let through uncounted.
#[tokio::test]
async fn calls_that_wait_in_vain_for_their_clients_turn_are_busy() {
    let server = MemcachedServer::start().await;
    let delays = Delays::each_way(Duration::from_millis(50));
    let relay = Relay::start((Ipv4Addr::LOCALHOST, server.port()).into(), delays).await;
    let counts = patient_for(&[relay.address().port()], Duration::from_secs(6));
    let policy = gcra(1_000);
    call(&counts, &policy, Cost::Peek).await.unwrap();
    let calls = (0..200).map(|_| call(&counts, &policy, Cost::ONE));
    let mut admitted = 0;
    for told in join_all(calls).await {
        match told {
            Ok(verdict) => admitted += u32::from(verdict.is_admitted()),
            Err(CountsError::Busy { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(admitted > 0);
    let left = call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(left.remaining, 1_000 - admitted);
}

/// Where the server says nothing, that is what those are told who wait for one that waits for it.
#[tokio::test]
async fn a_call_waiting_behind_a_silent_one_learns_of_the_outage() {
    let server = MemcachedServer::start().await;
    let counts = patient_for(&[server.port()], Duration::from_millis(300));
    let policy = gcra(5);
    eventually("it is connected", async || {
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

async fn one(counts: &MemcachedCounts, key: CallKey) -> Result<u32, CountsError> {
    let policy = gcra(5);
    let charge = SharedAcquire {
        limit: "api",
        policy: &policy,
        key,
        cost: Cost::ONE,
    };
    Ok(counts.charge(&[charge]).await?[0].remaining)
}

/// Whatever a digest has in common with another one's: they wait for other servers.
#[tokio::test]
async fn clients_of_a_server_that_hangs_keep_none_of_another_one_waiting() {
    let mut servers = [
        MemcachedServer::start().await,
        MemcachedServer::start().await,
        MemcachedServer::start().await,
    ];
    servers.sort_by_key(MemcachedServer::port);
    let ports = servers.each_ref().map(MemcachedServer::port);
    let counts = &patient_for(&ports, Duration::from_secs(20));
    let last_bits = |key| {
        let name = counts.name_of("api", key);
        let (_, digits) = name.split_once(':').expect("a prefix and a digest");
        u128::from_str_radix(digits, 16).expect("it is in hex") % 64
    };
    let of_server = |server| {
        let keys = (0..10_000).map(CallKey);
        keys.filter(move |key| counts.server_of("api", *key) == server)
    };
    let first = of_server(0).next().unwrap();
    let same = of_server(1).find(|key| last_bits(*key) == last_bits(first));
    let others = of_server(2).take(100).chain(same);
    let others: Vec<CallKey> = others.collect();
    assert_eq!(others.len(), 101);
    for key in [first, others[0], others[100]] {
        assert_eq!(one(counts, key).await.unwrap(), 4);
    }
    servers[0].pause();
    let hanging = of_server(0).take(200);
    let mut hanging: Vec<_> = hanging.map(|key| Box::pin(one(counts, key))).collect();
    for call in &mut hanging {
        assert!(call.as_mut().now_or_never().is_none());
    }
    // None of those goes on before all of these have been answered.
    for key in others {
        assert!(one(counts, key).await.is_ok());
    }
    drop(hanging);
}
