//! `[server]`: settings of the process.

mod edge;
mod encryption;
mod operators;
mod response_limits;

use std::net::SocketAddr;
use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use super::keys::{A_FILE, path_key, time_key};
use super::kind::{Address, Duration, InvalidValue, Text, TicketKey, Whole};
use super::model::{OriginLimits, ServerConfig, SizeLimits, Timeouts};
use super::notes::{Located, Location};
use super::problem::Finding;
use super::reader::{Key, Table};
pub use edge::TRUSTED_PROXY_HEADERS;
use response_limits::{ORIGIN_HEAD_BYTES, ORIGIN_HEADERS};

const LISTEN: Key<Address> = Key {
    name: "listen",
    kind: Address,
    default: Some("\"127.0.0.1:8080\""),
};
const ADMIN: Key<Address> = Key {
    name: "admin",
    kind: Address,
    default: Some("\"127.0.0.1:8081\""),
};
const ADMIN_TOKEN_FILE: Key<Text<PathBuf>> = path_key("admin_token_file", A_FILE, None);
const DATA_DIR: Key<Text<PathBuf>> = path_key(
    "data_dir",
    "the path of a directory",
    Some("\"anteroom-data\""),
);
const TICKET_KEYS: Key<TicketKey> = Key {
    name: "ticket_keys",
    kind: TicketKey,
    default: Some("[]"),
};
const DATA_CENTER: Key<Text<String>> = Key {
    name: "data_center",
    kind: Text {
        allowed: "a name of 1 to 64 characters, not \"Anywhere\"",
        read: data_center_name,
    },
    default: Some("\"local\""),
};
// A row has at most 512 bytes, and a room at one node 5,856 rows: the bounds are some rooms and
// what a store can hold.
const HISTORY_BYTES: Key<Whole<u64>> = Key {
    name: "history_bytes",
    kind: Whole {
        min: 1_048_576,
        max: 68_719_476_736,
        note: "",
    },
    default: Some("67108864"),
};
/// Name of a data center without one of its own: the default.
const UNNAMED: &str = "local";

const MINUTE: DurationMs = DurationMs::from_secs(60);
const DAY: DurationMs = DurationMs::from_secs(86_400);

// The lower bounds keep a typing error from switching everything off; the upper bounds keep a
// stuck peer from holding a connection for ever.
const REQUEST_HEAD: Key<Duration> = time_key("request_head", 100, MINUTE.times(10), "\"10s\"");
const ORIGIN_CONNECT: Key<Duration> = time_key("origin_connect", 10, MINUTE.times(5), "\"2s\"");
const ORIGIN_RESPONSE: Key<Duration> = time_key("origin_response", 100, DAY, "\"60s\"");
const ORIGIN_IDLE: Key<Duration> = time_key("origin_idle", 100, MINUTE.times(60), "\"4s\"");
const BODY_IDLE: Key<Duration> = time_key("body_idle", 100, DAY, "\"60s\"");
// Proxies and load balancers mostly keep connections for 60 s. The side that sends requests should
// close first.
const KEEP_ALIVE: Key<Duration> = time_key("keep_alive", 100, DAY, "\"75s\"");
const DRAIN: Key<Duration> = time_key("drain", 0, DAY, "\"30s\"");

// hyper needs 8 KiB to read a request head at all; above 1 MiB a head is an attack.
const REQUEST_HEAD_BYTES: Key<Whole<usize>> = Key {
    name: "request_head_bytes",
    kind: Whole {
        min: 8_192,
        max: 1_048_576,
        note: "",
    },
    default: Some("65536"),
};
const REQUEST_HEADERS: Key<Whole<usize>> = Key {
    name: "request_headers",
    kind: Whole {
        min: 10,
        max: 1_000,
        note: "",
    },
    default: Some("100"),
};
// Browsers and proxies rarely go beyond 8 KiB; hyper takes 65,534 at most.
const REQUEST_URI_BYTES: Key<Whole<usize>> = Key {
    name: "request_uri_bytes",
    kind: Whole {
        min: 256,
        max: 65_534,
        note: "",
    },
    default: Some("16384"),
};
const REQUEST_BODY_BYTES: Key<Whole<u64>> = Key {
    name: "request_body_bytes",
    kind: Whole {
        min: 0,
        max: i64::MAX.unsigned_abs(),
        note: " (0 = no limit)",
    },
    default: Some("0"),
};
// The slowest mobile networks bring some thousand bytes a second.
const BODY_BYTES_PER_SECOND_MIN: Key<Whole<u64>> = Key {
    name: "body_bytes_per_second_min",
    kind: Whole {
        min: 0,
        max: 1_000_000,
        note: " (0 = no limit)",
    },
    default: Some("250"),
};
// More than a million sockets need more than one process.
const CONNECTIONS: Key<Whole<usize>> = Key {
    name: "connections",
    kind: Whole {
        min: 1,
        max: 1_000_000,
        note: "",
    },
    default: Some("10000"),
};
// A provider may put thousands of customers behind one address, and a browser opens up to six
// connections. A fifth of `connections`: five addresses, and not one, could use them up.
const CONNECTIONS_PER_ADDRESS: Key<Whole<usize>> = Key {
    name: "connections_per_address",
    kind: Whole {
        min: 0,
        max: 1_000_000,
        note: " (0 = no limit)",
    },
    default: Some("2000"),
};
const REQUESTS_PER_CONNECTION: Key<Whole<u64>> = Key {
    name: "requests_per_connection",
    kind: Whole {
        min: 0,
        max: i64::MAX.unsigned_abs(),
        note: " (0 = no limit)",
    },
    default: Some("10000"),
};
// Browsers open up to 100 and wait for the rest; with fewer, pages load more slowly.
const HTTP2_STREAMS: Key<Whole<u32>> = Key {
    name: "http2_streams",
    kind: Whole {
        min: 1,
        max: 1_000,
        note: "",
    },
    default: Some("100"),
};

/// `[server]`, and what other tables need of it.
pub(super) struct ServerRead {
    pub(super) config: ServerConfig,
    /// Location for the data center's name, if it has none of its own.
    pub(super) unnamed: Option<Location>,
}

/// Reads `[server]`, which may be left out.
pub(super) fn read(mut table: Table<'_>) -> ServerRead {
    let listen = table.defaulted(&LISTEN);
    let admin = table.defaulted(&ADMIN);
    let admin_token_file = table.optional(&ADMIN_TOKEN_FILE);
    let admin_hosts = operators::read_admin_hosts(&mut table);
    check_addresses(&mut table, listen, admin);
    let tls = encryption::read_tls(&mut table);
    let admin_tls = encryption::read_admin_tls(&mut table, !tls.is_empty());
    let redirect = encryption::read_redirect(&mut table, !tls.is_empty(), &[listen, admin]);
    let mistakes = table.notes.count();
    let data_center = table.defaulted(&DATA_CENTER);
    // A name that could not be read was reported, and does not count as left out.
    let is_unnamed = data_center == UNNAMED && table.notes.count() == mistakes;
    let data_dir = table.defaulted(&DATA_DIR);
    let history_bytes = table.defaulted(&HISTORY_BYTES);
    let ticket_keys = read_ticket_keys(&mut table);
    let edge = edge::read(&mut table);
    let (timeouts, idle) = read_timeouts(table.table("timeouts"));
    let (size_limits, head) = read_size_limits(table.table("size_limits"));
    let config = ServerConfig {
        listen,
        tls,
        redirect_from: redirect.from,
        redirect_to_port: redirect.to_port,
        admin,
        admin_token_file,
        admin_hosts,
        admin_tls,
        data_dir,
        ticket_keys,
        data_center,
        history_bytes,
        trusted_proxies: edge.trusted_proxies,
        trusted_proxy_headers: edge.trusted_proxy_headers,
        guard_double_decoding: edge.guard_double_decoding,
        fast_path: edge.fast_path,
        timeouts,
        size_limits,
        origins: OriginLimits {
            idle,
            head_bytes: head.bytes,
            headers: head.headers,
        },
    };
    let unnamed = is_unnamed.then(|| table.location(DATA_CENTER.name));
    table.finish();
    ServerRead { config, unnamed }
}

/// Reads the timeouts, and the time for which an unused connection to an origin is kept.
fn read_timeouts(mut table: Table<'_>) -> (Timeouts, DurationMs) {
    let timeouts = Timeouts {
        request_head: table.defaulted(&REQUEST_HEAD),
        origin_connect: table.defaulted(&ORIGIN_CONNECT),
        origin_response: table.defaulted(&ORIGIN_RESPONSE),
        body_idle: table.defaulted(&BODY_IDLE),
        keep_alive: table.defaulted(&KEEP_ALIVE),
        drain: table.defaulted(&DRAIN),
    };
    let origin_idle = table.defaulted(&ORIGIN_IDLE);
    table.finish();
    (timeouts, origin_idle)
}

/// Limits on the head of an origin's response.
struct ResponseHead {
    bytes: usize,
    headers: usize,
}

fn read_size_limits(mut table: Table<'_>) -> (SizeLimits, ResponseHead) {
    let size_limits = SizeLimits {
        request_head_bytes: table.defaulted(&REQUEST_HEAD_BYTES),
        request_headers: table.defaulted(&REQUEST_HEADERS),
        request_uri_bytes: table.defaulted(&REQUEST_URI_BYTES),
        request_body_bytes: table.defaulted(&REQUEST_BODY_BYTES),
        body_bytes_per_second_min: table.defaulted(&BODY_BYTES_PER_SECOND_MIN),
        connections: table.defaulted(&CONNECTIONS),
        connections_per_address: table.defaulted(&CONNECTIONS_PER_ADDRESS),
        requests_per_connection: table.defaulted(&REQUESTS_PER_CONNECTION),
        http2_streams: table.defaulted(&HTTP2_STREAMS),
    };
    let head = ResponseHead {
        bytes: table.defaulted(&ORIGIN_HEAD_BYTES),
        headers: table.defaulted(&ORIGIN_HEADERS),
    };
    table.finish();
    (size_limits, head)
}

pub(crate) fn share_a_port(one: SocketAddr, other: SocketAddr) -> bool {
    let is_same_ip =
        one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && is_same_ip
}

fn check_addresses(table: &mut Table<'_>, listen: SocketAddr, admin: SocketAddr) {
    if share_a_port(listen, admin) {
        // The one that was typed; both have a default.
        let name = if table.has(ADMIN.name) {
            ADMIN.name
        } else {
            LISTEN.name
        };
        let location = table.location(name);
        let finding = Finding::Remark(format!(
            "visitors ({listen}) and operators ({admin}) cannot share a port"
        ));
        table.notes.report(&location, finding, "", None);
    }
    if !admin.ip().is_loopback() && !table.has(ADMIN_TOKEN_FILE.name) {
        let location = table.location(ADMIN.name);
        table.notes.report(
            &location,
            Finding::Value(format!("{admin} without admin_token_file")),
            "a loopback address, or one that others reach together with admin_token_file",
            Some("every client that reaches it may try to change rooms".to_owned()),
        );
    }
}

fn read_ticket_keys(table: &mut Table<'_>) -> Vec<[u8; 32]> {
    let mut keys: Vec<[u8; 32]> = Vec::new();
    for Located { value, location } in table.list(&TICKET_KEYS).unwrap_or_default() {
        if let Some(first) = keys.iter().position(|known| *known == value) {
            let finding = Finding::Remark(format!("the same key as number {}", first + 1));
            table.notes.report(&location, finding, "", None);
        }
        keys.push(value);
    }
    keys
}

/// Returns a data center's name, if `text` is one.
///
/// # Errors
///
/// [`InvalidValue`] if it is not one.
pub fn data_center_name(text: &str) -> Result<String, InvalidValue> {
    if text.eq_ignore_ascii_case("Anywhere") {
        return Err(InvalidValue::hint(
            "the state uses this name for what belongs to no data center",
        ));
    }
    let length = text.chars().count();
    let is_plain = text.trim() == text && !text.chars().any(char::is_control);
    if !(1..=64).contains(&length) || !is_plain {
        return Err(InvalidValue::PLAIN);
    }
    Ok(text.to_owned())
}
