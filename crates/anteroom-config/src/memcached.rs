//! `[memcached]`: where limits with `store = "memcached"` are counted.
//!
//! Nothing is connected to: servers are names.

use toml::de::DeValue;

use super::kind::{Kind, Refusal};
use super::model::MemcachedConfig;
use super::notes::Placed;
use super::problem::Finding;
use super::reader::{Key, Table};
use super::store::PREFIX;
use anteroom_address::host::{HostPort, split_port};

/// Most servers; far more than it takes to count calls, which is little to keep.
const SERVERS_MAX: usize = 64;
const USUAL_PORT: u16 = 11_211;

const SERVERS: Key<Server> = Key {
    name: "servers",
    kind: Server,
    default: None,
};

/// A server, and its port if it is another one than usual.
struct Server;

impl Kind for Server {
    type Value = HostPort;

    fn allowed(&self) -> String {
        "a server such as \"127.0.0.1:11211\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<HostPort, Refusal> {
        let text = value.as_str().ok_or(Refusal::PLAIN)?;
        let (host, port) = split_port(text).map_err(|_| Refusal::PLAIN)?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        match port {
            Some(0) => Err(Refusal::PLAIN),
            port => Ok(HostPort {
                host: bare.map(str::to_owned).unwrap_or(host),
                port: port.unwrap_or(USUAL_PORT),
            }),
        }
    }
}

/// Reads the table; `None` after a mistake in it.
pub(super) fn read(mut table: Table<'_>) -> Option<MemcachedConfig> {
    let mistakes = table.notes.count();
    let is_left_out = !table.has(SERVERS.name);
    let servers = table.list(&SERVERS).unwrap_or_default();
    let is_right = table.notes.count() == mistakes;
    let prefix = table.defaulted(&PREFIX);
    if is_right && (servers.is_empty() || servers.len() > SERVERS_MAX) {
        let spot = table.spot(SERVERS.name);
        let finding = if is_left_out {
            Finding::Missing
        } else {
            Finding::Value(format!("{} servers", servers.len()))
        };
        let allowed = format!(
            "a list of 1 to {SERVERS_MAX}, each {}",
            SERVERS.kind.allowed()
        );
        table.notes.refuse(&spot, finding, allowed, None);
    }
    refuse_twice(&mut table, &servers);
    let is_right = table.notes.count() == mistakes;
    table.finish();
    is_right.then(|| MemcachedConfig {
        servers: servers.into_iter().map(|placed| placed.value).collect(),
        prefix,
    })
}

fn refuse_twice(table: &mut Table<'_>, servers: &[Placed<HostPort>]) {
    for (at, Placed { value, spot }) in servers.iter().enumerate() {
        if servers[..at].iter().any(|earlier| earlier.value == *value) {
            let finding = Finding::Value(format!("\"{value}\" a second time"));
            table.notes.refuse(spot, finding, "each server once", None);
        }
    }
}
