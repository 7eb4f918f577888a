//! File of operators' tokens (`server.admin_token_file`).

use std::io;
use std::path::{Path, PathBuf};

use anteroom_admin::{Token, TokenError};

use crate::check::files;

/// Largest token file, in bytes; it has room for a hundred of the longest tokens with their names.
const BYTES_MAX: usize = 64 * 1_024;

/// Error of a token file. Its contents are not shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("cannot read {} (server.admin_token_file)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} (server.admin_token_file)", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Underlying error.
        source: TokenError,
    },
}

/// Loads the tokens in a file.
///
/// # Errors
///
/// [`TokenFileError`] if the file cannot be read or is not valid.
pub fn load(path: &Path) -> Result<Vec<Token>, TokenFileError> {
    let text =
        files::read_text_at_most(path, BYTES_MAX).map_err(|source| TokenFileError::Read {
            path: path.to_owned(),
            source,
        })?;
    Token::parse(&text).map_err(|source| TokenFileError::Content {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_token_file_that_is_too_large_is_rejected() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = "night 0123456789abcdef0123456789abcdef\n";
        let text = line.to_owned() + &"# why\n".repeat(super::BYTES_MAX / 6);
        std::fs::write(&file, text).unwrap();
        let error = super::load(file.path()).unwrap_err();
        let message = anteroom_store::chain(&error);
        assert!(message.contains("it is too large"), "{message}");
    }
}
