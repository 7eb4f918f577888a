//! Notices: what is valid but has no effect, and what the reference service ignores silently.

use std::fmt;
use std::sync::Arc;

use crate::config::mistake::{write_location, write_on_one_line};

/// Part of a file without effect. Its `Display` is a single line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Notice {
    /// Name of the file, as the caller gave it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Kind of the part.
    pub remark: Remark,
}

/// Kind of a part without effect.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Remark {
    /// A key where it is not read.
    #[error("'{key}' has no effect here; it belongs {belongs}")]
    Misplaced {
        /// Key.
        key: String,
        /// Table in which the key has an effect.
        belongs: &'static str,
    },
    /// A key that is repeated.
    #[error("'{key}' appears here more than once; the last value is used")]
    Repeated {
        /// Key.
        key: String,
    },
    /// A second document in a file.
    #[error("another document begins here and is ignored; move it to a file of its own")]
    FurtherDocument,
    /// An unknown unit where none is needed.
    #[error("unit '{unit}' has no effect beside 'unlimited'")]
    UnitIgnored {
        /// Unit.
        unit: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_location(f, &self.file, Some(self.line))?;
        write_on_one_line(f, &self.remark.to_string())
    }
}
