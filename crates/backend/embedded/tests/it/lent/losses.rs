//! What is believed after files were deleted, damaged, copied back, or written by a later version.

use std::fs;
use std::path::PathBuf;

use anteroom_embedded::faults::Faults;
use anteroom_embedded::leases::LeaseFile;
use anteroom_limit::lending::epoch::Before;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lent::Loaded;
use anteroom_limit_store::shared::{CountsError, chain};
use redb::{Database, TableDefinition};

use crate::lent::folder::{BEGIN, Folder, before, epoch, load, must_write, token, write};

#[tokio::test]
async fn a_first_start_knows_nothing_and_a_restart_knows_what_was() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    let first = load(&file, 1).await.unwrap();
    assert_eq!(before(&first, None), Before::Nothing);
    file.close().await;
    let again = folder.look(1).await.unwrap();
    assert_eq!(before(&again, Some(epoch(&first).id)), Before::Nothing);
    assert_eq!(again, first);
}

#[tokio::test]
async fn a_folder_that_is_deleted_under_the_process_is_a_loss() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    let first = load(&file, 1).await.unwrap();
    fs::remove_dir_all(folder.file().parent().unwrap()).unwrap();
    let then = load(&file, 1).await.unwrap();
    assert_eq!(then.client, None);
    assert_ne!(then.identity, first.identity);
    assert_eq!(before(&then, None), Before::Lost);
    assert_eq!(before(&then, Some(epoch(&first).id)), Before::Lost);
    must_write(&file, 1, 12, b"two").await;
    file.close().await;
    assert_eq!(folder.look(1).await.unwrap().expected().client.0, 12);
}

/// Nobody may have asked since: whoever closes it says that it is gone, for the next process cannot
/// know.
#[tokio::test]
async fn a_file_deleted_just_before_it_is_closed_is_a_loss() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    fs::remove_file(folder.file()).unwrap();
    file.close().await;
    let then = folder.look(1).await.unwrap();
    assert_eq!(before(&then, None), Before::Lost);
}

#[tokio::test]
async fn a_file_that_is_deleted_while_nobody_runs_is_a_first_start() {
    let folder = Folder::new();
    let first = folder.look(1).await.unwrap();
    fs::remove_file(folder.file()).unwrap();
    let then = folder.look(1).await.unwrap();
    assert_ne!(then.identity, first.identity);
    assert_eq!(before(&then, None), Before::Nothing);
}

/// A file that was made here, and what stood in it. It can be written over in place, again and
/// again: neither its number nor its birth says then that anything was done to it.
struct Made {
    folder: Folder,
    whole: Vec<u8>,
}

/// What came of bytes that were written over it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Found {
    /// All counts as spent.
    Lost { was_moved: bool },
    /// Every client as it was written.
    AllThere,
}

impl Made {
    /// With a few clients.
    async fn new() -> Self {
        let folder = Folder::new();
        let file = folder.start();
        for key in 1..=20 {
            must_write(&file, key, key, &[7; 300]).await;
        }
        file.close().await;
        let whole = fs::read(folder.file()).unwrap();
        Self::of(folder, whole)
    }

    fn of(folder: Folder, whole: Vec<u8>) -> Self {
        // So it stays when another takes its place.
        fs::hard_link(folder.file(), Self::itself(&folder)).unwrap();
        Self { folder, whole }
    }

    fn itself(folder: &Folder) -> PathBuf {
        folder.path("../itself")
    }

    /// What a process finds that starts when these bytes stand in the file; nobody else does.
    async fn open_with(&self, bytes: &[u8]) -> (LeaseFile, Result<Loaded, CountsError>) {
        let names = self.folder.names();
        let names = names.iter().filter(|name| name.starts_with("lent"));
        names.for_each(|name| fs::remove_file(self.folder.path(name)).unwrap());
        fs::hard_link(Self::itself(&self.folder), self.folder.file()).unwrap();
        // Cut off and written: it stays the same file.
        fs::write(self.folder.file(), bytes).unwrap();
        let file = self.folder.start();
        let loaded = load(&file, 1).await;
        (file, loaded)
    }

    /// Opens it with a few bytes changed: all counts as spent, or nothing was lost of it.
    async fn check(&self, damaged: &[u8], what: &str) -> Found {
        let (file, loaded) = self.open_with(damaged).await;
        let loaded = loaded.unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
        let was_moved = self.folder.names() == ["lent.redb", "lent.redb.damaged"];
        if was_moved {
            assert_eq!(loaded.client, None, "{what}");
            let aside = fs::read(self.folder.path("lent.redb.damaged")).unwrap();
            assert_eq!(aside.len(), damaged.len(), "{what}");
        }
        if before(&loaded, None) == Before::Lost {
            must_write(&file, 99, 99, b"new").await;
            file.close().await;
            return Found::Lost { was_moved };
        }
        // What was damaged is not in use.
        assert!(!was_moved, "{what}");
        for key in 1..=20 {
            let kept = load(&file, key).await.unwrap().client.expect(what);
            assert_eq!((kept.token.0, kept.value), (key, vec![7; 300]), "{what}");
        }
        file.close().await;
        Found::AllThere
    }
}

const MOVED: Found = Found::Lost { was_moved: true };

#[tokio::test]
async fn what_was_written_here_is_believed_if_nothing_of_it_has_changed() {
    let made = Made::new().await;
    // Nothing else than damage is what the tests below find.
    let found = made.check(&made.whole, "as it was").await;
    assert_eq!(found, Found::AllThere);
}

#[tokio::test]
async fn a_truncated_file_is_moved_aside_and_all_counts_as_spent() {
    let made = Made::new().await;
    let whole = &made.whole;
    let steps = (0..whole.len()).step_by(whole.len() / 60);
    for len in (0..128).step_by(9).chain(steps) {
        made.check(&whole[..len], &format!("{len} bytes")).await;
    }
    assert_eq!(made.check(&whole[..0], "nothing").await, MOVED);
    assert_eq!(made.check(&whole[..4_000], "a page").await, MOVED);
}

#[tokio::test]
async fn what_rotted_is_noticed_when_the_file_is_opened() {
    let made = Made::new().await;
    let whole = &made.whole;
    for (bytes, what) in [
        (&b"nonsense"[..], "nonsense"),
        (&[0; 100_000], "zeros"),
        (&[0xFF; 100_000], "ones"),
    ] {
        assert_eq!(made.check(bytes, what).await, MOVED, "{what}");
    }
    let mut losses = 0;
    for at in (0..whole.len()).step_by(whole.len() / 80) {
        let mut damaged = whole.clone();
        let end = damaged.len().min(at + 64);
        damaged[at..end].fill(0xA5);
        let found = made.check(&damaged, &format!("from {at}")).await;
        losses += usize::from(found != Found::AllThere);
    }
    assert!(losses > 0, "nothing is shown by these");
}

/// Not all that is in a file is in use, but what clients have spent is: one bit of it is missed.
#[tokio::test]
async fn one_flipped_bit_of_a_spent_count_makes_all_count_as_spent() {
    let made = Made::new().await;
    let mut losses = 0;
    for at in values(&made.whole, 7) {
        let mut damaged = made.whole.clone();
        damaged[at + 100] ^= 1;
        let found = made.check(&damaged, &format!("one bit at {at}")).await;
        losses += usize::from(found != Found::AllThere);
    }
    // Older writes may lie there too, of which nobody needs anything any more.
    assert!(losses >= 20, "{losses}");
}

/// Where three hundred bytes of this kind lie.
fn values(whole: &[u8], byte: u8) -> Vec<usize> {
    let starts = 0..whole.len() - 300;
    starts
        .filter(|at| whole[*at..at + 300] == [byte; 300])
        .collect()
}

/// Nobody may take it for a write that was under way when the process ended: whoever waited was
/// told that it is written.
#[tokio::test]
async fn one_bit_of_the_last_write_is_missed_after_an_unclean_end() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, &[7; 300]).await;
    must_write(&file, 1, 12, &[8; 300]).await;
    // As a process leaves it that is killed now.
    let whole = fs::read(folder.file()).unwrap();
    file.close().await;
    let made = Made::of(folder, whole);
    let (file, loaded) = made.open_with(&made.whole).await;
    let loaded = loaded.unwrap();
    assert_eq!(before(&loaded, None), Before::Nothing);
    assert_eq!(loaded.expected().client.0, 12);
    file.close().await;
    let last = values(&made.whole, 8);
    assert!(!last.is_empty());
    for at in last {
        let mut damaged = made.whole.clone();
        damaged[at + 100] ^= 1;
        let (file, loaded) = made.open_with(&damaged).await;
        assert_eq!(before(&loaded.unwrap(), None), Before::Lost, "at {at}");
        file.close().await;
    }
}

#[tokio::test]
async fn a_restored_copy_is_a_loss_and_its_identity_says_so() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    let first = load(&file, 1).await.unwrap();
    file.close().await;
    fs::copy(folder.file(), folder.path("copy")).unwrap();
    let file = folder.start();
    must_write(&file, 1, 12, b"two").await;
    file.close().await;
    fs::rename(folder.path("copy"), folder.file()).unwrap();
    let then = folder.look(1).await.unwrap();
    assert_eq!(
        then.expected().client.0,
        11,
        "what is there is not thrown away"
    );
    assert_ne!(then.identity, first.identity);
    assert_eq!(before(&then, None), Before::Lost);
    // It is one loss, and not one with each start.
    assert_eq!(folder.look(1).await.unwrap().identity, then.identity);
}

#[tokio::test]
async fn what_a_later_version_wrote_is_left_alone() {
    let folder = Folder::new();
    folder.look(1).await.unwrap();
    let database = Database::create(folder.file()).unwrap();
    let write = database.begin_write().unwrap();
    let about: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
    write.open_table(about).unwrap().insert("form", 2).unwrap();
    write.commit().unwrap();
    drop(database);
    let error = folder.look(1).await.unwrap_err();
    assert!(matches!(error, CountsError::Refused { .. }), "{error:?}");
    assert!(
        chain(&error).contains("a later version"),
        "{}",
        chain(&error)
    );
    assert_eq!(folder.names(), ["lent.redb"]);
}

#[tokio::test]
async fn a_full_disk_lends_nothing_until_there_is_room() {
    let folder = Folder::new();
    let faults = Faults::default();
    let (on, first) = (faults.clone(), folder.start());
    must_write(&first, 1, 11, b"one").await;
    let before = load(&first, 1).await.unwrap();
    first.close().await;
    let file = folder.start_on(move |file| on.open_file(file));
    must_write(&file, 1, 12, b"two").await;
    faults.set_full(true);
    for _ in 0..3 {
        let error = write(&file, 1, 13, &[9; 5_000]).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }
    faults.set_full(false);
    let there = token(&file, 1).await;
    assert!([12, 13].contains(&there), "{there}");
    must_write(&file, 1, 14, b"four").await;
    file.close().await;
    let then = folder.look(1).await.unwrap();
    assert_eq!(then.expected().client.0, 14);
    assert_eq!(
        (then.identity, &then.epoch),
        (before.identity, &before.epoch)
    );
    assert_eq!(folder.names(), ["lent.redb"]);
}

#[tokio::test]
async fn a_damaged_file_on_a_full_disk_is_a_loss_once_writable() {
    let folder = Folder::new();
    folder.look(1).await.unwrap();
    fs::write(folder.file(), "nonsense").unwrap();
    let faults = Faults::default();
    let on = faults.clone();
    let file = folder.start_on(move |file| on.open_file(file));
    faults.set_full(true);
    for _ in 0..2 {
        load(&file, 1).await.unwrap_err();
    }
    // As if it were killed now, for what follows is another life.
    file.close().await;
    let then = folder.look(1).await.unwrap();
    assert_eq!(before(&then, None), Before::Lost);
    assert_eq!(folder.names(), ["lent.redb", "lent.redb.damaged"]);
}

#[tokio::test]
async fn the_clock_goes_on_where_the_file_stopped() {
    let folder = Folder::new();
    let later = BEGIN + DurationUs::from_secs(3_600);
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    folder.time.set(later);
    must_write(&file, 1, 12, b"two").await;
    file.close().await;
    folder.time.set(TimestampUs(BEGIN.0 - 5));
    assert_eq!(folder.look(1).await.unwrap().now, later);
}
