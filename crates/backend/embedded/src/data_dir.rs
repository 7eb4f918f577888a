//! The folder of a node: what must survive a restart and is readable without the journal's lock.
//!
//! `deployment` (birth and lottery key), `ticket-keys` and `admin-token` (unless configured),
//! `lock`, and the journal itself, which is [`crate::Embedded`]'s business.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::DeploymentId;
use anteroom_store::wire::deployment::{from_hex, hex};
use parking_lot::Mutex;

use anteroom_store::{Deployment, Membership, TicketKeys};

/// A node's folder. Clones know what one of them has read.
#[derive(Clone)]
pub struct DataDir {
    path: PathBuf,
    /// Files as they were read last, by name. Without them a folder that is deleted under the
    /// running process would make everybody inside and waiting a new visitor of the next one.
    known: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl fmt::Debug for DataDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what is known: keys have no place in logs.
        write!(f, "DataDir({})", self.path.display())
    }
}

/// Why the folder could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The operating system refused.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// A file is there, but not what it should be.
    #[error(
        "{path} is damaged: {expected}; move it away to begin anew (everybody inside and waiting \
         becomes a new visitor)"
    )]
    Damaged {
        /// The file.
        path: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The admin token is there, but is none.
    #[error("{path} is damaged: 64 hex digits belong there; move it away to have a token drawn")]
    DamagedToken {
        /// The file.
        path: String,
    },
    /// The system has no random bytes to offer.
    #[error("cannot draw random bytes")]
    Random {
        /// Why not.
        source: getrandom::Error,
    },
}

impl DataDir {
    /// Makes sure of the folder; a new one is readable by its owner only.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if it can neither be found nor made.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        make_folder(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            known: Arc::default(),
        })
    }

    /// Makes sure of the folder again, and of the birth and keys that were read from it: somebody
    /// may have deleted them. What is there stays as it is.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if something is missing and cannot be written.
    pub fn restore(&self) -> Result<(), DataDirError> {
        make_folder(&self.path)?;
        let known = self.known.lock().clone();
        for (name, text) in known {
            self.read_or_make(name, || Ok(text))?;
        }
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal's file.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.redb")
    }

    /// The file in which the clock is kept.
    #[must_use]
    pub fn clock(&self) -> PathBuf {
        self.path.join("clock")
    }

    /// Birth and lottery key, drawn if there are none, and anew if there is no journal: tickets of
    /// whom no ledger knows must not be worth anything.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if they can neither be read nor written.
    pub fn deployment(&self) -> Result<Deployment, DataDirError> {
        let deployment = self.path.join("deployment");
        let is_known = self.known.lock().contains_key("deployment");
        if !is_known && deployment.exists() && !self.journal().exists() {
            tracing::warn!(
                folder = %self.path.display(),
                "there is no journal: everybody inside and waiting begins anew"
            );
            fs::remove_file(&deployment).map_err(|source| DataDirError::Io {
                doing: "remove",
                path: deployment.display().to_string(),
                source,
            })?;
        }
        self.read_deployment()
    }

    /// What this node has in common with others, as far as it knows: drawn if there is nothing, and
    /// then the second part is `true`. A node that shares a store has no journal.
    ///
    /// # Errors
    ///
    /// As [`DataDir::deployment`].
    pub fn membership(&self) -> Result<(Membership, bool), DataDirError> {
        let is_new = !self.path.join("deployment").exists();
        let membership = Membership {
            deployment: self.read_deployment()?,
            ticket_keys: self.ticket_keys()?,
        };
        Ok((membership, is_new))
    }

    /// Keeps what others have in common, in place of what was drawn here, so that this node can
    /// put it back into a store that has lost it.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if it cannot be written.
    pub fn adopt(&self, membership: &Membership) -> Result<(), DataDirError> {
        let keys = membership.ticket_keys.iter();
        let keys: String = keys.map(|key| format!("{}\n", hex(key))).collect();
        self.replace("deployment", deployment_text(membership.deployment))?;
        self.replace("ticket-keys", keys)
    }

    fn replace(&self, name: &'static str, text: String) -> Result<(), DataDirError> {
        let path = self.path.join(name);
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            return Ok(());
        }
        let draft = self.path.join(format!("{name}.{}", hex(&random::<8>()?)));
        let written = write_private(&draft, &text).and_then(|()| fs::rename(&draft, &path));
        written.map_err(|source| DataDirError::Io {
            doing: "write",
            path: path.display().to_string(),
            source,
        })?;
        self.known.lock().insert(name, text);
        Ok(())
    }

    fn read_deployment(&self) -> Result<Deployment, DataDirError> {
        let text = self.read_or_make("deployment", || {
            Ok(deployment_text(Deployment {
                birth: DeploymentId(u64::from_be_bytes(random()?)),
                lottery_key: LotteryKey(random()?),
            }))
        })?;
        let parsed = text.trim_end().split_once(' ').and_then(|(birth, key)| {
            Some(Deployment {
                birth: DeploymentId(u64::from_be_bytes(from_hex(birth)?)),
                lottery_key: LotteryKey(from_hex(key)?),
            })
        });
        let deployment = parsed.ok_or_else(|| DataDirError::Damaged {
            path: self.path.join("deployment").display().to_string(),
            expected: "16 and 32 hex digits",
        })?;
        self.known.lock().insert("deployment", text);
        Ok(deployment)
    }

    /// The generated ticket keys, newest first; one is drawn if there are none.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if they can neither be read nor written.
    pub fn ticket_keys(&self) -> Result<TicketKeys, DataDirError> {
        let text =
            self.read_or_make("ticket-keys", || Ok(format!("{}\n", hex(&random::<32>()?))))?;
        let keys: Option<TicketKeys> = text.lines().map(|line| from_hex(line.trim())).collect();
        let keys = keys
            .filter(|keys| !keys.is_empty())
            .ok_or_else(|| DataDirError::Damaged {
                path: self.path.join("ticket-keys").display().to_string(),
                expected: "64 hex digits a line, newest key first",
            })?;
        self.known.lock().insert("ticket-keys", text);
        Ok(keys)
    }

    /// The token of those who may change rooms from this machine, drawn if there is none.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if it can neither be read nor written.
    pub fn admin_token(&self) -> Result<String, DataDirError> {
        let name = "admin-token";
        let text = self.read_or_make(name, || Ok(format!("{}\n", hex(&random::<32>()?))))?;
        let token = text.trim().to_owned();
        if from_hex::<32>(&token).is_none() {
            let path = self.path.join(name).display().to_string();
            return Err(DataDirError::DamagedToken { path });
        }
        self.known.lock().insert(name, text);
        Ok(token)
    }

    /// Takes the lock that makes this process the only one that lends. `None` if another holds it.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if the lock's file cannot be opened.
    pub fn try_lock(&self) -> Result<Option<DataDirLock>, DataDirError> {
        let path = self.path.join("lock");
        let failed = |source| DataDirError::Io {
            doing: "open",
            path: path.display().to_string(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(DataDirLock { file, path })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Reads a file, or makes it with mode 0600: as it was, if it was read before. Of two processes
    /// that make it at the same time both read what the first one wrote.
    fn read_or_make(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<String, DataDirError>,
    ) -> Result<String, DataDirError> {
        let path = self.path.join(name);
        let failed = |doing| {
            let path = path.display().to_string();
            move |source| DataDirError::Io {
                doing,
                path,
                source,
            }
        };
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read")(error)),
        }
        let known = self.known.lock().get(name).cloned();
        let text = match known {
            Some(text) => text,
            None => make()?,
        };
        let draft = self.path.join(format!("{name}.{}", hex(&random::<8>()?)));
        let written =
            write_private(&draft, &text).and_then(|()| match fs::hard_link(&draft, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            });
        // The draft has served, or failed and must not stay; nothing depends on its removal.
        let _ = fs::remove_file(&draft);
        written.map_err(failed("write"))?;
        fs::read_to_string(&path).map_err(failed("read"))
    }
}

/// The right to lend, held until dropped or until the process dies.
#[derive(Debug)]
pub struct DataDirLock {
    file: File,
    path: PathBuf,
}

impl DataDirLock {
    /// Whether the folder's lock is still this one: somebody may have deleted the folder, and
    /// somebody else may have begun anew in it.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let Ok(held) = self.file.metadata() else {
            return false;
        };
        fs::metadata(&self.path)
            .is_ok_and(|found| found.dev() == held.dev() && found.ino() == held.ino())
    }
}

fn deployment_text(deployment: Deployment) -> String {
    let birth = hex(&deployment.birth.0.to_be_bytes());
    format!("{birth} {}\n", hex(&deployment.lottery_key.0))
}

/// Makes a folder that only its owner may read, unless there is one.
fn make_folder(path: &Path) -> Result<(), DataDirError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|source| DataDirError::Io {
        doing: "make the folder",
        path: path.display().to_string(),
        source,
    })
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn random<const N: usize>() -> Result<[u8; N], DataDirError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|source| DataDirError::Random { source })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
