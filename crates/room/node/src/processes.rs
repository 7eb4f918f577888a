//! Registry of the processes that run or ran on a data folder.
//!
//! A ledger waits for a process that sends nothing before it frees seats of ended sessions: the
//! process may still let visitors pass. A process that finds the file of an ended one in its own
//! folder reports it, and the ledger stops waiting.
//!
//! Each process has a file in `processes/` with its id as name, locked while the process runs. For
//! each room whose ledger knows the process, the file has the end of its newest lease and the
//! revoked tickets. A successor that starts while the ledger is unavailable rejects the same
//! tickets, and trusts tickets no longer than the ended process would have. Before a process sends
//! its goodbye to a ledger it removes the room from its file, so that no successor relies on it.
//!
//! The file serves after a crash of the process, not of the machine: it is not synced to the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anteroom_room::id::{NodeId, VisitorId};
use anteroom_room::room::Predecessors;
use anteroom_room::sync::Revocation;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::wire::deployment::{from_hex, hex};
use parking_lot::Mutex;

const FOLDER: &str = "processes";

/// Longest lag of the lease's end in the file. It matters little in 48 hours, and a lease is
/// renewed several times a second.
const LAG: DurationMs = DurationMs::from_secs(600);

/// File of this process, and the predecessors that it found at its start.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    own: Mutex<OwnFile>,
    predecessors: Vec<Predecessor>,
}

#[derive(Debug)]
struct OwnFile {
    /// File with a lock, which lasts as long as it is open.
    file: File,
    rooms: Rooms,
    /// Rooms to whose ledgers a goodbye was or will be sent.
    left: BTreeSet<String>,
}

type Rooms = BTreeMap<String, Joined>;

/// Room whose ledger knows the process.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Joined {
    /// End of the ledger's newest lease, at least.
    in_touch_until: Timestamp,
    /// Revoked visitors, and the time until which they are rejected.
    revoked: BTreeMap<VisitorId, Timestamp>,
}

/// Process that ran on this folder and has ended.
#[derive(Clone, Debug)]
struct Predecessor {
    id: NodeId,
    path: PathBuf,
    /// Rooms whose ledgers still count it, because it sent no goodbye.
    rooms: Rooms,
}

impl ProcessFile {
    /// Creates the file of the process `id` in a data folder, and reads those of its predecessors.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be read or written.
    pub(crate) fn register(data_dir: &Path, id: NodeId) -> io::Result<Self> {
        let folder = data_dir.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let mut predecessors = Vec::new();
        for entry in fs::read_dir(&folder)? {
            predecessors.extend(ended_process(&entry?.path())?);
        }
        let file = new_file(&folder, id)?;
        let own = OwnFile {
            file,
            rooms: Rooms::new(),
            left: BTreeSet::new(),
        };
        Ok(Self {
            own: Mutex::new(own),
            predecessors,
        })
    }

    /// Returns the predecessors of this process, with their state of `room`.
    #[must_use]
    pub(crate) fn predecessors(&self, room: &str) -> Predecessors {
        let counted = self.predecessors.iter();
        let counted: Vec<_> = counted
            .filter_map(|before| before.rooms.get(room))
            .collect();
        let revoked = counted.iter().flat_map(|joined| joined.revoked.iter());
        Predecessors {
            ended: self.predecessors.iter().map(|before| before.id).collect(),
            // The ledger waits for the latest of them.
            in_touch_until: counted.iter().map(|joined| joined.in_touch_until).max(),
            revoked: revoked
                .map(|(&visitor, &until)| revocation(visitor, until))
                .collect(),
        }
    }

    /// Records that the ledger of `room` knows this process until its lease ends at
    /// `in_touch_until`, and the revoked tickets. Writes only if the tickets differ or the lease
    /// ends ten minutes later.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the file cannot be written. No successor relies on this process then.
    pub(crate) fn note_joined(
        &self,
        room: &str,
        in_touch_until: Timestamp,
        revoked: &[Revocation],
    ) -> io::Result<()> {
        let mut own = self.own.lock();
        let revoked = revoked.iter().map(|entry| (entry.visitor, entry.until));
        let joined = Joined {
            in_touch_until,
            revoked: revoked.collect(),
        };
        let is_written = |old: &Joined| {
            old.revoked == joined.revoked && in_touch_until < old.in_touch_until + LAG
        };
        if own.rooms.get(room).is_some_and(is_written) {
            return Ok(());
        }
        own.rooms.insert(room.to_owned(), joined);
        let written = own.write();
        if written.is_err() {
            own.rooms.remove(room);
            // What is left in the file must not be trusted.
            let _ = own.file.set_len(0);
        }
        written
    }

    /// Deletes the files of predecessors. The ledgers of all rooms must know that these have ended.
    pub(crate) fn forget_predecessors(&self) {
        for before in &self.predecessors {
            // A file that remains makes the next process report once more, which does no harm.
            let _ = fs::remove_file(&before.path);
        }
    }

    /// Removes `room` from the files of this process and of its predecessors, before a goodbye to
    /// the ledger: no successor may rely on them afterwards.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if a file cannot be written. The process must not send its goodbye then.
    pub(crate) fn leave(&self, room: &str) -> io::Result<()> {
        let mut own = self.own.lock();
        own.rooms.remove(room);
        own.left.insert(room.to_owned());
        own.write()?;
        for before in &self.predecessors {
            let rooms = before.rooms.iter();
            let rooms = rooms.filter(|(name, _)| !own.left.contains(*name));
            let text = encode(rooms);
            match File::options()
                .write(true)
                .truncate(true)
                .open(&before.path)
            {
                Ok(mut file) => file.write_all(text.as_bytes())?,
                // All ledgers know that it has ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl OwnFile {
    /// Rewrites the file. If a crash truncates it, it has too few rooms and never too many: a room
    /// counts only with its last line.
    fn write(&mut self) -> io::Result<()> {
        let text = encode(&self.rooms);
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

/// Encodes the rooms of a file.
fn encode<'a>(rooms: impl IntoIterator<Item = (&'a String, &'a Joined)>) -> String {
    let mut text = String::new();
    for (room, joined) in rooms {
        for (visitor, until) in &joined.revoked {
            let id = hex(&visitor.0);
            text.push_str(&format!("refuses {id} {}\n", until.0));
        }
        text.push_str(&format!("room {} {room}\n", joined.in_touch_until.0));
    }
    text
}

fn revocation(visitor: VisitorId, until: Timestamp) -> Revocation {
    Revocation {
        visitor,
        seat_ends_at: None,
        until,
    }
}

/// Parses a file. A line that a crash truncated is ignored, with the lines that belong to it.
fn parse(text: &str) -> Rooms {
    let mut rooms = Rooms::new();
    let mut revoked = BTreeMap::new();
    let whole = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    for line in whole {
        if let Some((room, in_touch_until)) = parse_room(line) {
            let revoked = std::mem::take(&mut revoked);
            let joined = Joined {
                in_touch_until,
                revoked,
            };
            rooms.insert(room.to_owned(), joined);
        } else if let Some((visitor, until)) = parse_revocation(line) {
            revoked.insert(visitor, until);
        }
    }
    rooms
}

fn parse_room(line: &str) -> Option<(&str, Timestamp)> {
    let (until, room) = line.strip_prefix("room ")?.split_once(' ')?;
    Some((room, Timestamp(until.parse().ok()?)))
}

fn parse_revocation(line: &str) -> Option<(VisitorId, Timestamp)> {
    let (id, until) = line.strip_prefix("refuses ")?.split_once(' ')?;
    Some((VisitorId(from_hex(id)?), Timestamp(until.parse().ok()?)))
}

fn name_of(id: NodeId) -> String {
    format!("{:016x}", id.0)
}

/// Creates the file of a process, which is locked before it has its name.
fn new_file(folder: &Path, id: NodeId) -> io::Result<File> {
    let name = name_of(id);
    let draft = folder.join(format!("{name}.new"));
    let file = File::create_new(&draft)?;
    file.lock()?;
    fs::rename(&draft, folder.join(name))?;
    Ok(file)
}

/// Returns the ended process of a file; `None` if the process runs, or if it is no such file.
fn ended_process(path: &Path) -> io::Result<Option<Predecessor>> {
    let name = path.file_stem().and_then(|name| name.to_str());
    let id = name.and_then(|name| u64::from_str_radix(name, 16).ok());
    let (Some(id), None) = (id, path.extension()) else {
        return Ok(None);
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    Ok(Some(Predecessor {
        id: NodeId(id),
        path: path.to_owned(),
        rooms: parse(&text),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(folder: &Path, id: u64) -> ProcessFile {
        ProcessFile::register(folder, NodeId(id)).unwrap()
    }

    #[test]
    fn a_successor_reads_the_rooms_of_ended_processes() {
        let folder = tempfile::tempdir().unwrap();
        let first = register(folder.path(), 1);
        let revoked = [revocation(VisitorId([7; 16]), Timestamp(900))];
        first.note_joined("shop", Timestamp(50), &[]).unwrap();
        first.note_joined("the other", Timestamp(60), &[]).unwrap();
        first.note_joined("shop", Timestamp(70), &revoked).unwrap();
        let second = register(folder.path(), 2);
        assert_eq!(second.predecessors("shop"), Predecessors::default());
        drop((first, second));
        let next = register(folder.path(), 3);
        let shop = next.predecessors("shop");
        assert_eq!(shop.in_touch_until, Some(Timestamp(70)));
        assert_eq!(shop.revoked, revoked);
        let mut dead = shop.ended;
        dead.sort_unstable();
        assert_eq!(dead, [NodeId(1), NodeId(2)]);
        let in_touch_until = |room| next.predecessors(room).in_touch_until;
        assert_eq!(in_touch_until("the other"), Some(Timestamp(60)));
        assert_eq!(in_touch_until("a third"), None);
        next.forget_predecessors();
        drop(next);
        assert_eq!(
            register(folder.path(), 4).predecessors("shop").ended,
            [NodeId(3)]
        );
    }

    #[test]
    fn the_file_lags_at_most_ten_minutes_behind_the_lease() {
        let folder = tempfile::tempdir().unwrap();
        let first = register(folder.path(), 1);
        let mut newest = Timestamp(1_000);
        for _ in 0..100 {
            newest = newest + DurationMs::from_secs(61);
            first.note_joined("shop", newest, &[]).unwrap();
        }
        drop(first);
        let found = register(folder.path(), 2)
            .predecessors("shop")
            .in_touch_until;
        let found = found.expect("it joined");
        assert!(found <= newest && newest < found + LAG, "{found:?}");
    }

    #[test]
    fn of_two_ended_processes_the_latest_lease_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (register(folder.path(), 1), register(folder.path(), 2));
        first.note_joined("shop", Timestamp(70), &[]).unwrap();
        second.note_joined("shop", Timestamp(50), &[]).unwrap();
        drop((first, second));
        let found = register(folder.path(), 3).predecessors("shop");
        assert_eq!(found.in_touch_until, Some(Timestamp(70)));
    }

    #[test]
    fn a_room_with_a_goodbye_is_not_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let first = register(folder.path(), 1);
        first.note_joined("shop", Timestamp(50), &[]).unwrap();
        first.note_joined("other", Timestamp(50), &[]).unwrap();
        first.leave("shop").unwrap();
        drop(first);
        let third = register(folder.path(), 3);
        assert_eq!(third.predecessors("shop").ended, [NodeId(1)]);
        assert_eq!(third.predecessors("shop").in_touch_until, None);
        assert!(third.predecessors("other").in_touch_until.is_some());
    }

    #[test]
    fn a_goodbye_removes_the_room_from_files_of_predecessors() {
        let folder = tempfile::tempdir().unwrap();
        let first = register(folder.path(), 1);
        first.note_joined("shop", Timestamp(50), &[]).unwrap();
        first.note_joined("other", Timestamp(60), &[]).unwrap();
        drop(first);
        let second = register(folder.path(), 2);
        second.leave("shop").unwrap();
        drop(second);
        let third = register(folder.path(), 3);
        assert_eq!(third.predecessors("shop").in_touch_until, None);
        let other = third.predecessors("other").in_touch_until;
        assert_eq!(other, Some(Timestamp(60)));
        third.forget_predecessors();
        third.leave("other").unwrap();
    }

    #[test]
    fn a_truncated_file_has_too_few_rooms_never_too_many() {
        let whole = format!("refuses {} 5\nroom 9 shop\n", hex(&[7; 16]));
        assert_eq!(parse(&whole)["shop"].revoked.len(), 1);
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Rooms::new(), "{length}");
        }
    }

    #[test]
    fn other_files_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let processes = folder.path().join(FOLDER);
        fs::create_dir_all(&processes).unwrap();
        for name in ["notes.txt", "0000000000000009.new", "xyz"] {
            fs::write(processes.join(name), "room 9 shop\n").unwrap();
        }
        let found = register(folder.path(), 1).predecessors("shop");
        assert_eq!(found, Predecessors::default());
    }
}
