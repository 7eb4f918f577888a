//! Check of texts that are to be the password of a store.

/// Longest password of a store, in bytes. Servers reject more than 16 KiB before a client has
/// authenticated; a real password is far shorter.
pub const PASSWORD_BYTES_MAX: usize = 4_096;

/// Error of a text that cannot be the password of a store. It contains nothing of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PasswordError {
    /// The text is empty.
    #[error("password is empty")]
    Empty,
    /// The text is longer than [`PASSWORD_BYTES_MAX`].
    #[error("password takes {bytes} bytes, at most {PASSWORD_BYTES_MAX} are allowed")]
    TooLong {
        /// Length of the text, in bytes.
        bytes: usize,
    },
    /// The text contains a line break or a NUL. People do not type those: it is another file.
    #[error("password has a line break or a NUL in it")]
    Character,
}

impl PasswordError {
    /// Checks that `password` can be a store's password.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    pub fn check(password: &str) -> Result<(), Self> {
        if password.is_empty() {
            return Err(Self::Empty);
        }
        if password.len() > PASSWORD_BYTES_MAX {
            let bytes = password.len();
            return Err(Self::TooLong { bytes });
        }
        if password.contains(['\n', '\r', '\0']) {
            return Err(Self::Character);
        }
        Ok(())
    }
}
