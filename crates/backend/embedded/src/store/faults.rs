//! Files that fail on demand, for tests of full and read-only disks.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Builder, Database, DatabaseError, StorageBackend};

/// Switch that several files share.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    is_full: Arc<AtomicBool>,
}

impl Faults {
    /// Makes every write fail as on a full disk, or succeed again.
    pub fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    /// Opens a database on a file that fails while the switch is on.
    ///
    /// # Errors
    ///
    /// As redb does.
    pub fn open(&self, path: &Path) -> Result<Database, DatabaseError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        self.open_file(file)
    }

    /// Variant of [`open`](Self::open) for an open file.
    ///
    /// # Errors
    ///
    /// As redb does.
    pub fn open_file(&self, file: File) -> Result<Database, DatabaseError> {
        Builder::new().create_with_backend(FaultyFile {
            file,
            faults: self.clone(),
        })
    }

    fn check(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        } else {
            Ok(())
        }
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: File,
    faults: Faults,
}

impl StorageBackend for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.faults.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.faults.check()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.faults.check()?;
        self.file.write_all_at(data, offset)
    }
}
