//! Tests of files that change while the service runs.

use std::fs;

use anteroom_testkit::eventually;

use crate::service::support::{Grpc, Stage, hits, request_of};

fn file(requests: u32, more: &str) -> String {
    format!(
        "domain: d\ndescriptors:\n\
         - {{key: k, rate_limit: {{unit: day, requests_per_unit: {requests}{more}}}}}\n"
    )
}

fn replace(stage: &Stage, text: &str) {
    let new = stage.folder.path().join("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, stage.folder.path().join("limits.yaml")).unwrap();
}

async fn left(client: &mut Grpc) -> u32 {
    let mut request = request_of(&["k"]);
    request.descriptors[0].hits_addend = hits(0);
    client.outcome(&request).await.1[0].1
}

#[tokio::test]
async fn changed_files_apply_at_once_and_counts_stay() {
    let stage = Stage::new(&file(10, "")).await;
    let mut client = stage.client().await;
    for _ in 0..4 {
        assert!(client.outcome(&request_of(&["k"])).await.0);
    }
    replace(&stage, &file(20, ""));
    eventually("the new limit holds", async || {
        stage.service.stats().loads == 2
    })
    .await;
    assert_eq!(left(&mut client).await, 16);

    // With another algorithm counts start anew.
    replace(&stage, &file(20, ", algorithm: sliding-window"));
    eventually("the new algorithm holds", async || {
        stage.service.stats().loads == 3
    })
    .await;
    assert_eq!(left(&mut client).await, 20);
}

#[tokio::test]
async fn a_mistake_in_one_file_changes_nothing_in_any() {
    let stage = Stage::new(&file(10, "")).await;
    let mut client = stage.client().await;
    let other = stage.folder.path().join("other.yaml");
    fs::write(
        &other,
        file(3, ", burst: 4").replace("domain: d", "domain: e"),
    )
    .unwrap();
    replace(&stage, &file(20, ""));
    eventually("the mistake is reported", async || {
        stage.service.stats().failed_loads > 0
    })
    .await;
    assert_eq!(stage.service.stats().loads, 1);
    assert_eq!(left(&mut client).await, 10);
    fs::remove_file(other).unwrap();
    eventually("the valid file applies", async || {
        stage.service.stats().loads == 2
    })
    .await;
    assert_eq!(left(&mut client).await, 20);
}

#[tokio::test]
async fn a_missing_folder_keeps_the_old_limits() {
    let stage = Stage::new(&file(10, "")).await;
    let mut client = stage.client().await;
    let moved = stage.folder.path().with_extension("away");
    fs::rename(stage.folder.path(), &moved).unwrap();
    eventually("it is reported", async || {
        stage.service.stats().failed_loads > 0
    })
    .await;
    assert_eq!(left(&mut client).await, 10);
    fs::rename(&moved, stage.folder.path()).unwrap();
    eventually("it is read again", async || {
        stage.service.stats().loads == 2
    })
    .await;
}
