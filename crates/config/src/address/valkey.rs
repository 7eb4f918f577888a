//! How is a store of the Redis protocol reached, and how is that shown without its secrets?

use std::fmt;
use std::path::PathBuf;

use crate::address::host::HostPort;

/// How to reach a store. Its `Debug` and `Display` show no password.
#[derive(Clone, Eq, PartialEq)]
pub struct ValkeyAddress {
    /// Which servers.
    pub topology: Topology,
    /// Number of the database, up to 2147483647; 0 with a cluster.
    pub database: u32,
    /// As whom; `None` = the default user.
    pub username: Option<String>,
    /// With which password, if any.
    pub password: Option<String>,
    /// Whether to speak TLS, and whom to believe.
    pub tls: Option<ValkeyTls>,
}

/// TLS towards a store.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ValkeyTls {
    /// Certificates (PEM) of whoever signs the servers' certificates; `None` = those of the system.
    pub ca_file: Option<PathBuf>,
}

/// Which servers make up a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Topology {
    /// One server.
    Single(HostPort),
    /// The present master of a service, as sentinels say.
    Sentinel {
        /// Any of them; at least one.
        sentinels: Vec<HostPort>,
        /// The name of the service.
        service: String,
    },
    /// A cluster.
    Cluster {
        /// Any of its servers; at least one.
        servers: Vec<HostPort>,
    },
}

impl fmt::Display for ValkeyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tls.is_some() { "s" } else { "" };
        let list = |servers: &[HostPort]| {
            let servers: Vec<String> = servers.iter().map(HostPort::to_string).collect();
            servers.join(",")
        };
        match &self.topology {
            Topology::Single(server) => write!(f, "redis{s}://{server}")?,
            Topology::Sentinel { sentinels, service } => {
                write!(f, "redis{s}+sentinel://{}/{service}", list(sentinels))?;
            }
            Topology::Cluster { servers } => {
                return write!(f, "redis{s}+cluster://{}", list(servers));
            }
        }
        if self.database != 0 {
            write!(f, "/{}", self.database)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ValkeyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValkeyAddress({self})")
    }
}
