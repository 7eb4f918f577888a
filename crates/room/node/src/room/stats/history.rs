//! Admissions by minute and data center, read from the root ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_room::id::DataCenterId;
use anteroom_room::ledger::Ledger;
use anteroom_room::sync::Snapshot;
use anteroom_room::time::Minute;
use anteroom_store::wire::state::MinuteTraffic;
use anteroom_store::{StoredLedger, register_data_center};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::room::RoomHandle;

/// Greatest age of the history, so that reloads of a dashboard add little load on the store.
const FRESH: Duration = Duration::from_secs(1);
/// Timeout of a read.
const TIMEOUT: Duration = Duration::from_millis(800);

/// Cache of the newest history.
#[derive(Default)]
pub(in crate::room) struct History(Mutex<Option<(Instant, Vec<MinuteTraffic>)>>);

impl RoomHandle {
    /// Returns the history of all data centers; `None` if this node has its own store, or the read
    /// fails.
    pub(super) async fn history(&self) -> Option<Vec<MinuteTraffic>> {
        let root = self.ledgers.root()?;
        let mut read = self.history.0.lock().await;
        if let Some((read_at, history)) = &*read
            && read_at.elapsed() < FRESH
        {
            return Some(history.clone());
        }
        let history = timeout(TIMEOUT, self.read_history(root)).await.ok()??;
        *read = Some((Instant::now(), history.clone()));
        Some(history)
    }

    async fn read_history(&self, root: &StoredLedger) -> Option<Vec<MinuteTraffic>> {
        let store = self.shared.stores.common()?;
        let ledger = root.read().await.ok()?;
        let names = register_data_center(&**store, self.here, &self.shared.data_center);
        Some(by_name(&ledger, &names.await.ok()?))
    }

    /// Returns the history that this node knows: that of its own data center.
    pub(super) fn own_history(&self, snapshot: &Snapshot) -> Vec<MinuteTraffic> {
        let here = &self.shared.data_center;
        let minutes = snapshot.admitted.iter();
        minutes
            .map(|&(minute, count)| MinuteTraffic {
                minute,
                admitted: BTreeMap::from([(here.clone(), count)]),
            })
            .collect()
    }
}

fn by_name(ledger: &Ledger, names: &BTreeMap<DataCenterId, String>) -> Vec<MinuteTraffic> {
    let live = ledger.children().values();
    let live = live.map(|child| (child.data_center, &child.admitted));
    let gone = ledger.departed().iter();
    let gone = gone.map(|gone| (gone.data_center, &gone.admitted));
    let mut minutes: BTreeMap<Minute, BTreeMap<String, u32>> = BTreeMap::new();
    for (id, admitted) in live.chain(gone) {
        let name = names.get(&id).cloned();
        let name = name.unwrap_or_else(|| format!("{:08x}", id.0));
        for &(minute, count) in admitted {
            *minutes
                .entry(minute)
                .or_default()
                .entry(name.clone())
                .or_default() += count;
        }
    }
    let minutes = minutes.into_iter();
    minutes
        .map(|(minute, admitted)| MinuteTraffic { minute, admitted })
        .collect()
}
