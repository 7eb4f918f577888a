//! Certificate of the benchmark, for all proxies and the load generator.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Host of the certificate.
pub(crate) const HOST: &str = "localhost";

/// Files of a self-signed certificate.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Certificate and key in one file, for haproxy.
    pub(crate) both: PathBuf,
}

impl Certificate {
    /// Creates a certificate and writes its files into a folder.
    pub(crate) fn create(folder: &Path) -> anyhow::Result<Self> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([HOST.to_owned()])?;
        let (cert, key) = (cert.pem(), signing_key.serialize_pem());
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
            anyhow::Ok(path)
        };
        Ok(Self {
            certificate: write("cert.pem", &cert)?,
            key: write("key.pem", &key)?,
            both: write("both.pem", &format!("{cert}{key}"))?,
        })
    }
}

/// Returns a client that trusts this certificate alone and offers one application protocol.
pub(crate) fn connector(certificate: &Path, alpn: &[u8]) -> anyhow::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(read_certificate(certificate)?)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns a server with this certificate that takes HTTP/2 and HTTP/1.1.
pub(crate) fn server_config(certificate: &Path, key: &Path) -> anyhow::Result<ServerConfig> {
    let key = PrivateKeyDer::from_pem_file(key).context("reading the key")?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![read_certificate(certificate)?], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn read_certificate(path: &Path) -> anyhow::Result<CertificateDer<'static>> {
    CertificateDer::from_pem_file(path)
        .with_context(|| format!("reading the certificate {}", path.display()))
}
