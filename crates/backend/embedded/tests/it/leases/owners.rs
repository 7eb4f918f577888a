//! Ownership of the file: one process at a time.

use std::sync::Arc;
use std::time::Duration;

use anteroom_embedded::leases::LeaseFile;
use anteroom_limit_store::shared::{CountsError, chain};
use tokio::task::JoinHandle;

use crate::leases::folder::{Folder, load, must_write, token};

#[tokio::test]
async fn a_successor_gets_the_file_when_its_predecessor_closes_it() {
    let folder = Folder::new();
    let (first, second) = (folder.start(), folder.start());
    must_write(&first, 1, 11, b"one").await;
    let error = load(&second, 1).await.unwrap_err();
    assert!(matches!(error, CountsError::Unreachable { .. }));
    assert!(chain(&error).contains("another process has it"));
    must_write(&first, 1, 12, b"two").await;
    let identity = load(&first, 1).await.unwrap().identity;
    first.close().await;
    assert_eq!(token(&second, 1).await, 12);
    assert_eq!(load(&second, 1).await.unwrap().identity, identity);
    let closed = load(&first, 1).await.unwrap_err();
    assert!(
        chain(&closed).contains("it is closed"),
        "{}",
        chain(&closed)
    );
    // A second close does no harm.
    first.close().await;
}

#[tokio::test]
async fn a_read_waits_while_a_predecessor_ends() {
    let folder = Folder::new();
    let (first, second) = (folder.start(), folder.start());
    must_write(&first, 1, 11, b"one").await;
    let (loaded, ()) = tokio::join!(load(&second, 1), async {
        // The successor's first attempt has failed by then.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        first.close().await;
    });
    assert_eq!(loaded.unwrap().expected().client.0, 11);
}

/// File of `first`, which `second` waits to open.
struct Contested {
    first: LeaseFile,
    second: Arc<LeaseFile>,
    opening: JoinHandle<Result<(), CountsError>>,
}

async fn contested(folder: &Folder) -> Contested {
    let (first, second) = (folder.start(), Arc::new(folder.start()));
    must_write(&first, 1, 11, b"one").await;
    let opening = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.open().await }
    });
    Contested {
        first,
        second,
        opening,
    }
}

#[tokio::test(start_paused = true)]
async fn open_waits_as_long_as_a_predecessor_has_the_file() {
    let folder = Folder::new();
    let Contested {
        first,
        second,
        opening,
    } = contested(&folder).await;
    tokio::time::sleep(Duration::from_secs(30)).await; // tidy: paused time
    assert!(!opening.is_finished());
    first.close().await;
    opening.await.unwrap().unwrap();
    let error = load(&folder.start(), 1).await.unwrap_err();
    assert!(chain(&error).contains("another process has it"));
    assert_eq!(token(&second, 1).await, 11);
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_a_pending_open() {
    let folder = Folder::new();
    let Contested {
        first: _first,
        second,
        opening,
    } = contested(&folder).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // tidy: paused time
    second.close().await;
    let closed = opening.await.unwrap().unwrap_err();
    assert!(
        chain(&closed).contains("it is closed"),
        "{}",
        chain(&closed)
    );
}

#[tokio::test]
async fn a_close_without_any_operation_creates_no_file() {
    let folder = Folder::new();
    let file = folder.start();
    file.close().await;
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    let closed = load(&file, 1).await.unwrap_err();
    assert!(
        chain(&closed).contains("it is closed"),
        "{}",
        chain(&closed)
    );
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[tokio::test]
async fn every_process_sees_the_writes_of_its_predecessors() {
    let folder = Folder::new();
    for token_now in 11..15 {
        let file = folder.start();
        assert_eq!(
            token(&file, 1).await,
            if token_now == 11 { 0 } else { token_now - 1 }
        );
        must_write(&file, 1, token_now, b"one").await;
        file.close().await;
    }
    assert_eq!(folder.names(), ["lent.redb"]);
}

#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    must_write(&folder.start(), 1, 11, b"one").await;
    let mode = std::fs::metadata(folder.file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
