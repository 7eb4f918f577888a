//! Error of a body that ends early.

use std::time::Duration;

/// Error of a body that ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The idle timeout passed without data.
    #[error("no data for {} ms", .after.as_millis())]
    Idle {
        /// Idle timeout.
        after: Duration,
    },
    /// The body was slower than the minimum rate while it was waited for.
    #[error("the body is slower than {bytes_per_second_min} bytes per second")]
    Slow {
        /// Minimum rate, in bytes per second.
        bytes_per_second_min: u64,
    },
    /// The body is larger than the limit.
    #[error("the body is larger than {limit_bytes} bytes")]
    TooLarge {
        /// Limit on the size of the body.
        limit_bytes: u64,
    },
    /// The receiver had responded before the body ended.
    #[error("the body is no longer needed")]
    Unwanted,
    /// The connection broke, or its data is not HTTP.
    #[error("cannot read the body")]
    Broken(#[source] hyper::Error),
}
