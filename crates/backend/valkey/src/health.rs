//! Check at the start whether the store is fit for use.
//!
//! A store that is unfit is an error with a remedy; a risk for later is a [`Warning`].

use std::fmt;
use std::time::Duration;

use anteroom_config::{Durable, HostPort};
use anteroom_store::Durability;

use crate::connection::{Request, text};
use crate::durability::{Fsync, Persistence};
use crate::failure::Failure;
use crate::info::Info;
use crate::link::{Link, ServerReply};
use crate::route::Route;

/// Findings by server. `Display` formats them as one line for a log, without the store's address.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Findings {
    /// All servers that have records.
    pub servers: Vec<ServerFinding>,
}

/// Findings at one server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerFinding {
    /// Address of the server.
    pub server: HostPort,
    /// Product and version, such as `Redis 7.0.15`.
    pub make: String,
    /// Promise about its writes, for the time after it comes back as another server.
    pub durability: Durability,
    /// Time since the process started, as far as known.
    pub uptime: Option<Duration>,
    /// Risks for later.
    pub warnings: Vec<Warning>,
}

/// Risk for later.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The server evicts keys when it is full, ours too. A room that loses its ledger closes until
    /// all its sessions have ended.
    Evicts {
        /// Eviction policy, such as `allkeys-lru`.
        policy: String,
        /// Memory limit in bytes; 0 = no limit, so nothing is evicted yet.
        memory_max: u64,
    },
    /// The server does not report its eviction policy.
    HidesPolicy,
    /// The settings of the server contradict `store.durable`, which is ignored.
    ContradictsDurable {
        /// Settings, such as `appendonly yes, appendfsync everysec`.
        settings: String,
    },
    /// The server does not show the settings that `store.durable` needs.
    DurableNotChecked,
    /// The server logs its writes and does not show how, so nothing is assumed about them.
    HidesDurability,
}

impl Findings {
    /// Returns the time for which all servers have run, as far as known.
    #[must_use]
    pub fn uptime(&self) -> Option<Duration> {
        self.servers.iter().filter_map(|found| found.uptime).min()
    }

    /// Returns all warnings with their servers.
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
            let keeps = keeps(found.durability);
            write!(f, "{comma}{} at {}, {keeps}", found.make, found.server)?;
        }
        for (server, warning) in self.warnings() {
            write!(f, "; {server} {warning}")?;
        }
        Ok(())
    }
}

/// Describes a promise.
fn keeps(durability: Durability) -> String {
    match durability {
        Durability::KeepsAll => "keeps all writes".to_owned(),
        Durability::LosesAtMost(longest) => format!("may lose the writes of its last {longest}"),
        Durability::Unknown => "promises to keep no writes".to_owned(),
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evicts { policy, .. } => write!(
                f,
                "evicts keys when it is full (maxmemory-policy {policy}): set it to noeviction"
            ),
            Self::ContradictsDurable { settings } => write!(
                f,
                "has {settings}: store.durable needs appendonly yes and appendfsync always, and is \
                 ignored"
            ),
            Self::DurableNotChecked => {
                write!(f, "does not show appendfsync: store.durable is not checked")
            }
            Self::HidesDurability => write!(
                f,
                "does not show appendfsync, so nothing is assumed about its writes: allow \
                 +config|get, or set store.longest_loss"
            ),
            Self::HidesPolicy => {
                write!(
                    f,
                    "does not report its maxmemory-policy: it should be noeviction"
                )
            }
        }
    }
}

/// Checks every server of a store.
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
    let ServerReply { value, connection } = link.send(&request).await?;
    let info = Info::read(&text(&connection, value)?);
    let server = connection.server.clone();
    if info.is_replica() {
        return Err(Failure::IsReplica { server });
    }
    Ok(ServerFinding {
        server,
        durability: connection.durability,
        uptime: info.uptime,
        warnings: warnings(&info)
            .into_iter()
            .chain(durable_warning(connection.durability, connection.durable))
            .collect(),
        make: info
            .make
            .unwrap_or_else(|| "a server of unknown version".to_owned()),
    })
}

/// Returns a warning if the operator's promise does not hold, or is not checked.
fn durable_warning(
    promise: Durability,
    (durable, settings): (Durable, Persistence),
) -> Option<Warning> {
    if settings.contradicts(durable) {
        let settings = settings.to_string();
        return Some(Warning::ContradictsDurable { settings });
    }
    let is_hidden = settings.has_log && settings.fsync == Fsync::Hidden;
    match durable {
        _ if !is_hidden => None,
        Durable::No if promise != Durability::Unknown => None,
        Durable::No => Some(Warning::HidesDurability),
        Durable::Restart | Durable::Failover => Some(Warning::DurableNotChecked),
    }
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
    use anteroom_room::time::DurationMs;

    use super::*;

    fn found(info: &str) -> Findings {
        let info = Info::read(info);
        Findings {
            servers: vec![ServerFinding {
                server: HostPort {
                    host: "10.0.0.1".to_owned(),
                    port: 6379,
                },
                durability: Durability::LosesAtMost(DurationMs(3_000)),
                uptime: None,
                warnings: warnings(&info),
                make: info.make.unwrap(),
            }],
        }
    }

    #[test]
    fn a_promise_that_does_not_hold_is_named_with_the_settings() {
        let settings = |has_log, fsync| Persistence {
            has_log,
            fsync,
            ..Persistence::default()
        };
        let check = |durable, settings, expected: Option<&str>| {
            let warning = durable_warning(Durability::Unknown, (durable, settings));
            assert_eq!(
                warning.map(|warning| warning.to_string()).as_deref(),
                expected
            );
        };
        let everysec = settings(true, Fsync::EverySecond);
        check(Durable::No, everysec, None);
        check(
            Durable::Restart,
            everysec,
            Some(
                "has appendonly yes, appendfsync everysec: store.durable needs appendonly yes and \
                 appendfsync always, and is ignored",
            ),
        );
        check(Durable::Failover, settings(true, Fsync::Always), None);
        check(
            Durable::Failover,
            settings(true, Fsync::Hidden),
            Some("does not show appendfsync: store.durable is not checked"),
        );
    }

    #[test]
    fn findings_are_formatted_as_one_line() {
        let check = |info: &str, expected: &str| assert_eq!(found(info).to_string(), expected);
        check(
            "redis_version:7.0.15\nmaxmemory_policy:noeviction",
            "Redis 7.0.15 at 10.0.0.1:6379, may lose the writes of its last 3 s",
        );
        check(
            "redis_version:7.0.15\nmaxmemory_policy:allkeys-lru",
            "Redis 7.0.15 at 10.0.0.1:6379, may lose the writes of its last 3 s; 10.0.0.1:6379 \
             evicts keys when it is full (maxmemory-policy allkeys-lru): set it to noeviction",
        );
        check(
            "redis_version:7.0.15",
            "Redis 7.0.15 at 10.0.0.1:6379, may lose the writes of its last 3 s; 10.0.0.1:6379 \
             does not report its maxmemory-policy: it should be noeviction",
        );
    }

    #[test]
    fn a_server_that_hides_how_it_logs_is_reported() {
        let hidden = Persistence {
            has_log: true,
            ..Persistence::default()
        };
        let loses = Durability::LosesAtMost(DurationMs(1));
        for (promise, durable, expected) in [
            (
                Durability::Unknown,
                Durable::No,
                Some(Warning::HidesDurability),
            ),
            (loses, Durable::No, None),
            (
                Durability::KeepsAll,
                Durable::Restart,
                Some(Warning::DurableNotChecked),
            ),
        ] {
            assert_eq!(durable_warning(promise, (durable, hidden)), expected);
        }
        let shown = Persistence {
            fsync: Fsync::EverySecond,
            ..hidden
        };
        assert_eq!(durable_warning(loses, (Durable::No, shown)), None);
    }
}
