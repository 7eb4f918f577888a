//! Visitors that are prepared before a measurement: they get their cookies.

use anyhow::{Context as _, ensure};

use crate::generator::{Connection, Headers, Prepared, Protocol, Target};
use crate::peers::Peer;

/// Returns the size of a page.
pub(crate) async fn bytes_of(peer: &Peer, path: &str) -> anyhow::Result<usize> {
    let (bytes, _) = visit(peer, path, 1).await?;
    Ok(bytes)
}

/// Returns the cookies (`name=value`) of new visitors.
pub(crate) async fn cookies(peer: &Peer, path: &str, count: usize) -> anyhow::Result<Vec<String>> {
    let (_, cookies) = visit(peer, path, count).await?;
    ensure!(cookies.len() == count, "a new visitor got no ticket");
    Ok(cookies)
}

/// Sends requests without a cookie. Returns the size of the last response, and all cookies.
async fn visit(peer: &Peer, path: &str, count: usize) -> anyhow::Result<(usize, Vec<String>)> {
    let certificate = peer.certificate.as_deref();
    let protocol = match certificate {
        Some(_) => Protocol::Tls,
        None => Protocol::Http1,
    };
    let target = Target::new(peer.address, protocol, certificate)?;
    let Connection::Http1(mut connection) = target.connect().await? else {
        anyhow::bail!("the connection is not of HTTP/1.1");
    };
    let request = Prepared::new(peer.address, path, Headers::Lean, "")?;
    let (mut bytes, mut cookies) = (0, Vec::new());
    for _ in 0..count {
        connection.send(&request.bytes).await?;
        bytes = connection
            .receive()
            .await
            .context("a new visitor got no page")?;
        let cookie = connection.header("set-cookie");
        let cookie = cookie
            .as_deref()
            .and_then(|cookie| cookie.split(';').next());
        cookies.extend(cookie.map(str::to_owned));
    }
    Ok((bytes, cookies))
}
