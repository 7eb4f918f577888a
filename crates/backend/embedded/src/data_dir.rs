//! Data folder of a node: files that survive a restart and are read without the journal's lock.
//!
//! They are `deployment` (id and lottery key), `ticket-keys` and `admin-token` (unless configured),
//! and `lock`. [`crate::Embedded`] handles the journal in the same folder.

use std::collections::{BTreeMap, BTreeSet};
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

/// File with the copy of the rooms of the API.
const API_ROOMS: &str = "api-rooms";
/// Folder with copies of their custom pages.
const PAGES: &str = "api-rooms-pages";

/// Data folder of a node. Clones share the files that one of them has read.
#[derive(Clone)]
pub struct DataDir {
    path: PathBuf,
    /// Content of files as last read, by name. If the folder is deleted under the running process,
    /// it is restored from here. Otherwise all visitors would be new ones to the next process.
    known: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl fmt::Debug for DataDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without `known`: logs must not show keys.
        write!(f, "DataDir({})", self.path.display())
    }
}

/// Error of an operation on the data folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The operating system reported an error.
    #[error("cannot {doing} {path}")]
    Io {
        /// Operation that failed.
        doing: &'static str,
        /// Path of the file or folder.
        path: String,
        /// Underlying error.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error(
        "{path} is damaged: expected {expected}; move it away to start over (all active and \
         waiting visitors become new ones)"
    )]
    Damaged {
        /// Path of the file.
        path: String,
        /// Expected content.
        expected: &'static str,
    },
    /// The file of the admin token has no valid token.
    #[error("{path} is damaged: expected 64 hex digits; move it away to get a new token")]
    DamagedToken {
        /// Path of the file.
        path: String,
    },
    /// The system has no random bytes.
    #[error("cannot draw random bytes")]
    Random {
        /// Underlying error.
        source: getrandom::Error,
    },
}

impl DataDir {
    /// Opens the folder, or creates one that only its owner can read.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if it neither exists nor can be created.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        create_folder(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            known: Arc::default(),
        })
    }

    /// Restores the folder, and the files that were read from it, if they were deleted. Existing
    /// files stay unchanged.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if a missing file cannot be written.
    pub fn restore(&self) -> Result<(), DataDirError> {
        create_folder(&self.path)?;
        let known = self.known.lock().clone();
        for (name, text) in known {
            self.read_or_create(name, || Ok(text))?;
        }
        Ok(())
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.redb")
    }

    /// Returns the path of the clock's file.
    #[must_use]
    pub fn clock(&self) -> PathBuf {
        self.path.join("clock")
    }

    /// Returns the deployment. Draws a new one if there is none, or if there is no journal: tickets
    /// that no ledger knows must not be valid.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if it can neither be read nor written.
    pub fn deployment(&self) -> Result<Deployment, DataDirError> {
        let deployment = self.path.join("deployment");
        let is_known = self.known.lock().contains_key("deployment");
        if !is_known && deployment.exists() && !self.journal().exists() {
            tracing::warn!(
                folder = %self.path.display(),
                "there is no journal: all active and waiting visitors start anew"
            );
            fs::remove_file(&deployment).map_err(|source| DataDirError::Io {
                doing: "remove",
                path: deployment.display().to_string(),
                source,
            })?;
        }
        self.read_deployment()
    }

    /// Returns the facts that this node shares with others, as far as its folder has them. If they
    /// are drawn now, the second part is `true`. A node on a shared store has no journal.
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

    /// Replaces the shared facts by those of the other nodes, so that this node can restore them to
    /// a store that has lost them.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if they cannot be written.
    pub fn adopt(&self, membership: &Membership) -> Result<(), DataDirError> {
        let keys = membership.ticket_keys.iter();
        let keys: String = keys.map(|key| format!("{}\n", hex(key))).collect();
        self.replace("deployment", deployment_text(membership.deployment))?;
        self.replace("ticket-keys", keys)
    }

    /// Returns the copy of the rooms of the API; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if it cannot be read.
    pub fn api_rooms(&self) -> Result<Option<String>, DataDirError> {
        read_if_there(&self.path.join(API_ROOMS))
    }

    /// Replaces the copy of the rooms of the API.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if it cannot be written.
    pub fn keep_api_rooms(&self, text: String) -> Result<(), DataDirError> {
        self.replace(API_ROOMS, text)
    }

    /// Returns the copy of a custom page; `None` if there is none. Its name is hex digits.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if it cannot be read.
    pub fn custom_page(&self, name: &str) -> Result<Option<String>, DataDirError> {
        read_if_there(&self.path.join(PAGES).join(file_name(name)))
    }

    /// Writes the copy of a custom page, unless it is there.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if it cannot be written.
    pub fn keep_custom_page(&self, name: &str, text: &str) -> Result<(), DataDirError> {
        let folder = self.path.join(PAGES);
        let path = folder.join(file_name(name));
        if fs::metadata(&path).is_ok_and(|found| found.len() == text.len() as u64) {
            return Ok(());
        }
        create_folder(&folder)?;
        write_whole(&path, text)
    }

    /// Removes the copies of all custom pages but these.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Io`] if the folder cannot be read, or a file cannot be removed.
    pub fn remove_other_custom_pages(&self, names: &BTreeSet<&str>) -> Result<(), DataDirError> {
        let folder = self.path.join(PAGES);
        let failed = |source| DataDirError::Io {
            doing: "remove old pages in",
            path: folder.display().to_string(),
            source,
        };
        let found = match fs::read_dir(&folder) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in found {
            let entry = entry.map_err(failed)?;
            let is_kept = entry
                .file_name()
                .to_str()
                .is_some_and(|name| names.contains(name));
            if !is_kept {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn replace(&self, name: &'static str, text: String) -> Result<(), DataDirError> {
        let path = self.path.join(name);
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            return Ok(());
        }
        write_whole(&path, &text)?;
        self.known.lock().insert(name, text);
        Ok(())
    }

    fn read_deployment(&self) -> Result<Deployment, DataDirError> {
        let text = self.read_or_create("deployment", || {
            Ok(deployment_text(Deployment {
                deployment_id: DeploymentId(u64::from_be_bytes(random()?)),
                lottery_key: LotteryKey(random()?),
            }))
        })?;
        let parsed = text.trim_end().split_once(' ').and_then(|(id, key)| {
            Some(Deployment {
                deployment_id: DeploymentId(u64::from_be_bytes(from_hex(id)?)),
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

    /// Returns the generated ticket keys, newest first. Draws one if there are none.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if they can neither be read nor written.
    pub fn ticket_keys(&self) -> Result<TicketKeys, DataDirError> {
        let text =
            self.read_or_create("ticket-keys", || Ok(format!("{}\n", hex(&random::<32>()?))))?;
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

    /// Returns the token for operators on this machine. Draws one if there is none.
    ///
    /// # Errors
    ///
    /// [`DataDirError`] if it can neither be read nor written.
    pub fn admin_token(&self) -> Result<String, DataDirError> {
        let name = "admin-token";
        let text = self.read_or_create(name, || Ok(format!("{}\n", hex(&random::<32>()?))))?;
        let token = text.trim().to_owned();
        if from_hex::<32>(&token).is_none() {
            let path = self.path.join(name).display().to_string();
            return Err(DataDirError::DamagedToken { path });
        }
        self.known.lock().insert(name, text);
        Ok(token)
    }

    /// Takes the lock of the folder: only its holder grants leases. `None` if another process has
    /// it.
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

    /// Reads a file, or creates it with mode 0600, with its last known content if there is one. If
    /// two processes create it at the same time, both get the content of the first.
    fn read_or_create(
        &self,
        name: &str,
        content: impl FnOnce() -> Result<String, DataDirError>,
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
            None => content()?,
        };
        let draft = self.path.join(format!("{name}.{}", hex(&random::<8>()?)));
        let written =
            write_private(&draft, &text).and_then(|()| match fs::hard_link(&draft, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            });
        // The draft is not needed any more, whether it succeeded or failed.
        let _ = fs::remove_file(&draft);
        written.map_err(failed("write"))?;
        fs::read_to_string(&path).map_err(failed("read"))
    }
}

/// Lock of the data folder, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct DataDirLock {
    file: File,
    path: PathBuf,
}

impl DataDirLock {
    /// Whether the folder's lock file is still this one. The folder may have been deleted, and
    /// another process may have locked a new one.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let Ok(own) = self.file.metadata() else {
            return false;
        };
        fs::metadata(&self.path)
            .is_ok_and(|found| found.dev() == own.dev() && found.ino() == own.ino())
    }
}

/// Reads a file; `None` if there is none.
fn read_if_there(path: &Path) -> Result<Option<String>, DataDirError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(DataDirError::Io {
            doing: "read",
            path: path.display().to_string(),
            source,
        }),
    }
}

/// Replaces a file in one step, so that no reader finds a part of it.
fn write_whole(path: &Path, text: &str) -> Result<(), DataDirError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", hex(&random::<8>()?)));
    let draft = PathBuf::from(draft);
    let written = write_private(&draft, text).and_then(|()| fs::rename(&draft, path));
    written.map_err(|source| DataDirError::Io {
        doing: "write",
        path: path.display().to_string(),
        source,
    })
}

/// Returns a name that stays in its folder: letters and digits alone.
fn file_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn deployment_text(deployment: Deployment) -> String {
    let id = hex(&deployment.deployment_id.0.to_be_bytes());
    format!("{id} {}\n", hex(&deployment.lottery_key.0))
}

/// Creates a folder that only its owner can read, unless it exists.
fn create_folder(path: &Path) -> Result<(), DataDirError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let created = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    created.map_err(|source| DataDirError::Io {
        doing: "create the folder",
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
