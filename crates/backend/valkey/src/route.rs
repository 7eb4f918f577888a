//! The way to a store, whatever it is made of.

use anteroom_config::{Topology, ValkeyAddress};

use crate::access::{Access, SetupError};
use crate::cluster::Cluster;
use crate::connection::Request;
use crate::failure::Failure;
use crate::link::{Link, ServerReply};
use crate::sentinel::Sentinels;

/// The way to a store.
pub(crate) enum Route {
    /// One server: the only one, or the master at present.
    One(Link),
    Many(Cluster),
}

impl Route {
    /// Opens nothing yet.
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
    pub(crate) async fn call(&self, key: &str, request: &Request) -> Result<ServerReply, Failure> {
        match self {
            Self::One(link) => link.call(request).await,
            Self::Many(cluster) => cluster.call(key, request).await,
        }
    }

    /// Whether all keys live at one server, so that a script may use several.
    pub(crate) fn is_one_server(&self) -> bool {
        matches!(self, Self::One(_))
    }

    /// A link to every server that holds records.
    pub(crate) async fn links(&self) -> Result<Vec<Link>, Failure> {
        match self {
            Self::One(link) => Ok(vec![link.clone()]),
            Self::Many(cluster) => cluster.masters().await,
        }
    }

    /// Ends all connections; later calls fail.
    pub(crate) fn close(&self) {
        match self {
            Self::One(link) => link.close(),
            Self::Many(cluster) => cluster.close(),
        }
    }
}
