//! Body type and options of a request to an origin.

use bytes::Bytes;
use tokio::task;
use tokio::time::Instant;

/// Body that can be sent to an origin; its default is empty.
pub trait RequestBody:
    http_body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
    + Default
    + Send
    + Unpin
    + 'static
{
}

impl<T> RequestBody for T where
    T: http_body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Default
        + Send
        + Unpin
        + 'static
{
}

/// Options of sending a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendOptions {
    /// Whether the request needs HTTP/1.1, because it asks for an upgrade.
    pub(crate) needs_http1: bool,
    /// Earliest time at which the connection may have been made; excludes used connections.
    pub(crate) fresh_since: Option<Instant>,
    /// Connection on which the origin has refused the request; excludes it and HTTP/1.1.
    pub(crate) refused_by: Option<task::Id>,
    /// Whether the request has no body and may be sent twice, so that a copy is kept.
    pub(crate) is_repeatable: bool,
}

impl SendOptions {
    /// Whether the request was not sent yet, as far as known.
    pub(crate) const fn is_first(&self) -> bool {
        self.fresh_since.is_none() && self.refused_by.is_none()
    }
}
