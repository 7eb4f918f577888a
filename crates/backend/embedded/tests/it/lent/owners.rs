//! One process at a time has the file.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit_store::shared::{CountsError, chain};

use crate::lent::folder::{Folder, load, must_write, token};

#[tokio::test]
async fn a_successor_takes_over_when_its_predecessor_lets_go() {
    let folder = Folder::new();
    let (first, second) = (folder.start(), folder.start());
    must_write(&first, 1, 11, b"one").await;
    let refused = load(&second, 1).await.unwrap_err();
    assert!(matches!(refused, CountsError::Unreachable { .. }));
    assert!(chain(&refused).contains("another process has it"));
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
    // Again, as whoever is told twice to end.
    first.close().await;
}

#[tokio::test]
async fn whoever_asks_while_a_predecessor_ends_is_answered_when_it_has() {
    let folder = Folder::new();
    let (first, second) = (folder.start(), folder.start());
    must_write(&first, 1, 11, b"one").await;
    let (loaded, ()) = tokio::join!(load(&second, 1), async {
        // The successor's first try has met its predecessor by then.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        first.close().await;
    });
    assert_eq!(loaded.unwrap().expected().client.0, 11);
}

#[tokio::test(start_paused = true)]
async fn an_early_opener_waits_as_long_as_its_predecessor_has_the_file() {
    let folder = Folder::new();
    let (first, second) = (folder.start(), Arc::new(folder.start()));
    must_write(&first, 1, 11, b"one").await;
    let opening = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.open().await }
    });
    tokio::time::sleep(Duration::from_secs(30)).await; // tidy: paused time
    assert!(!opening.is_finished());
    first.close().await;
    opening.await.unwrap().unwrap();
    let refused = load(&folder.start(), 1).await.unwrap_err();
    assert!(chain(&refused).contains("another process has it"));
    assert_eq!(token(&second, 1).await, 11);
}

#[tokio::test(start_paused = true)]
async fn whoever_closes_it_waits_for_it_no_longer() {
    let folder = Folder::new();
    let (first, second) = (folder.start(), Arc::new(folder.start()));
    must_write(&first, 1, 11, b"one").await;
    let opening = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.open().await }
    });
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
async fn one_that_nobody_asked_makes_no_file_when_it_is_closed() {
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
async fn a_process_that_was_away_has_what_came_meanwhile() {
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
async fn only_its_owner_reads_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    must_write(&folder.start(), 1, 11, b"one").await;
    let mode = std::fs::metadata(folder.file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
