//! HTTP/1.1 connections to one origin.

use std::sync::Arc;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::runtime::{self, Handle};
use tokio::task::AbortHandle;
use tracing::debug;

use crate::upstream::connect::{ConnectError, Stream};
use crate::upstream::lease::Turn;
use crate::upstream::limits::Limits;
use crate::upstream::open_connections::{Idle, Reusable};
use crate::upstream::request::RequestBody;

/// hyper's default limit of headers. If a limit is set, even the same, hyper fills a table of so
/// many entries for each response (hyper 1.12, `Client::parse` in `proto/h1/role.rs`).
const USUAL_HEADERS: usize = 100;
/// Maximum bytes of one read. More has no measurable gain, and each connection with a slow reader
/// has such a buffer.
const BUFFER_BYTES: usize = 64 * 1024;

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

impl<B: RequestBody> Reusable for Connection<B> {
    fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// Keeps a connection once it is ready again after its last response.
pub(crate) fn keep_when_ready<B: RequestBody>(
    idle: &Arc<Idle<Connection<B>>>,
    mut connection: Connection<B>,
) {
    if connection.sender.is_ready() {
        put(idle, connection);
        return;
    }
    let idle = Arc::downgrade(idle);
    tokio::spawn(async move {
        if connection.sender.ready().await.is_ok()
            && let Some(idle) = idle.upgrade()
        {
            put(&idle, connection);
        }
    });
}

fn put<B: RequestBody>(idle: &Arc<Idle<Connection<B>>>, connection: Connection<B>) {
    // From here on the connection belongs to the next request, although the last response may not
    // have been read to its end.
    connection.turn.pass_on();
    let runtime = connection.runtime;
    idle.put(connection, runtime);
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
