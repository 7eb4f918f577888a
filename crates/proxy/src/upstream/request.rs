//! A request to an origin: of what its body is made, and how it is to be sent.

use bytes::Bytes;
use tokio::task;
use tokio::time::Instant;

/// A body that can be sent to an origin; its default is none.
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

/// How a request is to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// It may leave HTTP, which HTTP/2 does in another way.
    pub(crate) needs_http1: bool,
    /// Not over a connection that was used before; only over one that was made after this moment.
    pub(crate) fresh_since: Option<Instant>,
    /// Not over this connection, over which the origin has refused it; and not over one of HTTP/1.
    pub(crate) refused_by: Option<task::Id>,
    /// It has no body and may be sent twice: a copy is to be kept.
    pub(crate) is_repeatable: bool,
}

impl How {
    /// Whether it has not been sent yet, as far as anybody knows.
    pub(crate) const fn is_first(&self) -> bool {
        self.fresh_since.is_none() && self.refused_by.is_none()
    }
}
