//! Why does a body end early?

use std::time::Duration;

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// Nothing came for this long.
    #[error("nothing came for {} ms", .after.as_millis())]
    Idle {
        /// How long it was waited.
        after: Duration,
    },
    /// Far too little came in the time that was spent on waiting for it.
    #[error("less than {bytes_per_second_min} bytes came in a second")]
    Slow {
        /// What should come.
        bytes_per_second_min: u64,
    },
    /// More came than the limit allows.
    #[error("the body is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// Whoever was to get it had answered before.
    #[error("the body is not wanted any more")]
    Unwanted,
    /// The connection broke, or what came is not HTTP.
    #[error("could not read the body")]
    Broken(#[source] hyper::Error),
}
