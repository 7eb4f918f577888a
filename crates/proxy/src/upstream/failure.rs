//! Why did a request get no answer from an origin?

use std::error::Error;
use std::io;

use crate::upstream::connect::ConnectError;
use crate::upstream::outcome::Outcome;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// There is no connection; nothing was sent.
    #[error("no connection to the origin")]
    Connect(#[source] ConnectError),
    /// The connection broke, or what came is not HTTP.
    #[error("the origin did not answer as it should")]
    Broken(#[source] hyper::Error),
    /// The head of the answer is larger than `origin_head_bytes`, or has more headers than
    /// `origin_headers`.
    #[error("the head of the origin's answer is larger than the limits allow")]
    TooLarge,
}

impl Failure {
    /// What it means for the origin.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Connect(_) => Outcome::ConnectFailed,
            Self::Broken(_) | Self::TooLarge => Outcome::Broken,
        }
    }
}

/// What an error of a connection means.
pub(crate) fn of(error: hyper::Error) -> Failure {
    if error.is_parse_too_large() {
        return Failure::TooLarge;
    }
    Failure::Broken(error)
}

/// How a connection ended that brought no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Closing {
    /// It was not: the origin said that it did not look at this one request (RFC 9113, section
    /// 8.7), and others on the same connection go on.
    Refused,
    /// The origin said that it did not look at the request (RFC 9113, section 8.7), and takes no
    /// more of them on this connection.
    Unseen,
    /// It ended before it was known whether the request had gone out.
    Unknown,
    /// Nobody has been there for a while.
    Dead,
    /// It was closed, by an origin that had kept it long enough, or that could not go on.
    Closed,
}

/// Whether and how a connection was closed instead of an answer; `None` where something else went
/// wrong, such as an answer that is not HTTP.
pub(crate) fn closing(error: &hyper::Error) -> Option<Closing> {
    if error.is_timeout() {
        // A ping that nobody answered: no other time-out of hyper's is set.
        return Some(Closing::Dead);
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

/// The same for a request over HTTP/2.
pub(crate) fn closing_under_stream(error: &hyper::Error) -> Option<Closing> {
    // What hyper calls its user's mistake is that it let go of a request for which a stream was
    // ready, or has just been opened: the request does not come back (hyper 1.12,
    // `ClientTask::poll` in `proto/h2/client.rs` and the `Drop` of `Callback`). Bodies that break
    // are not told here.
    if error.is_user() {
        return Some(Closing::Unknown);
    }
    closing(error)
}

fn closing_of_http2(error: &h2::Error) -> Option<Closing> {
    // Only requests after the last that the origin looked at fail with its GOAWAY. One of our own
    // says that the origin broke the rules.
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

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
    )
}
