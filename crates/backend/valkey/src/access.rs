//! How does one get into a server? Name, password, database, TLS.
//!
//! Files are read once, at the start, so that a mistake shows there. No `Debug`: it holds a
//! password.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anteroom_config::{PemError, ValkeyAddress, ValkeyTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why a store cannot even be asked: something on this machine is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The file of certificates cannot be read.
    #[error("cannot read the certificates in {} (ca_file in [store])", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file of certificates is no PEM file.
    #[error("{} (ca_file in [store]) cannot be read", path.display())]
    NoPem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: PemError,
    },
    /// The file of certificates holds one that cannot be used.
    #[error("{} (ca_file in [store]) holds a certificate that cannot sign others", path.display())]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// The file of certificates holds none.
    #[error("{} (ca_file in [store]) holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// This machine knows no certificates.
    #[error(
        "this machine trusts nobody: name the signer of the store's certificate as ca_file in \
         [store]"
    )]
    NobodyTrusted {
        /// What went wrong, if anything did.
        source: Option<rustls_native_certs::Error>,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls {
        /// Why not.
        source: rustls::Error,
    },
}

/// How to get in.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: u32,
    pub(crate) tls: Option<TlsConnector>,
}

impl Access {
    pub(crate) fn new(address: &ValkeyAddress) -> Result<Self, SetupError> {
        Ok(Self {
            username: address.username.clone(),
            password: address.password.clone(),
            database: address.database,
            tls: address.tls.as_ref().map(connector).transpose()?,
        })
    }
}

fn connector(tls: &ValkeyTls) -> Result<TlsConnector, SetupError> {
    let trusted = match &tls.ca_file {
        Some(path) => trusted_by_file(path)?,
        None => trusted_by_machine()?,
    };
    // Named here, for the process may have no default, or another one.
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| SetupError::Tls { source })?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn trusted_by_file(path: &std::path::Path) -> Result<RootCertStore, SetupError> {
    let path = || path.to_owned();
    let text = fs::read(path()).map_err(|source| SetupError::CaFile {
        path: path(),
        source,
    })?;
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| SetupError::NoPem {
            path: path(),
            source: error.into(),
        })?;
        let added = trusted.add(certificate);
        added.map_err(|source| SetupError::NoAuthority {
            path: path(),
            source,
        })?;
    }
    if trusted.is_empty() {
        return Err(SetupError::NoCertificate { path: path() });
    }
    Ok(trusted)
}

/// Single certificates that cannot be read are left out: machines carry odd ones, and whoever is
/// signed by one of them will be told so.
fn trusted_by_machine() -> Result<RootCertStore, SetupError> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(found.certs);
    if trusted.is_empty() {
        let source = found.errors.pop();
        return Err(SetupError::NobodyTrusted { source });
    }
    Ok(trusted)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anteroom_config::{HostPort, Topology};

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
        assert!(matches!(missing, Err(SetupError::CaFile { .. })));
    }
}
