//! Idle HTTP/1.1 connections to one origin.
//!
//! The newest is used first, so that in quiet times the others grow old and are closed. A
//! connection is used only by the runtime on which its task runs: sharing one across runtimes wakes
//! a thread twice for each request.

use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::debug;

use crate::upstream::connect::{ConnectError, Stream};
use crate::upstream::lease::Turn;
use crate::upstream::limits::Limits;
use crate::upstream::open_connections::{Kept, look_after};
use crate::upstream::request::RequestBody;

/// Maximum idle connections to one origin per runtime. A burst above that reconnects.
const IDLE_MAX: usize = 1024;
/// hyper's default limit of headers. If a limit is set, even the same, hyper fills a table of so
/// many entries for each response (hyper 1.12, `Client::parse` in `proto/h1/role.rs`).
const USUAL_HEADERS: usize = 100;
/// Maximum bytes of one read. More has no measurable gain, and each connection with a slow reader
/// has such a buffer.
const BUFFER_BYTES: usize = 64 * 1024;

/// Connections of one origin that are ready for a request.
#[derive(Debug)]
pub(crate) struct Idle<B> {
    keep: Duration,
    /// Connections with the start of their idle time.
    kept: Mutex<Kept<(Connection<B>, Instant)>>,
}

/// Connection, and the task that moves its bytes.
#[derive(Debug)]
pub(crate) struct Connection<B> {
    pub(crate) sender: SendRequest<B>,
    pub(crate) task: AbortHandle,
    /// Runtime of the task.
    runtime: runtime::Id,
    /// Turn of the present request: the lease of an earlier one can no longer end the connection.
    pub(crate) turn: Turn,
}

impl<B: RequestBody> Idle<B> {
    pub(crate) fn new(keep: Duration) -> Arc<Self> {
        Arc::new(Self {
            keep,
            kept: Mutex::default(),
        })
    }

    /// Takes a connection that was used before and is ready.
    pub(crate) fn take(&self) -> Option<Connection<B>> {
        let now = Instant::now();
        let mut kept = self.kept.lock();
        let here = kept.here()?;
        while let Some((connection, since)) = here.pop() {
            if now.saturating_duration_since(since) >= self.keep {
                // All others are older.
                here.clear();
                return None;
            }
            if connection.sender.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection once it is ready again after its last response.
    pub(crate) fn keep_when_ready(self: &Arc<Self>, mut connection: Connection<B>) {
        if connection.sender.is_ready() {
            self.put(connection);
            return;
        }
        let idle = Arc::downgrade(self);
        tokio::spawn(async move {
            if connection.sender.ready().await.is_ok()
                && let Some(idle) = idle.upgrade()
            {
                idle.put(connection);
            }
        });
    }

    fn put(self: &Arc<Self>, connection: Connection<B>) {
        // From here on the connection belongs to the next request, although the last response may
        // not have been read to its end.
        connection.turn.pass_on();
        let mut kept = self.kept.lock();
        let here = kept.at(connection.runtime);
        if here.len() >= IDLE_MAX {
            return;
        }
        here.push((connection, Instant::now()));
        if kept.needs_sweeper() {
            tokio::spawn(look_after(Arc::downgrade(self), self.keep, Self::sweep));
        }
    }

    /// Closes connections that are too old. Returns whether any remain.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let is_young = |since: Instant| now.saturating_duration_since(since) < self.keep;
        self.kept.lock().sweep(|connections| {
            connections
                .retain(|(connection, since)| is_young(*since) && !connection.sender.is_closed());
        })
    }
}

/// Starts HTTP/1.1 on a connection.
pub(crate) async fn begin<B: RequestBody>(
    stream: impl Stream,
    limits: &Limits,
) -> Result<Connection<B>, ConnectError> {
    let mut http = http1::Builder::new();
    http.max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(BUFFER_BYTES));
    if limits.headers != USUAL_HEADERS {
        http.max_headers(limits.headers);
    }
    let begun = http.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(ConnectError::Http)?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            debug!(
                error = &error as &dyn std::error::Error,
                "a connection to an origin ended"
            );
        }
    });
    Ok(Connection {
        sender,
        task: task.abort_handle(),
        runtime: Handle::current().id(),
        turn: Turn::default(),
    })
}
