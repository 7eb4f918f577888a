//! Progress file: the count of the journal's commits, outside of it, so that an older copy is
//! noticed.
//!
//! The journal counts its commits. After each commit, and before it is confirmed, the count is
//! written here as well. A journal that is behind this file is an older copy.
//!
//! # Why it is not synced with each commit
//!
//! A killed process loses nothing of what it wrote, synced or not. After a power failure the file
//! may be behind the journal. That is harmless, because the journal has reached the disk. But an
//! older copy of the journal that is restored after such a failure is not noticed, if it was made
//! after the newest sync.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use anteroom_room::time::{DurationMs, Timestamp};

/// Interval of syncs while the file is written. After a power failure, a copy that is younger than
/// this is not noticed.
const SYNC_INTERVAL: DurationMs = DurationMs::from_secs(10);

/// Content of the file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Progress {
    /// Id of the journal.
    pub(super) id: u64,
    /// Number of its commits.
    pub(super) count: u64,
    /// Time of the newest commit, in room time.
    pub(super) as_of: Timestamp,
    /// Longest seat that any of its ledgers has granted.
    pub(super) longest_seat: DurationMs,
}

/// State of the file when it is opened.
#[derive(Debug)]
pub(super) enum Found {
    Absent,
    Damaged,
    Good(ProgressFile),
}

/// Open progress file.
#[derive(Debug)]
pub(super) struct ProgressFile {
    file: File,
    pub(super) content: Progress,
    /// Time of the newest commit that is synced here.
    synced_at: Timestamp,
}

impl Progress {
    /// Encodes the content with a constant length, so that a write in place needs no space on the
    /// disk.
    fn text(self) -> String {
        let numbers = [self.id, self.count, self.as_of.0, self.longest_seat.0];
        let numbers = numbers.map(|number| format!("{number:016x}"));
        format!("{}\n", numbers.join(" "))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        let mut word = || {
            let word = words.next().filter(|word| word.len() == 16)?;
            u64::from_str_radix(word, 16).ok()
        };
        let content = Self {
            id: word()?,
            count: word()?,
            as_of: Timestamp(word()?),
            longest_seat: DurationMs(word()?),
        };
        words.next().is_none().then_some(content)
    }
}

impl ProgressFile {
    /// Opens the file if there is one.
    pub(super) fn open(path: &Path) -> io::Result<Found> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(error) => return Err(error),
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Found::Damaged),
            Err(error) => return Err(error),
        };
        Ok(match Progress::parse(&text) {
            Some(content) => Found::Good(Self {
                file,
                content,
                synced_at: content.as_of,
            }),
            None => Found::Damaged,
        })
    }

    /// Creates the file, and replaces one that cannot be read. It has reached the disk when this
    /// returns.
    pub(super) fn create(path: &Path, content: Progress) -> io::Result<Self> {
        let draft = path.with_extension("progress.new");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all_at(content.text().as_bytes(), 0)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        sync_folder(path)?;
        Ok(Self {
            file,
            content,
            synced_at: content.as_of,
        })
    }

    /// Records a commit.
    pub(super) fn note(&mut self, content: Progress) -> io::Result<()> {
        self.file.write_all_at(content.text().as_bytes(), 0)?;
        self.content = content;
        if content.as_of >= self.synced_at + SYNC_INTERVAL {
            self.sync()?;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced_at = self.content.as_of;
        Ok(())
    }
}

/// Syncs the folder of `path`, so that the names in it have reached the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: Progress = Progress {
        id: u64::MAX,
        count: 7,
        as_of: Timestamp(1_694_432_700_000),
        longest_seat: DurationMs(310_000),
    };

    #[test]
    fn a_noted_commit_is_read_back_and_other_content_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.progress");
        let found = || ProgressFile::open(&path).unwrap();
        assert!(matches!(found(), Found::Absent));
        let mut file = ProgressFile::create(&path, Progress::default()).unwrap();
        file.note(CONTENT).unwrap();
        assert!(matches!(found(), Found::Good(file) if file.content == CONTENT));
        let whole = CONTENT.text();
        for damaged in ["", &whole[1..], &format!("{whole}x"), "zz\n", "\n"] {
            fs::write(&path, damaged).unwrap();
            assert!(matches!(found(), Found::Damaged), "{damaged:?}");
        }
        fs::write(&path, b"\xff\xfe").unwrap();
        assert!(matches!(found(), Found::Damaged));
    }
}
