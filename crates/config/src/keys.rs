//! Keys of a kind that several tables have.

use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use crate::kind::{Duration, InvalidValue, Text};
use crate::reader::Key;

/// The path of something that is there, or will be.
pub(crate) const fn path_key(
    name: &'static str,
    allowed: &'static str,
    default: Option<&'static str>,
) -> Key<Text<PathBuf>> {
    let read = |text: &str| {
        if text.is_empty() || text.contains('\0') {
            return Err(InvalidValue::PLAIN);
        }
        Ok(PathBuf::from(text))
    };
    let kind = Text { allowed, read };
    Key {
        name,
        kind,
        default,
    }
}

/// What a path may be of.
pub(crate) const A_FILE: &str = "the path of a file";
/// A span of time from `min_ms` to `max`.
pub(crate) const fn time_key(
    name: &'static str,
    min_ms: u64,
    max: DurationMs,
    default: &'static str,
) -> Key<Duration> {
    Key {
        name,
        kind: Duration {
            min: DurationMs(min_ms),
            max,
            bare_unit: "s",
        },
        default: Some(default),
    }
}
