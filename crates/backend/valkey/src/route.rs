//! Route to a store of any topology.

use anteroom_config::{Topology, ValkeyAddress};

use crate::access::{Access, SetupError};
use crate::cluster::Cluster;
use crate::connection::Request;
use crate::failure::Failure;
use crate::link::{Link, ServerReply};
use crate::sentinel::Sentinels;

/// Route to a store.
pub(crate) enum Route {
    /// One server: the only one, or the current master.
    One(Link),
    Many(Cluster),
}

impl Route {
    /// Creates a route; opens no connection yet.
    pub(crate) fn new(address: &ValkeyAddress) -> Result<Self, SetupError> {
        let access = Access::new(address)?;
        Ok(match &address.topology {
            Topology::Single(server) => Self::One(Link::to(server.clone(), access)),
            Topology::Sentinel { sentinels, service } => {
                let sentinels = Sentinels::new(sentinels.clone(), service.clone(), &access);
                Self::One(Link::to_master_of(sentinels, access))
            }
            Topology::Cluster { servers } => Self::Many(Cluster::new(servers.clone(), access)),
        })
    }

    /// Sends a request to the server that has `key`.
    pub(crate) async fn send(&self, key: &str, request: &Request) -> Result<ServerReply, Failure> {
        match self {
            Self::One(link) => link.send(request).await,
            Self::Many(cluster) => cluster.send(key, request).await,
        }
    }

    /// Returns whether all keys are at one server, so that a script may use several.
    pub(crate) fn is_one_server(&self) -> bool {
        matches!(self, Self::One(_))
    }

    /// Returns a link to every server that has records.
    pub(crate) async fn links(&self) -> Result<Vec<Link>, Failure> {
        match self {
            Self::One(link) => Ok(vec![link.clone()]),
            Self::Many(cluster) => cluster.masters().await,
        }
    }

    /// Ends all connections; later requests fail.
    pub(crate) fn close(&self) {
        match self {
            Self::One(link) => link.close(),
            Self::Many(cluster) => cluster.close(),
        }
    }
}
