//! What stands in the file: what it is, the epoch, the clients, and when each of them is forgotten.

use anteroom_limit::lending::epoch::StoreIdentity;
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::lent::{Kept, Loaded, Token};
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};

use crate::leases::mark::Mark;

/// What the file is, by these words.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// The epoch's record: its token and its bytes.
const EPOCH: TableDefinition<'_, &str, (u128, &[u8])> = TableDefinition::new("epoch");
/// Who of which limit -> token, when it is forgotten, bytes.
const CLIENTS: TableDefinition<'_, ClientKey, (u128, u64, &[u8])> = TableDefinition::new("clients");
/// The same by when they are forgotten -> how much they take.
const ENDS: TableDefinition<'_, (u64, u128, &str), u64> = TableDefinition::new("ends");

/// Another one for any change of these tables.
pub(crate) const FORM: u64 = 1;

/// What a client takes beside its bytes and twice its limit's name, in both tables: its key and a
/// time twice, a token, and what the trees need.
const ROW_BYTES: u64 = 128;

type ClientKey = (u128, &'static str);

/// A client of a limit.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) limit: String,
    pub(crate) key: u128,
}

/// What the file is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) form: u64,
    pub(crate) identity: StoreIdentity,
    pub(crate) mark: Mark,
    /// The latest time at which something was written.
    pub(crate) as_of: TimestampUs,
}

/// All tables of a transaction that writes.
pub(crate) struct Tables<'t> {
    about: redb::Table<'t, &'static str, u64>,
    epoch: redb::Table<'t, &'static str, (u128, &'static [u8])>,
    clients: redb::Table<'t, ClientKey, (u128, u64, &'static [u8])>,
    ends: redb::Table<'t, (u64, u128, &'static str), u64>,
}

/// The two tables of a transaction that reads.
pub(crate) struct ReadTables {
    epoch: redb::ReadOnlyTable<&'static str, (u128, &'static [u8])>,
    clients: redb::ReadOnlyTable<ClientKey, (u128, u64, &'static [u8])>,
}

/// Begins to write, in two phases.
///
/// # Why two phases
///
/// They cost a second wait for the disk with each commit. In one, the state before is believed when
/// the newest one cannot be read after an unclean end, for it may have been under way: what was
/// told as written, and rotted, would be forgotten unseen. What was written in two had reached the
/// disk whole, so whatever of it cannot be read is damage.
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
            ("form", about.form),
            ("identity", about.identity.0),
            ("number", about.mark.number),
            ("born", about.mark.born),
            ("as_of", about.as_of.0),
        ];
        for (word, value) in words {
            self.about.insert(word, value)?;
        }
        Ok(())
    }

    pub(crate) fn put_as_of(&mut self, now: TimestampUs) -> Result<(), redb::Error> {
        self.about.insert("as_of", now.0)?;
        Ok(())
    }

    pub(crate) fn put_epoch(&mut self, kept: &Kept) -> Result<(), redb::Error> {
        let value = (kept.token.0, kept.value.as_slice());
        self.epoch.insert("epoch", value)?;
        Ok(())
    }

    /// Writes a client's record.
    pub(crate) fn put_client(
        &mut self,
        name: &Name,
        kept: &Kept,
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

    /// How much is kept of a client.
    pub(crate) fn bytes(&self, name: &Name) -> Result<u64, redb::Error> {
        let found = self.clients.get((name.key, name.limit.as_str()))?;
        Ok(found.map_or(0, |found| bytes_of(name, found.value().2.len())))
    }

    /// Forgets clients whose time has come, at most so many; how many bytes they took.
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

/// What the file is, and how many bytes it keeps of clients.
pub(crate) fn about(read: &redb::ReadTransaction) -> Result<(About, u64), redb::Error> {
    let table = read.open_table(ABOUT)?;
    let word = |word: &str| -> Result<u64, redb::Error> {
        let found = table.get(word)?.map(|found| found.value());
        found.ok_or_else(|| redb::Error::Corrupted(format!("it does not say its {word}")))
    };
    let about = About {
        form: word("form")?,
        identity: StoreIdentity(word("identity")?),
        mark: Mark {
            number: word("number")?,
            born: word("born")?,
        },
        as_of: TimestampUs(word("as_of")?),
    };
    if about.form != FORM {
        return Ok((about, 0));
    }
    let mut bytes = 0_u64;
    for end in read.open_table(ENDS)?.iter()? {
        bytes = bytes.saturating_add(end?.1.value());
    }
    Ok((about, bytes))
}

/// What a client with so many bytes takes.
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
        Kept { token, value }
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
    })
}
