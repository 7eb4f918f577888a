//! Files that change while the service runs.

use std::fs;

use anteroom_testkit::eventually;

use crate::service::support::{Grpc, Stage, hits, question};

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
    let mut request = question(&["k"]);
    request.descriptors[0].hits_addend = hits(0);
    client.told(&request).await.1[0].1
}

#[tokio::test]
async fn files_that_change_hold_at_once_and_counts_stay() {
    let stage = Stage::new(&file(10, "")).await;
    let mut client = stage.client().await;
    for _ in 0..4 {
        assert!(client.told(&question(&["k"])).await.0);
    }
    replace(&stage, &file(20, ""));
    eventually("the new limit holds", async || {
        stage.service.stats().loads == 2
    })
    .await;
    assert_eq!(left(&mut client).await, 16);

    // Another algorithm begins anew.
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
    eventually("the mistake is told", async || {
        stage.service.stats().failed_loads > 0
    })
    .await;
    assert_eq!(stage.service.stats().loads, 1);
    assert_eq!(left(&mut client).await, 10);
    fs::remove_file(other).unwrap();
    eventually("what is right holds", async || {
        stage.service.stats().loads == 2
    })
    .await;
    assert_eq!(left(&mut client).await, 20);
}

#[tokio::test]
async fn a_folder_that_is_gone_leaves_what_was_there() {
    let stage = Stage::new(&file(10, "")).await;
    let mut client = stage.client().await;
    let away = stage.folder.path().with_extension("away");
    fs::rename(stage.folder.path(), &away).unwrap();
    eventually("it is told", async || {
        stage.service.stats().failed_loads > 0
    })
    .await;
    assert_eq!(left(&mut client).await, 10);
    fs::rename(&away, stage.folder.path()).unwrap();
    eventually("it is read again", async || {
        stage.service.stats().loads == 2
    })
    .await;
}
