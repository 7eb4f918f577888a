//! One request to a gateway's admin address, and the whole of what it answers.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// A thousand rooms fit well, and so does the longest log.
const BODY_BYTES_MAX: usize = 8 << 20;

/// What every answer that is not understood means.
pub(crate) const STRANGER: &str = "this is no answer of an anteroom gateway of this version";

/// Asks, and waits for the answer.
pub(crate) async fn send(
    admin: SocketAddr,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let answer = timeout(PATIENCE, answer(request)).await;
    answer
        .context("no answer; nothing is known to have changed")?
        .with_context(|| {
            format!("is `anteroom serve` running, and is {admin} its --admin address?")
        })
}

async fn answer(request: Request<Full<Bytes>>) -> anyhow::Result<(StatusCode, Bytes)> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect();
    let body = body.await.map_err(|error| anyhow::anyhow!(error))?;
    Ok((status, body.to_bytes()))
}
