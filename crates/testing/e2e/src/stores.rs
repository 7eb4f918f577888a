//! Stores of a cluster: one server, or several that replace each other.
//!
//! Tests cause faults in the parts; a node sees one address.

mod clocked;
mod replicated;
mod watched;

use std::net::SocketAddr;

use anteroom_testkit::redis_server::{RedisCluster, RedisServer};

pub use self::clocked::ClockedServer;
pub use self::replicated::Replicated;
pub use self::watched::Watched;
use crate::stepped::Shim;

/// Arguments of a master that sends a replica its data at once, and not after five seconds in which
/// other replicas might follow.
const SENDS_AT_ONCE: &[&str] = &["--repl-diskless-sync-delay", "0"];

/// Kind of a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreKind {
    /// Store of the one node itself, in its data folder.
    Embedded,
    /// One server.
    Single,
    /// Server with a replica that takes over on request, at the same address.
    Replicated,
    /// Server, replica, and the sentinel that names the master. There is no link of the
    /// [`Cluster`](crate::cluster::Cluster) in between.
    Watched,
    /// Cluster of three masters, without a link in between.
    Cluster,
    /// One server that logs its writes, with this setting of `appendfsync`.
    Logged(&'static str),
    /// One server whose wall clock can be stepped, and is so many milliseconds ahead at first.
    Clocked(i64),
}

/// Running store; ends when dropped.
#[derive(Debug)]
pub enum Store {
    /// Store of kind [`StoreKind::Embedded`].
    Embedded,
    /// Store of kind [`StoreKind::Single`] or [`StoreKind::Logged`].
    Single(RedisServer),
    /// Store of kind [`StoreKind::Replicated`].
    Replicated(Replicated),
    /// Store of kind [`StoreKind::Watched`].
    Watched(Watched),
    /// Store of kind [`StoreKind::Cluster`].
    Cluster(RedisCluster),
    /// Store of kind [`StoreKind::Clocked`].
    Clocked(ClockedServer),
}

impl Store {
    /// Starts a store.
    ///
    /// # Panics
    ///
    /// If redis-server is not installed or does not start.
    pub async fn start(kind: StoreKind, shim: &Shim) -> Self {
        match kind {
            StoreKind::Embedded => Self::Embedded,
            StoreKind::Single => Self::Single(RedisServer::start().await),
            StoreKind::Logged(fsync) => {
                let logs = ["--appendonly", "yes", "--appendfsync", fsync];
                Self::Single(RedisServer::start_with(&logs).await)
            }
            StoreKind::Replicated => Self::Replicated(Replicated::start().await),
            StoreKind::Watched => Self::Watched(Watched::start().await),
            StoreKind::Cluster => Self::Cluster(RedisCluster::start().await),
            StoreKind::Clocked(ahead_ms) => {
                Self::Clocked(ClockedServer::start(shim, ahead_ms).await)
            }
        }
    }

    /// Returns the target of a link; `None` if the store announces addresses itself, which no link
    /// knows, or has none.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Single(server) => Some(at(server.port())),
            Self::Replicated(pair) => Some(pair.address()),
            Self::Clocked(server) => Some(at(server.port())),
            Self::Embedded | Self::Watched(_) | Self::Cluster(_) => None,
        }
    }

    /// Returns the URL for a node, where the link to the store, if there is one, is at `link`. An
    /// embedded store has an empty one.
    #[must_use]
    pub fn url(&self, link: Option<SocketAddr>) -> String {
        match self {
            Self::Embedded => String::new(),
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

/// Returns the address of a server of this machine.
pub(crate) fn at(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}
