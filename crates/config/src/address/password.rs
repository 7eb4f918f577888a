//! Which text can be the password of a store?

/// Longest password of a store, in bytes. Servers refuse more than 16 KiB before they know who
/// asks; nobody's password is a quarter of that.
pub const PASSWORD_BYTES_MAX: usize = 4_096;

/// Why a text is not the password of a store. Tells nothing of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PasswordError {
    /// There is nothing in it.
    #[error("password is empty")]
    Empty,
    /// It is longer than [`PASSWORD_BYTES_MAX`].
    #[error("password takes {bytes} bytes, at most {PASSWORD_BYTES_MAX} are allowed")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// It holds a line break or a NUL: nobody types those, so something else was taken for it.
    #[error("password has a line break or a NUL in it")]
    Character,
}

impl PasswordError {
    /// Says whether `password` can be one.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
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
