//! File of held stops: those that a node could not write to its store yet.
//!
//! Each room with held stops has a file in `held/` of the data folder. A new process on the folder
//! reads it, so that a stop survives a restart while the store is unavailable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anteroom_config::overrides::PendingStops;
use parking_lot::Mutex;

const FOLDER: &str = "held";

/// File of one room. While one process replaces another, both use it.
#[derive(Debug)]
pub(crate) struct HeldFile {
    path: PathBuf,
    /// Content of the file when this process last read or wrote it. Locked during a write, so that
    /// writes are serialised.
    known: Mutex<PendingStops>,
}

impl HeldFile {
    /// Returns the file of `room` in a data folder, without reading it.
    #[must_use]
    pub(crate) fn of(data_dir: &Path, room: &str) -> Self {
        Self {
            path: data_dir.join(FOLDER).join(format!("{room}.json")),
            known: Mutex::default(),
        }
    }

    /// Returns when the file of any room last changed; `None` before the first.
    #[must_use]
    pub(crate) fn changed_at(data_dir: &Path) -> Option<SystemTime> {
        fs::metadata(data_dir.join(FOLDER)).ok()?.modified().ok()
    }

    /// Reads the stops of another process or of an earlier one. A file that cannot be read is
    /// logged and counts as empty.
    #[must_use]
    pub(crate) fn read(&self) -> PendingStops {
        let mut known = self.known.lock();
        *known = self.load().unwrap_or_default();
        known.clone()
    }

    /// Reads the file; `None` if it cannot be read.
    fn load(&self) -> Option<PendingStops> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Some(PendingStops::default());
            }
            Err(error) => {
                tracing::error!(file = %self.path.display(), %error, "held stops not read");
                return None;
            }
        };
        let held = serde_json::from_slice(&text);
        held.inspect_err(|error| {
            tracing::error!(
                file = %self.path.display(),
                %error,
                "held stops not read: the file is damaged; repeat the command"
            );
        })
        .ok()
    }

    /// Replaces the content by what `next` returns for the last known and the present one, and
    /// syncs it to the disk. Without any stop there is no file.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be written.
    pub(crate) fn update(
        &self,
        next: impl FnOnce(&PendingStops, &PendingStops) -> PendingStops,
    ) -> io::Result<()> {
        let mut known = self.known.lock();
        let found = self.load();
        let held = next(&known, found.as_ref().unwrap_or(&known));
        let is_present = found.as_ref() == Some(&held);
        if let Some(found) = found {
            *known = found;
        }
        if !is_present {
            self.write(&held)?;
            *known = held;
        }
        Ok(())
    }

    fn write(&self, held: &PendingStops) -> io::Result<()> {
        if !held.is_empty() {
            return self.replace(&serde_json::to_vec(held)?);
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
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
        // A synced folder makes the rename durable.
        File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use anteroom_config::overrides::{Actor, PendingStop, Stop};

    use super::*;

    fn held() -> PendingStops {
        let mut held = PendingStops::default();
        held.add(PendingStop {
            stop: Stop::Pause {
                message: Some("Back at ten".to_owned()),
            },
            who: Actor::default(),
            at: 7,
        });
        held
    }

    fn write(file: &HeldFile, held: &PendingStops) {
        file.update(|_, _| held.clone()).unwrap();
    }

    #[test]
    fn held_stops_are_read_until_there_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeldFile::of(folder.path(), "shop");
        assert!(file.read().is_empty());
        write(&file, &held());
        assert_eq!(HeldFile::of(folder.path(), "shop").read(), held());
        assert!(HeldFile::of(folder.path(), "other").read().is_empty());
        write(&file, &PendingStops::default());
        write(&file, &PendingStops::default());
        assert!(file.read().is_empty());
    }

    #[test]
    fn a_damaged_file_counts_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeldFile::of(folder.path(), "shop");
        write(&file, &held());
        for damaged in [&b"\xff\x00"[..], b"", b"{}", b"[{\"stop\":\"go\"}]"] {
            fs::write(folder.path().join("held/shop.json"), damaged).unwrap();
            assert!(file.read().is_empty());
            write(&file, &held());
            assert_eq!(file.read(), held(), "it is written again");
        }
    }

    #[test]
    fn a_change_by_another_process_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(HeldFile::changed_at(folder.path()), None);
        let [one, other] = [(); 2].map(|()| HeldFile::of(folder.path(), "shop"));
        write(&one, &held());
        assert!(HeldFile::changed_at(folder.path()).is_some());
        other
            .update(|before, found| {
                assert_eq!((before, found), (&PendingStops::default(), &held()));
                PendingStops::default()
            })
            .unwrap();
        one.update(|before, found| {
            assert_eq!((before, found), (&held(), &PendingStops::default()));
            PendingStops::default()
        })
        .unwrap();
    }
}
