//! HTTP client for a gateway's admin address.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

/// Timeout of a whole request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum size of a response body. A thousand rooms or the longest log fit.
const BODY_BYTES_MAX: usize = 8 << 20;

/// Error for every response that cannot be parsed.
pub(crate) const NOT_OURS: &str = "not a response of an anteroom gateway of this version";

/// Sends a request and returns the status and body of the response.
pub(crate) async fn send(
    admin: SocketAddr,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let response = timeout(RESPONSE_TIMEOUT, exchange(request)).await;
    response
        .context("no response in time; the gateway may or may not have made the change")?
        .with_context(|| {
            format!(
                "cannot reach the gateway (is `anteroom serve` running, and is {admin} its --admin \
                 address?)"
            )
        })
}

async fn exchange(request: Request<Full<Bytes>>) -> anyhow::Result<(StatusCode, Bytes)> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect();
    let body = body.await.map_err(|error| anyhow::anyhow!(error))?;
    Ok((status, body.to_bytes()))
}
