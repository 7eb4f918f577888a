//! Link to a cluster: which server has which key, and a link to each server.
//!
//! A request goes to the server that should have the slot. A server that does not have it redirects
//! without doing anything; only then is a request sent again. A request without a reply is never
//! sent again. Each server has its own circuit, so servers do not delay each other.

mod slots;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::slots::SlotTable;
use crate::access::Access;
use crate::connection::Request;
use crate::failure::{Failure, Redirect};
use crate::link::{Link, ServerReply};

/// Most redirects of a request. A slot that moves costs one or two; more is a loop.
const REDIRECTS_MAX: u32 = 5;
/// Shortest period between loads of the slot table. While a server is unavailable every request to
/// it triggers one, and the cluster needs seconds to replace it.
const RELOAD_AFTER: Duration = Duration::from_millis(250);

/// Link to a cluster. Clones share it.
#[derive(Clone)]
pub(crate) struct Cluster(Arc<Shared>);

struct Shared {
    seeds: Vec<HostPort>,
    access: Access,
    /// Serializes loads of the slot table; other requests wait for the result.
    loading: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    links: BTreeMap<HostPort, Link>,
    slots: Option<SlotTable>,
    loaded_at: Option<Instant>,
    is_closed: bool,
}

impl Cluster {
    /// Creates a link to a cluster with at least one seed.
    pub(crate) fn new(seeds: Vec<HostPort>, access: Access) -> Self {
        Self(Arc::new(Shared {
            seeds,
            access,
            loading: tokio::sync::Mutex::new(()),
            state: Mutex::default(),
        }))
    }

    /// Sends a request to the server that has `key`.
    pub(crate) async fn send(&self, key: &str, request: &Request) -> Result<ServerReply, Failure> {
        let slot = slots::slot_of(key.as_bytes());
        let mut server = self.server_of(slot).await?;
        let mut request = request.clone();
        for _ in 0..=REDIRECTS_MAX {
            let failure = match self.link(&server)?.send(&request).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure.if_replaced(),
            };
            if failure.doubts_master() {
                self.reload_slots();
            }
            let Some(redirect) = failure.redirect() else {
                return Err(failure);
            };
            request.is_asking = matches!(redirect, Redirect::Ask(_));
            let (Redirect::Moved(address) | Redirect::Ask(address)) = redirect;
            let Some(next) = slots::read_address(address, &server.host) else {
                return Err(failure);
            };
            if let Redirect::Moved(_) = redirect {
                let mut state = self.0.state.lock();
                if let Some(slots) = &mut state.slots {
                    slots.move_to(slot, &next);
                }
                drop(state);
                self.reload_slots();
            }
            server = next;
        }
        Err(Failure::TooManyRedirects {
            redirects: REDIRECTS_MAX,
        })
    }

    /// Returns links to all servers that have slots.
    pub(crate) async fn masters(&self) -> Result<Vec<Link>, Failure> {
        self.load_slots().await?;
        let masters = {
            let state = self.0.state.lock();
            state.slots.as_ref().map(|slots| slots.servers().to_vec())
        };
        let masters = masters.unwrap_or_default();
        masters.iter().map(|server| self.link(server)).collect()
    }

    /// Ends all connections; later requests fail.
    pub(crate) fn close(&self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        for link in state.links.values() {
            link.close();
        }
        state.links.clear();
    }

    fn link(&self, server: &HostPort) -> Result<Link, Failure> {
        let mut state = self.0.state.lock();
        if state.is_closed {
            return Err(Failure::Closed);
        }
        let links = &mut state.links;
        if let Some(link) = links.get(server) {
            return Ok(link.clone());
        }
        let link = Link::to(server.clone(), self.0.access.clone());
        links.insert(server.clone(), link.clone());
        Ok(link)
    }

    async fn server_of(&self, slot: u16) -> Result<HostPort, Failure> {
        let is_known = self.0.state.lock().slots.is_some();
        if !is_known {
            let _only_one = self.0.loading.lock().await;
            let is_known = self.0.state.lock().slots.is_some();
            if !is_known {
                self.load_slots().await?;
            }
        }
        let server = {
            let state = self.0.state.lock();
            let slots = state.slots.as_ref();
            slots.and_then(|slots| slots.server_of(slot).cloned())
        };
        if server.is_none() {
            self.reload_slots();
        }
        server.ok_or(Failure::NoServer { slot })
    }

    /// Loads the slot table in the background, unless that was done just now.
    fn reload_slots(&self) {
        let now = Instant::now();
        {
            let mut state = self.0.state.lock();
            let is_due = |at: Instant| now.saturating_duration_since(at) >= RELOAD_AFTER;
            if state.is_closed || !state.loaded_at.is_none_or(is_due) {
                return;
            }
            state.loaded_at = Some(now);
        }
        let cluster = self.clone();
        tokio::spawn(async move {
            if let Err(failure) = cluster.load_slots().await {
                tracing::debug!(%failure, "no server of the cluster returns the slot table");
            }
        });
    }

    /// Tries one server after the other until one returns the slot table. Returns the first failure
    /// if none does.
    async fn load_slots(&self) -> Result<(), Failure> {
        let request = Request {
            command: {
                let mut command = redis::cmd("CLUSTER");
                command.arg("SLOTS");
                command
            },
            is_asking: false,
            meant_for: None,
        };
        let mut first_failure = None;
        for server in self.candidates() {
            let loaded = match self.link(&server)?.send(&request).await {
                Ok(reply) => SlotTable::read(&reply.value, &server.host)
                    .ok_or_else(|| reply.connection.unexpected_reply("no table of slots")),
                Err(failure) => Err(failure),
            };
            match loaded {
                Ok(slots) => {
                    self.update_slots(slots);
                    return Ok(());
                }
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
        Err(first_failure.unwrap_or(Failure::ConnectAborted))
    }

    /// Returns the servers to try: connected ones, other known ones, configured ones.
    fn candidates(&self) -> Vec<HostPort> {
        let state = self.0.state.lock();
        let (connected, others): (Vec<_>, Vec<_>) = state
            .links
            .iter()
            .partition(|(_, link)| link.is_connected());
        let known = connected.into_iter().chain(others);
        let mut servers: Vec<HostPort> = known.map(|(server, _)| server.clone()).collect();
        let in_table = state.slots.as_ref().map_or(&[][..], SlotTable::servers);
        for server in in_table.iter().chain(&self.0.seeds) {
            if !servers.contains(server) {
                servers.push(server.clone());
            }
        }
        servers
    }

    fn update_slots(&self, slots: SlotTable) {
        let mut state = self.0.state.lock();
        // Servers that left the cluster are forgotten; requests in flight keep their connection.
        let seeds = &self.0.seeds;
        let is_wanted =
            |server: &HostPort| slots.servers().contains(server) || seeds.contains(server);
        state.links.retain(|server, _| is_wanted(server));
        state.slots = Some(slots);
    }
}
