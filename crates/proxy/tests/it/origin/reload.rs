//! What stays when the file changes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anteroom_config::RoomConfig;
use anteroom_proxy::upstream::{Group, Origins};

use crate::origin::support::{Body, LIMITS, Origin, ask, in_time, room, text, until};

fn apply(origins: &Origins<Body>, room: &RoomConfig) -> Arc<Group<Body>> {
    let plan = origins.plan(std::slice::from_ref(room)).unwrap();
    let group = plan.group(&room.name).unwrap();
    origins.commit(plan);
    group
}

fn answered(group: &Group<Body>) -> Vec<(String, u64)> {
    let stats = group.stats().origins.into_iter();
    stats.map(|one| (one.url, one.outcomes[0].1)).collect()
}

#[tokio::test]
async fn an_origin_that_stays_keeps_its_counts_over_a_reload() {
    let (first, second) = (Origin::new().await, Origin::new().await);
    let url = |origin: &Origin| format!("http://{}", origin.address);
    let origins = Origins::<Body>::new(LIMITS);
    let before = apply(
        &origins,
        &room("shop", &format!("origin = \"{}\"", url(&first))),
    );
    text(ask(&before).await.unwrap()).await;
    let open = ask(&before).await.unwrap();

    let lines = format!("origins = [\"{}\", \"{}\"]", url(&second), url(&first));
    let both = apply(&origins, &room("shop", &lines));
    assert_eq!(answered(&both), [(url(&second), 0), (url(&first), 2)]);
    assert_eq!(both.stats().origins[1].in_flight, 1);
    for _ in 0..4 {
        text(ask(&both).await.unwrap()).await;
    }
    assert!(answered(&both)[0].1 > 0, "the new one gets its part");

    let after = apply(
        &origins,
        &room("shop", &format!("origin = \"{}\"", url(&second))),
    );
    text(ask(&after).await.unwrap()).await;
    assert_eq!(
        answered(&after)[0].1,
        answered(&both)[0].1,
        "one origin, one count"
    );
    // The request that went before any of this is answered by whom it was brought to.
    assert_eq!(text(open).await.1, "hi");
    let shown = origins.stats();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown.values().next().unwrap().origins.len(), 1);
}

#[tokio::test]
async fn checks_end_with_the_group_that_had_them() {
    let origin = Origin::new().await;
    let url = format!("origin = \"http://{}\"", origin.address);
    let check = "health_check = { path = \"/healthz?a=b\", interval = \"100ms\", \
                 expected_status = \"204\" }";
    let origins = Origins::<Body>::new(LIMITS);
    // Requests that have not ended hold the group before.
    let before = apply(&origins, &room("shop", &format!("{url}\n{check}")));
    until("it fails its checks", || before.is_down()).await;
    let group = apply(&origins, &room("shop", &url));
    assert!(!group.is_down(), "nobody checks, so nobody says so");
    assert_eq!(group.stats().origins[0].condition.name(), "up");
    let seen = origin.shared.checks.load(Relaxed);
    // Somebody else's checks, as often, tell when there would have been more.
    let other = Origin::new().await;
    let checked = Origins::<Body>::new(LIMITS);
    let url = format!("origin = \"http://{}\"", other.address);
    let _other = apply(&checked, &room("other", &format!("{url}\n{check}")));
    let checks = || other.shared.checks.load(Relaxed);
    until("another one is checked five times", || checks() >= 5).await;
    // One may have been on its way.
    assert!(origin.shared.checks.load(Relaxed) <= seen + 1);
    assert_eq!(group.stats().origins[0].condition.name(), "up");
    drop(before);
}

#[tokio::test]
async fn a_plan_that_fails_changes_nothing() {
    let origins = Origins::<Body>::new(LIMITS);
    let good = room("shop", "origin = \"http://127.0.0.1:9\"");
    let group = apply(&origins, &good);
    let bad = room(
        "shop",
        "origin = \"https://a\"\norigin_ca_file = \"no/such/file.pem\"",
    );
    let errors = origins.plan(std::slice::from_ref(&bad)).unwrap_err();
    assert_eq!(errors[0].room, good.name);
    let stats = origins.stats();
    let shown = &stats[&good.name].origins;
    assert_eq!((shown.len(), &*shown[0].url), (1, "http://127.0.0.1:9"));
    assert_eq!(answered(&group), [("http://127.0.0.1:9".to_owned(), 0)]);
}

#[tokio::test]
async fn nobody_waits_while_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("ca.pem");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let origins = Arc::new(Origins::<Body>::new(LIMITS));
    let lines = format!("origin = \"https://a\"\norigin_ca_file = {pipe:?}");
    let room = room("shop", &lines);
    let planning = {
        let origins = Arc::clone(&origins);
        tokio::task::spawn_blocking(move || origins.plan(&[room]).is_err())
    };
    // Opens once it is opened on the other side, where it is read until it is closed here.
    let open = move || std::fs::OpenOptions::new().write(true).open(pipe);
    let writer = tokio::task::spawn_blocking(open);
    let writer = in_time("the file is read", writer).await.unwrap().unwrap();
    let looking = tokio::task::spawn_blocking(move || origins.stats().len());
    let shown = tokio::time::timeout(Duration::from_secs(20), looking).await;
    drop(writer);
    assert_eq!(shown.unwrap().unwrap(), 0);
    assert!(planning.await.unwrap(), "there is no certificate in it");
}

#[test]
fn ca_files_are_found_beside_the_config_file_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("anteroom.toml");
    let mut config = anteroom_config::Config::parse(
        "test.toml",
        "[[room]]\nname = \"shop\"\norigin = \"https://a\"\norigin_ca_file = \"ca.pem\"\n\
         total_active_users = 1\nnew_users_per_minute = 1\nbypass = []",
    )
    .unwrap()
    .config;
    std::fs::write(folder.path().join("ca.pem"), "nothing").unwrap();
    let told = anteroom_proxy::upstream::find_ca_files(&mut config, &file);
    let path = folder.path().join("ca.pem");
    let expected = format!(
        "room \"shop\": {} (origin_ca_file) holds no certificate",
        path.display()
    );
    assert_eq!(told, [(path.clone(), expected)]);
    assert_eq!(config.rooms[0].origins.ca_file, Some(path));
}
