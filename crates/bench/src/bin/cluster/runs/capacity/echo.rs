//! The calls of nodes without the nodes: load, compare and swap, records as long, as often.
//!
//! Says nothing of what is in a record, and decides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anteroom_store::{RecordKey, Store, StoreError, Swap};
use anteroom_testkit::redis_server::RedisServer;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Run;
use crate::deployment::{connect, used_cpu};

/// Makes as many calls for each room and node as nodes made in `like`.
pub(super) async fn run(like: &Run, rooms: usize, lasts: Duration) -> anyhow::Result<Run> {
    let server = RedisServer::start().await;
    let calls = Arc::new(AtomicU64::new(0));
    // Two calls a round.
    let period = Duration::from_secs_f64(2.0 / like.calls.max(0.1));
    let began = Instant::now();
    let count = (rooms * like.nodes) as u64;
    let mut tasks = JoinSet::new();
    for node in 0..like.nodes {
        let store = connect(server.port())?;
        for room in 0..rooms {
            let index = (room * like.nodes + node) as u64;
            // In a scattered order, so that nodes of one room do not come one after the other.
            let part = (index.wrapping_mul(0x9e37_79b9) % count) as f64 / count as f64;
            let ticks = interval_at(began + period.mul_f64(part), period);
            tasks.spawn(visit_again_and_again(
                ticks,
                Record {
                    store: Arc::clone(&store),
                    key: RecordKey(format!("room-{room}/echo")),
                    value: vec![0x5a; like.record_bytes],
                    calls: Arc::clone(&calls),
                },
            ));
        }
    }
    tokio::time::sleep(lasts / 4).await;
    let before = used_cpu(&server.info("cpu").await)?;
    let (calls_before, began) = (calls.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(lasts).await;
    let seconds = began.elapsed().as_secs_f64();
    let called = calls.load(Ordering::Relaxed) - calls_before;
    let used = used_cpu(&server.info("cpu").await)? - before;
    tasks.shutdown().await;
    Ok(Run {
        nodes: like.nodes,
        rooms,
        local_cores: used / seconds,
        world_cores: 0.0,
        calls: called as f64 / seconds / count as f64,
        queued: 0,
        record_bytes: like.record_bytes,
    })
}

/// A record as one node sees it.
struct Record {
    store: Arc<dyn Store>,
    key: RecordKey,
    value: Vec<u8>,
    calls: Arc<AtomicU64>,
}

impl Record {
    /// Loads and writes, until nobody else was faster.
    async fn visit(&self) -> Result<(), StoreError> {
        loop {
            let loaded = self.store.load(&self.key).await?;
            let value = self.value.clone();
            let swap = self
                .store
                .compare_and_swap(&self.key, loaded.expected(), value)
                .await?;
            self.calls.fetch_add(2, Ordering::Relaxed);
            if swap == Swap::Swapped {
                return Ok(());
            }
        }
    }
}

async fn visit_again_and_again(mut ticks: Interval, record: Record) {
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // One that fails shows as calls that are missing.
        let _ = record.visit().await;
    }
}
