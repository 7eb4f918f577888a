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

/// Whether a connection was closed instead of an answer: by an origin that had kept it long enough.
pub(crate) fn is_closing(error: &hyper::Error) -> bool {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return true;
    }
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return is_gone(error);
        }
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let was_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_go_away() || was_refused || error.get_io().is_some_and(is_gone);
        }
        source = error.source();
    }
    false
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
