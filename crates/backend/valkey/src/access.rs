//! Access to a server: name, password, database, TLS.
//!
//! Files are read once, at the start, so a mistake shows there. There is no `Debug`, as [`Access`]
//! has a password.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anteroom_config::{CaFile, CaFileError, StorePromise, Topology, ValkeyAddress, ValkeyTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Error of this machine's setup, before any request to the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The file of certificates is unusable.
    #[error(transparent)]
    CaFile(#[from] CaFileError),
    /// This machine has no trusted certificates.
    #[error(
        "this machine has no trusted certificates: set ca_file in [store] to the signer of the \
         store's certificate"
    )]
    NoTrustedCertificates {
        /// Underlying error, if there is one.
        source: Option<rustls_native_certs::Error>,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls {
        /// Underlying error.
        source: rustls::Error,
    },
}

/// Credentials, database and TLS settings.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: u32,
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) promise: StorePromise,
    /// Whether the address names the one server that has the records, and nobody that is promoted
    /// in its place.
    pub(crate) is_one_server: bool,
}

impl Access {
    pub(crate) fn new(address: &ValkeyAddress) -> Result<Self, SetupError> {
        Ok(Self {
            username: address.username.clone(),
            password: address.password.clone(),
            database: address.database,
            tls: address.tls.as_ref().map(connector).transpose()?,
            promise: address.promise,
            is_one_server: matches!(address.topology, Topology::Single(_)),
        })
    }
}

fn connector(tls: &ValkeyTls) -> Result<TlsConnector, SetupError> {
    let trusted = match &tls.ca_file {
        Some(path) => trusted_by_file(path)?,
        None => trusted_by_machine()?,
    };
    // Explicit, as the process may have no default, or another one.
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| SetupError::Tls { source })?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn trusted_by_file(path: &Path) -> Result<RootCertStore, CaFileError> {
    let file = CaFile {
        path,
        key: "ca_file in [store]",
    };
    let text = file.text(File::open(path))?;
    let mut trusted = RootCertStore::empty();
    file.each_certificate(&text, |certificate| trusted.add(certificate))?;
    Ok(trusted)
}

/// Loads the machine's certificates and skips unreadable ones: a server that needs one of those is
/// rejected later.
fn trusted_by_machine() -> Result<RootCertStore, SetupError> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(found.certs);
    if trusted.is_empty() {
        let source = found.errors.pop();
        return Err(SetupError::NoTrustedCertificates { source });
    }
    Ok(trusted)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anteroom_config::HostPort;

    use super::*;

    fn access(ca_file: &Path) -> Result<Access, SetupError> {
        Access::new(&ValkeyAddress {
            topology: Topology::Single(HostPort {
                host: "localhost".to_owned(),
                port: 6379,
            }),
            database: 0,
            username: None,
            password: None,
            tls: Some(ValkeyTls {
                ca_file: Some(ca_file.to_owned()),
            }),
            promise: StorePromise::default(),
        })
    }

    fn check(text: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        fs::write(&file, text).unwrap();
        let error = access(&file).err().expect("it cannot be used");
        let message = error.to_string();
        assert!(message.ends_with(expected), "{message}");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let source = source.unwrap_or_default();
        assert!(!source.contains("45, 45"), "no bytes: {source}");
    }

    #[test]
    fn an_unusable_certificate_file_is_an_error_at_the_start() {
        check("", "holds no certificate");
        check("what is this?", "holds no certificate");
        check(
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "cannot be read",
        );
        check(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "holds a certificate that cannot sign others",
        );
        let missing = access(Path::new("no/such/file.pem"));
        let missing = missing.err().expect("it is not there");
        let is_not_read = matches!(missing, SetupError::CaFile(CaFileError::Read { .. }));
        assert!(is_not_read, "{missing}");
    }

    #[test]
    fn an_endless_file_of_certificates_is_an_error() {
        let endless = access(Path::new("/dev/zero")).err().expect("no file");
        assert_eq!(
            endless.to_string(),
            "cannot read the certificates in /dev/zero (ca_file in [store])"
        );
        let source = std::error::Error::source(&endless).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("it is larger than 4194304 bytes"));
    }
}
