//! Why did a request get no answer from an origin?

use std::error::Error;
use std::io;

use crate::connect::ConnectError;
use crate::origin::Outcome;

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
    /// The origin said that it did not look at the request (RFC 9113, section 8.7), and takes no more of
    /// them on this connection.
    Unseen,
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

fn closing_of_http2(error: &h2::Error) -> Option<Closing> {
    let was_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    // Only requests after the last that the origin looked at fail with its GOAWAY. One of our own says
    // that the origin broke the rules.
    if error.is_remote() && (error.is_go_away() || was_refused) {
        return Some(Closing::Unseen);
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
