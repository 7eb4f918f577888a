//! Constructors of keys that several tables have.

use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use crate::kind::{Duration, InvalidValue, Text};
use crate::reader::Key;

/// Declares a key for the path of a file or folder.
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

/// Text for a key that takes the path of a file.
pub(crate) const A_FILE: &str = "the path of a file";
/// Declares a key for a duration from `min_ms` to `max`.
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
