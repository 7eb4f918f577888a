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
//! Most of the others are decided at once, too: who waits gets a page or a position from here. A
//! request that is mine and cannot be decided at once goes through the same layers as any other, in
//! the task of the connection. Its response is written here. So the connection on which a browser
//! is admitted stays on the fast path.
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

use http::{Extensions, Response, StatusCode};

use crate::body::Body;
use crate::intake::Intake;
use crate::request_context::Upstream;
use crate::request_view::RequestView;

pub(crate) use driver::{Ending, HandedOver, drive};
pub use request_head::write_line;

/// Decisions of the layers that need no wait.
pub trait DecideAtOnce: Clone + Send + Sync + 'static {
    /// Request that passes.
    type Passed: PassedRequest;

    /// Decides about a request: GET, HEAD, POST, PUT, PATCH or DELETE.
    fn decide_at_once(&self, request: &RequestView<'_>) -> AtOnce<Self::Passed>;
}

/// Decision of [`DecideAtOnce`].
#[derive(Debug)]
pub enum AtOnce<P> {
    /// The request goes to its origin, in a group of which [`Group::takes_plain_http1`] is true.
    ///
    /// [`Group::takes_plain_http1`]: crate::upstream::Group::takes_plain_http1
    Pass(P),
    /// The client gets this response.
    Respond(Box<Response<Body>>),
    /// The layers decide. They get the request with these extensions: what was begun here.
    Layers(Extensions),
}

impl<P> AtOnce<P> {
    /// Returns the decision that nothing was begun, and the layers decide.
    #[must_use]
    pub fn layers() -> Self {
        Self::Layers(Extensions::new())
    }
}

/// Request that goes to its origin. Dropping it ends its line in the access log.
pub trait PassedRequest: Send + Sync + 'static {
    /// Returns the destination.
    fn upstream(&self) -> &Upstream;

    /// Appends the header lines for the origin, each with its line end.
    fn write_headers(&self, lines: &mut Vec<u8>);

    /// Whether every response needs [`PassedRequest::finish`].
    fn changes_response(&self) -> bool;

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

impl DecideAtOnce for Never {
    type Passed = Self;

    fn decide_at_once(&self, _: &RequestView<'_>) -> AtOnce<Self> {
        AtOnce::layers()
    }
}

impl PassedRequest for Never {
    fn upstream(&self) -> &Upstream {
        match *self {}
    }

    fn write_headers(&self, _: &mut Vec<u8>) {}

    fn changes_response(&self) -> bool {
        false
    }

    fn handle_response(&mut self, _: StatusCode, _: &mut Vec<u8>) {}

    async fn finish(&mut self, response: Response<Body>) -> Response<Body> {
        response
    }
}
