//! Who is forgotten when, and what happens when the file is full.

use anteroom_counts::lent::Swapped;
use anteroom_counts::shared::{CountsError, chain};
use anteroom_lent::Bounds;
use anteroom_limits::time::{MicroSpan, Micros};

use crate::folder::{Folder, KEPT, must_write, token, write};

/// Ends are rounded up to this.
const ROUNDED: MicroSpan = MicroSpan::from_secs(10);

#[tokio::test]
async fn a_client_is_kept_as_long_as_asked_and_then_gives_way() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    let end = folder.time.now() + KEPT;
    folder.time.set(Micros(end.0 - 1));
    // Whatever is written forgets those whose time is over.
    must_write(&file, 2, 12, b"two").await;
    assert_eq!(token(&file, 1).await, 11);
    folder.time.set(end + ROUNDED);
    must_write(&file, 3, 13, b"three").await;
    assert_eq!(token(&file, 1).await, 0);
    assert_eq!((token(&file, 2).await, token(&file, 3).await), (12, 13));
}

#[tokio::test]
async fn a_client_who_calls_again_is_kept_from_then_on() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    folder.time.set(folder.time.now() + KEPT);
    must_write(&file, 1, 12, b"one").await;
    folder.time.set(folder.time.now() + MicroSpan(KEPT.0 - 1));
    must_write(&file, 2, 13, b"two").await;
    assert_eq!(token(&file, 1).await, 12);
}

#[tokio::test]
async fn a_full_file_forgets_nobody_and_takes_nobody_else_until_time_has_passed() {
    let folder = Folder::new();
    let bounds = Bounds { bytes_max: 10_000 };
    let file = folder.start_with(bounds);
    let value = [7; 866];
    let mut kept = 0;
    for key in 1..=20 {
        match write(&file, key, key, &value).await {
            Ok(swapped) => {
                assert_eq!(swapped, Swapped::Written);
                kept = key;
            }
            Err(error) => {
                assert!(matches!(error, CountsError::Busy { .. }), "{error:?}");
                assert!(chain(&error).contains("it is full"), "{}", chain(&error));
            }
        }
    }
    // A client takes a thousand bytes with what is around it.
    assert_eq!(kept, 10);
    // Who is known goes on, in the room that it has; after a restart too.
    file.close().await;
    let file = folder.start_with(bounds);
    must_write(&file, 1, 101, &value).await;
    assert!(write(&file, 1, 102, &[7; 2_000]).await.is_err());
    assert!(write(&file, 11, 111, &value).await.is_err());
    for key in 2..=kept {
        assert_eq!(token(&file, key).await, key);
    }
    folder.time.set(folder.time.now() + KEPT + ROUNDED);
    for key in 11..=20 {
        must_write(&file, key, key, &value).await;
    }
    assert_eq!(token(&file, 1).await, 0);
    assert!(write(&file, 21, 21, &value).await.is_err());
}

#[tokio::test]
async fn what_is_forgotten_makes_room_for_others_again_and_again() {
    let folder = Folder::new();
    let file = folder.start_with(Bounds { bytes_max: 20_000 });
    for round in 0..30_u128 {
        for key in 0..15 {
            must_write(&file, round * 100 + key, 1, &[1; 900]).await;
        }
        folder.time.set(folder.time.now() + KEPT + ROUNDED);
    }
    file.close().await;
    let bytes = std::fs::metadata(folder.file()).unwrap().len();
    assert!(bytes < 4 << 20, "{bytes}");
}
