//! Parts of a cluster that tests act on: the stores, the links, and their taps.

use std::str::FromStr;
use std::time::Duration;

use anteroom_testkit::load::NodeAt;
use anteroom_testkit::redis_server::RedisServer;
use anteroom_testkit::relay::Relay;
use anteroom_testkit::{TIMEOUT, eventually, eventually_within};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Cluster, SILENCE_MAX};
use crate::origin::ROOM;
use crate::recorder;
use crate::stores::Store;

/// Panic message of a run that needs a single server.
const NOT_SINGLE: &str = "this store is more than one server";

impl Cluster {
    /// Returns the store of a data center, to act on it.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    pub fn local_store_mut(&mut self, data_center: usize) -> &mut Store {
        &mut self.data_centers[data_center].local
    }

    /// Returns the global store, to act on it.
    ///
    /// # Panics
    ///
    /// If the setup has none.
    pub fn global_store_mut(&mut self) -> &mut Store {
        self.global.as_mut().expect("the setup has a global store")
    }

    /// Returns the store of a data center as a single server, to act on it.
    ///
    /// # Panics
    ///
    /// If there is none of this number, or it is more than one server.
    pub fn local_mut(&mut self, data_center: usize) -> &mut RedisServer {
        single(self.local_store_mut(data_center))
    }

    /// Returns the global store as a single server, to act on it.
    ///
    /// # Panics
    ///
    /// If the setup has none, or it is more than one server.
    pub fn global_mut(&mut self) -> &mut RedisServer {
        single(self.global_store_mut())
    }

    /// Empties the global store, if it is a single server; its process goes on.
    ///
    /// # Panics
    ///
    /// If the setup has none, it is more than one server, or does not reply.
    pub async fn forget_global(&self) {
        let Some(Store::Single(server)) = &self.global else {
            panic!("{NOT_SINGLE}")
        };
        let _ = server.send_ok(&["FLUSHALL"]).await;
    }

    /// Returns the link of a data center's nodes to their own store.
    ///
    /// # Panics
    ///
    /// If there is no data center of this number, or no link.
    #[must_use]
    pub fn local_link(&self, data_center: usize) -> &Relay {
        let link = &self.data_centers[data_center].local_link;
        link.as_ref().expect("a link to this kind of store")
    }

    /// Returns the link of a data center's nodes to the global store.
    ///
    /// # Panics
    ///
    /// If there is no data center of this number, or no link.
    #[must_use]
    pub fn global_link(&self, data_center: usize) -> &Relay {
        let link = &self.data_centers[data_center].global_link;
        link.as_ref().expect("a link to this kind of store")
    }

    /// Waits until a node of this data center sends the global store data, and returns that node
    /// after this delay.
    ///
    /// # Panics
    ///
    /// If the setup has no taps, or no node sends anything for a minute.
    pub async fn who_spoke_to_global(&self, data_center: usize, ago: Duration) -> NodeAt {
        let taps = &self.data_centers[data_center].taps;
        assert!(!taps.is_empty(), "the setup has taps");
        let mut listening = JoinSet::new();
        for (number, tap) in taps.iter().enumerate() {
            let next_data = tap.next_data();
            listening.spawn(async move {
                next_data.await;
                number
            });
        }
        let first = timeout(SILENCE_MAX, listening.join_next()).await;
        let first = first.expect("a node syncs with the global store within a minute");
        let number = first.expect("there are nodes").expect("the tap stays open");
        sleep(ago).await;
        NodeAt(data_center, number)
    }

    /// Returns the state of the room at a node; `None` without a response.
    pub async fn state(&self, at: NodeAt) -> Option<Value> {
        recorder::state(self.node(at).admin()).await
    }

    /// Returns a path for the position of a waiting visitor.
    #[must_use]
    pub fn position_path() -> String {
        format!("/.well-known/anteroom/position?room={ROOM}")
    }

    /// Returns a metric of the room at a node.
    ///
    /// # Panics
    ///
    /// If the node does not respond, or has no such metric.
    pub async fn metric<T: FromStr>(&self, at: NodeAt, name: &str) -> T {
        self.metric_of(at, name, "").await
    }

    /// Returns a metric of the room at a node with further labels, such as `,outcome="late"`.
    ///
    /// # Panics
    ///
    /// If the node does not respond, or has no such metric.
    pub async fn metric_of<T: FromStr>(&self, at: NodeAt, name: &str, labels: &str) -> T {
        let value = recorder::metric(self.node(at).admin(), name, labels).await;
        value.unwrap_or_else(|| panic!("no {name} at {}", self.node(at).name()))
    }

    /// Returns the epoch that a node knows; `None` without a response.
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

    /// Waits until the ledgers of all nodes grant leases. An epoch that begins within four seconds
    /// of a minute's end may reserve the next minute's admissions: that takes 65 seconds.
    ///
    /// # Panics
    ///
    /// If that does not happen within two minutes.
    pub async fn lends_again(&self) {
        for at in self.all() {
            let what = format!("the ledger of {} grants leases", self.node(at).name());
            eventually_within(TIMEOUT * 2, &what, async || {
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
