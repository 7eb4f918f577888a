//! Three nodes with one limit: leases, compared with a script or a counter at the server for each
//! check.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anteroom_config::ValkeyAddress;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts};
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::time::DurationUs;
use anteroom_testkit::redis_server::RedisServer;
use anteroom_valkey::{ValkeyCounts, ValkeyLeases};
use anyhow::Context as _;
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;

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
    ClientKey(u128::from(client) << 64 | 0x9E37_79B9 * u128::from(client + 1))
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

/// Measures all variants. The processor time is that of the nodes, which are in this process,
/// without the server's.
pub(crate) fn leases(name: &str, options: &Options) -> anyhow::Result<Race> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let _guard = runtime.enter();
    let server = runtime.block_on(RedisServer::start());
    let url = format!("redis://127.0.0.1:{}", server.port());
    let address = ValkeyAddress::parse(&url).context("an address")?;
    let mut leased: Vec<Arc<LeasedCounts>> = Vec::new();
    let mut scripted: Vec<Arc<ValkeyCounts>> = Vec::new();
    let mut plain = Vec::new();
    for _ in 0..NODES {
        let records = ValkeyLeases::new(&address, "leases")?;
        leased.push(Arc::new(LeasedCounts::new(
            Arc::new(records),
            Settings::default(),
        )?));
        scripted.push(Arc::new(ValkeyCounts::new(&address, "counts")?));
        let client = redis::Client::open(&*url)?;
        plain.push(runtime.block_on(client.get_multiplexed_async_connection())?);
    }
    // An empty store would grant no leases for five seconds.
    runtime.block_on(leased[0].assume_empty())?;
    let times = Arc::new(Times::default());
    let script = Arc::new(redis::Script::new(BUCKET));
    let (runtime_of, leased_of) = (&runtime, leased.clone());
    let (plain_of, script_of, times_of) = (plain.clone(), script, Arc::clone(&times));
    let runners: Vec<Runner<'_>> = vec![
        (
            "redis: a token bucket in Lua for each check",
            Box::new(move |checks| {
                let (plain, script) = (plain_of.clone(), Arc::clone(&script_of));
                all(runtime_of, checks.min(STORE_CHECKS), move |node, client| {
                    let (mut connection, script) = (plain[node].clone(), Arc::clone(&script));
                    async move {
                        let call = script.key(format!("bucket:{client}"));
                        let admitted: i64 = call
                            .invoke_async(&mut connection)
                            .await
                            .expect("the server replies");
                        assert_eq!(admitted, 1);
                    }
                });
            }),
        ),
        (
            "redis: INCR for each check",
            Box::new(move |checks| {
                let plain = plain.clone();
                all(runtime_of, checks.min(STORE_CHECKS), move |node, client| {
                    let mut connection = plain[node].clone();
                    async move {
                        let mut count = redis::cmd("INCR");
                        let counted: i64 = count
                            .arg(format!("count:{client}"))
                            .query_async(&mut connection)
                            .await
                            .expect("the server replies");
                        assert!(counted > 0);
                    }
                });
            }),
        ),
        (
            "anteroom, store = valkey",
            Box::new(move |checks| {
                let scripted = scripted.clone();
                all(runtime_of, checks.min(STORE_CHECKS), move |node, client| {
                    let counts = Arc::clone(&scripted[node]);
                    async move { check_at(&*counts, &policy(), client).await }
                });
            }),
        ),
        (
            "anteroom, store = leases",
            Box::new(move |checks| {
                let (leased, times) = (leased_of.clone(), Arc::clone(&times_of));
                all(runtime_of, checks, move |node, client| {
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
            }),
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
    for (number, counts) in leased.iter().enumerate() {
        let stats = counts.stats();
        eprintln!(
            "node {number}: {} decided by leases, {} at the store, {} round trips",
            stats.decided_here, stats.waited, stats.round_trips
        );
    }
    Ok(race)
}
