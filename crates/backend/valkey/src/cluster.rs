//! The way to a cluster: which server has which key, and a link to each.
//!
//! A call goes to the server that is believed to have the slot. Servers that do not have it say
//! where it is, and have done nothing; only then is a call sent again. A call whose answer did not
//! come is never sent again, and no server waits for another: each has a circuit of its own.

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

/// How often a call is sent on. A slot that moves costs one or two; more is a circle.
const REDIRECTS_MAX: u32 = 5;
/// How often the servers are asked at most which slots they have, once they have told. While a
/// server is away every call to it is a reason to ask, and the cluster needs seconds to replace it.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The way to a cluster. Clones share it.
#[derive(Clone)]
pub(crate) struct Cluster(Arc<Shared>);

struct Shared {
    seeds: Vec<HostPort>,
    access: Access,
    /// One asks for the slots; the others wait for what comes.
    asking: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    links: BTreeMap<HostPort, Link>,
    slots: Option<SlotTable>,
    looked_at: Option<Instant>,
    is_closed: bool,
}

impl Cluster {
    /// At least one seed.
    pub(crate) fn new(seeds: Vec<HostPort>, access: Access) -> Self {
        Self(Arc::new(Shared {
            seeds,
            access,
            asking: tokio::sync::Mutex::new(()),
            state: Mutex::default(),
        }))
    }

    /// Sends a request to the server that has `key`.
    pub(crate) async fn call(&self, key: &str, request: &Request) -> Result<ServerReply, Failure> {
        let slot = slots::slot_of(key.as_bytes());
        let mut server = self.server_of(slot).await?;
        let mut request = request.clone();
        for _ in 0..=REDIRECTS_MAX {
            let failure = match self.link(&server)?.call(&request).await {
                Ok(answered) => return Ok(answered),
                Err(failure) => failure.if_replaced(),
            };
            if failure.doubts_master() {
                self.look_again();
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
                self.look_again();
            }
            server = next;
        }
        Err(Failure::TooManyRedirects {
            redirects: REDIRECTS_MAX,
        })
    }

    /// All servers that have slots.
    pub(crate) async fn masters(&self) -> Result<Vec<Link>, Failure> {
        self.ask_for_slots().await?;
        let masters = {
            let state = self.0.state.lock();
            state.slots.as_ref().map(|slots| slots.servers().to_vec())
        };
        let masters = masters.unwrap_or_default();
        masters.iter().map(|server| self.link(server)).collect()
    }

    /// Ends all connections; later calls fail.
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
            let _only_one = self.0.asking.lock().await;
            let is_known = self.0.state.lock().slots.is_some();
            if !is_known {
                self.ask_for_slots().await?;
            }
        }
        let server = {
            let state = self.0.state.lock();
            let slots = state.slots.as_ref();
            slots.and_then(|slots| slots.server_of(slot).cloned())
        };
        if server.is_none() {
            self.look_again();
        }
        server.ok_or(Failure::NoServer { slot })
    }

    /// Asks for the slots beside the calls, unless that was done just now.
    fn look_again(&self) {
        let now = Instant::now();
        {
            let mut state = self.0.state.lock();
            let is_due = |at: Instant| now.saturating_duration_since(at) >= LOOK_AGAIN_AFTER;
            if state.is_closed || !state.looked_at.is_none_or(is_due) {
                return;
            }
            state.looked_at = Some(now);
        }
        let cluster = self.clone();
        tokio::spawn(async move {
            if let Err(failure) = cluster.ask_for_slots().await {
                tracing::debug!(%failure, "no server of the cluster tells the slots");
            }
        });
    }

    /// Asks one server after the other until one tells. The first reason is told if none does.
    async fn ask_for_slots(&self) -> Result<(), Failure> {
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
        for server in self.servers_to_ask() {
            let told = match self.link(&server)?.call(&request).await {
                Ok(answered) => SlotTable::read(&answered.value, &server.host)
                    .ok_or_else(|| answered.connection.strange("no table of slots")),
                Err(failure) => Err(failure),
            };
            match told {
                Ok(slots) => {
                    self.learn(slots);
                    return Ok(());
                }
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
        Err(first_failure.unwrap_or(Failure::NobodyConnects))
    }

    /// Those that answer, those that should, those that were configured.
    fn servers_to_ask(&self) -> Vec<HostPort> {
        let state = self.0.state.lock();
        let (connected, others): (Vec<_>, Vec<_>) = state
            .links
            .iter()
            .partition(|(_, link)| link.is_connected());
        let known = connected.into_iter().chain(others);
        let mut servers: Vec<HostPort> = known.map(|(server, _)| server.clone()).collect();
        let told = state.slots.as_ref().map_or(&[][..], SlotTable::servers);
        for server in told.iter().chain(&self.0.seeds) {
            if !servers.contains(server) {
                servers.push(server.clone());
            }
        }
        servers
    }

    fn learn(&self, slots: SlotTable) {
        let mut state = self.0.state.lock();
        // Servers that left the cluster are forgotten; calls under way keep their connection.
        let seeds = &self.0.seeds;
        let is_wanted =
            |server: &HostPort| slots.servers().contains(server) || seeds.contains(server);
        state.links.retain(|server, _| is_wanted(server));
        state.slots = Some(slots);
    }
}
