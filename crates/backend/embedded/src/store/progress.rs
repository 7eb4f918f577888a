//! How far has the journal come? Kept outside of it, so that an older copy is noticed.
//!
//! The journal counts its commits. After each commit, and before anybody hears of it, the count is
//! written here as well. A journal that is behind this file is an older copy.
//!
//! # Why it is not synced with each commit
//!
//! A process that is killed loses nothing of what it wrote, synced or not. After a power failure
//! the file may be behind the journal, which harms nothing by itself: the journal has reached the
//! disk. Only an older copy of the journal, put back after such a failure, may then pass, if it was
//! made after the newest sync.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use anteroom_room::time::{DurationMs, Timestamp};

/// The file is synced this often while it is written. After a power failure an older copy that is
/// younger than this is not noticed.
const SYNCED_WITHIN: DurationMs = DurationMs::from_secs(10);

/// What the file says.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Progress {
    /// Which journal it belongs to.
    pub(super) id: u64,
    /// Commits of that journal.
    pub(super) count: u64,
    /// When the newest of them was made, by the clock of rooms.
    pub(super) as_of: Timestamp,
    /// The longest seat that any ledger in it has given.
    pub(super) longest_seat: DurationMs,
}

/// The file, as it was found.
#[derive(Debug)]
pub(super) enum Found {
    Absent,
    Damaged,
    Good(ProgressFile),
}

/// The open file.
#[derive(Debug)]
pub(super) struct ProgressFile {
    file: File,
    pub(super) says: Progress,
    /// The newest commit that has reached the disk here.
    synced_at: Timestamp,
}

impl Progress {
    /// Always of the same length: writing it in place needs no space on the disk.
    fn text(self) -> String {
        let words = [self.id, self.count, self.as_of.0, self.longest_seat.0];
        let words = words.map(|word| format!("{word:016x}"));
        format!("{}\n", words.join(" "))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        let mut word = || {
            let word = words.next().filter(|word| word.len() == 16)?;
            u64::from_str_radix(word, 16).ok()
        };
        let says = Self {
            id: word()?,
            count: word()?,
            as_of: Timestamp(word()?),
            longest_seat: DurationMs(word()?),
        };
        words.next().is_none().then_some(says)
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
            Some(says) => Found::Good(Self {
                file,
                says,
                synced_at: says.as_of,
            }),
            None => Found::Damaged,
        })
    }

    /// Makes the file anew, in the place of one that cannot be read. It has reached the disk when
    /// this returns.
    pub(super) fn make(path: &Path, says: Progress) -> io::Result<Self> {
        let draft = path.with_extension("progress.new");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all_at(says.text().as_bytes(), 0)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        sync_folder(path)?;
        Ok(Self {
            file,
            says,
            synced_at: says.as_of,
        })
    }

    /// Notes a commit.
    pub(super) fn note(&mut self, says: Progress) -> io::Result<()> {
        self.file.write_all_at(says.text().as_bytes(), 0)?;
        self.says = says;
        if says.as_of >= self.synced_at + SYNCED_WITHIN {
            self.sync()?;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced_at = self.says.as_of;
        Ok(())
    }
}

/// Makes sure that the names in the folder of `path` have reached the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAYS: Progress = Progress {
        id: u64::MAX,
        count: 7,
        as_of: Timestamp(1_694_432_700_000),
        longest_seat: DurationMs(310_000),
    };

    #[test]
    fn what_was_noted_is_read_again_and_anything_else_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.progress");
        let found = || ProgressFile::open(&path).unwrap();
        assert!(matches!(found(), Found::Absent));
        let mut file = ProgressFile::make(&path, Progress::default()).unwrap();
        file.note(SAYS).unwrap();
        assert!(matches!(found(), Found::Good(file) if file.says == SAYS));
        let whole = SAYS.text();
        for damaged in ["", &whole[1..], &format!("{whole}x"), "zz\n", "\n"] {
            fs::write(&path, damaged).unwrap();
            assert!(matches!(found(), Found::Damaged), "{damaged:?}");
        }
        fs::write(&path, b"\xff\xfe").unwrap();
        assert!(matches!(found(), Found::Damaged));
    }
}
