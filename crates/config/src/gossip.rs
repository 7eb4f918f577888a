//! `[gossip]`: the exchange of counts between nodes, for limits with `store = "gossip"`.
//!
//! Nothing here resolves names or opens files.

use std::net::SocketAddr;
use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use crate::address::host::HostPort;

use super::keys::{A_FILE, path_key, time_key};
use super::kind::{Address, Duration, ServerAddress, Text};
use super::problem::Finding;
use super::reader::{Key, Table};

/// `[gossip]`: the exchange of counts between nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GossipConfig {
    /// UDP address that this node listens on.
    pub listen: SocketAddr,
    /// Address at which other nodes reach this node, if it is another one.
    pub advertise: Option<SocketAddr>,
    /// Some of the other nodes; this node may be among them.
    pub peers: Vec<HostPort>,
    /// File of the secret that all nodes share.
    pub secret_file: PathBuf,
    /// Time for which counts are collected before they are sent.
    pub interval: DurationMs,
}

/// Most peers; a few are enough, because each peer knows the others.
const PEERS_MAX: usize = 64;

const LISTEN: Key<Address> = Key {
    name: "listen",
    kind: Address,
    default: None,
};
const ADVERTISE: Key<Address> = Key {
    name: "advertise",
    kind: Address,
    default: None,
};
const PEERS: Key<ServerAddress> = Key {
    name: "peers",
    kind: ServerAddress {
        allowed: "a node such as \"10.0.0.6:7946\" or \"anteroom.example:7946\"",
        usual_port: None,
    },
    default: Some("[]"),
};
const SECRET_FILE: Key<Text<PathBuf>> = path_key("secret_file", A_FILE, None);
/// Interval between messages. Shorter costs CPU, longer makes limits less exact.
const INTERVAL: Key<Duration> = time_key("interval", 10, DurationMs::from_secs(10), "\"100ms\"");

/// Reads the table; `None` if it has a mistake.
pub(super) fn read(mut table: Table<'_>) -> Option<GossipConfig> {
    let mistakes = table.notes.count();
    let listen = table.required(&LISTEN);
    let advertise = table.optional(&ADVERTISE);
    let peers = table.list(&PEERS).unwrap_or_default();
    let secret_file = table.required(&SECRET_FILE);
    let interval = table.defaulted(&INTERVAL);
    if peers.len() > PEERS_MAX {
        let location = table.location(PEERS.name);
        let found = Finding::Value(format!("{} peers", peers.len()));
        let allowed = format!("at most {PEERS_MAX}: a few are enough, each peer knows the others");
        table.notes.report(&location, found, allowed, None);
    }
    let nowhere = |address: &SocketAddr| address.ip().is_unspecified() || address.port() == 0;
    let (key, reached) = match advertise {
        Some(advertise) => (ADVERTISE.name, Some(advertise)),
        None => (LISTEN.name, listen),
    };
    if let Some(reached) = reached.filter(nowhere) {
        let location = table.location(key);
        let found = Finding::Value(format!("\"{reached}\", to which no node can send"));
        let allowed = "an address of this node and a port, in listen or else in advertise";
        table.notes.report(&location, found, allowed, None);
    }
    let is_right = table.notes.count() == mistakes;
    table.finish();
    let (listen, secret_file) = listen.zip(secret_file)?;
    is_right.then(|| GossipConfig {
        listen,
        advertise,
        peers: peers.into_iter().map(|placed| placed.value).collect(),
        secret_file,
        interval,
    })
}
