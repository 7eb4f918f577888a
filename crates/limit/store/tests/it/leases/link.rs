//! Connection of a node to the test store: distant, with lost and delayed messages.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::DurationUs;
use anteroom_limit_store::lease_store::step::{Step, Stepped};
use anteroom_limit_store::lease_store::{
    LeaseKey, LeaseRecords, Loaded, Partition, StoredRecord, Swapped, Write,
};
use anteroom_limit_store::shared::{BoxFuture, CountsError};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::leases::store::{Memory, OwnedStep, OwnedWrite, Rng};

/// Faults of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    /// Delay in one direction, at most and at least.
    pub(crate) delay: (Duration, Duration),
    /// Lost messages per thousand. Half of them reach the store, and only their reply is lost.
    pub(crate) lost: u64,
    /// Messages per thousand that arrive two seconds late.
    pub(crate) late: u64,
    /// Whether no message arrives.
    pub(crate) is_cut: bool,
    /// Whether every request fails at once.
    pub(crate) is_down: bool,
}

/// Connection of one node to the store.
#[derive(Clone, Debug)]
pub(crate) struct StoreLink {
    memory: Memory,
    network: Arc<Mutex<Network>>,
    rng: Arc<Rng>,
}

impl StoreLink {
    pub(crate) fn new(memory: &Memory, network: Network, seed: u64) -> Self {
        Self {
            memory: memory.clone(),
            network: Arc::new(Mutex::new(network)),
            rng: Arc::new(Rng::new(seed)),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Network)) {
        change(&mut self.network.lock());
    }

    /// Runs `act` at the store, if the request arrives, whether or not the caller still waits.
    async fn travel<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Memory) -> T + Send + 'static,
    ) -> Result<T, CountsError> {
        let network = *self.network.lock();
        if network.is_down {
            return Err(CountsError::Unreachable {
                store_name: self.store_name().to_owned(),
                source: "it is down".into(),
            });
        }
        if network.is_cut {
            return pending().await;
        }
        let is_lost = self.rng.below(1_000) < network.lost;
        let arrives = !is_lost || self.rng.below(2) == 0;
        let (mut outbound, inbound) = (self.delay(network), self.delay(network));
        if self.rng.below(1_000) < network.late {
            outbound += Duration::from_secs(2);
        }
        let memory = self.memory.clone();
        let (sender, receiver) = oneshot::channel();
        if arrives {
            tokio::spawn(async move {
                wait(outbound).await;
                let done = act(&memory);
                wait(inbound).await;
                if !is_lost {
                    // The caller may have gone.
                    let _ = sender.send(done);
                }
            });
        }
        match receiver.await {
            Ok(done) => Ok(done),
            Err(_) => pending().await,
        }
    }

    fn delay(&self, network: Network) -> Duration {
        let (most, least) = network.delay;
        let micros = u64::try_from((most - least).as_micros()).expect("it is short");
        least + Duration::from_micros(self.rng.below(micros + 1))
    }
}

/// Waits in virtual time.
async fn wait(span: Duration) {
    if !span.is_zero() {
        sleep(span).await; // tidy: paused time
    }
}

fn owned_key(client: LeaseKey<'_>) -> (String, u128) {
    (client.limit.to_owned(), client.key.0)
}

fn owned_write(write: Write<'_>, keep_for: DurationUs) -> OwnedWrite {
    let (token, value) = (write.token, write.value.to_vec());
    OwnedWrite {
        expected: write.expected,
        kept: StoredRecord { token, value },
        keep_for,
    }
}

impl LeaseRecords for StoreLink {
    fn store_name(&self) -> &str {
        "memory store"
    }

    fn partitions(&self) -> u32 {
        1
    }

    fn load<'a>(
        &'a self,
        partition: Partition,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>> {
        let client = client.map(owned_key);
        Box::pin(self.travel(move |memory| memory.load(partition, client.as_ref())))
    }

    fn swap<'a>(
        &'a self,
        partition: Partition,
        client: LeaseKey<'a>,
        write: Write<'a>,
        keep_for: DurationUs,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let (client, write) = (owned_key(client), owned_write(write, keep_for));
        Box::pin(self.travel(move |memory| memory.swap(partition, Some(client), &write)))
    }

    fn swap_epoch<'a>(
        &'a self,
        partition: Partition,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let write = owned_write(write, DurationUs::ZERO);
        Box::pin(self.travel(move |memory| memory.swap(partition, None, &write)))
    }

    fn step<'a>(
        &'a self,
        partition: Partition,
        client: LeaseKey<'a>,
        step: Step<'a>,
    ) -> Option<BoxFuture<'a, Result<Stepped, CountsError>>> {
        if !self.memory.takes_steps() {
            return None;
        }
        let (client, step) = (owned_key(client), OwnedStep::of(&step));
        Some(Box::pin(
            self.travel(move |memory| memory.step(partition, client, &step)),
        ))
    }
}
