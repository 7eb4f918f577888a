//! Errors of requests without a response from an origin.

use std::error::Error;
use std::io;

use crate::upstream::connect::ConnectError;
use crate::upstream::outcome::Outcome;

/// Error of a request without a response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Failed connection attempt; the request was not sent.
    #[error("no connection to the origin")]
    Connect(#[source] ConnectError),
    /// The connection broke, or its data is not HTTP.
    #[error("no valid response of the origin")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The head of the response is larger than `origin_head_bytes`, or has more headers than
    /// `origin_headers`.
    #[error("the head of the origin's response exceeds the limits")]
    TooLarge,
}

impl Failure {
    /// Returns the outcome for the origin.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Connect(_) => Outcome::ConnectFailed,
            Self::Broken(_) | Self::TooLarge => Outcome::Broken,
        }
    }
}

/// Classifies an error of a connection.
pub(crate) fn of(error: hyper::Error) -> Failure {
    if error.is_parse_too_large() {
        return Failure::TooLarge;
    }
    Failure::Broken(error.into())
}

/// End of a connection without a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Closing {
    /// The connection is open: the origin refused only this request (RFC 9113, section 8.7), and
    /// others on the same connection continue.
    Refused,
    /// The origin did not process the request (RFC 9113, section 8.7), and takes no more of them on
    /// this connection.
    Unseen,
    /// The connection ended before it was known whether the request was sent.
    Unknown,
    /// A ping got no reply.
    PingTimeout,
    /// The origin closed the connection, because it was idle for long or the origin could not
    /// continue.
    Closed,
}

/// Classifies the end of a connection without a response; `None` for other errors, such as a
/// response that is not HTTP.
pub(crate) fn closing(error: &hyper::Error) -> Option<Closing> {
    if error.is_timeout() {
        // A ping without a reply: no other timeout of hyper is set.
        return Some(Closing::PingTimeout);
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return Some(Closing::Closed);
    }
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return is_gone(error).then_some(Closing::Closed);
        }
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return closing_of_http2(error);
        }
        source = error.source();
    }
    None
}

/// Classifies the end of a request over HTTP/2.
pub(crate) fn closing_under_stream(error: &hyper::Error) -> Option<Closing> {
    // hyper reports a user error if it drops a request for which a stream was ready or just opened;
    // the request is not returned (hyper 1.12, `ClientTask::poll` in `proto/h2/client.rs` and the
    // `Drop` of `Callback`). Broken bodies are not reported here.
    if error.is_user() {
        return Some(Closing::Unknown);
    }
    closing(error)
}

fn closing_of_http2(error: &h2::Error) -> Option<Closing> {
    // Only requests after the last processed one fail with the origin's GOAWAY. A GOAWAY of ours
    // means that the origin violated the protocol.
    if error.is_remote() {
        if error.is_go_away() {
            return Some(Closing::Unseen);
        }
        if error.reason() == Some(h2::Reason::REFUSED_STREAM) {
            return Some(Closing::Refused);
        }
    }
    let is_gone = error.get_io().is_some_and(is_gone);
    is_gone.then_some(Closing::Closed)
}

/// Whether a connection was closed by its other end.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
    )
}
