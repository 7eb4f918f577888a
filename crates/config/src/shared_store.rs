//! Meaning of `[store]`: the engine and the addresses of what nodes share.

use std::path::{Path, PathBuf};

use crate::address::password::PasswordError;
use crate::address::valkey::ValkeyAddress;

/// Storage of records.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StoreConfig {
    /// Embedded in this process, in its data folder: one node.
    #[default]
    Embedded,
    /// Valkey or Redis: many nodes, many data centers.
    Valkey(Box<ValkeyConfig>),
}

/// `[store] kind = "valkey"`.
#[derive(Clone, Debug, PartialEq)]
pub struct ValkeyConfig {
    /// This data center's store.
    pub local: ValkeyAddress,
    /// The store behind all data centers; the same as `local` if there is only one, or if it was
    /// left out.
    pub global: ValkeyAddress,
    /// Whether `global` was typed. Then this data center has ledgers of its own as children of the
    /// root's, even on the same server; otherwise its nodes share one ledger for each room.
    pub has_global: bool,
    /// Prefix of all keys, so that others may use the same server: 1 to 64 of
    /// `A-Z a-z 0-9 - _ . :`.
    pub prefix: String,
    /// File of the password for each address that has none; never together with a password in the
    /// config. The caller reads it and passes the contents to [`Self::set_password`].
    pub password_file: Option<PathBuf>,
}

impl ValkeyConfig {
    /// Makes every relative path relative to `folder`, such as the config file's. Call it once: a
    /// path may still be relative afterwards, if `folder` is.
    pub fn resolve_paths(&mut self, folder: &Path) {
        let resolve = |path: &mut PathBuf| *path = folder.join(&*path);
        self.password_file.iter_mut().for_each(resolve);
        for address in [&mut self.local, &mut self.global] {
            let tls = address.tls.iter_mut();
            tls.flat_map(|tls| &mut tls.ca_file).for_each(resolve);
        }
    }

    /// Sets the password of each address that has none.
    ///
    /// # Errors
    ///
    /// [`PasswordError`] if it is not valid; then nothing changes.
    pub fn set_password(&mut self, password: &str) -> Result<(), PasswordError> {
        PasswordError::check(password)?;
        for address in [&mut self.local, &mut self.global] {
            address.password.get_or_insert_with(|| password.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::address::valkey::ValkeyTls;

    use super::*;

    fn config() -> ValkeyConfig {
        let address = |text: &str| ValkeyAddress::parse(text).unwrap();
        ValkeyConfig {
            local: address("rediss://10.0.0.5"),
            global: address("redis://me:own%20one@10.9.0.5"),
            has_global: true,
            prefix: "anteroom".to_owned(),
            password_file: Some(PathBuf::from("secrets/redis")),
        }
    }

    #[test]
    fn a_password_is_set_where_there_is_none_and_never_printed() {
        let mut config = config();
        config.set_password("q7TzN0mK").unwrap();
        assert_eq!(config.local.password.as_deref(), Some("q7TzN0mK"));
        assert_eq!(config.global.password.as_deref(), Some("own one"));
        let debug = format!("{config:?}");
        assert!(!debug.contains("q7Tz") && !debug.contains("own"), "{debug}");
        assert!(debug.contains("rediss://10.0.0.5:6379"), "{debug}");
    }

    #[test]
    fn an_invalid_password_changes_nothing() {
        let before = config();
        let check = |password: &str, expected| {
            let mut config = config();
            assert_eq!(config.set_password(password), Err(expected));
            assert_eq!(config, before);
        };
        check("", PasswordError::Empty);
        check("a\nb", PasswordError::Character);
        check("a\r", PasswordError::Character);
        check("a\0", PasswordError::Character);
        check(&"x".repeat(4_097), PasswordError::TooLong { bytes: 4_097 });
    }

    #[test]
    fn relative_paths_begin_at_the_folder_and_absolute_ones_stay() {
        let mut config = config();
        config.local.tls = Some(ValkeyTls {
            ca_file: Some(PathBuf::from("/etc/ca.pem")),
        });
        config.global.tls = Some(ValkeyTls {
            ca_file: Some(PathBuf::from("ca.pem")),
        });
        config.resolve_paths(Path::new("/srv/anteroom"));
        let ca_file = |address: &ValkeyAddress| address.tls.clone().and_then(|tls| tls.ca_file);
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(config.password_file, path("/srv/anteroom/secrets/redis"));
        assert_eq!(ca_file(&config.local), path("/etc/ca.pem"));
        assert_eq!(ca_file(&config.global), path("/srv/anteroom/ca.pem"));
    }
}
