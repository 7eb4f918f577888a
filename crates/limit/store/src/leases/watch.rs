//! Background work: watches the epochs and the members, and forgets idle clients.
//!
//! A store that has lost its data cannot know that it has. A node that has seen the earlier epoch
//! must report it before the store grants again what is leased already. It has
//! [`anteroom_limit::leases::epoch::UNKNOWN_FOR`] to do so.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::lease_store::{Loaded, Partition};
use anteroom_limit::leases::epoch::{Before, Epoch};
use anteroom_limit::leases::members::Reports;
use futures_util::future::join_all;
use tokio::time::{MissedTickBehavior, interval};

use crate::leases::error::LeaseError;
use crate::leases::inner::Inner;
use crate::leases::record;

/// A fifth of the available time, so that some attempts may fail.
const PERIOD: Duration = Duration::from_secs(1);

/// Runs until `inner` is dropped.
pub(crate) async fn run(inner: Weak<Inner>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        inner.sweep();
        let partitions = inner.watched_partitions();
        join_all(
            partitions
                .into_iter()
                .map(|partition| look(&inner, partition)),
        )
        .await;
    }
}

/// Looks at a partition.
async fn look(inner: &Arc<Inner>, partition: Partition) {
    let seen = inner.look(partition).await;
    inner.handle_outcome(partition, inner.clock.now(), seen.as_ref().err());
}

impl Inner {
    fn sweep(&self) {
        let now = self.clock.now();
        for mut shard in self.clients.each() {
            shard.sweep(now);
        }
    }

    /// Begins an epoch before which nothing was spent.
    pub(crate) async fn assume_empty(&self, partition: Partition) -> Result<(), LeaseError> {
        loop {
            let loaded = self.load(partition, None).await?;
            let found = loaded.epoch.as_ref();
            let found = found.and_then(|kept| record::decode_epoch(&kept.value).ok());
            let observation =
                self.observation(partition, found.as_ref(), &loaded, Reports::Missing);
            let epoch = observation.begin(Before::Nothing);
            if self.begin(partition, &loaded, &epoch).await? {
                self.witness(partition, epoch.id);
                return Ok(());
            }
        }
    }

    /// Begins an epoch because the store lacks what it promised to keep.
    pub(crate) async fn lose(
        &self,
        partition: Partition,
        loaded: &Loaded,
        found: &Epoch,
    ) -> Result<(), LeaseError> {
        let observation = self.observation(partition, Some(found), loaded, Reports::Lost);
        let epoch = observation.begin(Before::Lost);
        if self.begin(partition, loaded, &epoch).await? {
            tracing::error!(
                store = self.store.store_name(),
                "store lacks leases that it promised to keep; change store.durable"
            );
        }
        Ok(())
    }
}
