//! `[memcached]`: the servers that count limits with `store = "memcached"`.
//!
//! Nothing here connects: servers are names.

use crate::address::host::HostPort;

use super::kind::{Kind as _, ServerAddress};
use super::notes::Located;
use super::problem::Finding;
use super::reader::{Key, Table};
use super::store::PREFIX;

/// `[memcached]`: servers that may count limits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemcachedConfig {
    /// Servers, among which clients are divided; at least one.
    pub servers: Vec<HostPort>,
    /// Prefix of the names of all values.
    pub prefix: String,
}

/// Most servers; counters are small, so far fewer are enough.
const SERVERS_MAX: usize = 64;
const USUAL_PORT: u16 = 11_211;

const SERVERS: Key<ServerAddress> = Key {
    name: "servers",
    kind: ServerAddress {
        allowed: "a server such as \"127.0.0.1:11211\"",
        usual_port: Some(USUAL_PORT),
    },
    default: None,
};

/// Reads the table; `None` if it has a mistake.
pub(super) fn read(mut table: Table<'_>) -> Option<MemcachedConfig> {
    let mistakes = table.notes.count();
    let is_left_out = !table.has(SERVERS.name);
    let servers = table.list(&SERVERS).unwrap_or_default();
    let is_right = table.notes.count() == mistakes;
    let prefix = table.defaulted(&PREFIX);
    if is_right && (servers.is_empty() || servers.len() > SERVERS_MAX) {
        let location = table.location(SERVERS.name);
        let finding = if is_left_out {
            Finding::Missing
        } else {
            Finding::Value(format!("{} servers", servers.len()))
        };
        let allowed = format!(
            "a list of 1 to {SERVERS_MAX}, each {}",
            SERVERS.kind.allowed()
        );
        table.notes.report(&location, finding, allowed, None);
    }
    refuse_twice(&mut table, &servers);
    let is_right = table.notes.count() == mistakes;
    table.finish();
    is_right.then(|| MemcachedConfig {
        servers: servers.into_iter().map(|placed| placed.value).collect(),
        prefix,
    })
}

fn refuse_twice(table: &mut Table<'_>, servers: &[Located<HostPort>]) {
    for (at, Located { value, location }) in servers.iter().enumerate() {
        if servers[..at].iter().any(|earlier| earlier.value == *value) {
            let finding = Finding::Value(format!("\"{value}\" a second time"));
            table
                .notes
                .report(location, finding, "each server once", None);
        }
    }
}
