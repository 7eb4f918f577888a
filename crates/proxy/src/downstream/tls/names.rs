//! Choice of the certificate by the requested name; the first certificate if no name matches.
//!
//! The names come from the certificates themselves, so no second list is needed.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// Certificates by their names, in lower case; wildcards as they are: `*.example.com`.
#[derive(Debug, Default)]
pub(super) struct ByName {
    first: Option<Arc<CertifiedKey>>,
    names: HashMap<String, Arc<CertifiedKey>>,
}

impl ByName {
    /// Adds a certificate. The first one is used for unknown names, and the first one with a name
    /// for that name.
    pub(super) fn add(&mut self, names: Vec<String>, certificate: CertifiedKey) {
        let certificate = Arc::new(certificate);
        for name in names {
            let entry = self.names.entry(name);
            entry.or_insert_with(|| Arc::clone(&certificate));
        }
        self.first.get_or_insert(certificate);
    }

    fn find(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        // A name may end with the root's dot.
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        self.names.get(&name).or_else(|| {
            // A wildcard is exactly one label, the first one (RFC 6125, section 6.4.3).
            let (_, domain) = name.split_once('.')?;
            self.names.get(&format!("*.{domain}"))
        })
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = hello.server_name().and_then(|name| self.find(name));
        found.or(self.first.as_ref()).cloned()
    }
}

/// Returns the host names of a certificate, in lower case.
pub(super) fn names_of(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = names.value.general_names.iter();
    let hosts = names.filter_map(|name| match name {
        GeneralName::DNSName(host) => Some(host.to_ascii_lowercase()),
        _ => None,
    });
    hosts.collect()
}
