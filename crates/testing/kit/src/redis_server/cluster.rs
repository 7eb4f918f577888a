//! Redis cluster of three masters.

use super::{RedisServer, Reply};
use crate::waiting::eventually;

/// Number of slots of every cluster.
const SLOTS: u16 = 16_384;

/// Cluster of three masters without replicas.
#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts three servers, distributes the slots, and waits until all servers agree.
    ///
    /// # Panics
    ///
    /// If redis-server is not installed or does not start.
    pub async fn start() -> Self {
        let mut servers = Vec::new();
        for _ in 0..3 {
            let arguments = [
                "--cluster-enabled yes",
                "--cluster-node-timeout 2000",
                // Running servers serve their slots while others are down.
                "--cluster-require-full-coverage no",
                // Nodes may be told that it keeps all writes.
                "--appendonly yes",
                "--appendfsync always",
            ];
            let arguments: Vec<&str> = arguments.iter().flat_map(|line| line.split(' ')).collect();
            servers.push(RedisServer::start_with(&arguments).await);
        }
        let cluster = Self { servers };
        let parts = [0..5_461, 5_461..10_923, 10_923..SLOTS];
        for (server, part) in cluster.servers.iter().zip(parts) {
            let slots: Vec<String> = part.map(|slot| slot.to_string()).collect();
            let mut command = vec!["CLUSTER", "ADDSLOTS"];
            command.extend(slots.iter().map(String::as_str));
            server.send_ok(&command).await;
        }
        for other in &cluster.servers[1..] {
            let port = other.port().to_string();
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &port];
            cluster.servers[0].send_ok(&meet).await;
        }
        cluster.agrees().await;
        cluster
    }

    /// Returns the servers; each has a third of the slots.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Returns the servers, to kill and restart them.
    #[must_use]
    pub fn servers_mut(&mut self) -> &mut [RedisServer] {
        &mut self.servers
    }

    /// Returns the server that has the slot of `key`, and the slot.
    ///
    /// # Panics
    ///
    /// If a server does not reply.
    pub async fn owner_of(&self, key: &str) -> (usize, u16) {
        let slot = self.servers[0].send_ok(&["CLUSTER", "KEYSLOT", key]).await;
        let slot = slot.text().parse().expect("a slot is a number");
        for (index, server) in self.servers.iter().enumerate() {
            // A server replies for its own slots and redirects for others.
            if !matches!(server.send(&["EXISTS", key]).await, Reply::Error(_)) {
                return (index, slot);
            }
        }
        panic!("no server has slot {slot}");
    }

    /// Begins to move a slot. The old owner serves the keys that it still has, and redirects for
    /// others.
    ///
    /// # Panics
    ///
    /// If a server returns an error.
    pub async fn begin_to_move(&self, slot: u16, from: usize, to: usize) {
        let number = slot.to_string();
        let (old, new) = (self.id_of(from).await, self.id_of(to).await);
        let importing = ["CLUSTER", "SETSLOT", &number, "IMPORTING", &old];
        self.servers[to].send_ok(&importing).await;
        let migrating = ["CLUSTER", "SETSLOT", &number, "MIGRATING", &new];
        self.servers[from].send_ok(&migrating).await;
    }

    /// Moves the keys of a slot.
    ///
    /// # Panics
    ///
    /// If a server returns an error.
    pub async fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let number = slot.to_string();
        let port = self.servers[to].port().to_string();
        loop {
            let keys = ["CLUSTER", "GETKEYSINSLOT", &number, "100"];
            let Reply::Array(keys) = self.servers[from].send_ok(&keys).await else {
                panic!("no list of keys");
            };
            if keys.is_empty() {
                return;
            }
            for key in keys {
                let key = key.text();
                let migrate = ["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"];
                self.servers[from].send_ok(&migrate).await;
            }
        }
    }

    /// Ends the move: announces the new owner to all servers.
    ///
    /// # Panics
    ///
    /// If a server returns an error.
    pub async fn end_move(&self, slot: u16, to: usize) {
        let number = slot.to_string();
        let id = self.id_of(to).await;
        // The new owner first, so that the slot always has an owner.
        let others = (0..self.servers.len()).filter(|index| *index != to);
        for index in std::iter::once(to).chain(others) {
            let node = ["CLUSTER", "SETSLOT", &number, "NODE", &id];
            self.servers[index].send_ok(&node).await;
        }
    }

    /// Waits until all servers know each other and serve all slots.
    ///
    /// # Panics
    ///
    /// If they do not.
    pub async fn agrees(&self) {
        eventually("all servers of the cluster agree", async || {
            for server in &self.servers {
                let info = server.send_ok(&["CLUSTER", "INFO"]).await.text();
                let is_complete = info.contains("cluster_state:ok")
                    && info.contains("cluster_slots_ok:16384")
                    && info.contains("cluster_known_nodes:3");
                if !is_complete {
                    return false;
                }
            }
            true
        })
        .await;
    }

    async fn id_of(&self, server: usize) -> String {
        self.servers[server]
            .send_ok(&["CLUSTER", "MYID"])
            .await
            .text()
    }
}
