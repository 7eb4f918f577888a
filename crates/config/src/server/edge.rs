//! Trust in headers about visitors, and the guard for paths that origins decode twice.

use ipnet::IpNet;

use crate::kind::{InvalidValue, Network, Switch, Text};
use crate::notes::Located;
use crate::problem::Finding;
use crate::reader::{Key, Table};

const TRUSTED_PROXIES: Key<Network> = Key {
    name: "trusted_proxies",
    kind: Network,
    default: Some("[]"),
};
/// Longest name of a header. The longest in use have about 40 characters.
const NAME_BYTES_MAX: usize = 64;
/// Most names: each is compared with headers of every request.
const NAMES_MAX: usize = 64;
const HEADERS: Key<Text<String>> = Key {
    name: "trusted_proxy_headers",
    kind: Text {
        allowed: "the name of a header, 1 to 64 of a-z 0-9 -, such as \"x-real-ip\"",
        read: header_name,
    },
    default: Some(HEADERS_DEFAULT),
};
const HEADERS_DEFAULT: &str = "[\"cf-connecting-ip\", \"cf-connecting-ipv6\", \
                               \"fastly-client-ip\", \"fly-client-ip\", \"true-client-ip\", \
                               \"x-client-ip\", \"x-cluster-client-ip\", \"x-original-host\", \
                               \"x-original-url\", \"x-real-ip\", \"x-rewrite-url\"]";
const GUARD_DOUBLE_DECODING: Key<Switch> = Key {
    name: "guard_double_decoding",
    kind: Switch,
    default: Some("true"),
};

const FAST_PATH: Key<Switch> = Key {
    name: "fast_path",
    kind: Switch,
    default: Some("true"),
};

/// Headers by which common proxies name the client, its host or its path, and which origins trust.
/// Only a trusted proxy may send them, unless the file lists others.
pub const TRUSTED_PROXY_HEADERS: [&str; 11] = [
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "fastly-client-ip",
    "fly-client-ip",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-host",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];

/// Headers that every request needs, so no list may name them.
const NEEDED: [&str; 8] = [
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Settings that are read here.
pub(super) struct EdgeRead {
    pub(super) trusted_proxies: Vec<IpNet>,
    pub(super) trusted_proxy_headers: Vec<String>,
    pub(super) guard_double_decoding: bool,
    pub(super) fast_path: bool,
}

pub(super) fn read(table: &mut Table<'_>) -> EdgeRead {
    EdgeRead {
        trusted_proxies: read_trusted_proxies(table),
        trusted_proxy_headers: read_headers(table),
        guard_double_decoding: table.defaulted(&GUARD_DOUBLE_DECODING),
        fast_path: table.defaulted(&FAST_PATH),
    }
}

fn read_trusted_proxies(table: &mut Table<'_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for Located { value, location } in table.list(&TRUSTED_PROXIES).unwrap_or_default() {
        if value.prefix_len() == 0 {
            table.notes.warn(
                &location,
                format!("{value} trusts every client: each may claim any address"),
            );
        }
        networks.push(value);
    }
    networks
}

fn read_headers(table: &mut Table<'_>) -> Vec<String> {
    let Some(names) = table.list(&HEADERS) else {
        return TRUSTED_PROXY_HEADERS.map(str::to_owned).to_vec();
    };
    if let Some(too_many) = names.get(NAMES_MAX) {
        let found = Finding::Value(format!("{} names", names.len()));
        let allowed = format!("at most {NAMES_MAX}");
        table.notes.report(&too_many.location, found, allowed, None);
    }
    names.into_iter().map(|name| name.value).collect()
}

fn header_name(text: &str) -> Result<String, InvalidValue> {
    let name = text.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
        return Err(InvalidValue::PLAIN);
    }
    if NEEDED.contains(&name.as_str()) {
        return Err(InvalidValue::hint("every request needs it"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_list_that_is_documented() {
        let documented = HEADERS_DEFAULT.trim_matches(['[', ']']).split(", ");
        let documented: Vec<_> = documented.map(|name| name.trim_matches('"')).collect();
        assert_eq!(documented, TRUSTED_PROXY_HEADERS);
    }

    #[test]
    fn a_name_is_what_proxies_write() {
        assert_eq!(header_name("X-Real-IP"), Ok("x-real-ip".to_owned()));
        for wrong in [
            "",
            "x real",
            "x_real_ip",
            "x-r\u{e9}al",
            "Host",
            "content-length",
        ] {
            assert!(header_name(wrong).is_err(), "{wrong}");
        }
        assert!(header_name(&"x".repeat(65)).is_err());
    }
}
