//! What does a deployment consist of? A store for the world and one for each data center, links in
//! front of them, nodes, and the origin that judges.
//!
//! Everything ends when the [`Cluster`] is dropped. When a test fails the logs are printed and
//! kept; with [`KEEP`] they are kept anyway.

mod data_center;
mod parts;

use std::time::Duration;

use anteroom_room::rules::Limits;
use anteroom_testkit::eventually;
use anteroom_testkit::relay::Delays;
use tempfile::TempDir;

use self::data_center::{DataCenter, Surroundings};
use crate::binary;
use crate::crowd::{Doors, Tally};
use crate::judge::{self, CheckingOrigin};
use crate::node::Node;
use crate::recorder::{self, Recorder};
use crate::stepped::Shim;
use crate::stores::{Store, StoreKind};

/// Half a round trip to the global store: 70 ms there and back.
const GLOBAL_DELAY: Duration = Duration::from_millis(35);
/// Somebody who waits and changes the node is counted at the former one as well until the next ask
/// is overdue there, and those who are counted at the front hold back all behind them. Left to
/// itself a node asks for patience of up to a minute; a run does not last much longer.
const REFRESH_INTERVAL: &str = "refresh_interval = \"2s\"";
/// If it is set, logs are kept even if all went well.
pub const KEEP: &str = "ANTEROOM_CLUSTER_KEEP";
/// Nodes speak to the world every second while something happens, and every ten while nothing does.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// What a node logs that lends for a shorter time.
const SHORT_LEASE: &str = "global lease shortened for a fault run";
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
    /// The room's allocation.
    pub allocation: String,
    /// What the store of each data center is made of.
    pub local: StoreKind,
    /// The same of the world's; `None`: one data center, whose store is all there is.
    pub global: Option<StoreKind>,
    /// Of the links to the global store.
    pub global_delays: Delays,
    /// Whether it can be heard which node speaks to the global store.
    pub has_taps: bool,
    /// How far the wall clocks of the nodes of each data center are ahead, in order; those that are
    /// not named have the machine's.
    pub clocks_ms: Vec<i64>,
    /// For how long the global ledger lends to a data center; `None`: ten minutes, as in
    /// production. Programs that are built for release lend for ten minutes, whatever stands here.
    pub global_lease_secs: Option<u64>,
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
            allocation: "leases".to_owned(),
            local: StoreKind::Single,
            global: Some(StoreKind::Single),
            global_delays: Delays::each_way(GLOBAL_DELAY),
            has_taps: false,
            clocks_ms: Vec::new(),
            global_lease_secs: None,
            room: REFRESH_INTERVAL.to_owned(),
        }
    }
}

/// A node: the number of its data center, and its number there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NodeAt(pub usize, pub usize);

/// A deployment that runs.
#[derive(Debug)]
pub struct Cluster {
    origin: CheckingOrigin,
    data_centers: Vec<DataCenter>,
    global: Option<Store>,
    recorder: Recorder,
    /// Holds what the clocks of processes read all the time.
    _shim: Shim,
    /// After the nodes, which write into it; taken out to be kept.
    folder: Option<TempDir>,
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
        let origin = judge::start(setup.limits, session).await;
        let shim = Shim::new();
        let global = match setup.global {
            Some(kind) => Some(Store::start(kind, &shim).await),
            None => None,
        };
        let around = Surroundings {
            binary: &binary,
            folder: folder.path(),
            origin: &origin,
            global: global.as_ref(),
            shim: &shim,
        };
        let mut data_centers: Vec<DataCenter> = Vec::new();
        for name in &setup.data_centers {
            data_centers.push(DataCenter::start(&setup, name, &around).await);
        }
        let nodes = data_centers.iter().flat_map(|dc| &dc.nodes);
        let admins = nodes.map(|node| (node.name().to_owned(), node.admin().clone()));
        let recorder = Recorder::start(folder.path(), admins.collect());
        let mut cluster = Self {
            origin,
            data_centers,
            global,
            recorder,
            _shim: shim,
            folder: Some(folder),
        };
        cluster.start_nodes().await;
        if setup.global_lease_secs.is_some() {
            cluster.check_global_lease();
        }
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

    /// Fails if a node lends for ten minutes: the run would wait in vain for the end of that.
    fn check_global_lease(&self) {
        for node in self.nodes() {
            assert!(
                node.log().contains(SHORT_LEASE),
                "{} is built for release and lends for ten minutes: run it without --release",
                node.name()
            );
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
    pub const fn origin(&self) -> &CheckingOrigin {
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

    /// Waits until every node knows of all others: some allocations divide by their number.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn know_each_other(&self) {
        let all = self.nodes().count() as u64;
        let know = async || {
            for node in self.nodes() {
                let state = recorder::state(node.admin()).await;
                let known = state.and_then(|state| state.get("globalWorkersActive")?.as_u64());
                if known != Some(all) {
                    return false;
                }
            }
            true
        };
        eventually("all nodes know each other", know).await;
    }

    /// Fails unless both limits were kept at every moment, nobody overstayed, and nobody with a
    /// valid ticket was queued (I3). Prints what was counted.
    ///
    /// # Panics
    ///
    /// With the evidence, if one of them does not hold.
    pub fn assert_kept(&self, counters: &Tally) {
        self.assert_nobody_thrown_out(counters);
        let evidence = self.origin.evidence();
        assert!(
            self.origin.verdict().is_within_limits(),
            "a limit was exceeded:\n{}",
            evidence.join("\n")
        );
    }

    /// Fails if somebody with a valid ticket was queued (I3), whatever became of the limits. Prints
    /// what was counted.
    ///
    /// # Panics
    ///
    /// With the evidence, if that happened.
    pub fn assert_nobody_thrown_out(&self, counters: &Tally) {
        let verdict = self.origin.verdict();
        eprintln!(
            "{verdict:?}\nby minute: {:?}\n{counters}",
            self.origin.minutes()
        );
        assert!(
            counters.thrown_out.is_empty(),
            "valid tickets were queued:\n{}",
            counters.thrown_out.join("\n")
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
