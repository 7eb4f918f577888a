//! The file with operators' tokens (`server.admin_token_file`).

use std::io;
use std::path::{Path, PathBuf};

use anteroom_admin::{Token, TokenError};

use crate::check::files;

/// A hundred of the longest tokens with their names fit in.
const BYTES_MAX: usize = 64 * 1_024;

/// A token file that cannot be used. Its contents are not shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("cannot read {} (server.admin_token_file)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} (server.admin_token_file)", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: TokenError,
    },
}

/// The tokens in a file.
///
/// # Errors
///
/// [`TokenFileError`].
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
    fn a_file_with_too_many_tokens_is_refused_and_not_cut() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = "night 0123456789abcdef0123456789abcdef\n";
        let text = line.to_owned() + &"# why\n".repeat(super::BYTES_MAX / 6);
        std::fs::write(&file, text).unwrap();
        let error = super::load(file.path()).unwrap_err();
        let said = anteroom_store::chain(&error);
        assert!(said.contains("it is too large"), "{said}");
    }
}
