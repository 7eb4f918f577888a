//! What stands behind the address of a store? One server, or several that replace each other.
//!
//! Faults are done to the parts themselves; what a node is told of them is one address.

mod clocked;
mod replicated;
mod watched;

use std::net::SocketAddr;

use anteroom_testkit::redis_server::{RedisCluster, RedisServer};

pub use self::clocked::ClockedServer;
pub use self::replicated::Replicated;
pub use self::watched::Watched;
use crate::stepped::Shim;

/// A master that sends a replica what it has at once, and not after the five seconds in which
/// others might ask for the same.
const SENDS_AT_ONCE: &[&str] = &["--repl-diskless-sync-delay", "0"];

/// What a store is made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreKind {
    /// One server.
    Single,
    /// A server and a replica that takes its place when it is told to, at the same address.
    Replicated,
    /// A server, a replica, and the sentinel that tells which of them is the master. No link of the
    /// [`Cluster`](crate::cluster::Cluster) is in between.
    Watched,
    /// A cluster of three masters. No link is in between either.
    Cluster,
    /// One server, whose wall clock can be stepped.
    Clocked,
}

/// A store that runs; ends when dropped.
#[derive(Debug)]
pub enum Store {
    /// See [`StoreKind::Single`].
    Single(RedisServer),
    /// See [`StoreKind::Replicated`].
    Replicated(Replicated),
    /// See [`StoreKind::Watched`].
    Watched(Watched),
    /// See [`StoreKind::Cluster`].
    Cluster(RedisCluster),
    /// See [`StoreKind::Clocked`].
    Clocked(ClockedServer),
}

impl Store {
    /// Starts a store. The clock of one that has a clock of its own is right at first.
    ///
    /// # Panics
    ///
    /// If redis-server is not installed or does not start.
    pub async fn start(kind: StoreKind, shim: &Shim) -> Self {
        match kind {
            StoreKind::Single => Self::Single(RedisServer::start().await),
            StoreKind::Replicated => Self::Replicated(Replicated::start().await),
            StoreKind::Watched => Self::Watched(Watched::start().await),
            StoreKind::Cluster => Self::Cluster(RedisCluster::start().await),
            StoreKind::Clocked => Self::Clocked(ClockedServer::start(shim).await),
        }
    }

    /// Where a link leads to; `None` if the store itself tells addresses, which no link knows.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Single(server) => Some(at(server.port())),
            Self::Replicated(pair) => Some(pair.address()),
            Self::Clocked(server) => Some(at(server.port())),
            Self::Watched(_) | Self::Cluster(_) => None,
        }
    }

    /// What a node is told, where the link to the store, if there is one, is at `link`.
    #[must_use]
    pub fn url(&self, link: Option<SocketAddr>) -> String {
        match self {
            Self::Watched(watched) => watched.url(),
            Self::Cluster(cluster) => {
                let servers = cluster.servers().iter();
                let servers: Vec<String> = servers
                    .map(|server| at(server.port()).to_string())
                    .collect();
                format!("redis+cluster://{}", servers.join(","))
            }
            Self::Single(_) | Self::Replicated(_) | Self::Clocked(_) => {
                let address = link.or_else(|| self.address());
                address.map_or_else(String::new, |address| format!("redis://{address}"))
            }
        }
    }
}

/// A server of this machine.
pub(crate) fn at(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}
