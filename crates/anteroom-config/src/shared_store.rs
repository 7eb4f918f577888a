//! The meaning of `[store]`: which engine holds what nodes share, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where records live.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StoreConfig {
    /// In this process and its data folder: one node.
    #[default]
    Embedded,
    /// In Valkey or Redis: many nodes, many data centers.
    Valkey(Box<ValkeyConfig>),
}

/// `[store] kind = "valkey"`.
#[derive(Clone, Debug, PartialEq)]
pub struct ValkeyConfig {
    /// This data center's store.
    pub local: ValkeyAddress,
    /// The store behind all data centers. The same as `local` where there is only one, and where it
    /// was left out.
    pub world: ValkeyAddress,
    /// Whether `world` was written down. Then this data center has ledgers of its own behind which
    /// stand the world's, be it on the same server; otherwise its nodes share one ledger for each room.
    pub has_world: bool,
    /// First part of all keys, so that others may use the same server: 1 to 64 of
    /// `A-Z a-z 0-9 - _ . :`.
    pub prefix: String,
    /// Where the password stands for each address that has none yet; never together with a password
    /// in the config. Whoever may open files gives what it holds to [`Self::set_password`].
    pub password_file: Option<PathBuf>,
}

impl ValkeyConfig {
    /// Takes every relative path as one from `folder` on, such as the config file's. To be called
    /// once: what is relative afterwards is so because `folder` was.
    pub fn resolve_paths(&mut self, folder: &Path) {
        let resolve = |path: &mut PathBuf| *path = folder.join(&*path);
        self.password_file.iter_mut().for_each(resolve);
        for address in [&mut self.local, &mut self.world] {
            let tls = address.tls.iter_mut();
            tls.flat_map(|tls| &mut tls.ca_file).for_each(resolve);
        }
    }

    /// Gives each address that has no password this one.
    ///
    /// # Errors
    ///
    /// [`PasswordError`] if it can be none; then nothing changes.
    pub fn set_password(&mut self, password: &str) -> Result<(), PasswordError> {
        PasswordError::check(password)?;
        for address in [&mut self.local, &mut self.world] {
            address.password.get_or_insert_with(|| password.to_owned());
        }
        Ok(())
    }
}

/// Longest password of a store, in bytes. Servers refuse more than 16 KiB before they know who asks;
/// nobody's password is a quarter of that.
pub const PASSWORD_BYTES_MAX: usize = 4_096;

/// Why a text is not the password of a store. Tells nothing of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
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
    /// What is wrong with `password`, if anything is.
    pub(super) fn check(password: &str) -> Result<(), Self> {
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

/// How to reach a store. Its `Debug` and `Display` show no password.
#[derive(Clone, Eq, PartialEq)]
pub struct ValkeyAddress {
    /// Which servers.
    pub topology: Topology,
    /// Number of the database, up to 2147483647; 0 with a cluster.
    pub database: u32,
    /// As whom; `None` = the default user.
    pub username: Option<String>,
    /// With which password, if any.
    pub password: Option<String>,
    /// Whether to speak TLS, and whom to believe.
    pub tls: Option<ValkeyTls>,
}

/// TLS towards a store.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ValkeyTls {
    /// Certificates (PEM) of whoever signs the servers' certificates; `None` = those of the system.
    pub ca_file: Option<PathBuf>,
}

/// Which servers make up a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Topology {
    /// One server.
    Single(HostPort),
    /// The present master of a service, as sentinels say.
    Sentinel {
        /// Any of them; at least one.
        sentinels: Vec<HostPort>,
        /// The name of the service.
        service: String,
    },
    /// A cluster.
    Cluster {
        /// Any of its servers; at least one.
        servers: Vec<HostPort>,
    },
}

/// A server.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostPort {
    /// Name in lower case, or IP address without brackets.
    pub host: String,
    /// Port, never 0.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for ValkeyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tls.is_some() { "s" } else { "" };
        let list = |servers: &[HostPort]| {
            let servers: Vec<String> = servers.iter().map(HostPort::to_string).collect();
            servers.join(",")
        };
        match &self.topology {
            Topology::Single(server) => write!(f, "redis{s}://{server}")?,
            Topology::Sentinel { sentinels, service } => {
                write!(f, "redis{s}+sentinel://{}/{service}", list(sentinels))?;
            }
            Topology::Cluster { servers } => {
                return write!(f, "redis{s}+cluster://{}", list(servers));
            }
        }
        if self.database != 0 {
            write!(f, "/{}", self.database)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ValkeyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValkeyAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ValkeyConfig {
        let address = |text: &str| ValkeyAddress::parse(text).unwrap();
        ValkeyConfig {
            local: address("rediss://10.0.0.5"),
            world: address("redis://me:own%20one@10.9.0.5"),
            has_world: true,
            prefix: "anteroom".to_owned(),
            password_file: Some(PathBuf::from("secrets/redis")),
        }
    }

    #[test]
    fn a_password_goes_to_the_addresses_without_one_and_is_never_printed() {
        let mut config = config();
        config.set_password("q7TzN0mK").unwrap();
        assert_eq!(config.local.password.as_deref(), Some("q7TzN0mK"));
        assert_eq!(config.world.password.as_deref(), Some("own one"));
        let debug = format!("{config:?}");
        assert!(!debug.contains("q7Tz") && !debug.contains("own"), "{debug}");
        assert!(debug.contains("rediss://10.0.0.5:6379"), "{debug}");
    }

    #[test]
    fn what_can_be_no_password_changes_nothing() {
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
        config.world.tls = Some(ValkeyTls {
            ca_file: Some(PathBuf::from("ca.pem")),
        });
        config.resolve_paths(Path::new("/srv/anteroom"));
        let ca_file = |address: &ValkeyAddress| address.tls.clone().and_then(|tls| tls.ca_file);
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(config.password_file, path("/srv/anteroom/secrets/redis"));
        assert_eq!(ca_file(&config.local), path("/etc/ca.pem"));
        assert_eq!(ca_file(&config.world), path("/srv/anteroom/ca.pem"));
    }
}
