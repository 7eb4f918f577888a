//! Whose certificates are believed, and what is said about HTTP/2 while TLS is set up?
//!
//! The same rules as for a shared store: a file of signers, or those that the machine trusts; no
//! client certificates, and no way to believe everybody.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anteroom_config::{CaFile, CaFileError};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why origins with TLS cannot be spoken to: something on this machine is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file of certificates cannot be used.
    #[error(transparent)]
    CaFile(#[from] CaFileError),
    /// This machine knows no certificates.
    #[error(
        "this machine trusts nobody: name the signer of the origin's certificate as origin_ca_file"
    )]
    NobodyTrusted {
        /// What went wrong, if anything did.
        source: Option<rustls_native_certs::Error>,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS to origins")]
    Tls {
        /// Why not.
        source: rustls::Error,
    },
    /// The origin's host is no name that a certificate can carry.
    #[error("{host} is no name for a certificate")]
    Name {
        /// The host.
        host: String,
    },
}

/// The text of a file of certificates; compared to see whether it has changed.
pub(crate) type Pem = Option<Arc<[u8]>>;

/// How TLS is set up, by what is said about HTTP/2.
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
        // Named here, for the process may have no default, or another one.
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

/// A file of signers of origins' certificates.
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

/// Single certificates that cannot be read are left out: machines carry odd ones, and whoever is
/// signed by one of them will be told so.
pub(crate) fn trusted_by_machine() -> Result<RootCertStore, TrustError> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(found.certs);
    if trusted.is_empty() {
        let source = found.errors.pop();
        return Err(TrustError::NobodyTrusted { source });
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
