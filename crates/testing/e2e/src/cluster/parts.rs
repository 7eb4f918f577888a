//! What can something be done to? The stores, the links, and what is overheard on them.

use std::str::FromStr;
use std::time::Duration;

use anteroom_testkit::redis_server::RedisServer;
use anteroom_testkit::relay::Relay;
use anteroom_testkit::{PATIENCE, eventually, eventually_within};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Cluster, NodeAt, SILENCE_MAX};
use crate::recorder;
use crate::stores::Store;

/// What a run of a store that is one server asks for.
const NOT_SINGLE: &str = "this store is more than one server";

impl Cluster {
    /// The store of a data center, to do something to it.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    pub fn local_store_mut(&mut self, data_center: usize) -> &mut Store {
        &mut self.data_centers[data_center].local
    }

    /// The store of the world, to do something to it.
    ///
    /// # Panics
    ///
    /// If the setup has none.
    pub fn global_store_mut(&mut self) -> &mut Store {
        self.global.as_mut().expect("the setup has a world")
    }

    /// The store of a data center, where it is one server, to do something to it.
    ///
    /// # Panics
    ///
    /// If there is none of this number, or it is more than one server.
    pub fn local_mut(&mut self, data_center: usize) -> &mut RedisServer {
        single(self.local_store_mut(data_center))
    }

    /// The store of the world, where it is one server, to do something to it.
    ///
    /// # Panics
    ///
    /// If the setup has none, or it is more than one server.
    pub fn global_mut(&mut self) -> &mut RedisServer {
        single(self.global_store_mut())
    }

    /// Empties the store of the world, where it is one server; its process goes on.
    ///
    /// # Panics
    ///
    /// If the setup has none, it is more than one server, or does not answer.
    pub async fn forget_global(&self) {
        let Some(Store::Single(server)) = &self.global else {
            panic!("{NOT_SINGLE}")
        };
        let _ = server.tell(&["FLUSHALL"]).await;
    }

    /// The link of a data center's nodes to its own store.
    ///
    /// # Panics
    ///
    /// If there is no data center of this number, or no link.
    #[must_use]
    pub fn local_link(&self, data_center: usize) -> &Relay {
        let link = &self.data_centers[data_center].local_link;
        link.as_ref().expect("a link to this kind of store")
    }

    /// The link of a data center's nodes to the global store.
    ///
    /// # Panics
    ///
    /// If there is no data center of this number, or no link.
    #[must_use]
    pub fn global_link(&self, data_center: usize) -> &Relay {
        let link = &self.data_centers[data_center].global_link;
        link.as_ref().expect("a link to this kind of store")
    }

    /// Waits until a node of this data center says something to the world, and tells so long after
    /// it which one it was.
    ///
    /// # Panics
    ///
    /// If the setup has no taps, or nobody speaks for a minute.
    pub async fn who_spoke_to_global(&self, data_center: usize, ago: Duration) -> NodeAt {
        let taps = &self.data_centers[data_center].taps;
        assert!(!taps.is_empty(), "the setup has taps");
        let mut listening = JoinSet::new();
        for (number, tap) in taps.iter().enumerate() {
            let hears = tap.hears();
            listening.spawn(async move {
                hears.await;
                number
            });
        }
        let first = timeout(SILENCE_MAX, listening.join_next()).await;
        let first = first.expect("somebody speaks to the world within a minute");
        let number = first
            .expect("there are nodes")
            .expect("listening ends well");
        sleep(ago).await;
        NodeAt(data_center, number)
    }

    /// What a node says of the room; `None` if it does not answer.
    pub async fn state(&self, at: NodeAt) -> Option<Value> {
        recorder::state(self.node(at).admin()).await
    }

    /// A metric of the room at a node; whole numbers for what is counted.
    ///
    /// # Panics
    ///
    /// If the node does not answer, or has no such metric.
    pub async fn metric<T: FromStr>(&self, at: NodeAt, name: &str) -> T {
        let value = recorder::metric(self.node(at).admin(), name).await;
        value.unwrap_or_else(|| panic!("no {name} at {}", self.node(at).name()))
    }

    /// The epoch that a node knows of; `None` if it does not answer.
    pub async fn epoch(&self, at: NodeAt) -> Option<u64> {
        self.state(at).await?.get("epoch")?.as_u64()
    }

    /// Waits until all nodes know another epoch than `before`.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn begins_another_epoch(&self, before: u64) {
        for at in self.all() {
            let what = format!("{} knows another epoch", self.node(at).name());
            eventually(&what, async || {
                self.epoch(at).await.is_some_and(|epoch| epoch != before)
            })
            .await;
        }
    }

    /// Waits until all nodes say that their ledger lends. Where an epoch begins within four seconds
    /// of a minute's end, admissions of the next one may be lent: that takes 65 seconds.
    ///
    /// # Panics
    ///
    /// If that does not happen within two minutes.
    pub async fn lends_again(&self) {
        for at in self.all() {
            let what = format!("the ledger of {} lends", self.node(at).name());
            eventually_within(PATIENCE * 2, &what, async || {
                let state = self.state(at).await;
                state.is_some_and(|state| state.get("reopensAt").is_some_and(Value::is_null))
            })
            .await;
        }
    }
}

fn single(store: &mut Store) -> &mut RedisServer {
    match store {
        Store::Single(server) => server,
        _ => panic!("{NOT_SINGLE}"),
    }
}
