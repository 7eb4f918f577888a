//! Limits of connections to origins.

use std::time::Duration;

/// Limits of connections to origins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Timeout of connecting, TLS included.
    pub connect: Duration,
    /// Idle timeout of a connection.
    pub idle: Duration,
    /// Maximum bytes of the head of a response.
    pub head_bytes: usize,
    /// Maximum headers of a response.
    pub headers: usize,
}
