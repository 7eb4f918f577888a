//! Where one node keeps the stops that it could not write down in its store yet.
//!
//! One file for each room in `held/` of the data folder. It is gone when nothing is held. A new
//! process on the folder reads it, so that a stop outlasts a restart while the store is unavailable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anteroom_config::orders::Held;
use parking_lot::Mutex;

const FOLDER: &str = "held";

/// The file of one room.
#[derive(Debug)]
pub struct HeldFile {
    path: PathBuf,
    /// What this process wrote last, if it is in the file: locked while the file is written, so that
    /// what is written last is what is held last.
    written: Mutex<Option<Held>>,
}

impl HeldFile {
    /// The file of `room` in a data folder. Nothing is read or written yet.
    #[must_use]
    pub fn of(data_dir: &Path, room: &str) -> Self {
        Self {
            path: data_dir.join(FOLDER).join(format!("{room}.json")),
            written: Mutex::default(),
        }
    }

    /// What a process before this one held. A file that cannot be read holds nothing, and the log
    /// says so.
    #[must_use]
    pub fn read(&self) -> Held {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Held::default(),
            Err(error) => {
                tracing::error!(file = %self.path.display(), %error, "held stops not read");
                return Held::default();
            }
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::error!(
                file = %self.path.display(),
                %error,
                "held stops not read: the file is damaged; give the stop again"
            );
            Held::default()
        })
    }

    /// Writes down what `held` returns, if that is anything new, and syncs it to the disk. Without any
    /// there is no file.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be written.
    pub fn write(&self, held: impl FnOnce() -> Held) -> io::Result<()> {
        let mut written = self.written.lock();
        let held = held();
        if written.as_ref() == Some(&held) {
            return Ok(());
        }
        *written = None;
        if held.is_empty() {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        } else {
            self.replace(&serde_json::to_vec(&held)?)?;
        }
        *written = Some(held);
        drop(written);
        Ok(())
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder)?;
        let draft = self.path.with_extension("new");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)?;
        // The rename is on the disk when the folder is.
        File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use anteroom_config::orders::{Actor, HeldStop, Stop};

    use super::*;

    fn held() -> Held {
        let mut held = Held::default();
        held.add(HeldStop {
            stop: Stop::Pause {
                message: Some("Back at ten".to_owned()),
            },
            who: Actor::default(),
            at: 7,
        });
        held
    }

    #[test]
    fn what_is_held_is_found_again_until_nothing_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeldFile::of(folder.path(), "shop");
        assert!(file.read().is_empty());
        file.write(held).unwrap();
        assert_eq!(HeldFile::of(folder.path(), "shop").read(), held());
        assert!(HeldFile::of(folder.path(), "other").read().is_empty());
        file.write(Held::default).unwrap();
        file.write(Held::default).unwrap();
        assert!(file.read().is_empty());
    }

    #[test]
    fn a_damaged_file_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeldFile::of(folder.path(), "shop");
        file.write(held).unwrap();
        for damaged in [&b"\xff\x00"[..], b"", b"{}", b"[{\"stop\":\"go\"}]"] {
            fs::write(folder.path().join("held/shop.json"), damaged).unwrap();
            assert!(file.read().is_empty());
        }
    }
}
