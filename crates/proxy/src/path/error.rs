//! Why is a path refused?

/// Why a path is refused. The answer is 400.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPathError {
    /// Not a path: `*`, or nothing.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// A byte below space, or DEL, raw or encoded.
    #[error("the path holds a control byte")]
    Control,
    /// A character spelled with more UTF-8 bytes than it needs.
    #[error("the path holds overlong UTF-8")]
    Overlong,
    /// More readings than `READING_BYTES_MAX` pays for.
    #[error("the path has too many readings")]
    TooManyReadings,
}
