//! Is the store fit for use? Asked once at the start.
//!
//! What makes it unfit is an error with a remedy; what may hurt later is a [`Warning`].

use std::fmt;

use anteroom_config::HostPort;

use crate::connection::{Request, text};
use crate::failure::Failure;
use crate::info::Info;
use crate::link::{Link, ServerReply};
use crate::route::Route;

/// What was found, server by server. Its `Display` makes a line for a log, without the address of
/// the store.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Findings {
    /// All servers that hold records.
    pub servers: Vec<ServerFinding>,
}

/// What was found at one server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerFinding {
    /// The server.
    pub server: HostPort,
    /// Its make and version, in its words: `Redis 7.0.15`.
    pub make: String,
    /// What may hurt later.
    pub warnings: Vec<Warning>,
}

/// What may hurt later.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// A full server throws keys away, ours too; a room that loses its ledger closes for as long as
    /// its visitors may stay.
    Evicts {
        /// The policy, in its words: `allkeys-lru`.
        policy: String,
        /// From how many bytes on; 0 = no limit is set, so that it does not happen yet.
        memory_max: u64,
    },
    /// It does not tell which policy it has.
    HidesPolicy,
}

impl Findings {
    /// All warnings, with the server that each is about.
    pub fn warnings(&self) -> impl Iterator<Item = (&HostPort, &Warning)> {
        self.servers.iter().flat_map(|found| {
            found
                .warnings
                .iter()
                .map(|warning| (&found.server, warning))
        })
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, found) in self.servers.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} at {}", found.make, found.server)?;
        }
        for (server, warning) in self.warnings() {
            write!(f, "; {server} {warning}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evicts { policy, .. } => write!(
                f,
                "throws keys away when it is full (maxmemory-policy {policy}): set it to noeviction"
            ),
            Self::HidesPolicy => {
                write!(
                    f,
                    "does not tell its maxmemory-policy: it should be noeviction"
                )
            }
        }
    }
}

/// Asks every server of a store.
pub(crate) async fn check(route: &Route) -> Result<Findings, Failure> {
    let mut servers = Vec::new();
    for link in route.links().await? {
        servers.push(check_server(&link).await?);
    }
    Ok(Findings { servers })
}

async fn check_server(link: &Link) -> Result<ServerFinding, Failure> {
    let request = Request {
        command: redis::cmd("INFO"),
        is_asking: false,
        meant_for: None,
    };
    let ServerReply { value, connection } = link.call(&request).await?;
    let info = Info::read(&text(&connection, value)?);
    let server = connection.server.clone();
    if info.is_replica() {
        return Err(Failure::IsReplica { server });
    }
    Ok(ServerFinding {
        server,
        warnings: warnings(&info),
        make: info
            .make
            .unwrap_or_else(|| "a server that hides its version".to_owned()),
    })
}

fn warnings(info: &Info) -> Vec<Warning> {
    match info.eviction.as_deref() {
        Some("noeviction") => Vec::new(),
        Some(policy) => vec![Warning::Evicts {
            policy: policy.to_owned(),
            memory_max: info.memory_max.unwrap_or(0),
        }],
        None => vec![Warning::HidesPolicy],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(info: &str) -> Findings {
        let info = Info::read(info);
        Findings {
            servers: vec![ServerFinding {
                server: HostPort {
                    host: "10.0.0.1".to_owned(),
                    port: 6379,
                },
                warnings: warnings(&info),
                make: info.make.unwrap(),
            }],
        }
    }

    #[test]
    fn findings_make_a_line() {
        let check = |info: &str, expected: &str| assert_eq!(found(info).to_string(), expected);
        check(
            "redis_version:7.0.15\nmaxmemory_policy:noeviction",
            "Redis 7.0.15 at 10.0.0.1:6379",
        );
        check(
            "redis_version:7.0.15\nmaxmemory_policy:allkeys-lru",
            "Redis 7.0.15 at 10.0.0.1:6379; 10.0.0.1:6379 throws keys away when it is full \
             (maxmemory-policy allkeys-lru): set it to noeviction",
        );
        check(
            "redis_version:7.0.15",
            "Redis 7.0.15 at 10.0.0.1:6379; 10.0.0.1:6379 does not tell its maxmemory-policy: it \
             should be noeviction",
        );
    }
}
