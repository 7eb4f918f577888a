//! Requests of nodes without nodes: loads and swaps of records of the same length at the same rate.
//!
//! The records have no content, and nothing is decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anteroom_store::{RecordKey, Store, StoreError, Swap};
use anteroom_testkit::redis_server::RedisServer;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Run;
use crate::deployment::{connect, used_cpu};

/// Sends as many requests for each room and node as nodes did in `like`.
pub(super) async fn run(like: &Run, rooms: usize, lasts: Duration) -> anyhow::Result<Run> {
    let server = RedisServer::start().await;
    let requests = Arc::new(AtomicU64::new(0));
    // Two requests per round.
    let period = Duration::from_secs_f64(2.0 / like.calls.max(0.1));
    let began = Instant::now();
    let count = (rooms * like.nodes) as u64;
    let mut tasks = JoinSet::new();
    for node in 0..like.nodes {
        let store = connect(server.port())?;
        for room in 0..rooms {
            let index = (room * like.nodes + node) as u64;
            // Scattered, so that nodes of one room do not follow each other.
            let part = (index.wrapping_mul(0x9e37_79b9) % count) as f64 / count as f64;
            let ticks = interval_at(began + period.mul_f64(part), period);
            tasks.spawn(visit_repeatedly(
                ticks,
                Record {
                    store: Arc::clone(&store),
                    key: RecordKey(format!("room-{room}/echo")),
                    value: vec![0x5a; like.record_bytes],
                    requests: Arc::clone(&requests),
                },
            ));
        }
    }
    tokio::time::sleep(lasts / 4).await;
    let before = used_cpu(&server.info("cpu").await)?;
    let (requests_before, began) = (requests.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(lasts).await;
    let seconds = began.elapsed().as_secs_f64();
    let sent = requests.load(Ordering::Relaxed) - requests_before;
    let used = used_cpu(&server.info("cpu").await)? - before;
    tasks.shutdown().await;
    Ok(Run {
        nodes: like.nodes,
        rooms,
        local_cores: used / seconds,
        world_cores: 0.0,
        calls: sent as f64 / seconds / count as f64,
        queued: 0,
        record_bytes: like.record_bytes,
    })
}

/// Record as one node sees it.
struct Record {
    store: Arc<dyn Store>,
    key: RecordKey,
    value: Vec<u8>,
    requests: Arc<AtomicU64>,
}

impl Record {
    /// Loads and swaps until the swap succeeds.
    async fn visit(&self) -> Result<(), StoreError> {
        loop {
            let loaded = self.store.load(&self.key).await?;
            let value = self.value.clone();
            let swap = self
                .store
                .compare_and_swap(&self.key, loaded.expected(), value)
                .await?;
            self.requests.fetch_add(2, Ordering::Relaxed);
            if swap == Swap::Swapped {
                return Ok(());
            }
        }
    }
}

async fn visit_repeatedly(mut ticks: Interval, record: Record) {
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A failure shows as missing requests.
        let _ = record.visit().await;
    }
}
