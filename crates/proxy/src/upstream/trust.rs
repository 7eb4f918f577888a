//! Whose certificates are believed, and what is said about HTTP/2 while TLS is set up?
//!
//! The same rules as for a shared store: a file of signers, or those that the machine trusts; no
//! client certificates, and no way to believe everybody.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anteroom_config::PemError;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Most bytes of a file of certificates. All that a machine trusts takes a quarter of a megabyte.
const CA_FILE_BYTES_MAX: u64 = 4 << 20;

/// Why origins with TLS cannot be spoken to: something on this machine is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file of certificates cannot be read.
    #[error("cannot read the certificates in {} (origin_ca_file)", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file of certificates is no PEM file.
    #[error("{} (origin_ca_file) cannot be read", path.display())]
    NoPem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: PemError,
    },
    /// The file of certificates holds one that cannot be used.
    #[error("{} (origin_ca_file) holds a certificate that cannot sign others", path.display())]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// The file of certificates holds none.
    #[error("{} (origin_ca_file) holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
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

pub(crate) fn read(path: &Path) -> Result<Arc<[u8]>, TrustError> {
    let text = read_at_most(path).map_err(|source| TrustError::CaFile {
        path: path.to_owned(),
        source,
    })?;
    Ok(text.into())
}

/// A device without end is not read for ever.
fn read_at_most(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(CA_FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > CA_FILE_BYTES_MAX {
        let message = format!("it is larger than {CA_FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

pub(crate) fn trusted_by_file(path: &Path, text: &[u8]) -> Result<RootCertStore, TrustError> {
    let path = || path.to_owned();
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text) {
        let certificate = certificate.map_err(|error| TrustError::NoPem {
            path: path(),
            source: error.into(),
        })?;
        let added = trusted.add(certificate);
        added.map_err(|source| TrustError::NoAuthority {
            path: path(),
            source,
        })?;
    }
    if trusted.is_empty() {
        return Err(TrustError::NoCertificate { path: path() });
    }
    Ok(trusted)
}

/// Checks that a file of certificates can be used.
pub(crate) fn check_ca_file(path: &Path) -> Result<(), TrustError> {
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
        let check = |text: &str, expected: &str| {
            let error = trusted_by_file(Path::new("ca.pem"), text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check("", "ca.pem (origin_ca_file) holds no certificate");
        check(
            "what is this?",
            "ca.pem (origin_ca_file) holds no certificate",
        );
        check(
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "ca.pem (origin_ca_file) cannot be read",
        );
        let cut_short = trusted_by_file(Path::new("ca.pem"), b"-----BEGIN CERTIFICATE-----\nAAAA");
        let TrustError::NoPem { source, .. } = cut_short.unwrap_err() else {
            panic!("it is no PEM file");
        };
        let said = source.to_string();
        assert!(said.contains("cut short"), "a remedy, no bytes: {said}");
        check(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "ca.pem (origin_ca_file) holds a certificate that cannot sign others",
        );
        assert!(read(Path::new("no/such/file.pem")).is_err());
        assert!(
            check_ca_file(Path::new("/dev/zero")).is_err(),
            "it has no end"
        );
    }
}
