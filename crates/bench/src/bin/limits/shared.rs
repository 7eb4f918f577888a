//! Three nodes with one limit: leases, compared with a script or a counter at the server for each
//! check.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::ValkeyAddress;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts};
use anteroom_testkit::redis_server::RedisServer;
use anteroom_valkey::{ValkeyCounts, ValkeyLeases};
use anyhow::Context as _;
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::Options;
use crate::race::{self, Race, Runner};

const NODES: usize = 3;
const CLIENTS: u64 = 30;
/// Tasks of each node that check at once.
const TASKS: u64 = 32;
const LEASE_CHECKS: u64 = 3_000_000;
const STORE_CHECKS: u64 = 60_000;

/// Token bucket as in most tutorials: one script, two fields, the server's clock.
const BUCKET: &str = include_str!("bucket.lua");

/// Returns a limit that is never reached, so that leases are large.
fn policy() -> Policy {
    let rate = Rate::new(2_000_000_000, DurationUs::from_secs(60)).expect("a minute is a window");
    Policy::SlidingWindow(SlidingWindow::new(rate))
}

fn key(client: u64) -> ClientKey {
    ClientKey((u128::from(client) << 64) | (0x9E37_79B9 * u128::from(client + 1)))
}

/// Runs this many checks in `TASKS` tasks of each node.
fn all<F>(runtime: &Runtime, checks: u64, check: impl Fn(usize, u64) -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + Send,
{
    runtime.block_on(async {
        let left = Arc::new(AtomicU64::new(checks));
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS * NODES as u64 {
            let (check, left) = (check.clone(), Arc::clone(&left));
            let node = usize::try_from(task).unwrap_or(0) % NODES;
            tasks.spawn(async move {
                // In batches, so that tasks do not contend for the counter.
                while left
                    .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(20))
                    .is_ok()
                {
                    for each in 0..20 {
                        check(node, (task + each) % CLIENTS).await;
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    });
}

async fn check_at(counts: &dyn SharedCounts, policy: &Policy, client: u64) {
    let acquire = SharedAcquire {
        limit: "api",
        policy,
        key: key(client),
        cost: Cost::ONE,
    };
    let mut verdicts = Vec::with_capacity(1);
    let decided = match counts.try_acquire_now(&[acquire], &mut verdicts) {
        Some(decided) => decided.map(|()| verdicts),
        None => counts.acquire(&[acquire]).await,
    };
    let verdicts = decided.expect("the store is available");
    assert!(verdicts[0].is_allowed(), "{verdicts:?}");
}

/// Latencies of checks by leases.
#[derive(Default)]
struct Times(std::sync::Mutex<Option<Histogram<u64>>>);

impl Times {
    fn add(&self, took: Duration) {
        let mut times = self.0.lock().expect("no holder of the lock panics");
        let times = times.get_or_insert_with(|| Histogram::new(3).expect("three digits"));
        times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// Connection to the server that a peer uses for each check.
type Connection = redis::aio::MultiplexedConnection;

/// Nodes, each with all variants, and their server.
struct Deployment {
    runtime: Runtime,
    leased: Vec<Arc<LeasedCounts>>,
    scripted: Vec<Arc<ValkeyCounts>>,
    plain: Vec<Connection>,
    _server: RedisServer,
}

impl Deployment {
    fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let guard = runtime.enter();
        let server = runtime.block_on(RedisServer::start());
        let url = format!("redis://127.0.0.1:{}", server.port());
        let address = ValkeyAddress::parse(&url).context("an address")?;
        let (mut leased, mut scripted, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..NODES {
            let records = Arc::new(ValkeyLeases::new(&address, "leases")?);
            leased.push(Arc::new(LeasedCounts::new(records, Settings::default())?));
            scripted.push(Arc::new(ValkeyCounts::new(&address, "counts")?));
            let client = redis::Client::open(&*url)?;
            plain.push(runtime.block_on(client.get_multiplexed_async_connection())?);
        }
        // An empty store would grant no leases for five seconds.
        runtime.block_on(leased[0].assume_empty())?;
        drop(guard);
        Ok(Self {
            runtime,
            leased,
            scripted,
            plain,
            _server: server,
        })
    }

    /// Runs checks that the server decides, each with a connection of its node.
    fn by_server<F>(
        &self,
        checks: u64,
        check: impl Fn(Connection, u64) -> F + Clone + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let plain = self.plain.clone();
        all(&self.runtime, checks, move |node, client| {
            check(plain[node].clone(), client)
        });
    }

    fn by_bucket(&self, checks: u64) {
        let script = Arc::new(redis::Script::new(BUCKET));
        self.by_server(checks, move |mut connection, client| {
            let script = Arc::clone(&script);
            async move {
                let call = script.key(format!("bucket:{client}"));
                let admitted: i64 = call
                    .invoke_async(&mut connection)
                    .await
                    .expect("the server replies");
                assert_eq!(admitted, 1);
            }
        });
    }

    fn by_counter(&self, checks: u64) {
        self.by_server(checks, |mut connection, client| async move {
            let mut count = redis::cmd("INCR");
            let counted: i64 = count
                .arg(format!("count:{client}"))
                .query_async(&mut connection)
                .await
                .expect("the server replies");
            assert!(counted > 0);
        });
    }

    fn by_script(&self, checks: u64) {
        let scripted = self.scripted.clone();
        all(&self.runtime, checks, move |node, client| {
            let counts = Arc::clone(&scripted[node]);
            async move { check_at(&*counts, &policy(), client).await }
        });
    }

    fn by_leases(&self, checks: u64, times: &Arc<Times>) {
        let (leased, times) = (self.leased.clone(), Arc::clone(times));
        all(&self.runtime, checks, move |node, client| {
            let (counts, times) = (Arc::clone(&leased[node]), Arc::clone(&times));
            async move {
                let began = Instant::now();
                check_at(&*counts, &policy(), client).await;
                // Sample some, as reading the clock costs time, too.
                if client == 7 {
                    times.add(began.elapsed());
                }
            }
        });
    }
}

/// Measures all variants. The processor time is that of the nodes, which are in this process,
/// without the server's.
pub(crate) fn leases(name: &str, options: &Options) -> anyhow::Result<Race> {
    let deployment = Deployment::start()?;
    let times = Arc::new(Times::default());
    let runners: Vec<Runner<'_>> = vec![
        (
            "redis: a token bucket in Lua for each check",
            Box::new(|checks| deployment.by_bucket(checks)),
        ),
        (
            "redis: INCR for each check",
            Box::new(|checks| deployment.by_counter(checks)),
        ),
        (
            "anteroom, store = valkey",
            Box::new(|checks| deployment.by_script(checks)),
        ),
        (
            "anteroom, store = leases",
            Box::new(|checks| deployment.by_leases(checks, &times)),
        ),
    ];
    let target = "leases at least 20 x the checks of one Lua script per check";
    let race = race::run_each(
        name,
        options,
        target,
        &[STORE_CHECKS, STORE_CHECKS, STORE_CHECKS, LEASE_CHECKS],
        runners,
    );
    if let Some(times) = &*times.0.lock().expect("no holder of the lock panics") {
        let micros = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(micros);
        eprintln!(
            "a check by leases: p50 {p50:.1} us, p99 {p99:.1} us (target: 100), p99.9 \
             {p999:.1} us"
        );
    }
    for (number, counts) in deployment.leased.iter().enumerate() {
        let stats = counts.stats();
        eprintln!(
            "node {number}: {} decided by leases, {} at the store, {} round trips",
            stats.decided_here, stats.waited, stats.round_trips
        );
    }
    Ok(race)
}
