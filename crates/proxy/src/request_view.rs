//! Request as decisions see it, in the layers and on the fast path alike.

use http::{Method, Request};

use crate::downstream::connection_table::Claim;
use crate::forwarded::Client;
use crate::header_view::HeaderView;
use crate::request_context::RequestContext;

/// Request without its body.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// Method.
    pub method: &'a Method,
    /// Client of the request.
    pub client: &'a Client,
    /// Host of the request: a name or an address, perhaps with a port.
    pub host: &'a str,
    /// Path and query, as sent.
    pub target: &'a str,
    /// Path, as sent.
    pub path: &'a str,
    /// Query, without `?`; may be empty.
    pub query: &'a str,
    /// Headers of the request.
    pub headers: HeaderView<'a>,
    /// Connection of the request; `None` where another program accepts connections.
    pub connection: Option<&'a Claim>,
    /// Whether a rate limit lets the request only wait.
    pub is_over_limit: bool,
}

impl<'a> RequestView<'a> {
    /// Returns the view of a request; `None` if it has no context.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Option<Self> {
        let context = RequestContext::of(request)?;
        let uri = request.uri();
        Some(Self {
            method: request.method(),
            client: &context.client,
            host: context.client.host(),
            target: uri.path_and_query().map_or("/", |target| target.as_str()),
            path: uri.path(),
            query: uri.query().unwrap_or_default(),
            headers: request.headers().into(),
            connection: context.connection.as_ref(),
            is_over_limit: context.is_over_limit,
        })
    }

    /// Whether the request only reads: GET or HEAD.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(*self.method, Method::GET | Method::HEAD)
    }
}
