//! Removal of clients, and a full file.

use std::sync::Arc;

use anteroom_embedded::leases::Bounds;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::lease_store::Swapped;
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _, chain};

use crate::leases::folder::{Folder, KEPT, must_write, token, write};

/// Unit to which ends are rounded up.
const ROUNDED: DurationUs = DurationUs::from_secs(10);

#[tokio::test]
async fn a_client_is_kept_until_its_end_and_then_removed() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    let end = folder.time.now() + KEPT;
    folder.time.set(TimestampUs(end.0 - 1));
    // Every write removes clients whose records have ended.
    must_write(&file, 2, 12, b"two").await;
    assert_eq!(token(&file, 1).await, 11);
    folder.time.set(end + ROUNDED);
    must_write(&file, 3, 13, b"three").await;
    assert_eq!(token(&file, 1).await, 0);
    assert_eq!((token(&file, 2).await, token(&file, 3).await), (12, 13));
}

#[tokio::test]
async fn another_write_extends_a_clients_record() {
    let folder = Folder::new();
    let file = folder.start();
    must_write(&file, 1, 11, b"one").await;
    folder.time.set(folder.time.now() + KEPT);
    must_write(&file, 1, 12, b"one").await;
    folder.time.set(folder.time.now() + DurationUs(KEPT.0 - 1));
    must_write(&file, 2, 13, b"two").await;
    assert_eq!(token(&file, 1).await, 12);
}

#[tokio::test]
async fn a_full_file_removes_nobody_and_rejects_new_clients() {
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
    // A client takes a thousand bytes with its overhead, and an eighth is reserved for known ones.
    assert_eq!(kept, 8);
    // Known clients can still write, after a restart as well.
    file.close().await;
    let file = folder.start_with(bounds);
    must_write(&file, 1, 101, &value).await;
    must_write(&file, 1, 102, &[7; 2_000]).await;
    assert!(write(&file, 11, 111, &[7; 1]).await.is_err());
    // Records grow only while there is space.
    assert!(write(&file, 2, 112, &[7; 2_000]).await.is_err());
    for key in 2..=kept {
        assert_eq!(token(&file, key).await, key);
    }
    folder.time.set(folder.time.now() + KEPT + ROUNDED);
    for key in 11..=18 {
        must_write(&file, key, key, &value).await;
    }
    assert_eq!(token(&file, 1).await, 0);
    assert!(write(&file, 21, 21, &value).await.is_err());
}

/// Acquires `cost` for a client of a limit of a thousand requests a minute.
async fn acquire(node: &LeasedCounts, key: u128, cost: u32) -> Result<Verdict, CountsError> {
    let rate = Rate::new(1_000, DurationUs::from_secs(60)).unwrap();
    let request = SharedAcquire {
        limit: "api",
        policy: &Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
        key: ClientKey(key),
        cost: Cost::take(cost),
    };
    Ok(node.acquire(&[request]).await?[0])
}

#[tokio::test]
async fn new_clients_of_a_full_file_do_not_make_it_unavailable() {
    let folder = Folder::new();
    let bounds = Bounds { bytes_max: 2_000 };
    let file = Arc::new(folder.start_with(bounds));
    let clock = Arc::new(folder.time.clone());
    let node = LeasedCounts::with_clock(file, Settings::default(), clock).unwrap();
    let (mut known, mut rejected) = (0, 0);
    for key in 1..=20 {
        match acquire(&node, key, 1).await {
            Ok(verdict) => {
                assert!(verdict.is_allowed());
                known += 1;
            }
            Err(error) => {
                assert!(matches!(error, CountsError::Busy { .. }), "{error:?}");
                assert!(chain(&error).contains("it is full"), "{}", chain(&error));
                assert!(!node.is_unavailable("api", ClientKey(key)));
                rejected += 1;
            }
        }
    }
    // More failures than make a store count as unavailable.
    assert!(known > 3 && rejected > 3, "{known}, {rejected}");
    for key in 1..=known {
        let requests = node.stats().requests;
        // More than the node's lease has.
        let verdict = acquire(&node, key, 200).await.unwrap();
        assert!(verdict.is_allowed(), "client {key}");
        assert!(
            node.stats().requests > requests,
            "client {key} needed a request"
        );
    }
}

#[tokio::test]
async fn removed_clients_make_room_for_others() {
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
