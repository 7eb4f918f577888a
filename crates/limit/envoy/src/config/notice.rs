//! What is legal and still worth a word? Things that the reference service drops without one.

use std::fmt;
use std::sync::Arc;

use crate::config::mistake::{write_on_one_line, write_place};

/// One thing in one file that does nothing. Its `Display` is a single line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Notice {
    /// The file as the caller named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// What does nothing.
    pub remark: Remark,
}

/// What does nothing.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Remark {
    /// A key in a place where nobody reads it.
    #[error("'{key}' has no effect here; it belongs {belongs}")]
    Misplaced {
        /// The key.
        key: String,
        /// Where it would have one.
        belongs: &'static str,
    },
    /// A key that stands there once more.
    #[error("'{key}' stands here more than once, and the last one holds")]
    Repeated {
        /// The key.
        key: String,
    },
    /// A second document in a file.
    #[error("another document begins here, which is not read; put it into a file of its own")]
    FurtherDocument,
    /// A unit that nobody knows where none is needed.
    #[error("unit '{unit}' has no effect beside 'unlimited'")]
    UnitIgnored {
        /// The unit.
        unit: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, Some(self.line))?;
        write_on_one_line(f, &self.remark.to_string())
    }
}
