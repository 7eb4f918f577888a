//! `[memcached]`: where limits with `store = "memcached"` are counted.
//!
//! Nothing is connected to: servers are names.

use crate::address::host::HostPort;

use super::kind::{Kind as _, Place};
use super::notes::Located;
use super::problem::Finding;
use super::reader::{Key, Table};
use super::store::PREFIX;

/// `[memcached]`: where limits may be counted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemcachedConfig {
    /// Among which clients are divided; at least one.
    pub servers: Vec<HostPort>,
    /// What the names of all values begin with.
    pub prefix: String,
}

/// Most servers; far more than it takes to count calls, which is little to keep.
const SERVERS_MAX: usize = 64;
const USUAL_PORT: u16 = 11_211;

const SERVERS: Key<Place> = Key {
    name: "servers",
    kind: Place {
        allowed: "a server such as \"127.0.0.1:11211\"",
        usual_port: Some(USUAL_PORT),
    },
    default: None,
};

/// Reads the table; `None` after a mistake in it.
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
        table.notes.refuse(&location, finding, allowed, None);
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
                .refuse(location, finding, "each server once", None);
        }
    }
}
