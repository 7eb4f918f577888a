//! Files that were deleted, damaged, restored from a copy, or written by a later version.

use std::fs;
use std::path::PathBuf;

use anteroom_embedded::faults::Faults;
use anteroom_embedded::leases::LeaseFile;
use anteroom_limit::leases::epoch::Before;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::lease_store::Loaded;
use anteroom_limit_store::shared::{CountsError, chain};
use redb::{Database, TableDefinition};

use crate::leases::folder::{BEGIN, Folder, before, epoch, load, must_write, token, write};

#[tokio::test]
async fn a_first_start_has_no_loss_and_a_restart_has_all_records() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    let first = load(&file, 1).await.unwrap();
    assert_eq!(before(&first, None), Before::Nothing);
    file.close().await;
    let again = folder.load_once(1).await.unwrap();
    assert_eq!(before(&again, Some(epoch(&first).id)), Before::Nothing);
    assert_eq!(again, first);
}

#[tokio::test]
async fn a_folder_deleted_under_the_process_is_a_loss() {
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
    assert_eq!(folder.load_once(1).await.unwrap().expected().client.0, 12);
}

/// The close itself must notice the deletion, because the next process cannot.
#[tokio::test]
async fn a_file_deleted_just_before_its_close_is_a_loss() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    fs::remove_file(folder.file()).unwrap();
    file.close().await;
    let then = folder.load_once(1).await.unwrap();
    assert_eq!(before(&then, None), Before::Lost);
}

#[tokio::test]
async fn a_file_deleted_while_no_process_runs_is_a_first_start() {
    let folder = Folder::new();
    let first = folder.load_once(1).await.unwrap();
    fs::remove_file(folder.file()).unwrap();
    let then = folder.load_once(1).await.unwrap();
    assert_ne!(then.identity, first.identity);
    assert_eq!(before(&then, None), Before::Nothing);
}

/// File with its original content. Tests overwrite it in place, so that its inode and creation time
/// stay the same.
struct Made {
    folder: Folder,
    whole: Vec<u8>,
}

/// Result of opening an overwritten file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Found {
    /// All clients count as having spent everything.
    Lost { was_moved: bool },
    /// All clients have their records.
    Intact,
}

impl Made {
    /// Creates a file with a few clients.
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
        // The link keeps the file when another replaces it.
        fs::hard_link(folder.file(), Self::original(&folder)).unwrap();
        Self { folder, whole }
    }

    fn original(folder: &Folder) -> PathBuf {
        folder.path("../original")
    }

    /// Opens the file with these bytes as its content.
    async fn open_with(&self, bytes: &[u8]) -> (LeaseFile, Result<Loaded, CountsError>) {
        let names = self.folder.names();
        let names = names.iter().filter(|name| name.starts_with("lent"));
        names.for_each(|name| fs::remove_file(self.folder.path(name)).unwrap());
        fs::hard_link(Self::original(&self.folder), self.folder.file()).unwrap();
        // Truncated and written in place, it stays the same file.
        fs::write(self.folder.file(), bytes).unwrap();
        let file = self.folder.start();
        let loaded = load(&file, 1).await;
        (file, loaded)
    }

    /// Opens the file with changed bytes, and asserts that everything counts as spent or nothing is
    /// lost.
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
        // The damaged bytes are not in use.
        assert!(!was_moved, "{what}");
        for key in 1..=20 {
            let kept = load(&file, key).await.unwrap().client.expect(what);
            assert_eq!((kept.token.0, kept.value), (key, vec![7; 300]), "{what}");
        }
        file.close().await;
        Found::Intact
    }
}

const MOVED: Found = Found::Lost { was_moved: true };

#[tokio::test]
async fn an_unchanged_file_is_trusted() {
    let made = Made::new().await;
    // So the tests below find damage, and nothing else.
    let found = made.check(&made.whole, "as it was").await;
    assert_eq!(found, Found::Intact);
}

#[tokio::test]
async fn a_truncated_file_is_moved_aside_and_everything_counts_as_spent() {
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
async fn damaged_bytes_are_noticed_when_the_file_is_opened() {
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
        losses += usize::from(found != Found::Intact);
    }
    assert!(losses > 0, "no change hit a used byte");
}

/// Parts of a file are unused, but not what clients have spent.
#[tokio::test]
async fn one_flipped_bit_of_a_record_makes_everything_count_as_spent() {
    let made = Made::new().await;
    let mut losses = 0;
    for at in values(&made.whole, 7) {
        let mut damaged = made.whole.clone();
        damaged[at + 100] ^= 1;
        let found = made.check(&damaged, &format!("one bit at {at}")).await;
        losses += usize::from(found != Found::Intact);
    }
    // The file may contain older writes as well, which are unused.
    assert!(losses >= 20, "{losses}");
}

/// Returns the positions of three hundred equal bytes.
fn values(whole: &[u8], byte: u8) -> Vec<usize> {
    let starts = 0..whole.len() - 300;
    starts
        .filter(|at| whole[*at..at + 300] == [byte; 300])
        .collect()
}

/// A damaged confirmed write must not count as one that was in flight at the crash.
#[tokio::test]
async fn one_flipped_bit_of_the_last_write_is_noticed_after_a_crash() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, &[7; 300]).await;
    must_write(&file, 1, 12, &[8; 300]).await;
    // The state of the file if the process were killed now.
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
async fn a_restored_copy_is_a_loss_with_a_new_identity() {
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
    let then = folder.load_once(1).await.unwrap();
    assert_eq!(
        then.expected().client.0,
        11,
        "the records of the copy are kept"
    );
    assert_ne!(then.identity, first.identity);
    assert_eq!(before(&then, None), Before::Lost);
    // It is one loss, not one with each start.
    assert_eq!(folder.load_once(1).await.unwrap().identity, then.identity);
}

#[tokio::test]
async fn a_file_of_a_later_version_is_left_alone() {
    let folder = Folder::new();
    folder.load_once(1).await.unwrap();
    let database = Database::create(folder.file()).unwrap();
    let write = database.begin_write().unwrap();
    let about: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
    write.open_table(about).unwrap().insert("form", 2).unwrap();
    write.commit().unwrap();
    drop(database);
    let error = folder.load_once(1).await.unwrap_err();
    assert!(matches!(error, CountsError::Rejected { .. }), "{error:?}");
    assert!(
        chain(&error).contains("a later version"),
        "{}",
        chain(&error)
    );
    assert_eq!(folder.names(), ["lent.redb"]);
}

#[tokio::test]
async fn a_full_disk_fails_writes_until_there_is_space() {
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
    let present = token(&file, 1).await;
    assert!([12, 13].contains(&present), "{present}");
    must_write(&file, 1, 14, b"four").await;
    file.close().await;
    let then = folder.load_once(1).await.unwrap();
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
    folder.load_once(1).await.unwrap();
    fs::write(folder.file(), "nonsense").unwrap();
    let faults = Faults::default();
    let on = faults.clone();
    let file = folder.start_on(move |file| on.open_file(file));
    faults.set_full(true);
    for _ in 0..2 {
        load(&file, 1).await.unwrap_err();
    }
    // Another process starts afterwards.
    file.close().await;
    let then = folder.load_once(1).await.unwrap();
    assert_eq!(before(&then, None), Before::Lost);
    assert_eq!(folder.names(), ["lent.redb", "lent.redb.damaged"]);
}

#[tokio::test]
async fn the_clock_never_falls_behind_the_file() {
    let folder = Folder::new();
    let later = BEGIN + DurationUs::from_secs(3_600);
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    folder.time.set(later);
    must_write(&file, 1, 12, b"two").await;
    file.close().await;
    folder.time.set(TimestampUs(BEGIN.0 - 5));
    assert_eq!(folder.load_once(1).await.unwrap().now, later);
}
