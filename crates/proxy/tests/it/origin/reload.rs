//! Tests of reloads of the config.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anteroom_config::RoomConfig;
use anteroom_proxy::upstream::{Group, Origins};

use crate::origin::support::{Body, LIMITS, Origin, get, in_time, room, text, until};

fn apply(origins: &Origins<Body>, room: &RoomConfig) -> Arc<Group<Body>> {
    let plan = origins.plan(room.own_origins()).unwrap();
    let group = plan.group(&room.origin_owner()).unwrap();
    origins.commit(plan);
    group
}

fn responses(group: &Group<Body>) -> Vec<(String, u64)> {
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
    text(get(&before).await.unwrap()).await;
    let open = get(&before).await.unwrap();

    let lines = format!("origins = [\"{}\", \"{}\"]", url(&second), url(&first));
    let both = apply(&origins, &room("shop", &lines));
    assert_eq!(responses(&both), [(url(&second), 0), (url(&first), 2)]);
    assert_eq!(both.stats().origins[1].in_flight, 1);
    for _ in 0..4 {
        text(get(&both).await.unwrap()).await;
    }
    assert!(responses(&both)[0].1 > 0, "the new one gets requests");

    let after = apply(
        &origins,
        &room("shop", &format!("origin = \"{}\"", url(&second))),
    );
    text(get(&after).await.unwrap()).await;
    assert_eq!(
        responses(&after)[0].1,
        responses(&both)[0].1,
        "one origin, one count"
    );
    // The request from before the reloads completes at its origin.
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
    // Open requests keep the previous group alive.
    let before = apply(&origins, &room("shop", &format!("{url}\n{check}")));
    until("it fails its checks", || before.is_down()).await;
    let group = apply(&origins, &room("shop", &url));
    assert!(!group.is_down(), "without checks the group is not down");
    assert_eq!(group.stats().origins[0].condition.name(), "up");
    let seen = origin.shared.checks.load(Relaxed);
    // The checks of another origin at the same interval show how many would have run.
    let other = Origin::new().await;
    let checked = Origins::<Body>::new(LIMITS);
    let url = format!("origin = \"http://{}\"", other.address);
    let _other = apply(&checked, &room("other", &format!("{url}\n{check}")));
    let checks = || other.shared.checks.load(Relaxed);
    until("another one is checked five times", || checks() >= 5).await;
    // One check may have been in flight.
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
    let errors = origins.plan(bad.own_origins()).unwrap_err();
    assert_eq!(errors[0].owner, good.origin_owner());
    let stats = origins.stats();
    let shown = &stats[&good.origin_owner()].origins;
    assert_eq!((shown.len(), &*shown[0].url), (1, "http://127.0.0.1:9"));
    assert_eq!(responses(&group), [("http://127.0.0.1:9".to_owned(), 0)]);
}

#[tokio::test]
async fn reading_files_blocks_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("ca.pem");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let origins = Arc::new(Origins::<Body>::new(LIMITS));
    let lines = format!("origin = \"https://a\"\norigin_ca_file = {pipe:?}");
    let room = room("shop", &lines);
    let planning = {
        let origins = Arc::clone(&origins);
        tokio::task::spawn_blocking(move || origins.plan(room.own_origins()).is_err())
    };
    // Blocks until the other side opens the pipe; it reads until this side closes it.
    let open = move || std::fs::OpenOptions::new().write(true).open(pipe);
    let writer = tokio::task::spawn_blocking(open);
    let writer = in_time("the file is read", writer).await.unwrap().unwrap();
    let looking = tokio::task::spawn_blocking(move || origins.stats().len());
    let shown = tokio::time::timeout(Duration::from_secs(20), looking).await;
    drop(writer);
    assert_eq!(shown.unwrap().unwrap(), 0);
    assert!(planning.await.unwrap(), "the file has no certificate");
}

#[test]
fn ca_files_are_resolved_beside_the_config_file_or_reported() {
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
    let mistakes = anteroom_proxy::upstream::find_ca_files(&mut config, &file);
    let path = folder.path().join("ca.pem");
    let expected = format!(
        "room \"shop\": {} (origin_ca_file) holds no certificate",
        path.display()
    );
    assert_eq!(mistakes, [(path.clone(), expected)]);
    let origins = config.rooms[0].own_origins().unwrap();
    assert_eq!(origins.group.ca_file, Some(path));
}
