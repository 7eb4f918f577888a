//! Nodes of several data centers in this process, on real Redis servers behind links of known
//! latency.
//!
//! The relays run on their own runtime, as a busy node would add latency otherwise. Everything ends
//! when the [`Deployment`] is dropped.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{Config, HostPort, RoomConfig, StorePromise, Topology, ValkeyAddress};
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

/// One-way latency to the global store: a round trip takes 70 ms.
pub(crate) const GLOBAL_DELAY: Duration = Duration::from_millis(35);
/// Limit that is never reached.
pub(crate) const NO_LIMIT: u32 = 500_000_000;

/// Room, the same at all nodes.
#[derive(Clone, Debug)]
pub(crate) struct RoomPlan {
    pub(crate) name: String,
    /// Allocation: `leases` or `counters`.
    pub(crate) allocation: &'static str,
    pub(crate) seats: u32,
    pub(crate) session_s: u32,
}

impl RoomPlan {
    /// Creates a room that never fills.
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

/// Size of a deployment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) data_centers: usize,
    /// Nodes in each data center.
    pub(crate) nodes: usize,
    /// Whether nodes reach their local store over a relay, which adds the latency of a network and
    /// CPU time.
    pub(crate) is_local_relayed: bool,
}

/// Counting stores of a node.
struct NodeStores {
    local: Counted,
    global: Counted,
}

/// Running deployment.
pub(crate) struct Deployment {
    pub(crate) nodes: Vec<Arc<Node>>,
    /// Separate connection to each local store over the same link, to measure its latency.
    pub(crate) probes: Vec<Arc<dyn Store>>,
    stores: Vec<NodeStores>,
    locals: Vec<RedisServer>,
    global: RedisServer,
    _relays: Vec<Relay>,
    _folder: TempDir,
}

/// Store requests of all nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestsTotal {
    pub(crate) local: u64,
    pub(crate) global: u64,
}

/// CPU time of the servers, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServersCpu {
    /// CPU time of all local stores.
    pub(crate) local_s: f64,
    pub(crate) global_s: f64,
}

impl Deployment {
    /// Starts all servers and nodes, and waits until every node can admit. Relays run on `links`.
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
        let global = RedisServer::start().await;
        let global_link = relay(&global, Delays::each_way(GLOBAL_DELAY), links).await?;
        let global_port = global_link.address().port();
        let mut relays = vec![global_link];
        let membership = Membership {
            deployment: anteroom_store::Deployment {
                deployment_id: DeploymentId(7),
                lottery_key: LotteryKey([9; 16]),
            },
            ticket_keys: vec![[1; 32]],
        };
        let clock: Arc<dyn NodeClock> = Arc::new(RoomClock::start(folder.path().join("clock")));
        join(&*connect(global_port)?, &membership, true, clock.now()).await?;
        let (mut locals, mut probes) = (Vec::new(), Vec::new());
        let (mut nodes, mut stores) = (Vec::new(), Vec::new());
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
                let node_stores = NodeStores {
                    local: Counted::new(connect(port)?),
                    global: Counted::new(connect(global_port)?),
                };
                let name = format!("dc{data_center}");
                let settings = settings(&membership, name, rooms.clone());
                nodes.push(Node::start(
                    settings,
                    node_stores.stores(),
                    Arc::clone(&clock),
                )?);
                stores.push(node_stores);
            }
        }
        eventually("every node may admit", async || {
            nodes.iter().all(|node| node.is_healthy())
        })
        .await;
        Ok(Self {
            nodes,
            probes,
            stores,
            locals,
            global,
            _relays: relays,
            _folder: folder,
        })
    }

    /// Returns the room of this name at every node.
    pub(crate) fn rooms(&self, name: &str) -> Vec<Arc<RoomHandle>> {
        let all = self.nodes.iter().flat_map(|node| node.rooms());
        all.filter(|room| room.config().name.as_str() == name)
            .collect()
    }

    /// Returns all rooms of all nodes.
    pub(crate) fn all_rooms(&self) -> Vec<Arc<RoomHandle>> {
        self.nodes.iter().flat_map(|node| node.rooms()).collect()
    }

    pub(crate) fn requests(&self) -> RequestsTotal {
        RequestsTotal {
            local: self.stores.iter().map(|node| node.local.requests()).sum(),
            global: self.stores.iter().map(|node| node.global.requests()).sum(),
        }
    }

    /// Returns the CPU time that the servers report; the query itself is included.
    pub(crate) async fn cpu(&self) -> anyhow::Result<ServersCpu> {
        let mut cpu = ServersCpu {
            local_s: 0.0,
            global_s: used_cpu(&self.global.info("cpu").await)?,
        };
        for local in &self.locals {
            cpu.local_s += used_cpu(&local.info("cpu").await)?;
        }
        Ok(cpu)
    }

    /// Returns the bytes of a room's record in the first local store; 0 if there is none.
    pub(crate) async fn record_bytes(&self, room: &str) -> usize {
        let pattern = format!("anteroom:{{{room}}}:*");
        let Reply::Array(keys) = self.locals[0].send_ok(&["KEYS", &pattern]).await else {
            return 0;
        };
        let Some(key) = keys.first() else { return 0 };
        match self.locals[0]
            .send_ok(&["HSTRLEN", &key.text(), "value"])
            .await
        {
            Reply::Int(bytes) => usize::try_from(bytes).unwrap_or_default(),
            _ => 0,
        }
    }

    /// Stops all nodes.
    pub(crate) async fn stop(self) {
        for node in &self.nodes {
            node.stop().await;
        }
    }
}

impl NodeStores {
    fn stores(&self) -> Stores {
        Stores::TwoLevels {
            local: Arc::new(self.local.clone()),
            global: Arc::new(self.global.clone()),
        }
    }
}

impl ServersCpu {
    /// Returns the CPU time since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            local_s: self.local_s - before.local_s,
            global_s: self.global_s - before.global_s,
        }
    }

    pub(crate) fn total_s(self) -> f64 {
        self.local_s + self.global_s
    }
}

impl std::ops::AddAssign for ServersCpu {
    fn add_assign(&mut self, more: Self) {
        self.local_s += more.local_s;
        self.global_s += more.global_s;
    }
}

async fn relay(server: &RedisServer, delays: Delays, links: &Handle) -> anyhow::Result<Relay> {
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let started = links.spawn(Relay::start(server, delays));
    started.await.context("starting a relay")
}

/// Connects to a server of this machine.
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
        promise: StorePromise::default(),
    };
    Ok(Arc::new(Valkey::new(&address, "anteroom")?))
}

fn settings(membership: &Membership, data_center: String, rooms: Vec<RoomConfig>) -> NodeSettings {
    NodeSettings {
        folder: None,
        ticket_keys: membership.ticket_keys.clone(),
        deployment_id: membership.deployment.deployment_id,
        lottery_key: membership.deployment.lottery_key,
        data_center,
        history_bytes: 1 << 20,
        rooms,
    }
}

/// Parses the CPU time of a server's `INFO`: user and system time.
pub(crate) fn used_cpu(info: &str) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for name in ["used_cpu_sys:", "used_cpu_user:"] {
        let found = info.lines().find_map(|line| line.strip_prefix(name));
        let text = found.with_context(|| format!("a server does not report {name}"))?;
        let seconds: f64 = text.trim().parse().context("reading a server's CPU time")?;
        sum += seconds;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_includes_system_time_of_the_server_only() {
        let info = "# CPU\r\nused_cpu_sys:1.500000\r\nused_cpu_user:0.250000\r\n\
                    used_cpu_sys_children:9.0\r\nused_cpu_user_children:9.0\r\n";
        assert_eq!(used_cpu(info).unwrap().to_bits(), 1.75f64.to_bits());
        assert!(used_cpu("used_cpu_sys:1\r\n").is_err());
        assert!(used_cpu("used_cpu_sys:1\r\nused_cpu_user:x\r\n").is_err());
    }

    #[test]
    fn a_room_plan_is_valid_configuration() {
        let rooms = [
            RoomPlan::endless("a", "leases"),
            RoomPlan::endless("b", "counters"),
        ];
        let text: String = rooms.iter().map(RoomPlan::toml).collect();
        let config = Config::parse("bench.toml", &text).unwrap().config;
        assert_eq!(config.rooms.len(), 2);
    }
}
