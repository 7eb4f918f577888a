//! `[server]`: TLS, and the redirect to https.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::keys::{A_FILE, path_key};
use crate::kind::{Address, Switch, Text, Whole};
use crate::model::TlsConfig;
use crate::problem::Finding;
use crate::reader::{Key, Table};

use super::share_a_port;

const TLS_CERTIFICATE: Key<Text<PathBuf>> = path_key("tls_certificate", A_FILE, None);
const TLS_KEY: Key<Text<PathBuf>> = path_key("tls_key", A_FILE, None);
const MORE_CERTIFICATES: &str = "more_certificates";
const ADMIN_TLS: Key<Switch> = Key {
    name: "admin_tls",
    kind: Switch,
    default: Some("false"),
};
const REDIRECT_FROM: Key<Address> = Key {
    name: "redirect_from",
    kind: Address,
    default: None,
};
const REDIRECT_TO_PORT: Key<Whole<u16>> = Key {
    name: "redirect_to_port",
    kind: Whole {
        min: 1,
        max: u16::MAX,
        note: "",
    },
    default: None,
};

/// Reads certificates and their keys, in their order.
pub(super) fn read_tls(table: &mut Table<'_>) -> Vec<TlsConfig> {
    let first = read_first(table);
    let elements = table.elements(
        MORE_CERTIFICATES,
        "a list of tables, such as [{ tls_certificate = \"shop.pem\", tls_key = \"shop.key\" }]",
    );
    if !elements.is_empty() && !table.has(TLS_CERTIFICATE.name) {
        refuse_without(table, MORE_CERTIFICATES, TLS_CERTIFICATE.name);
    }
    let mut all = Vec::from_iter(first);
    for element in &elements {
        let mut inner = table.enter(element);
        let certificate = inner.required(&TLS_CERTIFICATE);
        let key = inner.required(&TLS_KEY);
        let line = inner.location(TLS_CERTIFICATE.name).line;
        inner.finish();
        if let (Some(certificate), Some(key)) = (certificate, key) {
            all.push(TlsConfig {
                number: element.number,
                line,
                certificate,
                key,
            });
        }
    }
    all
}

/// Reads a certificate and its key; each needs the other.
fn read_first(table: &mut Table<'_>) -> Option<TlsConfig> {
    let certificate = table.optional(&TLS_CERTIFICATE);
    let key = table.optional(&TLS_KEY);
    let (given, missing) = match (certificate, key) {
        (Some(certificate), Some(key)) => {
            return Some(TlsConfig {
                number: 0,
                line: table.location(TLS_CERTIFICATE.name).line,
                certificate,
                key,
            });
        }
        (Some(_), None) => (TLS_CERTIFICATE.name, TLS_KEY.name),
        (None, Some(_)) => (TLS_KEY.name, TLS_CERTIFICATE.name),
        (None, None) => return None,
    };
    // A value that could not be read was reported already.
    if !table.has(missing) {
        refuse_without(table, given, missing);
    }
    None
}

/// Reads whether operators connect by https.
pub(super) fn read_admin_tls(table: &mut Table<'_>, has_tls: bool) -> bool {
    let is_on = table.defaulted(&ADMIN_TLS);
    if is_on && !has_tls {
        let location = table.location(ADMIN_TLS.name);
        let finding = Finding::Remark("needs tls_certificate and tls_key".to_owned());
        table.notes.report(&location, finding, "", None);
    }
    is_on
}

/// Redirect to https.
pub(super) struct Redirect {
    /// Address at which visitors are redirected.
    pub(super) from: Option<SocketAddr>,
    /// Port of https, if it differs from that of the listener.
    pub(super) to_port: Option<u16>,
}

/// Reads the redirect. `others` are the addresses in use.
pub(super) fn read_redirect(
    table: &mut Table<'_>,
    has_tls: bool,
    others: &[SocketAddr],
) -> Redirect {
    let from = table.optional(&REDIRECT_FROM);
    let to_port = table.optional(&REDIRECT_TO_PORT);
    if to_port.is_some() && !table.has(REDIRECT_FROM.name) {
        refuse_without(table, REDIRECT_TO_PORT.name, REDIRECT_FROM.name);
    }
    if let Some(from) = from {
        check_redirect(table, has_tls, from, others);
    }
    Redirect { from, to_port }
}

fn check_redirect(table: &mut Table<'_>, has_tls: bool, from: SocketAddr, others: &[SocketAddr]) {
    let location = table.location(REDIRECT_FROM.name);
    if !has_tls {
        let finding = Finding::Remark("needs tls_certificate and tls_key".to_owned());
        table.notes.report(&location, finding, "", None);
    }
    if let Some(other) = others.iter().find(|other| share_a_port(from, **other)) {
        let finding = Finding::Remark(format!("{from} and {other} cannot share a port"));
        table.notes.report(&location, finding, "", None);
    }
}

fn refuse_without(table: &mut Table<'_>, given: &str, missing: &str) {
    let location = table.location(given);
    let finding = Finding::Remark(format!("has no effect without {missing}"));
    table.notes.report(&location, finding, "", None);
}
