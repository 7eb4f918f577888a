//! Request counts on real servers: conformance, cost, and error messages.

mod differential;
mod drive;
mod exact;
mod extremes;
mod log;
mod together;

use std::sync::Arc;

use anteroom_config::ValkeyAddress;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::conformance::{self, Harness};
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{
    Behaviour, Impostor, RedisCluster, RedisSentinel, RedisServer, Reply,
};
use anteroom_valkey::ValkeyCounts;

use crate::support::{cluster, sentinel, single};

/// Servers under test, and their clock.
struct Servers<'s> {
    address: ValkeyAddress,
    servers: Vec<&'s RedisServer>,
    time: TestTime,
}

impl<'s> Servers<'s> {
    fn new(address: ValkeyAddress, servers: impl IntoIterator<Item = &'s RedisServer>) -> Self {
        Self {
            address,
            servers: servers.into_iter().collect(),
            time: TestTime::default(),
        }
    }
}

impl Harness for Servers<'_> {
    fn node(&self) -> Arc<dyn SharedCounts> {
        let counts = ValkeyCounts::with_time(&self.address, "anteroom", self.time.clone());
        Arc::new(counts.unwrap())
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
            let key = key_of(limit, key);
            for server in &self.servers {
                // Servers of a cluster without the key return an error.
                if let Reply::Int(ms @ 0..) = server.send(&["PTTL", &key]).await {
                    return Some(DurationUs(ms.unsigned_abs() * 1_000));
                }
            }
            panic!("{key} never expires, or does not exist");
        })
    }
}

/// Returns the key of a client's state at the server.
fn key_of(limit: &str, ClientKey(key): ClientKey) -> String {
    format!("anteroom:{{{limit}:{key:032x}}}")
}

fn rate(requests: u32, secs: u64) -> Rate {
    Rate::new(requests, DurationUs::from_secs(secs)).unwrap()
}

fn a_minute(requests: u32) -> Policy {
    Policy::FixedWindow(FixedWindow::new(rate(requests, 60)))
}

fn counts(address: &ValkeyAddress) -> ValkeyCounts {
    ValkeyCounts::new(address, "anteroom").unwrap()
}

/// Acquires for the client that most tests use.
async fn call(
    counts: &ValkeyCounts,
    limit: &str,
    policy: &Policy,
    cost: Cost,
) -> Result<Verdict, CountsError> {
    let key = ClientKey(1);
    let acquire = SharedAcquire {
        limit,
        policy,
        key,
        cost,
    };
    Ok(counts.acquire(&[acquire]).await?[0])
}

#[tokio::test]
async fn one_server_keeps_counts() {
    let server = RedisServer::start().await;
    let stage = Servers::new(single(server.port()), [&server]);
    conformance::check(&stage).await.unwrap();
}

#[tokio::test]
async fn a_server_that_grants_only_the_required_rights_keeps_counts() {
    let server = RedisServer::start().await;
    let user = "ACL SETUSER anteroom on >secret ~anteroom:* +evalsha +eval +info +time +pexpire \
                +get \
                +set +del +lindex +llen +lset +ltrim +rpush";
    server.send_ok(&user.split(' ').collect::<Vec<_>>()).await;
    let mut stage = Servers::new(single(server.port()), [&server]);
    stage.address.username = Some("anteroom".to_owned());
    stage.address.password = Some("secret".to_owned());
    conformance::check(&stage).await.unwrap();
}

#[tokio::test]
async fn a_master_that_sentinels_watch_keeps_counts() {
    let master = RedisServer::start().await;
    let watcher = RedisSentinel::start("world", &master).await;
    let stage = Servers::new(sentinel(watcher.port(), "world"), [&master]);
    conformance::check(&stage).await.unwrap();
}

#[tokio::test]
async fn a_cluster_keeps_counts() {
    let servers = RedisCluster::start().await;
    let address = cluster(servers.servers()[0].port());
    let stage = Servers::new(address, servers.servers());
    conformance::check(&stage).await.unwrap();
}

#[tokio::test]
async fn clients_are_spread_over_a_cluster() {
    let servers = RedisCluster::start().await;
    let counts = counts(&cluster(servers.servers()[0].port()));
    for client in 0..40 {
        let acquire = SharedAcquire {
            limit: "api",
            policy: &a_minute(5),
            key: ClientKey(client),
            cost: Cost::ONE,
        };
        counts.acquire(&[acquire]).await.unwrap();
    }
    for server in servers.servers() {
        let Reply::Int(keys) = server.send_ok(&["DBSIZE"]).await else {
            panic!("no number of keys");
        };
        assert!(keys > 0, "no client is at {}", server.port());
    }
}

#[tokio::test]
async fn limits_that_are_acquired_together_cost_one_round_trip() {
    let server = RedisServer::start().await;
    let counts = counts(&single(server.port()));
    let policy = a_minute(1_000);
    call(&counts, "api", &policy, Cost::ONE).await.unwrap();
    server.send_ok(&["CONFIG", "RESETSTAT"]).await;
    let acquires = ["api", "site", "world"].map(|limit| SharedAcquire {
        limit,
        policy: &policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    });
    for _ in 0..50 {
        counts.acquire(&acquires).await.unwrap();
        call(&counts, "api", &policy, Cost::ONE).await.unwrap();
    }
    let stats = server.info("commandstats").await;
    assert!(stats.contains("cmdstat_evalsha:calls=100,"), "{stats}");
    assert!(!stats.contains("cmdstat_eval:"), "{stats}");
}

/// This uses the server's clock.
#[tokio::test]
async fn a_value_is_kept_as_long_as_it_matters() {
    let server = RedisServer::start().await;
    let counts = counts(&single(server.port()));
    let time = async || {
        let Reply::Array(parts) = server.send_ok(&["TIME"]).await else {
            panic!("no time");
        };
        let number = |at: usize| parts[at].text().parse::<u64>().unwrap();
        number(0) * 1_000_000 + number(1)
    };
    let policy = a_minute(5);
    let before = time().await;
    let verdict = call(&counts, "api", &policy, Cost::ONE).await.unwrap();
    let after = time().await;
    assert!(verdict.full_after <= DurationUs::from_secs(60));
    let key = key_of("api", ClientKey(1));
    let Reply::Int(ends_at) = server.send_ok(&["PEXPIRETIME", &key]).await else {
        panic!("no time");
    };
    let ends_at = ends_at.unsigned_abs() * 1_000;
    let full_after = verdict.full_after.0;
    assert!(
        ends_at >= before + full_after,
        "{ends_at} {before} {verdict:?}"
    );
    assert!(
        ends_at <= after + full_after + 2_000_000,
        "{ends_at} {after} {verdict:?}"
    );
    // Requests without effect extend no expiry, and create no value for a new client.
    call(&counts, "api", &policy, Cost::Peek).await.unwrap();
    call(&counts, "api", &policy, Cost::take(6)).await.unwrap();
    call(&counts, "new", &policy, Cost::take(6)).await.unwrap();
    call(&counts, "new", &policy, Cost::refund(6))
        .await
        .unwrap();
    let Reply::Int(still) = server.send_ok(&["PEXPIRETIME", &key]).await else {
        panic!("no time");
    };
    assert_eq!(still.unsigned_abs() * 1_000, ends_at);
    assert_eq!(server.send_ok(&["DBSIZE"]).await, Reply::Int(1));
}

#[tokio::test]
async fn a_restarted_server_gets_the_script_again() {
    let mut server = RedisServer::start().await;
    let counts = counts(&single(server.port()));
    let policy = a_minute(5);
    call(&counts, "api", &policy, Cost::ONE).await.unwrap();
    server.send_ok(&["SCRIPT", "FLUSH"]).await;
    let verdict = call(&counts, "api", &policy, Cost::ONE).await.unwrap();
    assert_eq!(verdict.remaining, 3);
    server.restart().await;
    eventually("the server is used again", async || {
        call(&counts, "api", &policy, Cost::ONE).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn silence_is_late_and_a_missing_server_is_unavailable() {
    let server = RedisServer::start().await;
    let late = counts(&single(server.port()));
    call(&late, "api", &a_minute(5), Cost::ONE).await.unwrap();
    server.pause();
    let error = call(&late, "api", &a_minute(5), Cost::ONE)
        .await
        .unwrap_err();
    assert!(matches!(error, CountsError::Late { .. }), "{error:?}");
    assert!(error.is_transient());
    server.resume();
    late.close();
    let error = call(&late, "api", &a_minute(5), Cost::ONE)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CountsError::Unreachable { .. }),
        "{error:?}"
    );

    let impostor = Impostor::start(Behaviour::AnswersHttp).await;
    let impostor = counts(&single(impostor.port()));
    let error = call(&impostor, "api", &a_minute(5), Cost::ONE)
        .await
        .unwrap_err();
    assert!(matches!(error, CountsError::Rejected { .. }), "{error:?}");
    let unavailable = counts(&single(1));
    let error = call(&unavailable, "api", &a_minute(5), Cost::ONE)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CountsError::Unreachable { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_rejected_command_has_a_remedy() {
    let server = RedisServer::start().await;
    let user = "ACL SETUSER anteroom on >secret ~anteroom:* +evalsha +eval +info +time +get";
    server.send_ok(&user.split(' ').collect::<Vec<_>>()).await;
    let mut address = single(server.port());
    address.username = Some("anteroom".to_owned());
    address.password = Some("secret".to_owned());
    let error = call(&counts(&address), "api", &a_minute(5), Cost::ONE).await;
    let error = error.unwrap_err();
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(text.contains("does not grant this user"), "{text}");
    assert!(text.contains("LTRIM"), "{text}");
}

#[tokio::test]
async fn a_burst_that_cannot_be_counted_exactly_is_rejected() {
    let server = RedisServer::start().await;
    let counts = counts(&single(server.port()));
    let year = rate(1, 366 * 86_400);
    let gcra = |burst| Policy::Gcra(Gcra::new(year, burst).unwrap());
    let leaky = |queue| Policy::LeakyBucket(LeakyBucket::new(year, queue));
    for fit in [gcra(141), leaky(140), a_minute(u32::MAX)] {
        assert_eq!(counts.check("api", &fit), Ok(()), "{fit:?}");
    }
    for unfit in [gcra(142), leaky(141)] {
        let text = counts.check("api", &unfit).unwrap_err().to_string();
        let expected =
            "allows requests 143 years ahead of its rate; valkey counts exactly up to 142 years";
        assert!(text.ends_with(expected), "{text}");
        let error = call(&counts, "api", &unfit, Cost::ONE).await.unwrap_err();
        assert!(matches!(error, CountsError::Rejected { .. }), "{error:?}");
    }
    assert_eq!(server.send_ok(&["DBSIZE"]).await, Reply::Int(0));
}
