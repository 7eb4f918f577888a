//! HTTP/2 client over TLS: one connection for any number of requests.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Sender of requests without bodies; clones share the connection.
pub type Connection = SendRequest<Empty<Bytes>>;

/// Connects to `localhost` at this address, and trusts this certificate only.
///
/// # Panics
///
/// If nobody listens there, has that certificate and speaks HTTP/2.
pub async fn connect(address: SocketAddr, trusted: CertificateDer<'static>) -> Connection {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).expect("it is a certificate");
    // Explicit, because a program of tests may have several providers.
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await;
    let stream = stream.expect("somebody listens");
    let name = ServerName::try_from("localhost").expect("it is a name");
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await;
    let stream = TokioIo::new(stream.expect("the certificate is the trusted one"));
    let begun = handshake(TokioExecutor::new(), stream).await;
    let (connection, driver) = begun.expect("HTTP/2 is spoken");
    tokio::spawn(driver);
    connection
}
