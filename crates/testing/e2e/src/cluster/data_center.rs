//! Data center: its store, the links, and the configuration of each node.

use std::net::SocketAddr;
use std::path::Path;

use anteroom_testkit::relay::{Delays, Relay};

use super::Setup;
use crate::node::Node;
use crate::origin::{CheckingOrigin, ROOM};
use crate::stepped::Shim;
use crate::stores::{Store, StoreKind};
use crate::switch::Switch;

/// Environment variable with a shorter lease of the root, in seconds; `anteroom-node` reads it.
const GLOBAL_LEASE: &str = "ANTEROOM_DEBUG_GLOBAL_LEASE_SECS";

/// Data center.
#[derive(Debug)]
pub(super) struct DataCenter {
    pub(super) nodes: Vec<Node>,
    pub(super) local: Store,
    /// Link to the local store; none in front of a store that announces addresses itself.
    pub(super) local_link: Option<Relay>,
    pub(super) global_link: Option<Relay>,
    /// Taps between each node and the link to the global store, if the setup has them.
    pub(super) taps: Vec<Switch>,
}

/// Parts that all data centers share.
pub(super) struct Surroundings<'a> {
    pub(super) binary: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) origin: &'a CheckingOrigin,
    pub(super) global: Option<&'a Store>,
    pub(super) shim: &'a Shim,
}

impl DataCenter {
    /// Starts the store and the links. The nodes do not run yet.
    pub(super) async fn start(setup: &Setup, name: &str, around: &Surroundings<'_>) -> Self {
        let local = Store::start(setup.local, around.shim).await;
        let local_link = link(&local, Delays::default()).await;
        let global_link = match around.global {
            Some(global) => link(global, setup.global_delays).await,
            None => None,
        };
        let mut data_center = Self {
            nodes: Vec::new(),
            local,
            local_link,
            global_link,
            taps: Vec::new(),
        };
        for number in 0..setup.nodes {
            let node = data_center.node(setup, name, number, around).await;
            data_center.nodes.push(node);
        }
        data_center
    }

    /// Creates a node, with everything in front of it.
    async fn node(
        &mut self,
        setup: &Setup,
        data_center: &str,
        number: usize,
        around: &Surroundings<'_>,
    ) -> Node {
        let mut to_global = self.global_link.as_ref().map(Relay::address);
        if let Some(address) = to_global
            && setup.has_taps
        {
            let tap = Switch::start(address).await;
            to_global = Some(tap.address());
            self.taps.push(tap);
        }
        let local = self.local.url(self.local_link.as_ref().map(Relay::address));
        let global = around.global.map(|global| global.url(to_global));
        let config = config(setup, data_center, around.origin.address(), &local, global);
        let name = format!("{data_center}-{number}");
        let folder = around.folder.join(&name);
        let mut node = Node::new(&name, around.binary, folder, &config);
        if let Some(secs) = setup.global_lease_secs {
            node = node.with_variable(GLOBAL_LEASE, secs.to_string());
        }
        match setup.clocks_ms.get(number) {
            Some(&offset_ms) => node.with_clock(&around.shim.clock(&name, offset_ms)),
            None => node,
        }
    }
}

/// Creates a link to a store, unless the store announces addresses itself.
async fn link(store: &Store, delays: Delays) -> Option<Relay> {
    match store.address() {
        Some(address) => Some(Relay::start(address, delays).await),
        None => None,
    }
}

fn config(
    setup: &Setup,
    data_center: &str,
    origin: SocketAddr,
    local: &str,
    global: Option<String>,
) -> String {
    let Setup {
        limits,
        session_secs,
        allocation,
        store,
        room,
        ..
    } = setup;
    let stores = match (local, global) {
        ("", _) => "kind = \"embedded\"\n".to_owned(),
        (local, None) => format!("kind = \"valkey\"\nlocal = \"{local}\"\n"),
        (local, Some(global)) => {
            format!("kind = \"valkey\"\nlocal = \"{local}\"\nglobal = \"{global}\"\n")
        }
    };
    format!(
        "[server]\n\
         listen = \"127.0.0.1:0\"\n\
         admin = \"127.0.0.1:0\"\n\
         data_center = \"{data_center}\"\n\
         [server.timeouts]\n\
         drain = \"2s\"\n\
         [store]\n\
         {stores}\
         {store}\
         [[room]]\n\
         name = \"{ROOM}\"\n\
         origin = \"http://{origin}\"\n\
         total_active_users = {}\n\
         new_users_per_minute = {}\n\
         session_duration = \"{session_secs}s\"\n\
         allocation = \"{allocation}\"\n\
         bypass = []\n\
         {room}\n",
        limits.total_active_users, limits.new_users_per_minute,
    )
}

impl Setup {
    /// Changes the setup to one store for all nodes and nothing above it.
    #[must_use]
    pub fn on_one_store(mut self, kind: StoreKind) -> Self {
        self.data_centers.truncate(1);
        self.local = kind;
        self.global = None;
        self
    }
}
