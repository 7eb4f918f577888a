//! Fake disk on which the process is killed, or the power fails, after some steps.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::{Builder, Database, DatabaseError, StorageBackend};

/// Fate of writes that are not synced yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Crash {
    /// The process is killed: the system has the writes, and completes them.
    Killed,
    /// The power fails: each of the writes may be lost, at random.
    PowerFailure { seed: u64 },
}

/// Steps on all files of a test. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Mutex<Steps>>);

#[derive(Debug)]
struct Steps {
    /// Number of steps until the crash.
    left: u64,
    done: u64,
    crash: Crash,
}

#[derive(Debug)]
struct OnDisk {
    file: File,
    disk: Disk,
    /// Writes since the last sync.
    pending: Mutex<Vec<Pending>>,
}

#[derive(Debug)]
enum Pending {
    Length(u64),
    Bytes(u64, Vec<u8>),
}

impl Disk {
    pub(crate) fn crashing_after(steps: u64, crash: Crash) -> Self {
        Self(Arc::new(Mutex::new(Steps {
            left: steps,
            done: 0,
            crash,
        })))
    }

    pub(crate) fn open(&self, file: File) -> Result<Database, DatabaseError> {
        Builder::new().create_with_backend(OnDisk {
            file,
            disk: self.clone(),
            pending: Mutex::default(),
        })
    }

    pub(crate) fn steps(&self) -> u64 {
        self.0.lock().done
    }

    pub(crate) fn has_crashed(&self) -> bool {
        self.0.lock().left == 0
    }

    /// Counts a step, which fails after the crash.
    fn step(&self) -> io::Result<()> {
        let mut steps = self.0.lock();
        if steps.left == 0 {
            return Err(io::Error::other("crashed"));
        }
        steps.left -= 1;
        steps.done += 1;
        Ok(())
    }
}

impl OnDisk {
    /// Writes pending changes to the file; with a seed, a random part of them.
    fn settle(&self, mut seed: Option<u64>) -> io::Result<()> {
        for pending in self.pending.lock().drain(..) {
            if let Some(seed) = &mut seed {
                // Marsaglia, "Xorshift RNGs", 2003.
                *seed ^= *seed << 13;
                *seed ^= *seed >> 7;
                *seed ^= *seed << 17;
                if *seed % 2 == 0 {
                    continue;
                }
            }
            match pending {
                Pending::Length(len) => self.file.set_len(len)?,
                Pending::Bytes(at, bytes) => self.file.write_all_at(&bytes, at)?,
            }
        }
        Ok(())
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let seed = match self.disk.0.lock().crash {
            Crash::PowerFailure { seed } => Some(seed.max(1)),
            Crash::Killed => None,
        };
        self.settle(seed.filter(|_| self.disk.has_crashed()))
            .unwrap();
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("a position in memory fits usize")
}

impl StorageBackend for OnDisk {
    fn len(&self) -> io::Result<u64> {
        let mut len = self.file.metadata()?.len();
        for pending in &*self.pending.lock() {
            len = match pending {
                Pending::Length(len) => *len,
                Pending::Bytes(at, bytes) => len.max(at + bytes.len() as u64),
            };
        }
        Ok(len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        // The file first; pending writes are laid over it.
        let mut done = 0;
        while done < out.len() {
            match self.file.read_at(&mut out[done..], offset + done as u64)? {
                0 => break,
                read => done += read,
            }
        }
        out[done..].fill(0);
        let end = offset + out.len() as u64;
        for pending in &*self.pending.lock() {
            if let Pending::Bytes(at, bytes) = pending {
                let (from, until) = ((*at).max(offset), (at + bytes.len() as u64).min(end));
                if from < until {
                    let target = index(from - offset)..index(until - offset);
                    let source = index(from - at)..index(until - at);
                    out[target].copy_from_slice(&bytes[source]);
                }
            }
        }
        if end > self.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.step()?;
        self.pending.lock().push(Pending::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.step()?;
        self.settle(None)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.step()?;
        let bytes = Pending::Bytes(offset, data.to_vec());
        self.pending.lock().push(bytes);
        Ok(())
    }
}
