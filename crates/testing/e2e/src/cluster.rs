//! Deployment under test: a global store and one store for each data center, links in front of
//! them, nodes, and an origin that checks the limits.
//!
//! Everything ends when the [`Cluster`] is dropped. When a test fails, the logs are printed and
//! kept; with [`KEEP`] they are always kept.

mod data_center;
mod parts;

use std::time::Duration;

use anteroom_room::rules::Limits;
use anteroom_testkit::eventually;
use anteroom_testkit::relay::Delays;
use tempfile::TempDir;

use self::data_center::{DataCenter, Surroundings};
use crate::binary;
use crate::node::Node;
use crate::origin::{self, CheckingOrigin};
use crate::recorder::{self, Recorder};
use crate::stepped::Shim;
use crate::stores::{Store, StoreKind};
use anteroom_testkit::load::{NodeAt, NodeRoutes, VisitorCounts};

/// Half a round trip to the global store: 70 ms there and back.
const GLOBAL_DELAY: Duration = Duration::from_millis(35);
/// Interval of polls. By default it is up to a minute, which is too long for a run.
const REFRESH_INTERVAL: &str = "refresh_interval = \"2s\"";
/// Environment variable that keeps the logs of a successful run.
pub const KEEP: &str = "ANTEROOM_CLUSTER_KEEP";
/// Nodes sync with the root every second under traffic, and every ten seconds without.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Log message of a node with a shorter lease.
const SHORT_LEASE: &str = "global lease shortened for a fault run";
/// Lines of each log that a failure prints; the folder has the rest.
const TAIL_LINES: usize = 25;

/// Setup of a cluster.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Limits of the room.
    pub limits: Limits,
    /// Session duration of the room, in seconds.
    pub session_secs: u64,
    /// Names of the data centers.
    pub data_centers: Vec<String>,
    /// Nodes per data center.
    pub nodes: usize,
    /// Allocation of the room.
    pub allocation: String,
    /// Kind of the local stores.
    pub local: StoreKind,
    /// Kind of the global store; `None`: one data center with one store.
    pub global: Option<StoreKind>,
    /// Delays of the links to the global store.
    pub global_delays: Delays,
    /// Whether taps show which node syncs with the global store.
    pub has_taps: bool,
    /// Offsets of the wall clocks of each data center's nodes, in order; nodes without an entry
    /// have the machine's clock.
    pub clocks_ms: Vec<i64>,
    /// Length of a lease from the root to a data center; `None`: ten minutes, as in production.
    /// Release builds always use ten minutes.
    pub global_lease_secs: Option<u64>,
    /// Whether the states of the nodes are recorded, as evidence for a failed run. The requests
    /// disturb a measurement.
    pub is_recorded: bool,
    /// Further lines of the store's configuration.
    pub store: String,
    /// Further lines of the room's configuration.
    pub room: String,
}

impl Setup {
    /// Creates a setup of two data centers with three nodes each, and a room with these limits.
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
            is_recorded: true,
            store: String::new(),
            room: REFRESH_INTERVAL.to_owned(),
        }
    }
}

/// Running deployment.
#[derive(Debug)]
pub struct Cluster {
    origin: CheckingOrigin,
    data_centers: Vec<DataCenter>,
    global: Option<Store>,
    recorder: Option<Recorder>,
    /// Keeps the files that clocks of processes read.
    _shim: Shim,
    /// After the nodes, which write into it; taken out to be kept.
    folder: Option<TempDir>,
}

impl Cluster {
    /// Starts everything and waits until all nodes serve and have a lease.
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
        let origin = origin::start(setup.limits, session).await;
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
        let admins = setup.is_recorded.then(|| admins.collect());
        let recorder = admins.map(|admins| Recorder::start(folder.path(), admins));
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

    /// Fails if a node has leases of ten minutes: the run would wait in vain for their end.
    fn check_global_lease(&self) {
        for node in self.nodes() {
            assert!(
                node.log().contains(SHORT_LEASE),
                "{} is built for release and has leases of ten minutes; run it without --release",
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

    /// Returns all nodes, data center by data center.
    #[must_use]
    pub fn all(&self) -> Vec<NodeAt> {
        let data_centers = self.data_centers.iter().enumerate();
        data_centers
            .flat_map(|(dc, data_center)| (0..data_center.nodes.len()).map(move |n| NodeAt(dc, n)))
            .collect()
    }

    /// Returns the routes of visitors.
    #[must_use]
    pub fn routes(&self) -> NodeRoutes {
        let rows = self.data_centers.iter().map(|dc| {
            let row = dc.nodes.iter();
            row.map(|node| (node.name().to_owned(), node.address().clone()))
                .collect()
        });
        NodeRoutes::new(rows.collect())
    }

    /// Returns the origin.
    #[must_use]
    pub const fn origin(&self) -> &CheckingOrigin {
        &self.origin
    }

    /// Returns a node.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    #[must_use]
    pub fn node(&self, at: NodeAt) -> &Node {
        &self.data_centers[at.0].nodes[at.1]
    }

    /// Returns a node, to change it.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    pub fn node_mut(&mut self, at: NodeAt) -> &mut Node {
        &mut self.data_centers[at.0].nodes[at.1]
    }

    /// Restarts a node with its data folder.
    ///
    /// # Panics
    ///
    /// If it does not serve again.
    pub async fn restart(&mut self, at: NodeAt) {
        let node = self.node_mut(at);
        node.spawn();
        node.serves().await;
    }

    /// Waits for so many active visitors, as the origin counts.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn has_inside(&self, count: u32) {
        let what = format!("{count} visitors are active");
        eventually(&what, async || self.origin.inside() >= count as usize).await;
    }

    /// Waits for so many more admissions.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn admits(&self, more: u64) {
        let wanted = self.origin.admissions() + more;
        let what = format!("{more} more visitors are admitted");
        eventually(&what, async || self.origin.admissions() >= wanted).await;
    }

    /// Waits until every node knows all others: some allocations divide by their number.
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

    /// Fails unless both limits held at every moment, no visitor passed after its seat, and no
    /// visitor with a valid ticket was queued (I3). Prints the counts.
    ///
    /// # Panics
    ///
    /// With the evidence, if one of them does not hold.
    pub fn assert_kept(&self, counters: &VisitorCounts) {
        self.assert_no_valid_ticket_queued(counters);
        let evidence = self.origin.evidence();
        assert!(
            self.origin.verdict().is_within_limits(),
            "a limit was exceeded:\n{}",
            evidence.join("\n")
        );
    }

    /// Fails if a visitor with a valid ticket was queued (I3), whatever the limits. Prints the
    /// counts.
    ///
    /// # Panics
    ///
    /// With the evidence, if that happened.
    pub fn assert_no_valid_ticket_queued(&self, counters: &VisitorCounts) {
        let verdict = self.origin.verdict();
        eprintln!(
            "{verdict:?}\nby minute: {:?}\n{counters}",
            self.origin.minutes()
        );
        assert_eq!(
            counters.queued_with_ticket, 0,
            "valid tickets were queued: {counters}"
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
            if let Some(recorder) = &self.recorder {
                eprintln!("{}", recorder.tail(self.all().len()));
            }
        }
        if let Some(folder) = self.folder.take() {
            eprintln!(
                "all logs, and the states of the nodes over time (`states`), stay in {}",
                folder.keep().display()
            );
        }
    }
}
