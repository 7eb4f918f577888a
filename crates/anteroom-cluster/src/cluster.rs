//! What does a deployment consist of? A store for the world and one for each data center, links in
//! front of them, nodes, and the origin that judges.
//!
//! Everything ends when the [`Cluster`] is dropped. When a test fails the logs are printed and kept;
//! with [`KEEP`] they are kept anyway.

use std::net::SocketAddr;
use std::time::Duration;

use anteroom_core::rules::Limits;
use anteroom_testkit::redis_server::{RedisServer, eventually};
use anteroom_testkit::relay::{Delays, Relay};
use tempfile::TempDir;

use crate::binary;
use crate::crowd::{Doors, Tally};
use crate::judge::{JudgingOrigin, ROOM};
use crate::node::Node;
use crate::recorder::Recorder;

/// Half a round trip to the world's store: 70 ms there and back.
const WORLD_DELAY: Duration = Duration::from_millis(35);
/// Somebody who waits and changes the node is counted at the former one as well until the next ask is
/// overdue there, and those who are counted at the front hold back all behind them. Left to itself a
/// node asks for patience of up to a minute; a run does not last much longer.
const ASK_AGAIN: &str = "ask_again = \"2s\"";
/// If it is set, logs are kept even if all went well.
pub const KEEP: &str = "ANTEROOM_CLUSTER_KEEP";
/// Lines of each log that a failure shows; the rest is in the folder that it names.
const TAIL_LINES: usize = 25;

/// What to build.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The room's limits.
    pub limits: Limits,
    /// The room's session duration, in seconds.
    pub session_secs: u64,
    /// Names of the data centers.
    pub data_centers: Vec<String>,
    /// Nodes in each of them.
    pub nodes: usize,
    /// Of the links to the world's store.
    pub world_delays: Delays,
    /// More lines of the room's configuration.
    pub room: String,
}

impl Setup {
    /// Two data centers with three nodes each, and a room with these limits.
    #[must_use]
    pub fn new(limits: Limits, session_secs: u64) -> Self {
        Self {
            limits,
            session_secs,
            data_centers: ["sjc", "fra"].map(str::to_owned).to_vec(),
            nodes: 3,
            world_delays: Delays::each_way(WORLD_DELAY),
            room: ASK_AGAIN.to_owned(),
        }
    }
}

/// A node: the number of its data center, and its number there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NodeAt(pub usize, pub usize);

/// A deployment that runs.
#[derive(Debug)]
pub struct Cluster {
    origin: JudgingOrigin,
    data_centers: Vec<DataCenter>,
    world: RedisServer,
    recorder: Recorder,
    /// After the nodes, which write into it; taken out to be kept.
    folder: Option<TempDir>,
}

/// A data center.
#[derive(Debug)]
struct DataCenter {
    nodes: Vec<Node>,
    local: RedisServer,
    local_link: Relay,
    world_link: Relay,
}

impl Cluster {
    /// Starts everything and waits until all nodes serve and hold a lease.
    ///
    /// # Panics
    ///
    /// If something does not start.
    pub async fn start(setup: Setup) -> Self {
        let binary = binary::path();
        let folder = tempfile::Builder::new()
            .prefix("anteroom-cluster-")
            .tempdir()
            .expect("a folder for the nodes");
        let session = Duration::from_secs(setup.session_secs);
        let origin = JudgingOrigin::start(setup.limits, session).await;
        let world = RedisServer::start().await;
        let mut data_centers: Vec<DataCenter> = Vec::new();
        for name in &setup.data_centers {
            let local = RedisServer::start().await;
            let local_link = Relay::start(at(&local), Delays::default()).await;
            let world_link = Relay::start(at(&world), setup.world_delays).await;
            let links = Links {
                local: &local_link,
                world: &world_link,
            };
            let config = config(&setup, name, &origin, &links);
            let nodes = (0..setup.nodes).map(|number| {
                let name = format!("{name}-{number}");
                let folder = folder.path().join(&name);
                Node::new(&name, &binary, folder, &config)
            });
            data_centers.push(DataCenter {
                nodes: nodes.collect(),
                local,
                local_link,
                world_link,
            });
        }
        let nodes = data_centers.iter().flat_map(|dc| &dc.nodes);
        let admins = nodes.map(|node| (node.name().to_owned(), node.admin().clone()));
        let recorder = Recorder::start(folder.path(), admins.collect());
        let mut cluster = Self {
            origin,
            data_centers,
            world,
            recorder,
            folder: Some(folder),
        };
        cluster.start_nodes().await;
        cluster
    }

    async fn start_nodes(&mut self) {
        // All at once, as after a power failure.
        for node in self.nodes_mut() {
            node.spawn();
        }
        for node in self.nodes_mut() {
            node.serves().await;
        }
    }

    fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.data_centers.iter_mut().flat_map(|dc| &mut dc.nodes)
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.data_centers.iter().flat_map(|dc| &dc.nodes)
    }

    /// All nodes, data center by data center.
    #[must_use]
    pub fn all(&self) -> Vec<NodeAt> {
        let data_centers = self.data_centers.iter().enumerate();
        data_centers
            .flat_map(|(dc, data_center)| (0..data_center.nodes.len()).map(move |n| NodeAt(dc, n)))
            .collect()
    }

    /// Where visitors go.
    #[must_use]
    pub fn doors(&self) -> Doors {
        let rows = self.data_centers.iter().map(|dc| {
            let row = dc.nodes.iter();
            row.map(|node| (node.name().to_owned(), node.door().clone()))
                .collect()
        });
        Doors::new(rows.collect())
    }

    /// The origin.
    #[must_use]
    pub const fn origin(&self) -> &JudgingOrigin {
        &self.origin
    }

    /// A node.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    #[must_use]
    pub fn node(&self, at: NodeAt) -> &Node {
        &self.data_centers[at.0].nodes[at.1]
    }

    /// A node, to do something to it.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    pub fn node_mut(&mut self, at: NodeAt) -> &mut Node {
        &mut self.data_centers[at.0].nodes[at.1]
    }

    /// Starts a node again, with what it had in its data folder.
    ///
    /// # Panics
    ///
    /// If it does not serve again.
    pub async fn restart(&mut self, at: NodeAt) {
        let node = self.node_mut(at);
        node.spawn();
        node.serves().await;
    }

    /// The store of a data center, to do something to it.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    pub fn local_mut(&mut self, data_center: usize) -> &mut RedisServer {
        &mut self.data_centers[data_center].local
    }

    /// The store of the world, to do something to it.
    pub fn world_mut(&mut self) -> &mut RedisServer {
        &mut self.world
    }

    /// The link of a data center's nodes to its own store.
    ///
    /// # Panics
    ///
    /// If there is no data center of this number.
    #[must_use]
    pub fn local_link(&self, data_center: usize) -> &Relay {
        &self.data_centers[data_center].local_link
    }

    /// The link of a data center's nodes to the world's store.
    ///
    /// # Panics
    ///
    /// If there is no data center of this number.
    #[must_use]
    pub fn world_link(&self, data_center: usize) -> &Relay {
        &self.data_centers[data_center].world_link
    }

    /// Waits until so many are inside, as the origin counts.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn has_inside(&self, count: u32) {
        let what = format!("{count} are inside");
        eventually(&what, async || self.origin.inside() >= count as usize).await;
    }

    /// Waits until so many more have been admitted.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn admits(&self, more: u64) {
        let wanted = self.origin.admissions() + more;
        let what = format!("{more} more are admitted");
        eventually(&what, async || self.origin.admissions() >= wanted).await;
    }

    /// Fails unless both limits were kept at every moment, nobody overstayed, and nobody with a valid
    /// ticket was queued (I3). Prints what was counted.
    ///
    /// # Panics
    ///
    /// With the evidence, if one of them does not hold.
    pub fn assert_kept(&self, tally: &Tally) {
        let verdict = self.origin.verdict();
        eprintln!(
            "{verdict:?}\nby minute: {:?}\n{tally}",
            self.origin.minutes()
        );
        let evidence = self.origin.evidence();
        assert!(
            verdict.is_within_limits(),
            "a limit was exceeded:\n{}",
            evidence.join("\n")
        );
        assert!(
            tally.thrown_out.is_empty(),
            "valid tickets were queued:\n{}",
            tally.thrown_out.join("\n")
        );
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let has_failed = std::thread::panicking();
        if !has_failed && std::env::var_os(KEEP).is_none() {
            return;
        }
        if has_failed {
            for node in self.nodes() {
                eprintln!("{}", node.log_tail(TAIL_LINES));
            }
            eprintln!("{}", self.recorder.tail(self.all().len()));
        }
        if let Some(folder) = self.folder.take() {
            eprintln!(
                "all logs, and what the nodes said all the time (`states`), stay in {}",
                folder.keep().display()
            );
        }
    }
}

/// What a node is told of the stores.
struct Links<'a> {
    local: &'a Relay,
    world: &'a Relay,
}

fn config(setup: &Setup, data_center: &str, origin: &JudgingOrigin, links: &Links<'_>) -> String {
    let Setup {
        limits,
        session_secs,
        room,
        ..
    } = setup;
    format!(
        "[server]\n\
         listen = \"127.0.0.1:0\"\n\
         admin = \"127.0.0.1:0\"\n\
         data_center = \"{data_center}\"\n\
         [server.time_outs]\n\
         drain = \"2s\"\n\
         [store]\n\
         kind = \"valkey\"\n\
         local = \"redis://{}\"\n\
         world = \"redis://{}\"\n\
         [[room]]\n\
         name = \"{ROOM}\"\n\
         origin = \"http://{}\"\n\
         total_active_users = {}\n\
         new_users_per_minute = {}\n\
         session_duration = \"{session_secs}s\"\n\
         bypass = []\n\
         {room}\n",
        links.local.address(),
        links.world.address(),
        origin.address(),
        limits.total_active_users,
        limits.new_users_per_minute,
    )
}

fn at(server: &RedisServer) -> SocketAddr {
    ([127, 0, 0, 1], server.port()).into()
}
