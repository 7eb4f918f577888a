//! Tables of the file: its metadata, the epoch, the clients, and the ends of their records.

use anteroom_limit::leases::epoch::StoreIdentity;
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::lease_store::{Loaded, StoredRecord, Token};
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};

use crate::leases::mark::Mark;

/// Metadata of the file, by name.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// Record of the epoch: token and bytes.
const EPOCH: TableDefinition<'_, &str, (u128, &[u8])> = TableDefinition::new("epoch");
/// Key and limit of a client -> token, end, bytes.
const CLIENTS: TableDefinition<'_, ClientKey, (u128, u64, &[u8])> = TableDefinition::new("clients");
/// End, key and limit of a client -> size.
const ENDS: TableDefinition<'_, (u64, u128, &str), u64> = TableDefinition::new("ends");

/// Version of the tables' format. Any change of them needs another one.
pub(crate) const FORMAT: u64 = 1;

/// Overhead of a client in both tables, beside its bytes and twice its limit's name: key and time
/// twice, a token, and the trees.
const ROW_BYTES: u64 = 128;

type ClientKey = (u128, &'static str);

/// Client of a limit.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) limit: String,
    pub(crate) key: u128,
}

/// Metadata of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) format: u64,
    pub(crate) identity: StoreIdentity,
    pub(crate) mark: Mark,
    /// Time of the newest write.
    pub(crate) as_of: TimestampUs,
}

/// Tables of a write transaction.
pub(crate) struct Tables<'t> {
    about: redb::Table<'t, &'static str, u64>,
    epoch: redb::Table<'t, &'static str, (u128, &'static [u8])>,
    clients: redb::Table<'t, ClientKey, (u128, u64, &'static [u8])>,
    ends: redb::Table<'t, (u64, u128, &'static str), u64>,
}

/// Tables of a read transaction.
pub(crate) struct ReadTables {
    epoch: redb::ReadOnlyTable<&'static str, (u128, &'static [u8])>,
    clients: redb::ReadOnlyTable<ClientKey, (u128, u64, &'static [u8])>,
}

/// Begins a write transaction with a two-phase commit.
///
/// # Why two phases
///
/// They cost a second sync to the disk with each commit. With one phase, after a crash redb falls
/// back to the previous state if the newest one is unreadable, because it may be incomplete. A
/// confirmed write that was damaged later would be lost without notice. With two phases a confirmed
/// write is complete on the disk, so unreadable parts of it are damage.
pub(crate) fn begin(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut write = database.begin_write()?;
    write.set_two_phase_commit(true);
    Ok(write)
}

impl<'t> Tables<'t> {
    pub(crate) fn open(write: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            about: write.open_table(ABOUT)?,
            epoch: write.open_table(EPOCH)?,
            clients: write.open_table(CLIENTS)?,
            ends: write.open_table(ENDS)?,
        })
    }

    pub(crate) fn put_about(&mut self, about: &About) -> Result<(), redb::Error> {
        let words = [
            ("form", about.format),
            ("identity", about.identity.0),
            ("number", about.mark.inode),
            ("born", about.mark.created),
            ("as_of", about.as_of.0),
        ];
        for (name, value) in words {
            self.about.insert(name, value)?;
        }
        Ok(())
    }

    pub(crate) fn put_as_of(&mut self, now: TimestampUs) -> Result<(), redb::Error> {
        self.about.insert("as_of", now.0)?;
        Ok(())
    }

    pub(crate) fn put_epoch(&mut self, kept: &StoredRecord) -> Result<(), redb::Error> {
        let value = (kept.token.0, kept.value.as_slice());
        self.epoch.insert("epoch", value)?;
        Ok(())
    }

    /// Writes a client's record.
    pub(crate) fn put_client(
        &mut self,
        name: &Name,
        kept: &StoredRecord,
        forget_at: TimestampUs,
    ) -> Result<(), redb::Error> {
        let key = (name.key, name.limit.as_str());
        let value = (kept.token.0, forget_at.0, kept.value.as_slice());
        let before = self.clients.insert(key, value)?;
        let before = before.map(|before| before.value().1);
        if let Some(before) = before.filter(|before| *before != forget_at.0) {
            self.ends.remove((before, name.key, name.limit.as_str()))?;
        }
        let end = (forget_at.0, name.key, name.limit.as_str());
        self.ends.insert(end, bytes_of(name, kept.value.len()))?;
        Ok(())
    }

    /// Returns the size of a client's record.
    pub(crate) fn bytes(&self, name: &Name) -> Result<u64, redb::Error> {
        let found = self.clients.get((name.key, name.limit.as_str()))?;
        Ok(found.map_or(0, |found| bytes_of(name, found.value().2.len())))
    }

    /// Removes at most `most` clients whose records have ended. Returns their size in bytes.
    pub(crate) fn sweep(&mut self, now: TimestampUs, most: usize) -> Result<u64, redb::Error> {
        let mut freed = 0;
        for _ in 0..most {
            let Some(first) = self.ends.first()? else {
                break;
            };
            let (at, key, limit) = first.0.value();
            if at > now.0 {
                break;
            }
            let (limit, bytes) = (limit.to_owned(), first.1.value());
            drop(first);
            self.ends.remove((at, key, limit.as_str()))?;
            self.clients.remove((key, limit.as_str()))?;
            freed += bytes;
        }
        Ok(freed)
    }

    pub(crate) fn load(
        &self,
        name: Option<&Name>,
        now: TimestampUs,
        identity: StoreIdentity,
    ) -> Result<Loaded, redb::Error> {
        load(&self.epoch, &self.clients, name, now, identity)
    }
}

impl ReadTables {
    pub(crate) fn open(read: &redb::ReadTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            epoch: read.open_table(EPOCH)?,
            clients: read.open_table(CLIENTS)?,
        })
    }

    pub(crate) fn load(
        &self,
        name: Option<&Name>,
        now: TimestampUs,
        identity: StoreIdentity,
    ) -> Result<Loaded, redb::Error> {
        load(&self.epoch, &self.clients, name, now, identity)
    }
}

/// Reads the metadata of the file and the size of all clients' records.
pub(crate) fn about(read: &redb::ReadTransaction) -> Result<(About, u64), redb::Error> {
    let table = read.open_table(ABOUT)?;
    let word = |word: &str| -> Result<u64, redb::Error> {
        let found = table.get(word)?.map(|found| found.value());
        found.ok_or_else(|| redb::Error::Corrupted(format!("the metadata lacks {word}")))
    };
    let about = About {
        format: word("form")?,
        identity: StoreIdentity(word("identity")?),
        mark: Mark {
            inode: word("number")?,
            created: word("born")?,
        },
        as_of: TimestampUs(word("as_of")?),
    };
    if about.format != FORMAT {
        return Ok((about, 0));
    }
    let mut bytes = 0_u64;
    for end in read.open_table(ENDS)?.iter()? {
        bytes = bytes.saturating_add(end?.1.value());
    }
    Ok((about, bytes))
}

/// Returns the size of a client's record with `len` bytes of content.
pub(crate) fn bytes_of(name: &Name, len: usize) -> u64 {
    let len = u64::try_from(len + 2 * name.limit.len()).unwrap_or(u64::MAX);
    len.saturating_add(ROW_BYTES)
}

fn load(
    epoch: &impl ReadableTable<&'static str, (u128, &'static [u8])>,
    clients: &impl ReadableTable<ClientKey, (u128, u64, &'static [u8])>,
    name: Option<&Name>,
    now: TimestampUs,
    identity: StoreIdentity,
) -> Result<Loaded, redb::Error> {
    let kept = |token: u128, value: &[u8]| {
        let (token, value) = (Token(token), value.to_vec());
        StoredRecord { token, value }
    };
    let client = match name {
        Some(name) => clients.get((name.key, name.limit.as_str()))?,
        None => None,
    };
    let client = client.map(|found| {
        let (token, _, value) = found.value();
        kept(token, value)
    });
    let epoch = epoch.get("epoch")?.map(|found| {
        let (token, value) = found.value();
        kept(token, value)
    });
    Ok(Loaded {
        client,
        epoch,
        now,
        identity,
        // Its identity changes only if the file is lost.
        longest_loss: None,
    })
}
