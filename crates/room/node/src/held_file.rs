//! Where one node keeps the stops that it could not write down in its store yet.
//!
//! One file for each room in `held/` of the data folder. It is gone when nothing is held. A new
//! process on the folder reads it, so that a stop outlasts a restart while the store is
//! unavailable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anteroom_config::overrides::HeldStops;
use parking_lot::Mutex;

const FOLDER: &str = "held";

/// The file of one room. While one process replaces another, both use it.
#[derive(Debug)]
pub(crate) struct HeldFile {
    path: PathBuf,
    /// What the file held when this process looked last. Locked while it is written, so that what
    /// is written last is what is held last.
    known: Mutex<HeldStops>,
}

impl HeldFile {
    /// The file of `room` in a data folder. Nothing is read or written yet.
    #[must_use]
    pub(crate) fn of(data_dir: &Path, room: &str) -> Self {
        Self {
            path: data_dir.join(FOLDER).join(format!("{room}.json")),
            known: Mutex::default(),
        }
    }

    /// When a file of any room was written, put there or removed last; `None` before the first.
    #[must_use]
    pub(crate) fn changed_at(data_dir: &Path) -> Option<SystemTime> {
        fs::metadata(data_dir.join(FOLDER)).ok()?.modified().ok()
    }

    /// What another process holds, or one before this held. A file that cannot be read holds
    /// nothing, and the log says so.
    #[must_use]
    pub(crate) fn read(&self) -> HeldStops {
        let mut known = self.known.lock();
        *known = self.find().unwrap_or_default();
        known.clone()
    }

    /// `None` if it cannot be read.
    fn find(&self) -> Option<HeldStops> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Some(HeldStops::default());
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
                "held stops not read: the file is damaged; give the stop again"
            );
        })
        .ok()
    }

    /// Writes down what `next` makes of what the file held before and of what is found in it now,
    /// and syncs it to the disk. Without any stop there is no file.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be written.
    pub(crate) fn update(
        &self,
        next: impl FnOnce(&HeldStops, &HeldStops) -> HeldStops,
    ) -> io::Result<()> {
        let mut known = self.known.lock();
        let found = self.find();
        let held = next(&known, found.as_ref().unwrap_or(&known));
        let is_there = found.as_ref() == Some(&held);
        if let Some(found) = found {
            *known = found;
        }
        if !is_there {
            self.put(&held)?;
            *known = held;
        }
        Ok(())
    }

    fn put(&self, held: &HeldStops) -> io::Result<()> {
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
        // The rename is on the disk when the folder is.
        File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use anteroom_config::overrides::{Actor, HeldStop, Stop};

    use super::*;

    fn held() -> HeldStops {
        let mut held = HeldStops::default();
        held.add(HeldStop {
            stop: Stop::Pause {
                message: Some("Back at ten".to_owned()),
            },
            who: Actor::default(),
            at: 7,
        });
        held
    }

    fn write(file: &HeldFile, held: &HeldStops) {
        file.update(|_, _| held.clone()).unwrap();
    }

    #[test]
    fn what_is_held_is_found_again_until_nothing_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeldFile::of(folder.path(), "shop");
        assert!(file.read().is_empty());
        write(&file, &held());
        assert_eq!(HeldFile::of(folder.path(), "shop").read(), held());
        assert!(HeldFile::of(folder.path(), "other").read().is_empty());
        write(&file, &HeldStops::default());
        write(&file, &HeldStops::default());
        assert!(file.read().is_empty());
    }

    #[test]
    fn a_damaged_file_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeldFile::of(folder.path(), "shop");
        write(&file, &held());
        for damaged in [&b"\xff\x00"[..], b"", b"{}", b"[{\"stop\":\"go\"}]"] {
            fs::write(folder.path().join("held/shop.json"), damaged).unwrap();
            assert!(file.read().is_empty());
            write(&file, &held());
            assert_eq!(file.read(), held(), "it is written anew");
        }
    }

    #[test]
    fn another_process_on_the_folder_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(HeldFile::changed_at(folder.path()), None);
        let [one, other] = [(); 2].map(|()| HeldFile::of(folder.path(), "shop"));
        write(&one, &held());
        assert!(HeldFile::changed_at(folder.path()).is_some());
        other
            .update(|before, found| {
                assert_eq!((before, found), (&HeldStops::default(), &held()));
                HeldStops::default()
            })
            .unwrap();
        one.update(|before, found| {
            assert_eq!((before, found), (&held(), &HeldStops::default()));
            HeldStops::default()
        })
        .unwrap();
    }
}
