//! Conformance to the rules of all count stores.

use std::sync::Arc;

use anteroom_config::HostPort;
use anteroom_limit::cost::Cost;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::conformance::{self, Harness};
use anteroom_limit_store::shared::{BoxFuture, SharedAcquire, SharedCounts, TestTime};
use anteroom_memcached::MemcachedCounts;
use anteroom_testkit::memcached_server::MemcachedServer;

use crate::memcached::support::{START, a_minute, call, counts, gcra, server};

/// Servers under test, and the clock of the nodes.
struct Servers<'s> {
    servers: &'s [MemcachedServer],
    time: TestTime,
}

impl<'s> Servers<'s> {
    fn new(servers: &'s [MemcachedServer]) -> Self {
        let time = TestTime::default();
        Self { servers, time }
    }

    fn addresses(&self) -> Vec<HostPort> {
        let addresses = self.servers.iter().map(|one| server(one.port()));
        addresses.collect()
    }

    fn counts(&self) -> MemcachedCounts {
        MemcachedCounts::with_time(&self.addresses(), "anteroom", self.time.clone())
    }
}

impl Harness for Servers<'_> {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::new(self.counts())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(
        &self,
        limit: &'static str,
        key: ClientKey,
    ) -> BoxFuture<'_, Option<DurationUs>> {
        Box::pin(async move {
            let name = self.counts().name_of(limit, key);
            let mut last = None;
            for server in self.servers {
                let now = server.stat("time").await;
                for (value, exp) in server.values().await {
                    if value.starts_with(&name) {
                        last = last.max(Some(exp.saturating_sub(now)));
                    }
                }
            }
            let secs = last.unwrap_or_else(|| panic!("{name} has no value"));
            Some(DurationUs::from_secs(secs))
        })
    }
}

#[tokio::test]
async fn one_server_keeps_counts() {
    let servers = [MemcachedServer::start().await];
    conformance::check(&Servers::new(&servers)).await.unwrap();
}

#[tokio::test]
async fn several_servers_keep_counts() {
    let servers = [
        MemcachedServer::start().await,
        MemcachedServer::start().await,
        MemcachedServer::start().await,
    ];
    conformance::check(&Servers::new(&servers)).await.unwrap();
}

#[tokio::test]
async fn clients_are_spread_over_servers_in_any_order_of_servers() {
    let servers = [
        MemcachedServer::start().await,
        MemcachedServer::start().await,
    ];
    let stage = Servers::new(&servers);
    let mut reversed = stage.addresses();
    reversed.reverse();
    stage.set_time(START);
    let reversed = MemcachedCounts::with_time(&reversed, "anteroom", stage.time.clone());
    let policy = a_minute(2);
    for client in 0..40 {
        let acquire = [SharedAcquire {
            limit: "api",
            policy: &policy,
            key: ClientKey(client),
            cost: Cost::ONE,
        }];
        for left in [1, 0] {
            let counts = if left == 1 {
                &stage.counts()
            } else {
                &reversed
            };
            let verdict = counts.acquire(&acquire).await.unwrap()[0];
            assert_eq!(verdict.remaining, left, "{client}");
        }
    }
    for server in &servers {
        let items = server.stat("curr_items").await;
        assert!((1..40).contains(&items), "{items}");
    }
}

#[tokio::test]
async fn requests_cost_the_documented_commands() {
    let server = MemcachedServer::start().await;
    let counts = counts(server.port());
    for _ in 0..8 {
        call(&counts, &a_minute(5), Cost::ONE).await.unwrap();
    }
    // Each request adds; three did not fit and were undone.
    let added = server.stat("incr_hits").await;
    assert_eq!((added, server.stat("decr_hits").await), (7, 3));
    assert_eq!(server.stat("cmd_set").await, 0);
    for _ in 0..8 {
        call(&counts, &gcra(5), Cost::ONE).await.unwrap();
    }
    // Five were written; rejected requests write nothing.
    let swapped = server.stat("cmd_set").await;
    assert_eq!((swapped, server.stat("cas_hits").await), (5, 4));
    assert_eq!(server.stat("cas_badval").await, 0);
}
