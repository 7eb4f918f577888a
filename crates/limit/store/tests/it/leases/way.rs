//! The way of a node to the store: far, and messages on it are lost and late.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::DurationUs;
use anteroom_limit_store::lent::step::{Step, Stepped};
use anteroom_limit_store::lent::{Kept, LeaseKey, LeaseRecords, Loaded, Shelf, Swapped, Write};
use anteroom_limit_store::shared::{BoxFuture, CountsError};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::leases::store::{Draw, Memory, Stepping, Writing};

/// How the way to the store is at present.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    /// One way, at most and at least.
    pub(crate) delay: (Duration, Duration),
    /// Of a thousand messages. Half of them arrive, and their answer does not.
    pub(crate) lost: u64,
    /// Of a thousand messages, those that arrive two seconds late.
    pub(crate) late: u64,
    /// Nothing arrives.
    pub(crate) is_cut: bool,
    /// It says at once that it cannot.
    pub(crate) is_down: bool,
}

/// One node's way to the store.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    memory: Memory,
    network: Arc<Mutex<Network>>,
    draw: Arc<Draw>,
}

impl Way {
    pub(crate) fn new(memory: &Memory, network: Network, seed: u64) -> Self {
        Self {
            memory: memory.clone(),
            network: Arc::new(Mutex::new(network)),
            draw: Arc::new(Draw::new(seed)),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Network)) {
        change(&mut self.network.lock());
    }

    /// What is sent arrives, or not, whether anybody still waits or not.
    async fn travel<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Memory) -> T + Send + 'static,
    ) -> Result<T, CountsError> {
        let network = *self.network.lock();
        if network.is_down {
            return Err(CountsError::Unreachable {
                place: self.place().to_owned(),
                source: "it is down".into(),
            });
        }
        if network.is_cut {
            return pending().await;
        }
        let is_lost = self.draw.below(1_000) < network.lost;
        let arrives = !is_lost || self.draw.below(2) == 0;
        let (mut there, back) = (self.delay(network), self.delay(network));
        if self.draw.below(1_000) < network.late {
            there += Duration::from_secs(2);
        }
        let memory = self.memory.clone();
        let (tell, told) = oneshot::channel();
        if arrives {
            tokio::spawn(async move {
                pass(there).await;
                let done = act(&memory);
                pass(back).await;
                if !is_lost {
                    // Nobody may be waiting any more.
                    let _ = tell.send(done);
                }
            });
        }
        match told.await {
            Ok(done) => Ok(done),
            Err(_) => pending().await,
        }
    }

    fn delay(&self, network: Network) -> Duration {
        let (most, least) = network.delay;
        let micros = u64::try_from((most - least).as_micros()).expect("it is short");
        least + Duration::from_micros(self.draw.below(micros + 1))
    }
}

/// Virtual time passes.
async fn pass(span: Duration) {
    if !span.is_zero() {
        sleep(span).await; // tidy: paused time
    }
}

fn named(client: LeaseKey<'_>) -> (String, u128) {
    (client.limit.to_owned(), client.key.0)
}

fn writing(write: Write<'_>, keep_for: DurationUs) -> Writing {
    let (token, value) = (write.token, write.value.to_vec());
    Writing {
        expected: write.expected,
        kept: Kept { token, value },
        keep_for,
    }
}

impl LeaseRecords for Way {
    fn place(&self) -> &str {
        "the store in memory"
    }

    fn shelves(&self) -> u32 {
        1
    }

    fn load<'a>(
        &'a self,
        shelf: Shelf,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>> {
        let client = client.map(named);
        Box::pin(self.travel(move |memory| memory.load(shelf, client.as_ref())))
    }

    fn swap<'a>(
        &'a self,
        shelf: Shelf,
        client: LeaseKey<'a>,
        write: Write<'a>,
        keep_for: DurationUs,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let (client, write) = (named(client), writing(write, keep_for));
        Box::pin(self.travel(move |memory| memory.swap(shelf, Some(client), &write)))
    }

    fn swap_epoch<'a>(
        &'a self,
        shelf: Shelf,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        let write = writing(write, DurationUs::ZERO);
        Box::pin(self.travel(move |memory| memory.swap(shelf, None, &write)))
    }

    fn step<'a>(
        &'a self,
        shelf: Shelf,
        client: LeaseKey<'a>,
        step: Step<'a>,
    ) -> Option<BoxFuture<'a, Result<Stepped, CountsError>>> {
        if !self.memory.takes_steps() {
            return None;
        }
        let (client, step) = (named(client), Stepping::of(&step));
        Some(Box::pin(
            self.travel(move |memory| memory.step(shelf, client, &step)),
        ))
    }
}
