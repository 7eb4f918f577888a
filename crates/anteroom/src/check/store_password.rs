//! Files that `[store]` names, and the password in one of them.
//!
//! Certificates are not opened here: the code that connects reads and checks them.

use std::io;
use std::path::{Path, PathBuf};

use anteroom_config::{Config, PASSWORD_BYTES_MAX, PasswordError, StoreConfig};

use crate::check::files;

/// Longest password with its line end, in bytes.
const BYTES_MAX: usize = PASSWORD_BYTES_MAX + "\r\n".len();

/// Error of the password file that `store.password_file` names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordFileError {
    /// The file cannot be read.
    #[error("cannot read {} (store.password_file)", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// The file is not text.
    #[error("{} holds no UTF-8 text (store.password_file)", path.display())]
    NotText {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file holds no valid password.
    #[error("{} holds no password alone (store.password_file)", path.display())]
    NoPassword {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        source: PasswordError,
    },
}

/// Makes the paths in `[store]` relative to the folder of the config file. Sets the password from
/// the password file, if one is named, for each address that has none. One line end after it does
/// not count. Call it once for each time that the file is read.
///
/// # Errors
///
/// [`PasswordFileError`]; it never shows what the file holds.
pub fn load(config: &mut Config, config_file: &Path) -> Result<(), PasswordFileError> {
    let StoreConfig::Valkey(valkey) = &mut config.store else {
        return Ok(());
    };
    if let Some(folder) = config_file.parent() {
        valkey.resolve_paths(folder);
    }
    let Some(path) = valkey.password_file.clone() else {
        return Ok(());
    };
    let bytes = match files::read_at_most(&path, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(source) => return Err(PasswordFileError::Read { path, source }),
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(PasswordFileError::NotText { path });
    };
    valkey
        .set_password(without_line_end(&text))
        .map_err(|source| PasswordFileError::NoPassword { path, source })
}

fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::fs;

    use super::*;

    const FILE: &str = r#"
[store]
kind = "valkey"
local = "rediss://10.0.0.5"
ca_file = "ca.pem"
password_file = "secrets/redis"
[[room]]
name = "shop"
origin = "http://127.0.0.1:3000"
total_active_users = 200
new_users_per_minute = 200
bypass = []
"#;

    /// Loads a config file next to a password file that contains `bytes`.
    fn load_with(bytes: Option<&[u8]>) -> Result<Config, PasswordFileError> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("secrets")).unwrap();
        if let Some(bytes) = bytes {
            fs::write(folder.path().join("secrets/redis"), bytes).unwrap();
        }
        let mut config = Config::parse("anteroom.toml", FILE).unwrap().config;
        load(&mut config, &folder.path().join("anteroom.toml"))?;
        let StoreConfig::Valkey(valkey) = &config.store else {
            panic!("the store is embedded");
        };
        let tls = valkey.local.tls.clone();
        let ca_file = tls.and_then(|tls| tls.ca_file);
        assert_eq!(ca_file, Some(folder.path().join("ca.pem")));
        Ok(config)
    }

    #[test]
    fn the_password_is_the_text_without_one_line_end() {
        let check = |bytes: &[u8], expected: &str| {
            let config = load_with(Some(bytes)).unwrap();
            let StoreConfig::Valkey(valkey) = config.store else {
                panic!("the store is embedded");
            };
            assert_eq!(valkey.local.password.as_deref(), Some(expected));
            assert_eq!(valkey.global.password.as_deref(), Some(expected));
        };
        check(b"secret", "secret");
        check(b"secret\n", "secret");
        check(b" p\xc3\xa4ss word \r\n", " päss word ");
        let longest = "x".repeat(PASSWORD_BYTES_MAX);
        check(format!("{longest}\r\n").as_bytes(), &longest);
    }

    #[test]
    fn a_file_without_a_password_is_named_by_path_and_not_content() {
        let check = |bytes: Option<&[u8]>, expected: &str, cause: Option<PasswordError>| {
            let error = load_with(bytes).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("secrets/redis"), "{message}");
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
            let source = error.source().and_then(|source| source.downcast_ref());
            assert_eq!(source, cause.as_ref());
        };
        check(None, "cannot read", None);
        check(Some(b"s3cret\xff"), "no UTF-8", None);
        let no_password = "no password alone";
        for bytes in [b"".as_slice(), b"\n", b"\r\n"] {
            check(Some(bytes), no_password, Some(PasswordError::Empty));
        }
        for bytes in [b"s3cret\n\n".as_slice(), b"s3cret\nother", b"\0"] {
            check(Some(bytes), no_password, Some(PasswordError::Character));
        }
        let bytes = PASSWORD_BYTES_MAX + 1;
        let long = "x".repeat(bytes);
        let error = PasswordError::TooLong { bytes };
        check(Some(long.as_bytes()), no_password, Some(error));
        let endless = "x".repeat(BYTES_MAX + 1);
        check(Some(endless.as_bytes()), "cannot read", None);
    }

    #[test]
    fn a_config_without_a_password_file_is_unchanged() {
        let text = FILE.replace("password_file = \"secrets/redis\"", "password = \"s3cret\"");
        let mut config = Config::parse("anteroom.toml", &text).unwrap().config;
        let before = config.clone();
        load(&mut config, Path::new("anteroom.toml")).unwrap();
        assert_eq!(config, before);
        config.store = StoreConfig::Embedded;
        load(&mut config, Path::new("/a/b.toml")).unwrap();
        assert_eq!(config.store, StoreConfig::Embedded);
    }
}
