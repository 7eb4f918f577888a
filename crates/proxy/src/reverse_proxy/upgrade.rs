//! Upgrades of connections, as for WebSocket.
//!
//! The layers above decide whether an upgrade is allowed. Here `Upgrade` is forwarded if its
//! protocol is not HTTP again, and after the origin's 101 both connections are spliced. HTTP in a
//! tunnel (`h2c`, `HTTP/2.0`, `TLS/1.3`) is never forwarded: requests inside it would reach the
//! origin without a ticket.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::downstream::hold::ConnectionHold;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Version};
use http_body::Body as _;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tracing::debug;

use crate::body::{Attached, Body};

/// Request for an upgrade.
pub(super) struct UpgradeRequest {
    protocol: HeaderValue,
    client: OnUpgrade,
    hold: Option<ConnectionHold>,
}

impl UpgradeRequest {
    /// Returns the requested upgrade, if it may be forwarded. Otherwise `Upgrade` is ignored, as
    /// RFC 9110 allows, and the request continues without it.
    pub(super) fn by(request: &mut Request<Body>, hold: Option<ConnectionHold>) -> Option<Self> {
        let protocol = request.headers().get(UPGRADE)?.clone();
        let may_pass = request.version() == Version::HTTP_11
            && request.body().is_end_stream()
            && request.headers().get_all(UPGRADE).iter().nth(1).is_none()
            && names_upgrade(request.headers())
            && is_foreign(&protocol);
        if !may_pass {
            return None;
        }
        let client = request.extensions_mut().remove::<OnUpgrade>()?;
        Some(Self {
            protocol,
            client,
            hold,
        })
    }

    /// Restores the two headers, which were removed as hop-by-hop headers.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
    }

    /// Whether a 101 with these headers switches to the requested protocol.
    pub(super) fn is_granted_by(&self, headers: &HeaderMap) -> bool {
        let granted = headers.get(UPGRADE).map(HeaderValue::as_bytes);
        granted.is_some_and(|granted| granted.eq_ignore_ascii_case(self.protocol.as_bytes()))
    }

    /// Splices both connections once the 101 has been sent, in its own task.
    ///
    /// The tunnel ends when both sides have ended, when no bytes move for `idle` (detected within
    /// twice that), or at the end of the drain timeout.
    pub(super) fn splice(self, origin: OnUpgrade, attached: Attached, idle: Duration) {
        tokio::spawn(async move {
            // Held until the tunnel ends, so that the request counts as in flight.
            let _busy = attached;
            let (client, origin) = match tokio::try_join!(self.client, origin) {
                Ok(both) => both,
                Err(error) => {
                    debug!(%error, "upgrade failed");
                    return;
                }
            };
            let cut = async {
                match &self.hold {
                    Some(hold) => hold.cut().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = run(client, origin, idle) => {}
                () = cut => debug!("tunnel cut at the end of draining"),
            }
        });
    }
}

/// Whether `Connection` names `upgrade`, as it must.
fn names_upgrade(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CONNECTION).iter();
    let mut tokens = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
}

/// Whether the value is a single protocol, and not HTTP under another name.
fn is_foreign(protocol: &HeaderValue) -> bool {
    let Ok(protocol) = protocol.to_str() else {
        return false;
    };
    let name = protocol.split('/').next().unwrap_or_default();
    let is_http = ["h2c", "h2", "h3", "http", "https", "tls"]
        .iter()
        .any(|http| name.trim().eq_ignore_ascii_case(http));
    !is_http && !name.is_empty() && !protocol.contains([',', ' ', '\t'])
}

async fn run(client: Upgraded, origin: Upgraded, idle: Duration) {
    let has_moved = Arc::new(AtomicBool::new(true));
    let mut client = Watched::new(client, &has_moved);
    let mut origin = Watched::new(origin, &has_moved);
    let idle_for_too_long = async {
        while has_moved.swap(false, Relaxed) {
            tokio::time::sleep(idle).await;
        }
    };
    tokio::select! {
        copied = copy_bidirectional(&mut client, &mut origin) => match copied {
            Ok((up, down)) => debug!(up, down, "tunnel closed"),
            Err(error) => debug!(%error, "tunnel broke"),
        },
        () = idle_for_too_long => debug!("idle tunnel closed"),
    }
}

/// Connection that records reads.
struct Watched {
    io: TokioIo<Upgraded>,
    has_moved: Arc<AtomicBool>,
}

impl Watched {
    fn new(io: Upgraded, has_moved: &Arc<AtomicBool>) -> Self {
        Self {
            io: TokioIo::new(io),
            has_moved: Arc::clone(has_moved),
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, buffer);
        if polled.is_ready() {
            self.has_moved.store(true, Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_in_a_tunnel_is_not_forwarded() {
        let check = |protocol, expected| {
            assert_eq!(
                is_foreign(&HeaderValue::from_static(protocol)),
                expected,
                "{protocol}"
            );
        };
        check("websocket", true);
        check("WebSocket", true);
        check("SPDY/3.1", true);
        check("h2c", false);
        check("H2C", false);
        check("HTTP/2.0", false);
        check("TLS/1.3", false);
        check("websocket, h2c", false);
        check("h2c websocket", false);
        check("", false);
    }

    #[test]
    fn an_upgrade_must_be_named_in_connection() {
        let check = |connection, expected| {
            let value = HeaderValue::from_static(connection);
            let headers = HeaderMap::from_iter([(CONNECTION, value)]);
            assert_eq!(names_upgrade(&headers), expected, "{connection}");
        };
        check("Upgrade", true);
        check("keep-alive, upgrade", true);
        check("keep-alive", false);
        check("upgraded", false);
    }
}
