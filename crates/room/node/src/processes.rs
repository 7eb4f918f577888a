//! Which process runs on a data folder, and which ones ran there and are dead?
//!
//! A ledger waits for a process that fell silent before it frees seats of ended sessions: it may
//! still let visitors pass. A process that finds the name of a dead one in its own folder says so,
//! and nobody waits any longer.
//!
//! Each process has a file in `processes/`, named after it and locked for as long as it runs. The
//! file says for each room whose ledger knows the process until when it was in touch and which
//! tickets it refuses: a successor that starts while the ledger cannot be reached refuses them,
//! too, and believes tickets no longer than the dead process would have. Before the process says
//! goodbye to a ledger it takes the room from its file: from then on its name vouches for nobody
//! there.
//!
//! The file is for a process that dies, not for a machine that does: nothing is synced to the disk.

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

/// How far the file may lag behind what it says of the time of the newest lease. Of 48 hours it
/// matters little, and a node's lease is renewed several times a second.
const LAG: DurationMs = DurationMs::from_secs(600);

/// The file of this process, and what it found when it came.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    own: Mutex<Own>,
    predecessors: Vec<Predecessor>,
}

#[derive(Debug)]
struct Own {
    /// Locked as long as it is open.
    file: File,
    rooms: Rooms,
    /// Rooms whose ledgers heard or will hear a goodbye.
    left: BTreeSet<String>,
}

type Rooms = BTreeMap<String, Joined>;

/// A room whose ledger knows the process.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Joined {
    /// Until when the ledger's newest lease ran, at least.
    in_touch_until: Timestamp,
    /// The tickets that are refused, and until when.
    refused: BTreeMap<VisitorId, Timestamp>,
}

/// A process that ran on this folder and is dead.
#[derive(Clone, Debug)]
struct Predecessor {
    id: NodeId,
    path: PathBuf,
    /// The rooms whose ledgers still count it: where it has not said goodbye.
    rooms: Rooms,
}

impl ProcessFile {
    /// Enters a data folder under the name `id`, and looks who was there.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be read or written.
    pub(crate) fn enter(data_dir: &Path, id: NodeId) -> io::Result<Self> {
        let folder = data_dir.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let mut predecessors = Vec::new();
        for entry in fs::read_dir(&folder)? {
            predecessors.extend(dead_process(&entry?.path())?);
        }
        let file = new_file(&folder, id)?;
        let own = Own {
            file,
            rooms: Rooms::new(),
            left: BTreeSet::new(),
        };
        Ok(Self {
            own: Mutex::new(own),
            predecessors,
        })
    }

    /// Who was here before, as far as `room` is concerned.
    #[must_use]
    pub(crate) fn predecessors(&self, room: &str) -> Predecessors {
        let counted = self.predecessors.iter();
        let counted: Vec<_> = counted
            .filter_map(|before| before.rooms.get(room))
            .collect();
        let revoked = counted.iter().flat_map(|joined| joined.refused.iter());
        Predecessors {
            dead: self.predecessors.iter().map(|before| before.id).collect(),
            // The ledger waits for the last one of them.
            in_touch_until: counted.iter().map(|joined| joined.in_touch_until).max(),
            revoked: revoked
                .map(|(&visitor, &until)| refusal(visitor, until))
                .collect(),
        }
    }

    /// The ledger of `room` knows this process until its lease ends `in_touch_until`, and that it
    /// refuses these tickets. Writes only what matters: other tickets, or a lease ten minutes
    /// later.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if that cannot be written down; the process vouches for no successor then.
    pub(crate) fn note_joined(
        &self,
        room: &str,
        in_touch_until: Timestamp,
        refused: &[Revocation],
    ) -> io::Result<()> {
        let mut own = self.own.lock();
        let refused = refused.iter().map(|entry| (entry.visitor, entry.until));
        let joined = Joined {
            in_touch_until,
            refused: refused.collect(),
        };
        let is_written = |old: &Joined| {
            old.refused == joined.refused && in_touch_until < old.in_touch_until + LAG
        };
        if own.rooms.get(room).is_some_and(is_written) {
            return Ok(());
        }
        own.rooms.insert(room.to_owned(), joined);
        let written = own.write();
        if written.is_err() {
            own.rooms.remove(room);
            // Nothing that is left in the file may be believed.
            let _ = own.file.set_len(0);
        }
        written
    }

    /// The ledgers of all rooms have heard that those before are dead: their files are not needed
    /// any more.
    pub(crate) fn forget_predecessors(&self) {
        for before in &self.predecessors {
            // What cannot be deleted is told once more by the next process, and does no harm.
            let _ = fs::remove_file(&before.path);
        }
    }

    /// This process is about to say goodbye to the ledger of `room`: there neither its name vouches
    /// for a successor nor those of the processes before it, whose places it took. Told to the
    /// folder first and to the ledger afterwards.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if that cannot be written down; then no goodbye may be said.
    pub(crate) fn leave(&self, room: &str) -> io::Result<()> {
        let mut own = self.own.lock();
        own.rooms.remove(room);
        own.left.insert(room.to_owned());
        own.write()?;
        for before in &self.predecessors {
            let rooms = before.rooms.iter();
            let rooms = rooms.filter(|(name, _)| !own.left.contains(*name));
            let text = written(rooms);
            match File::options()
                .write(true)
                .truncate(true)
                .open(&before.path)
            {
                Ok(mut file) => file.write_all(text.as_bytes())?,
                // Its ledgers have all heard that it is dead.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Own {
    /// Writes the file anew. Cut short by a crash it vouches for too little, never for too much: a
    /// room counts once its last line is there.
    fn write(&mut self) -> io::Result<()> {
        let text = written(&self.rooms);
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

/// What a file says of these rooms.
fn written<'a>(rooms: impl IntoIterator<Item = (&'a String, &'a Joined)>) -> String {
    let mut text = String::new();
    for (room, joined) in rooms {
        for (visitor, until) in &joined.refused {
            let id = hex(&visitor.0);
            text.push_str(&format!("refuses {id} {}\n", until.0));
        }
        text.push_str(&format!("room {} {room}\n", joined.in_touch_until.0));
    }
    text
}

fn refusal(visitor: VisitorId, until: Timestamp) -> Revocation {
    Revocation {
        visitor,
        seat_ends_at: None,
        until,
    }
}

/// What a file says. A line that was cut off by a crash, and what belongs to it, says nothing.
fn parse(text: &str) -> Rooms {
    let mut rooms = Rooms::new();
    let mut refused = BTreeMap::new();
    let whole = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    for line in whole {
        if let Some((room, in_touch_until)) = parse_room(line) {
            let refused = std::mem::take(&mut refused);
            let joined = Joined {
                in_touch_until,
                refused,
            };
            rooms.insert(room.to_owned(), joined);
        } else if let Some((visitor, until)) = parse_refusal(line) {
            refused.insert(visitor, until);
        }
    }
    rooms
}

fn parse_room(line: &str) -> Option<(&str, Timestamp)> {
    let (until, room) = line.strip_prefix("room ")?.split_once(' ')?;
    Some((room, Timestamp(until.parse().ok()?)))
}

fn parse_refusal(line: &str) -> Option<(VisitorId, Timestamp)> {
    let (id, until) = line.strip_prefix("refuses ")?.split_once(' ')?;
    Some((VisitorId(from_hex(id)?), Timestamp(until.parse().ok()?)))
}

fn name_of(id: NodeId) -> String {
    format!("{:016x}", id.0)
}

/// A file that nobody ever sees without its lock.
fn new_file(folder: &Path, id: NodeId) -> io::Result<File> {
    let name = name_of(id);
    let draft = folder.join(format!("{name}.new"));
    let file = File::create_new(&draft)?;
    file.lock()?;
    fs::rename(&draft, folder.join(name))?;
    Ok(file)
}

/// The dead process to which a file belongs; `None` if it lives, or it is no such file.
fn dead_process(path: &Path) -> io::Result<Option<Predecessor>> {
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

    fn enter(folder: &Path, id: u64) -> ProcessFile {
        ProcessFile::enter(folder, NodeId(id)).unwrap()
    }

    #[test]
    fn a_dead_process_vouches_for_its_successor_in_rooms_it_knew() {
        let folder = tempfile::tempdir().unwrap();
        let first = enter(folder.path(), 1);
        let refused = [refusal(VisitorId([7; 16]), Timestamp(900))];
        first.note_joined("shop", Timestamp(50), &[]).unwrap();
        first.note_joined("the other", Timestamp(60), &[]).unwrap();
        first.note_joined("shop", Timestamp(70), &refused).unwrap();
        let beside = enter(folder.path(), 2);
        assert_eq!(beside.predecessors("shop"), Predecessors::default());
        drop((first, beside));
        let next = enter(folder.path(), 3);
        let shop = next.predecessors("shop");
        assert_eq!(shop.in_touch_until, Some(Timestamp(70)));
        assert_eq!(shop.revoked, refused);
        let mut dead = shop.dead;
        dead.sort_unstable();
        assert_eq!(dead, [NodeId(1), NodeId(2)]);
        let in_touch_until = |room| next.predecessors(room).in_touch_until;
        assert_eq!(in_touch_until("the other"), Some(Timestamp(60)));
        assert_eq!(in_touch_until("a third"), None);
        next.forget_predecessors();
        drop(next);
        assert_eq!(
            enter(folder.path(), 4).predecessors("shop").dead,
            [NodeId(3)]
        );
    }

    #[test]
    fn the_file_lags_ten_minutes_behind_the_lease_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let first = enter(folder.path(), 1);
        let mut newest = Timestamp(1_000);
        for _ in 0..100 {
            newest = newest + DurationMs::from_secs(61);
            first.note_joined("shop", newest, &[]).unwrap();
        }
        drop(first);
        let found = enter(folder.path(), 2).predecessors("shop").in_touch_until;
        let found = found.expect("it joined");
        assert!(found <= newest && newest < found + LAG, "{found:?}");
    }

    #[test]
    fn of_two_dead_processes_the_one_that_was_in_touch_last_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (enter(folder.path(), 1), enter(folder.path(), 2));
        first.note_joined("shop", Timestamp(70), &[]).unwrap();
        second.note_joined("shop", Timestamp(50), &[]).unwrap();
        drop((first, second));
        let found = enter(folder.path(), 3).predecessors("shop");
        assert_eq!(found.in_touch_until, Some(Timestamp(70)));
    }

    #[test]
    fn a_process_that_said_goodbye_vouches_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let first = enter(folder.path(), 1);
        first.note_joined("shop", Timestamp(50), &[]).unwrap();
        first.note_joined("other", Timestamp(50), &[]).unwrap();
        first.leave("shop").unwrap();
        drop(first);
        let third = enter(folder.path(), 3);
        assert_eq!(third.predecessors("shop").dead, [NodeId(1)]);
        assert_eq!(third.predecessors("shop").in_touch_until, None);
        assert!(third.predecessors("other").in_touch_until.is_some());
    }

    #[test]
    fn whoever_says_goodbye_takes_the_word_of_those_before_it_along() {
        let folder = tempfile::tempdir().unwrap();
        let first = enter(folder.path(), 1);
        first.note_joined("shop", Timestamp(50), &[]).unwrap();
        first.note_joined("other", Timestamp(60), &[]).unwrap();
        drop(first);
        let second = enter(folder.path(), 2);
        second.leave("shop").unwrap();
        drop(second);
        let third = enter(folder.path(), 3);
        assert_eq!(third.predecessors("shop").in_touch_until, None);
        let other = third.predecessors("other").in_touch_until;
        assert_eq!(other, Some(Timestamp(60)));
        third.forget_predecessors();
        third.leave("other").unwrap();
    }

    #[test]
    fn a_truncated_file_vouches_for_too_little_never_too_much() {
        let whole = format!("refuses {} 5\nroom 9 shop\n", hex(&[7; 16]));
        assert_eq!(parse(&whole)["shop"].refused.len(), 1);
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Rooms::new(), "{length}");
        }
    }

    #[test]
    fn what_is_no_process_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let processes = folder.path().join(FOLDER);
        fs::create_dir_all(&processes).unwrap();
        for name in ["notes.txt", "0000000000000009.new", "xyz"] {
            fs::write(processes.join(name), "room 9 shop\n").unwrap();
        }
        let found = enter(folder.path(), 1).predecessors("shop");
        assert_eq!(found, Predecessors::default());
    }
}
