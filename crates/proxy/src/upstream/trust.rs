//! Trusted certificates for TLS to origins, and the ALPN settings.
//!
//! As for a shared store, the trusted issuers come from a file or from the machine. There are no
//! client certificates, and no way to trust all servers.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anteroom_config::{CaFile, CaFileError};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Error of setting up TLS to origins: this machine is misconfigured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file of certificates cannot be used.
    #[error(transparent)]
    CaFile(#[from] CaFileError),
    /// This machine has no trusted certificates.
    #[error(
        "this machine trusts no issuers: set origin_ca_file to the issuer of the origin's \
         certificate"
    )]
    NoTrustedIssuers {
        /// Underlying error, if there is one.
        source: Option<rustls_native_certs::Error>,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS to origins")]
    Tls {
        /// Underlying error.
        source: rustls::Error,
    },
    /// The origin's host is not a valid name for a certificate.
    #[error("{host} is not a valid name for a certificate")]
    Name {
        /// Host of the origin.
        host: String,
    },
}

/// Text of a file of certificates; compared to detect changes.
pub(crate) type Pem = Option<Arc<[u8]>>;

/// TLS settings, by the ALPN protocols.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) http1: TlsConnector,
    pub(crate) http2: TlsConnector,
    pub(crate) either: TlsConnector,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    pub(crate) fn new(trusted: RootCertStore) -> Result<Self, TrustError> {
        // Set explicitly, because the process may have no default provider, or another one.
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|source| TrustError::Tls { source })?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let speaking = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        Ok(Self {
            http1: speaking(&[b"http/1.1"]),
            http2: speaking(&[b"h2"]),
            either: speaking(&[b"h2", b"http/1.1"]),
        })
    }
}

/// Describes the file of issuers of origins' certificates.
const fn ca_file(path: &Path) -> CaFile<'_> {
    CaFile {
        path,
        key: "origin_ca_file",
    }
}

pub(crate) fn read(path: &Path) -> Result<Arc<[u8]>, CaFileError> {
    Ok(ca_file(path).text(File::open(path))?.into())
}

pub(crate) fn trusted_by_file(path: &Path, text: &[u8]) -> Result<RootCertStore, CaFileError> {
    let mut trusted = RootCertStore::empty();
    ca_file(path).each_certificate(text, |certificate| trusted.add(certificate))?;
    Ok(trusted)
}

/// Checks that a file of certificates can be used.
pub(crate) fn check_ca_file(path: &Path) -> Result<(), CaFileError> {
    trusted_by_file(path, &read(path)?).map(|_| ())
}

/// Returns the certificates that the machine trusts. Unreadable ones are skipped, because machines
/// have odd ones; an origin that needs one fails its handshake.
pub(crate) fn trusted_by_machine() -> Result<RootCertStore, TrustError> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(found.certs);
    if trusted.is_empty() {
        let source = found.errors.pop();
        return Err(TrustError::NoTrustedIssuers { source });
    }
    Ok(trusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_certificate_file_is_an_error_at_the_start() {
        let error = trusted_by_file(
            Path::new("ca.pem"),
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        );
        assert_eq!(
            error.unwrap_err().to_string(),
            "ca.pem (origin_ca_file) holds a certificate that cannot sign others"
        );
        assert!(read(Path::new("no/such/file.pem")).is_err());
        assert!(
            check_ca_file(Path::new("/dev/zero")).is_err(),
            "it has no end"
        );
    }
}
