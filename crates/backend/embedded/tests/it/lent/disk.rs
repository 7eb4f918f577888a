//! A disk on which a process dies, or the power goes, after so many steps.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::{Builder, Database, DatabaseError, StorageBackend};

/// What happens to writes that have not been called kept yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Death {
    /// The process ends: the system has them, and writes them.
    Killed,
    /// The power goes: each of them may be lost, by chance.
    Unpowered { seed: u64 },
}

/// All steps on all files of a test. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Mutex<Steps>>);

#[derive(Debug)]
struct Steps {
    /// How many there may be yet.
    left: u64,
    done: u64,
    death: Death,
}

#[derive(Debug)]
struct OnDisk {
    file: File,
    disk: Disk,
    /// What was written since the disk last said that all is kept.
    pending: Mutex<Vec<Pending>>,
}

#[derive(Debug)]
enum Pending {
    Length(u64),
    Bytes(u64, Vec<u8>),
}

impl Disk {
    pub(crate) fn dying_after(steps: u64, death: Death) -> Self {
        Self(Arc::new(Mutex::new(Steps {
            left: steps,
            done: 0,
            death,
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

    pub(crate) fn is_dead(&self) -> bool {
        self.0.lock().left == 0
    }

    /// One step more; whether it is still done.
    fn step(&self) -> io::Result<()> {
        let mut steps = self.0.lock();
        if steps.left == 0 {
            return Err(io::Error::other("dead"));
        }
        steps.left -= 1;
        steps.done += 1;
        Ok(())
    }
}

impl OnDisk {
    /// What the file would be with what is pending; of that, what chance leaves if there is a seed.
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
        let seed = match self.disk.0.lock().death {
            Death::Unpowered { seed } => Some(seed.max(1)),
            Death::Killed => None,
        };
        self.settle(seed.filter(|_| self.disk.is_dead())).unwrap();
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("what is read lies in memory")
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
        // Whatever is there; what is pending covers the rest.
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
                    let here = index(from - offset)..index(until - offset);
                    let there = index(from - at)..index(until - at);
                    out[here].copy_from_slice(&bytes[there]);
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
