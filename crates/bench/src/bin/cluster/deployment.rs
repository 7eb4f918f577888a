//! Nodes of several data centers in this process, on real redis-servers behind links of a known
//! length.
//!
//! The relays run on a runtime of their own, or a busy node would make a link longer. Everything
//! ends when the [`Deployment`] is dropped.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{Config, HostPort, RoomConfig, Topology, ValkeyAddress};
use anteroom_node::{Node, NodeClock, NodeSettings, RoomClock, RoomHandle, Stores};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::DeploymentId;
use anteroom_store::{Membership, Store, join};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{RedisServer, Reply};
use anteroom_testkit::relay::{Delays, Relay};
use anteroom_valkey::Valkey;
use anyhow::Context as _;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::counted::Counted;

/// Half a round trip to the global store: 70 ms there and back.
pub(crate) const WORLD_DELAY: Duration = Duration::from_millis(35);
/// Far above what comes; a limit that is named is one that is reached.
pub(crate) const NO_LIMIT: u32 = 500_000_000;

/// A room, the same at all nodes.
#[derive(Clone, Debug)]
pub(crate) struct RoomPlan {
    pub(crate) name: String,
    /// `leases`, `counters`.
    pub(crate) allocation: &'static str,
    pub(crate) seats: u32,
    pub(crate) session_s: u32,
}

impl RoomPlan {
    /// A room that never fills.
    pub(crate) fn endless(name: &str, allocation: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            allocation,
            seats: NO_LIMIT,
            session_s: 30,
        }
    }

    fn toml(&self) -> String {
        let Self {
            name,
            allocation,
            seats,
            session_s,
        } = self;
        format!(
            "[[room]]\nname = \"{name}\"\nhost = \"{name}.example\"\n\
             origin = \"http://127.0.0.1:9\"\nbypass = []\nallocation = \"{allocation}\"\n\
             total_active_users = {seats}\nnew_users_per_minute = {NO_LIMIT}\n\
             session_duration = \"{session_s}s\"\n"
        )
    }
}

/// How large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) data_centers: usize,
    /// In each data center.
    pub(crate) nodes: usize,
    /// Whether nodes reach the store of their data center over a relay, which makes the way as long
    /// as through a network, and costs CPU time.
    pub(crate) is_local_relayed: bool,
}

/// What a node calls, to count it.
struct Calls {
    local: Counted,
    world: Counted,
}

/// Everything.
pub(crate) struct Deployment {
    pub(crate) nodes: Vec<Arc<Node>>,
    /// A connection of nobody's to each data center's store, over the same link: for measuring it.
    pub(crate) probes: Vec<Arc<dyn Store>>,
    calls: Vec<Calls>,
    locals: Vec<RedisServer>,
    world: RedisServer,
    _relays: Vec<Relay>,
    _folder: TempDir,
}

/// Calls so far, of all nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallsTotal {
    pub(crate) local: u64,
    pub(crate) world: u64,
}

/// CPU time so far, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServersCpu {
    /// The stores of all data centers.
    pub(crate) local_s: f64,
    pub(crate) world_s: f64,
}

impl Deployment {
    /// Starts everything, and waits until every node may admit. Relays run on `links`.
    pub(crate) async fn start(
        size: Size,
        rooms: &[RoomPlan],
        links: &Handle,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("making a folder")?;
        let rooms: String = rooms.iter().map(RoomPlan::toml).collect();
        let rooms = Config::parse("bench.toml", &rooms)
            .map_err(|problems| anyhow::anyhow!("{problems}"))?
            .config
            .rooms;
        let world = RedisServer::start().await;
        let world_link = relay(&world, Delays::each_way(WORLD_DELAY), links).await?;
        let world_port = world_link.address().port();
        let mut relays = vec![world_link];
        let membership = Membership {
            deployment: anteroom_store::Deployment {
                birth: DeploymentId(7),
                lottery_key: LotteryKey([9; 16]),
            },
            ticket_keys: vec![[1; 32]],
        };
        join(&*connect(world_port)?, &membership, true).await?;
        let clock: Arc<dyn NodeClock> = Arc::new(RoomClock::start(folder.path().join("clock")));
        let (mut locals, mut probes) = (Vec::new(), Vec::new());
        let (mut nodes, mut calls) = (Vec::new(), Vec::new());
        for data_center in 0..size.data_centers {
            let local = RedisServer::start().await;
            let mut port = local.port();
            if size.is_local_relayed {
                let link = relay(&local, Delays::default(), links).await?;
                port = link.address().port();
                relays.push(link);
            }
            locals.push(local);
            probes.push(connect(port)?);
            for _ in 0..size.nodes {
                let called = Calls {
                    local: Counted::new(connect(port)?),
                    world: Counted::new(connect(world_port)?),
                };
                let name = format!("dc{data_center}");
                let settings = settings(&membership, name, rooms.clone());
                nodes.push(Node::start(settings, called.stores(), Arc::clone(&clock))?);
                calls.push(called);
            }
        }
        eventually("every node may admit", async || {
            nodes.iter().all(|node| node.is_healthy())
        })
        .await;
        Ok(Self {
            nodes,
            probes,
            calls,
            locals,
            world,
            _relays: relays,
            _folder: folder,
        })
    }

    /// The room of this name at every node.
    pub(crate) fn rooms(&self, name: &str) -> Vec<Arc<RoomHandle>> {
        let all = self.nodes.iter().flat_map(|node| node.rooms());
        all.filter(|room| room.config().name.as_str() == name)
            .collect()
    }

    /// All rooms of all nodes.
    pub(crate) fn all_rooms(&self) -> Vec<Arc<RoomHandle>> {
        self.nodes.iter().flat_map(|node| node.rooms()).collect()
    }

    pub(crate) fn calls(&self) -> CallsTotal {
        CallsTotal {
            local: self.calls.iter().map(|calls| calls.local.calls()).sum(),
            world: self.calls.iter().map(|calls| calls.world.calls()).sum(),
        }
    }

    /// CPU time of the servers, as they say themselves; asking is part of it.
    pub(crate) async fn cpu(&self) -> anyhow::Result<ServersCpu> {
        let mut cpu = ServersCpu {
            local_s: 0.0,
            world_s: used_cpu(&self.world.info("cpu").await)?,
        };
        for local in &self.locals {
            cpu.local_s += used_cpu(&local.info("cpu").await)?;
        }
        Ok(cpu)
    }

    /// How long the record of a room is in the first data center's store; 0 if there is none.
    pub(crate) async fn record_bytes(&self, room: &str) -> usize {
        let pattern = format!("anteroom:{{{room}}}:*");
        let Reply::Array(keys) = self.locals[0].tell(&["KEYS", &pattern]).await else {
            return 0;
        };
        let Some(key) = keys.first() else { return 0 };
        match self.locals[0]
            .tell(&["HSTRLEN", &key.text(), "value"])
            .await
        {
            Reply::Int(bytes) => usize::try_from(bytes).unwrap_or_default(),
            _ => 0,
        }
    }

    /// Ends all nodes in order.
    pub(crate) async fn stop(self) {
        for node in &self.nodes {
            node.stop().await;
        }
    }
}

impl Calls {
    fn stores(&self) -> Stores {
        Stores::TwoLevels {
            local: Arc::new(self.local.clone()),
            global: Arc::new(self.world.clone()),
        }
    }
}

impl ServersCpu {
    /// What was used since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            local_s: self.local_s - before.local_s,
            world_s: self.world_s - before.world_s,
        }
    }

    pub(crate) fn total_s(self) -> f64 {
        self.local_s + self.world_s
    }
}

impl std::ops::AddAssign for ServersCpu {
    fn add_assign(&mut self, more: Self) {
        self.local_s += more.local_s;
        self.world_s += more.world_s;
    }
}

async fn relay(server: &RedisServer, delays: Delays, links: &Handle) -> anyhow::Result<Relay> {
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let started = links.spawn(Relay::start(server, delays));
    started.await.context("starting a relay")
}

/// A store on a server of this machine, with a connection of its own.
pub(crate) fn connect(port: u16) -> anyhow::Result<Arc<dyn Store>> {
    let server = HostPort {
        host: Ipv4Addr::LOCALHOST.to_string(),
        port,
    };
    let address = ValkeyAddress {
        topology: Topology::Single(server),
        database: 0,
        username: None,
        password: None,
        tls: None,
    };
    Ok(Arc::new(Valkey::new(&address, "anteroom")?))
}

fn settings(membership: &Membership, data_center: String, rooms: Vec<RoomConfig>) -> NodeSettings {
    NodeSettings {
        folder: None,
        ticket_keys: membership.ticket_keys.clone(),
        birth: membership.deployment.birth,
        lottery_key: membership.deployment.lottery_key,
        data_center,
        rooms,
    }
}

/// CPU time in what a server says of itself: in its program and in the kernel for it.
pub(crate) fn used_cpu(info: &str) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for name in ["used_cpu_sys:", "used_cpu_user:"] {
        let found = info.lines().find_map(|line| line.strip_prefix(name));
        let text = found.with_context(|| format!("a server does not tell {name}"))?;
        let seconds: f64 = text.trim().parse().context("reading a server's CPU time")?;
        sum += seconds;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_includes_what_the_kernel_does_for_the_program() {
        let info = "# CPU\r\nused_cpu_sys:1.500000\r\nused_cpu_user:0.250000\r\n\
                    used_cpu_sys_children:9.0\r\nused_cpu_user_children:9.0\r\n";
        assert_eq!(used_cpu(info).unwrap().to_bits(), 1.75f64.to_bits());
        assert!(used_cpu("used_cpu_sys:1\r\n").is_err());
        assert!(used_cpu("used_cpu_sys:1\r\nused_cpu_user:x\r\n").is_err());
    }

    #[test]
    fn a_room_is_written_down_as_a_configuration_has_it() {
        let rooms = [
            RoomPlan::endless("a", "leases"),
            RoomPlan::endless("b", "counters"),
        ];
        let text: String = rooms.iter().map(RoomPlan::toml).collect();
        let config = Config::parse("bench.toml", &text).unwrap().config;
        assert_eq!(config.rooms.len(), 2);
    }
}
