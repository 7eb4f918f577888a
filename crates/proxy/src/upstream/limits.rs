//! What connections to origins may cost.

use std::time::Duration;

/// What connections to origins may cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
    /// Bytes of the head of an answer.
    pub head_bytes: usize,
    /// Headers of an answer.
    pub headers: usize,
}
