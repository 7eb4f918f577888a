//! Data centers of a room, and their admissions by minute, read from the root ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_room::id::DataCenterId;
use anteroom_room::ledger::Ledger;
use anteroom_room::sync::Snapshot;
use anteroom_room::time::{Minute, Timestamp};
use anteroom_store::wire::state::MinuteTraffic;
use anteroom_store::{StoredLedger, register_data_center};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::room::RoomHandle;

/// Greatest age of the facts, so that reloads of a dashboard add little load on the store.
const FRESH: Duration = Duration::from_secs(1);
/// Timeout of a read.
const TIMEOUT: Duration = Duration::from_millis(800);

/// Cache of what the root ledger says about data centers.
#[derive(Default)]
pub(in crate::room) struct RootFactsCache(Mutex<Option<(Instant, RootFacts)>>);

/// Facts about data centers in the root ledger.
#[derive(Clone)]
struct RootFacts {
    minutes: Vec<MinuteTraffic>,
    data_centers: Vec<DataCenterOfRoom>,
}

/// Data center of a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DataCenterOfRoom {
    /// Name.
    pub name: String,
    /// Nodes with a live lease.
    pub nodes: u32,
    /// Room time of its newest report to the root ledger, by its own clock.
    pub reported_at: Timestamp,
    /// Admissions of the present minute.
    pub admitted: u32,
}

impl RoomHandle {
    /// Returns the admissions of all data centers by minute; `None` if this node has its own store,
    /// or the read fails.
    pub(super) async fn traffic_of_all(&self) -> Option<Vec<MinuteTraffic>> {
        Some(self.root_facts().await?.minutes)
    }

    /// Returns the data centers that serve the room, by name; `None` if the root ledger cannot be
    /// read.
    pub async fn data_centers(&self) -> Option<Vec<DataCenterOfRoom>> {
        if self.ledgers.root().is_some() {
            return Some(self.root_facts().await?.data_centers);
        }
        let stats = self.stats();
        Some(vec![DataCenterOfRoom {
            name: self.shared.data_center.clone(),
            nodes: stats.snapshot.nodes_here,
            reported_at: stats.snapshot.root_as_of,
            admitted: stats.snapshot.admitted_in(stats.now.minute()),
        }])
    }

    async fn root_facts(&self) -> Option<RootFacts> {
        let root = self.ledgers.root()?;
        let mut read = self.root_facts.0.lock().await;
        if let Some((read_at, facts)) = &*read
            && read_at.elapsed() < FRESH
        {
            return Some(facts.clone());
        }
        let facts = timeout(TIMEOUT, self.read_root(root)).await.ok()??;
        *read = Some((Instant::now(), facts.clone()));
        Some(facts)
    }

    async fn read_root(&self, root: &StoredLedger) -> Option<RootFacts> {
        let store = self.shared.stores.common()?;
        let ledger = root.read().await.ok()?;
        let names = register_data_center(&**store, self.here, &self.shared.data_center);
        let names = names.await.ok()?;
        Some(RootFacts {
            minutes: by_name(&ledger, &names),
            data_centers: data_centers(&ledger, &names, self.stats().now.minute()),
        })
    }

    /// Returns the admissions by minute that this node knows: those of its own data center.
    pub(super) fn own_traffic(&self, snapshot: &Snapshot) -> Vec<MinuteTraffic> {
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

fn name_of(id: DataCenterId, names: &BTreeMap<DataCenterId, String>) -> String {
    let name = names.get(&id).cloned();
    name.unwrap_or_else(|| format!("{:08x}", id.0))
}

fn data_centers(
    ledger: &Ledger,
    names: &BTreeMap<DataCenterId, String>,
    minute: Minute,
) -> Vec<DataCenterOfRoom> {
    let mut found: BTreeMap<String, DataCenterOfRoom> = BTreeMap::new();
    for child in ledger.children().values() {
        let name = name_of(child.data_center, names);
        let entry = found.entry(name.clone()).or_insert(DataCenterOfRoom {
            name,
            nodes: 0,
            reported_at: Timestamp::ZERO,
            admitted: 0,
        });
        let admitted = child.admitted.iter();
        let admitted = admitted.filter(|(at, _)| *at == minute).map(|(_, n)| n);
        entry.nodes += child.nodes;
        entry.reported_at = entry.reported_at.max(child.sent_at);
        entry.admitted += admitted.sum::<u32>();
    }
    found.into_values().collect()
}

fn by_name(ledger: &Ledger, names: &BTreeMap<DataCenterId, String>) -> Vec<MinuteTraffic> {
    let live = ledger.children().values();
    let live = live.map(|child| (child.data_center, &child.admitted));
    let gone = ledger.departed().iter();
    let gone = gone.map(|gone| (gone.data_center, &gone.admitted));
    let mut minutes: BTreeMap<Minute, BTreeMap<String, u32>> = BTreeMap::new();
    for (id, admitted) in live.chain(gone) {
        let name = name_of(id, names);
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
