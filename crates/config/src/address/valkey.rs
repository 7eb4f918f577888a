//! Address of a store that speaks the Redis protocol. What it shows has no secrets.

use std::fmt;
use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use crate::address::host::HostPort;

/// Address of a store, with credentials. Its `Debug` and `Display` show no password.
#[derive(Clone, Eq, PartialEq)]
pub struct ValkeyAddress {
    /// Servers of the store.
    pub topology: Topology,
    /// Number of the database, up to 2147483647; 0 with a cluster.
    pub database: u32,
    /// User name; `None` = the default user.
    pub username: Option<String>,
    /// Password, if there is one.
    pub password: Option<String>,
    /// TLS settings; `None` = no TLS.
    pub tls: Option<ValkeyTls>,
    /// Promise of the operator about its writes.
    pub promise: StorePromise,
}

/// Promise of the operator about the acknowledged writes of a store.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StorePromise {
    /// Servers that keep all of them.
    pub durable: Durable,
    /// Longest time whose writes may be missing after it comes back; `None` = as its settings say.
    pub longest_loss: Option<DurationMs>,
}

/// Servers that keep all acknowledged writes of a store.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Durable {
    /// None is certain to.
    #[default]
    No,
    /// Server that acknowledged them, when it restarts.
    Restart,
    /// Server that acknowledged them, and a server that is promoted in its place.
    Failover,
}

/// TLS towards a store.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ValkeyTls {
    /// File (PEM) of the certificate authorities to trust; `None` = those of the system.
    pub ca_file: Option<PathBuf>,
}

/// Servers that make up a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Topology {
    /// One server.
    Single(HostPort),
    /// The present master of a service, as its sentinels report it.
    Sentinel {
        /// Some of the sentinels; at least one.
        sentinels: Vec<HostPort>,
        /// Name of the service.
        service: String,
    },
    /// A cluster.
    Cluster {
        /// Some of the servers; at least one.
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
