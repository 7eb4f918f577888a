//! Error of a path that is rejected.

/// Error of a path; the response has status 400.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPathError {
    /// The text is not a path: `*`, or empty.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// The path has a byte below space, or DEL, raw or encoded.
    #[error("the path has a control byte")]
    Control,
    /// The path has a character with more UTF-8 bytes than it needs.
    #[error("the path has overlong UTF-8")]
    Overlong,
    /// The readings exceed `READING_BYTES_MAX`.
    #[error("the path has too many readings")]
    TooManyReadings,
}
