//! Fast path: plain requests over HTTP/1.1, forwarded without a map of headers.
//!
//! A request that hyper forwards passes through tower futures, two header maps, channels and a task
//! for each connection to an origin. That takes three times nginx' instructions. Most requests of
//! active visitors need none of it: a GET, or a POST with a short body, decided at once, to an
//! origin that speaks HTTP/1.1. Here one task owns both sockets, and a head is rewritten from where
//! it was read.
//!
//! # What is left to hyper
//!
//! `request_head` says *mine* or *not mine*, and never refuses a request: refusals, their words
//! and their metrics are those of the slow path. A request that is not mine hands the connection
//! over, with all bytes that were read, before anything was decided or counted. From then on hyper
//! serves the connection.
//!
//! A request that is mine and cannot be decided at once goes through the same layers as any other,
//! in the task of the connection. Its response is written here. So the connection on which a
//! browser is admitted stays on the fast path.
//!
//! - `request_head` and `response_head` read heads and write what is sent on;
//! - `response_body` finds the end of an origin's response;
//! - `driver` serves a connection, `exchange` forwards one request, `own_response` writes a
//!   response of the layers.

mod buffers;
mod copied_lines;
mod driver;
mod exchange;
pub(crate) mod fuzzed;
mod own_response;
mod request_head;
mod response_body;
pub(crate) mod response_head;
mod timer;

use std::future::Future;

use http::{Method, Response, StatusCode};

use crate::body::Body;
use crate::downstream::connection_table::Claim;
use crate::forwarded::Client;
use crate::header_view::HeaderView;
use crate::intake::Intake;
use crate::request_context::Upstream;

pub(crate) use driver::{Ending, HandedOver, drive};
pub use request_head::write_line;

/// Request as decisions see it.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// Method: GET, HEAD, POST, PUT, PATCH or DELETE.
    pub method: &'a Method,
    /// Client of the request.
    pub client: &'a Client,
    /// Host of the request: a name or an IPv4 address, perhaps with a port.
    pub host: &'a str,
    /// Path, as sent.
    pub path: &'a str,
    /// Query, without `?`; may be empty.
    pub query: &'a str,
    /// Headers of the request.
    pub headers: HeaderView<'a>,
    /// Connection of the request.
    pub connection: &'a Claim,
}

/// Decisions that need neither a wait nor a lock.
pub trait PassAtOnce: Clone + Send + Sync + 'static {
    /// Request that passes.
    type Passed: PassedRequest;

    /// Decides about a request. With `None` nothing has happened, and the layers decide.
    ///
    /// A request passes only to a group of which [`Group::takes_plain_http1`] is true.
    ///
    /// [`Group::takes_plain_http1`]: crate::upstream::Group::takes_plain_http1
    fn pass_at_once(&self, request: &RequestView<'_>) -> Option<Self::Passed>;
}

/// Request that goes to its origin. Dropping it ends its line in the access log.
pub trait PassedRequest: Send + Sync + 'static {
    /// Returns the destination.
    fn upstream(&self) -> &Upstream;

    /// Appends the header lines for the origin, each with its line end.
    fn write_headers(&self, lines: &mut Vec<u8>);

    /// Records the outcome of the origin, which responded with this status. Appends header lines
    /// for the client, if there are any.
    fn handle_response(&mut self, status: StatusCode, lines: &mut Vec<u8>);

    /// Changes a response of which [`PassedRequest::handle_response`] does not know, and records
    /// its outcome, an extension of the response.
    fn finish(&mut self, response: Response<Body>) -> impl Future<Output = Response<Body>> + Send;
}

/// Fast path of a handler.
pub struct FastPath<'a, D> {
    /// Limits of requests, and the proxies that are trusted.
    pub(crate) intake: &'a Intake,
    /// Decisions.
    pub(crate) decider: &'a D,
}

/// Decisions of a handler without a fast path.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl PassAtOnce for Never {
    type Passed = Self;

    fn pass_at_once(&self, _: &RequestView<'_>) -> Option<Self> {
        None
    }
}

impl PassedRequest for Never {
    fn upstream(&self) -> &Upstream {
        match *self {}
    }

    fn write_headers(&self, _: &mut Vec<u8>) {}

    fn handle_response(&mut self, _: StatusCode, _: &mut Vec<u8>) {}

    async fn finish(&mut self, response: Response<Body>) -> Response<Body> {
        response
    }
}
