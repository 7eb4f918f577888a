//! Two nodes on one store, in virtual time: what is said at one holds at the other, and outlives
//! what a store, a file or a node may lose.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod small;

use std::sync::Arc;
use std::time::Duration;

use anteroom_admin::overrides::orders::{LimitCommand, LimitOverrides, RejectedCommand};
use anteroom_admin::overrides::{LimitCommandError, LiveLimits};
use anteroom_config::overrides::Actor;
use anteroom_config::{Client, Config, LimitConfig, LimitName, LimitStore};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_http::{CountStores, Limiter, Surroundings};
use anteroom_limit_store::shared::SharedCounts;
use anteroom_node::{HandClock, Stores};
use anteroom_room::id::DeploymentId;
use anteroom_room::time::Timestamp;
use anteroom_store::OverrideStore;
use anteroom_store::memory::Memory;
use serde_json::json;

use crate::nodes::small::Small;

const NOW: Timestamp = Timestamp(1_900_000_000_000);

struct Still;

impl Surroundings for Still {
    fn now(&self) -> TimestampUs {
        TimestampUs(NOW.0 * 1_000)
    }

    fn wall_seconds(&self) -> u64 {
        NOW.0 / 1_000
    }
}

fn file(lines: &str) -> Vec<LimitConfig> {
    let text = format!(
        "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\ntotal_active_users = 1\n\
         new_users_per_minute = 1\nbypass = []\n{lines}"
    );
    Config::parse("test.toml", &text).unwrap().config.limits
}

fn api() -> Vec<LimitConfig> {
    file("[[limit]]\nname = \"api\"\nlimit = \"100/min\"\nkey = \"header:X-Api-Key\"\n")
}

fn node(stores: &Stores, limits: &[LimitConfig]) -> Arc<LiveLimits> {
    node_with(stores, limits, CountStores::default())
}

fn node_with(stores: &Stores, limits: &[LimitConfig], counts: CountStores) -> Arc<LiveLimits> {
    let meter = Limiter::new(limits, counts, Still).unwrap();
    LiveLimits::new(
        meter,
        limits,
        (stores, DeploymentId(7)),
        Arc::new(HandClock::new(NOW)),
    )
}

fn set(client: &str, limit: &str) -> LimitCommand {
    let typed = [("key", json!(client)), ("limit", json!(limit))];
    LimitCommand::Set {
        limit: LimitName::new("api").unwrap(),
        typed: typed
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    }
}

fn unset(client: &str) -> LimitCommand {
    LimitCommand::Unset {
        limit: LimitName::new("api").unwrap(),
        client: Client(vec![client.to_owned()]),
    }
}

async fn say(node: &LiveLimits, order: &LimitCommand) {
    node.obey(order, &Actor::default()).await.unwrap();
}

/// The calls that a client may make here.
async fn calls(node: &LiveLimits, client: &str) -> u32 {
    let standing = node.standing("api", &[client.to_owned()]).await;
    standing.unwrap().rate.calls()
}

/// Longer than a node takes to hear of something.
async fn a_few_seconds() {
    tokio::time::sleep(Duration::from_secs(3)).await; // tidy: paused time
}

fn memory() -> Memory {
    Memory::new(Arc::new(HandClock::new(NOW)))
}

/// Two nodes that hear of each other.
async fn two_nodes(stores: &Stores) -> [Arc<LiveLimits>; 2] {
    let nodes = [node(stores, &api()), node(stores, &api())];
    for node in &nodes {
        node.learn().await;
        tokio::spawn(Arc::clone(node).watch());
    }
    nodes
}

#[tokio::test(start_paused = true)]
async fn an_override_holds_at_once_here_and_soon_at_the_other_node() {
    let stores = Stores::Shared(Arc::new(memory()));
    let [one, other] = two_nodes(&stores).await;
    say(&one, &set("gold", "500/min")).await;
    assert_eq!(
        (calls(&one, "gold").await, calls(&other, "gold").await),
        (500, 100)
    );
    a_few_seconds().await;
    assert_eq!(
        (calls(&one, "gold").await, calls(&other, "gold").await),
        (500, 500)
    );
    let later = node(&stores, &api());
    later.learn().await;
    assert_eq!(calls(&later, "gold").await, 500, "it outlives a restart");
}

/// Both ask the store before either has written.
#[tokio::test(start_paused = true)]
async fn of_what_is_said_at_two_nodes_at_once_nothing_is_lost() {
    let store = memory();
    let stores = Stores::Shared(Arc::new(store.clone()));
    let [one, other] = [node(&stores, &api()), node(&stores, &api())];
    say(&one, &set("gold", "500/min")).await;
    let before = store.calls();
    say(&one, &set("lead", "2/min")).await;
    let of_one = store.calls() - before;
    store.set_delay(Duration::from_millis(10));
    let before = store.calls();
    let (gold, tin) = (unset("gold"), set("tin", "1/min"));
    tokio::join!(say(&one, &gold), say(&other, &tin));
    let of_both = store.calls() - before;
    assert!(of_both > 2 * of_one, "one after the other: {of_both} calls");
    for node in [&one, &other, &node(&stores, &api())] {
        node.learn().await;
        let mut found = [0; 3];
        for (found, client) in found.iter_mut().zip(["gold", "lead", "tin"]) {
            *found = calls(node, client).await;
        }
        assert_eq!(found, [100, 2, 1]);
    }
    assert_eq!(other.log().await.unwrap().entries.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_nothing_changes_and_what_is_known_holds() {
    let store = memory();
    let stores = Stores::Shared(Arc::new(store.clone()));
    let [one, other] = two_nodes(&stores).await;
    say(&one, &set("gold", "500/min")).await;
    a_few_seconds().await;
    store.set_away(true);
    let refused = one.obey(&unset("gold"), &Actor::default()).await;
    assert!(
        matches!(refused, Err(LimitCommandError::Away(_))),
        "{refused:?}"
    );
    let started = node(&stores, &api());
    started.learn().await;
    tokio::spawn(Arc::clone(&started).watch());
    a_few_seconds().await;
    let mut found = [0; 3];
    for (found, node) in found.iter_mut().zip([&one, &other, &started]) {
        *found = calls(node, "gold").await;
    }
    assert_eq!(found, [500, 500, 100], "who knows nothing goes by the file");
    store.set_away(false);
    a_few_seconds().await;
    assert_eq!(calls(&started, "gold").await, 500);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_forgets_gets_it_back() {
    let store = memory();
    let stores = Stores::Shared(Arc::new(store.clone()));
    let [one, _other] = two_nodes(&stores).await;
    say(&one, &set("gold", "500/min")).await;
    a_few_seconds().await;
    store.wipe();
    a_few_seconds().await;
    let later = node(&stores, &api());
    later.learn().await;
    assert_eq!(calls(&later, "gold").await, 500);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_without_the_root_knows_its_data_centers_overrides() {
    let (local, world) = (memory(), memory());
    let stores = Stores::TwoLevels {
        local: Arc::new(local),
        global: Arc::new(world.clone()),
    };
    let [one, _other] = two_nodes(&stores).await;
    say(&one, &set("gold", "500/min")).await;
    a_few_seconds().await;
    world.set_away(true);
    let later = node(&stores, &api());
    later.learn().await;
    assert_eq!(calls(&later, "gold").await, 500);
}

/// The stores of two levels.
fn two_levels(local: &Memory, world: &Memory) -> Stores {
    Stores::TwoLevels {
        local: Arc::new(local.clone()),
        global: Arc::new(world.clone()),
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_world_forgot_while_all_nodes_were_down_comes_back() {
    let (local, world) = (memory(), memory());
    let stores = two_levels(&local, &world);
    say(&node(&stores, &api()), &set("gold", "500/min")).await;
    a_few_seconds().await;
    world.wipe();
    // The copy is not there at once either.
    local.set_away(true);
    let one = node(&stores, &api());
    one.learn().await;
    assert_eq!(calls(&one, "gold").await, 100);
    tokio::spawn(Arc::clone(&one).watch());
    local.set_away(false);
    a_few_seconds().await;
    assert_eq!(calls(&one, "gold").await, 500);
    let elsewhere = node(&two_levels(&memory(), &world), &api());
    elsewhere.learn().await;
    assert_eq!(calls(&elsewhere, "gold").await, 500, "the world has it");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_over_a_copy_that_was_not_heard_yet() {
    let (local, world) = (memory(), memory());
    let stores = two_levels(&local, &world);
    say(&node(&stores, &api()), &set("gold", "500/min")).await;
    a_few_seconds().await;
    // The world is emptied while nobody runs, and the copy cannot be read when the next one begins.
    world.wipe();
    local.set_away(true);
    let one = node(&stores, &api());
    let said = one.obey(&set("tin", "7/min"), &Actor::default()).await;
    assert!(matches!(said, Err(LimitCommandError::Away(_))), "{said:?}");
    local.set_away(false);
    say(&one, &set("tin", "7/min")).await;
    assert_eq!(
        (calls(&one, "gold").await, calls(&one, "tin").await),
        (500, 7)
    );
}

#[tokio::test(start_paused = true)]
async fn of_the_global_record_and_its_copy_the_newer_one_holds() {
    let (local, world) = (memory(), memory());
    let here = two_levels(&local, &world);
    let there = two_levels(&memory(), &world);
    say(&node(&here, &api()), &set("gold", "500/min")).await;
    a_few_seconds().await;
    // Nobody runs here when this is said.
    let other = node(&there, &api());
    say(&other, &set("gold", "600/min")).await;
    a_few_seconds().await;
    let one = node(&here, &api());
    one.learn().await;
    assert_eq!(calls(&one, "gold").await, 600, "the copy is older");
    // The world comes back as it was before something was said.
    let place: OverrideStore<LimitOverrides> =
        OverrideStore::new(Arc::new(world.clone()), "(limits)/0000000000000007");
    let backup = place.read().await.unwrap().unwrap();
    say(&other, &set("gold", "800/min")).await;
    a_few_seconds().await;
    world.wipe();
    place.restore(&backup).await.unwrap();
    let again = node(&there, &api());
    again.learn().await;
    assert_eq!(calls(&again, "gold").await, 800, "the world is older");
    a_few_seconds().await;
    one.learn().await;
    assert_eq!(calls(&one, "gold").await, 800, "the world has it again");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_outlives_its_limit_and_every_file() {
    let stores = Stores::Shared(Arc::new(memory()));
    let node = node(&stores, &api());
    node.learn().await;
    say(&node, &set("gold", "500/min")).await;
    let without = node.prepare(&file("")).unwrap();
    node.commit(without);
    let standing = node.standing("api", &["gold".to_owned()]).await;
    assert!(standing.is_err());
    assert!(node.knows("api") && node.names().is_empty());
    // What is said while a file is read holds with the file.
    let with = node.prepare(&api()).unwrap();
    say(&node, &unset("gold")).await;
    node.commit(with);
    assert_eq!(calls(&node, "gold").await, 100);
    let with = node.prepare(&api()).unwrap();
    say(&node, &set("gold", "7/min")).await;
    node.commit(with);
    assert_eq!(calls(&node, "gold").await, 7);
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_a_store_for_nothing() {
    let alone = memory();
    let stores = Stores::Alone(Arc::new(alone.clone()));
    let [..] = two_nodes(&stores).await;
    a_few_seconds().await;
    assert_eq!(alone.calls(), 2, "each node once: nobody else writes there");
    let shared = memory();
    let stores = Stores::Shared(Arc::new(shared.clone()));
    let node = node(&stores, &file(""));
    node.learn().await;
    tokio::spawn(Arc::clone(&node).watch());
    a_few_seconds().await;
    assert_eq!(shared.calls(), 1, "there are no limits");
    let limits = node.prepare(&api()).unwrap();
    node.commit(limits);
    a_few_seconds().await;
    assert!(shared.calls() > 1);
}

/// Said where stores could count it, or before they were asked.
#[tokio::test(start_paused = true)]
async fn what_a_store_cannot_count_keeps_nothing_else_from_holding() {
    let stores = Stores::Shared(Arc::new(memory()));
    let limits = file(
        "[store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1\"\n\
         [[limit]]\nname = \"api\"\nlimit = \"100/min\"\nkey = \"header:X-Api-Key\"\n\
         store = \"valkey\"\n",
    );
    let node = |calls_max| {
        let counts = CountStores::from_iter([(
            LimitStore::Valkey,
            Arc::new(Small { calls_max }) as Arc<dyn SharedCounts>,
        )]);
        node_with(&stores, &limits, counts)
    };
    let (large, small) = (node(u32::MAX), node(1_000));
    for node in [&large, &small] {
        node.learn().await;
        tokio::spawn(Arc::clone(node).watch());
    }
    say(&large, &set("gold", "5000/min")).await;
    say(&large, &set("tin", "7/min")).await;
    a_few_seconds().await;
    let found = [
        calls(&large, "gold").await,
        calls(&small, "gold").await,
        calls(&small, "tin").await,
    ];
    assert_eq!(found, [5_000, 100, 7]);
    let shown = small.shown(Some("api")).await;
    let problems = shown.limits[0]
        .overrides
        .iter()
        .map(|row| row.problems.len());
    assert_eq!(problems.collect::<Vec<_>>(), [1, 0], "{shown:?}");
    let refused = small
        .obey(&set("iron", "1001/min"), &Actor::default())
        .await;
    let Err(LimitCommandError::Refused(RejectedCommand::NotAllowed(problems))) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        problems
            .to_string()
            .contains("small offers atomic adds only"),
        "{problems}"
    );
    // Another file is read beside it, and what is said next holds.
    small.commit(small.prepare(&limits).unwrap());
    say(&small, &set("iron", "1000/min")).await;
    assert_eq!(calls(&small, "iron").await, 1_000);
}
