//! What is believed after files were deleted, damaged, copied back, or written by a later version.

use std::fs;

use anteroom_counts::shared::{CountsError, chain};
use anteroom_limits::lending::epoch::Before;
use anteroom_limits::time::{MicroSpan, Micros};
use anteroom_store::faults::Faults;
use redb::{Database, TableDefinition};

use crate::folder::{BEGIN, Folder, before, epoch, load, must_write, token, write};

#[tokio::test]
async fn a_first_start_knows_that_nothing_was_before_and_a_restart_knows_what_was() {
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

#[tokio::test]
async fn a_file_that_is_deleted_while_nobody_runs_is_a_first_start() {
    let folder = Folder::new();
    let first = folder.look(1).await.unwrap();
    fs::remove_file(folder.file()).unwrap();
    let then = folder.look(1).await.unwrap();
    assert_ne!(then.identity, first.identity);
    assert_eq!(before(&then, None), Before::Nothing);
}

/// The bytes of a file with a few clients.
async fn bytes_of_some(folder: &Folder) -> Vec<u8> {
    let file = folder.start();
    for key in 1..=20 {
        must_write(&file, key, key, &[7; 300]).await;
    }
    file.close().await;
    fs::read(folder.file()).unwrap()
}

/// Opens a damaged file: all counts as spent, or nothing was lost of it. Returns whether it was moved aside.
async fn check_damaged(damaged: &[u8], what: &str) -> bool {
    let folder = Folder::new();
    let file = folder.start();
    fs::write(folder.file(), damaged).unwrap();
    let loaded = load(&file, 1).await;
    let loaded = loaded.unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
    let was_moved = folder.names() == ["lent.redb", "lent.redb.damaged"];
    if before(&loaded, None) == Before::Lost {
        must_write(&file, 99, 99, b"new").await;
    } else {
        // What was damaged is not in use.
        assert!(!was_moved, "{what}");
        for key in 1..=20 {
            let kept = load(&file, key).await.unwrap().client.expect(what);
            assert_eq!((kept.token.0, kept.value), (key, vec![7; 300]), "{what}");
        }
    }
    if was_moved {
        assert_eq!(loaded.client, None, "{what}");
        let aside = fs::read(folder.path("lent.redb.damaged")).unwrap();
        assert_eq!(aside.len(), damaged.len(), "{what}");
    }
    was_moved
}

#[tokio::test]
async fn a_file_that_was_cut_off_anywhere_is_moved_aside_and_all_counts_as_spent() {
    let whole = bytes_of_some(&Folder::new()).await;
    let steps = (0..whole.len()).step_by(whole.len() / 60);
    for len in (0..128).step_by(9).chain(steps) {
        check_damaged(&whole[..len], &format!("{len} bytes")).await;
    }
    assert!(check_damaged(&whole[..0], "nothing").await);
    assert!(check_damaged(&whole[..4_000], "a page").await);
}

#[tokio::test]
async fn what_rotted_is_noticed_when_the_file_is_opened() {
    let whole = bytes_of_some(&Folder::new()).await;
    assert!(check_damaged(b"nonsense", "nonsense").await);
    assert!(check_damaged(&[0; 100_000], "zeros").await);
    assert!(check_damaged(&[0xFF; 100_000], "ones").await);
    for at in (0..whole.len()).step_by(whole.len() / 80) {
        let mut damaged = whole.clone();
        let end = damaged.len().min(at + 64);
        damaged[at..end].fill(0xA5);
        check_damaged(&damaged, &format!("from {at}")).await;
    }
}

/// Not all that is in a file is in use, but what clients have spent is: one bit of it is missed.
#[tokio::test]
async fn one_bit_of_what_a_client_has_spent_makes_all_count_as_spent() {
    let whole = bytes_of_some(&Folder::new()).await;
    let values: Vec<usize> = (0..whole.len() - 300)
        .filter(|at| whole[*at..at + 300] == [7; 300])
        .collect();
    let mut losses = 0;
    for at in values {
        let mut damaged = whole.clone();
        damaged[at + 100] ^= 1;
        let folder = Folder::new();
        let file = folder.start();
        fs::write(folder.file(), damaged).unwrap();
        let loaded = load(&file, 1).await.unwrap();
        losses += usize::from(before(&loaded, None) == Before::Lost);
    }
    // Older writes may lie there too, of which nobody needs anything any more.
    assert!(losses >= 20, "{losses}");
}

#[tokio::test]
async fn a_copy_that_was_put_back_is_a_loss_and_so_says_its_identity() {
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
async fn a_full_disk_lends_nothing_and_is_used_again_when_there_is_room() {
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
async fn a_damaged_file_on_a_full_disk_is_a_loss_when_there_is_room_again() {
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
    let later = BEGIN + MicroSpan::from_secs(3_600);
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    folder.time.set(later);
    must_write(&file, 1, 12, b"two").await;
    file.close().await;
    folder.time.set(Micros(BEGIN.0 - 5));
    assert_eq!(folder.look(1).await.unwrap().now, later);
}
