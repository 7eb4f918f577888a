//! HTTP client for a gateway's admin address.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::CaFile;
use anyhow::Context as _;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::client::options::{AdminAddress, Connection};

/// Timeout of a whole request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum size of a response body: an export of all rooms with 64 MiB of pages fits.
const BODY_BYTES_MAX: usize = 128 << 20;

/// Error for every response that cannot be parsed.
pub(crate) const NOT_OURS: &str = "not a response of an anteroom gateway of this version";

/// Sends a request, whose URI is a path, and returns the status and body of the response.
pub(crate) async fn send(
    admin: &AdminAddress,
    connection: &Connection,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let connector = match admin {
        AdminAddress::Http(_) => None,
        AdminAddress::Https { .. } => Some(connector(connection.ca_file.as_deref())?),
    };
    let response = timeout(RESPONSE_TIMEOUT, exchange(admin, connector, request)).await;
    response
        .context("no response in time; the gateway may or may not have made the change")?
        .with_context(|| {
            format!(
                "cannot reach the gateway (is `anteroom serve` running, and is {admin} its --admin \
                 address?)"
            )
        })
}

async fn exchange(
    admin: &AdminAddress,
    connector: Option<TlsConnector>,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let authority = admin.authority();
    let stream = TcpStream::connect(&authority).await?;
    match (connector, admin) {
        (Some(connector), AdminAddress::Https { host, .. }) => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            let name = ServerName::try_from(bare.to_owned())
                .with_context(|| format!("{host} can be no name in a certificate"))?;
            let stream = connector.connect(name, stream).await;
            exchange_on(
                stream.context("the TLS handshake failed")?,
                &authority,
                request,
            )
            .await
        }
        _ => exchange_on(stream, &authority, request).await,
    }
}

async fn exchange_on(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    authority: &str,
    mut request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let host = HeaderValue::try_from(authority).context("the address can be no host")?;
    request.headers_mut().insert(HOST, host);
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Its failures are those of the request.
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect();
    let body = body.await.map_err(|error| anyhow::anyhow!(error))?;
    Ok((status, body.to_bytes()))
}

/// Returns a connector that trusts the certificates of a file, or those of the system.
fn connector(ca_file: Option<&Path>) -> anyhow::Result<TlsConnector> {
    let mut trusted = RootCertStore::empty();
    match ca_file {
        Some(path) => {
            let file = CaFile {
                path,
                key: "--ca-file",
            };
            let text = file.text(File::open(path))?;
            file.each_certificate(&text, |certificate| trusted.add(certificate))?;
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            trusted.add_parsable_certificates(found.certs);
            anyhow::ensure!(
                !trusted.is_empty(),
                "the system has no CA certificates; name a file with --ca-file"
            );
        }
    }
    // Explicit, as the process may have no default, or another one.
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .context("cannot set up TLS")?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
