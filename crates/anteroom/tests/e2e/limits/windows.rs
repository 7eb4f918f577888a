//! Many visitors at once: no second brings the origin more than a tenth of a minute's
//! admissions, and where the window slides no 60 s bring more than a minute's.
//!
//! Times are those at which requests arrive at the origin. A gateway's admissions are a second
//! apart; on the way to the origin some may fall behind by [`JITTER`], and then come closer
//! together.

use std::time::Duration;

use anteroom_testkit::redis_server::RedisServer;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::client::Client;
use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::origin::RecordingOrigin;
use crate::support::process::Gateway;

/// More than come in while a test lasts, and few enough that a busy machine answers each in time.
const VISITORS: usize = 160;
const PER_MINUTE: u32 = 120;
const PER_SECOND: usize = 12;
const JITTER: Duration = Duration::from_millis(150);

/// Sends all visitors at once, each to one of these gateways. A waiting visitor comes back every
/// second, until `lasts` has passed. An admitted one never does.
async fn rush(gateways: &[Gateway], lasts: Duration) {
    let until = Instant::now() + lasts;
    let mut visitors = JoinSet::new();
    let clients: Vec<Client> = gateways.iter().map(|it| Client::new(it.address)).collect();
    for number in 0..VISITORS {
        let mut client = clients[number % clients.len()].new_client();
        visitors.spawn(async move {
            while Instant::now() < until && client.get("/").await.is_queued() {
                sleep(Duration::from_millis(1_000)).await; // tidy: time passes
            }
        });
    }
    while let Some(ended) = visitors.join_next().await {
        ended.unwrap();
    }
}

/// Returns the most requests that arrived within `length`, less the jitter.
fn most_within(origin: &RecordingOrigin, length: Duration) -> usize {
    let heads = origin.heads();
    let within = |first: usize| {
        let from = heads[first].arrived_at;
        let rest = heads[first..].iter();
        rest.take_while(|head| head.arrived_at - from < length - JITTER)
            .count()
    };
    (0..heads.len()).map(within).max().unwrap_or(0)
}

/// Returns the lines of a room that these visitors come to.
fn crowded_room(origin: &RecordingOrigin, store: &str, more: &str) -> String {
    let lines = format!("new_users_per_minute = {PER_MINUTE}\n{more}");
    SERVER.to_owned() + store + &room("main", origin.address, 10_000, &lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_second_has_more_than_a_tenth_of_a_minutes_admissions() {
    let origin = RecordingOrigin::start().await;
    let file = ConfigFile::new(&crowded_room(&origin, "", "pacing = false"));
    let gateway = Gateway::start(&file.flags()).await;
    rush(&[gateway], Duration::from_secs(9)).await;
    let most = most_within(&origin, Duration::from_secs(1));
    assert_eq!(most, PER_SECOND, "of {} in all", origin.count());
    // The others come as fast as this allows: a tenth every one and a half seconds or so.
    assert!(origin.count() >= 4 * PER_SECOND, "{}", origin.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sixty_seconds_have_more_than_a_minutes_admissions_on_two_nodes() {
    let redis = RedisServer::start().await;
    let origin = RecordingOrigin::start().await;
    let address = format!("redis://127.0.0.1:{}", redis.port());
    let store = format!("[store]\nkind = \"valkey\"\nlocal = \"{address}\"\n");
    let text = crowded_room(&origin, &store, "new_users_window = \"sliding\"");
    let files = [ConfigFile::new(&text), ConfigFile::new(&text)];
    let mut gateways = Vec::new();
    for file in &files {
        gateways.push(Gateway::start(&file.flags()).await);
    }
    rush(&gateways, Duration::from_secs(68)).await;
    let most = most_within(&origin, Duration::from_secs(1));
    assert!(most <= PER_SECOND, "{most} within a second");
    let most = most_within(&origin, Duration::from_secs(60));
    assert!(most <= PER_MINUTE as usize, "{most} within a minute");
    assert!(
        most >= PER_MINUTE as usize * 4 / 5,
        "only {most} within a minute"
    );
}
