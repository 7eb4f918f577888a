//! Tests of overrides at two nodes with one store, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod small;

use std::sync::Arc;
use std::time::Duration;

use anteroom_admin::overrides::client_overrides::{LimitCommand, LimitOverrides, RejectedCommand};
use anteroom_admin::overrides::{LimitCommandError, LiveLimits};
use anteroom_config::overrides::Actor;
use anteroom_config::{Client, Config, LimitConfig, LimitName, LimitStore};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_http::{CountStores, Limiter, LimiterContext};
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

impl LimiterContext for Still {
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
    let limiter = Limiter::new(limits, counts, Still).unwrap();
    LiveLimits::new(
        limiter,
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

async fn apply(node: &LiveLimits, command: &LimitCommand) {
    node.execute(command, &Actor::default()).await.unwrap();
}

/// Returns the requests that a client may make at this node.
async fn allowed(node: &LiveLimits, client: &str) -> u32 {
    let standing = node.standing("api", &[client.to_owned()]).await;
    standing.unwrap().rate.requests()
}

/// Waits longer than a node takes to read the overrides.
async fn wait_for_reads() {
    tokio::time::sleep(Duration::from_secs(3)).await; // tidy: paused time
}

fn memory() -> Memory {
    Memory::new(Arc::new(HandClock::new(NOW)))
}

/// Starts two nodes that read each other's overrides.
async fn two_nodes(stores: &Stores) -> [Arc<LiveLimits>; 2] {
    let nodes = [node(stores, &api()), node(stores, &api())];
    for node in &nodes {
        node.learn().await;
        tokio::spawn(Arc::clone(node).watch());
    }
    nodes
}

#[tokio::test(start_paused = true)]
async fn an_override_applies_at_once_here_and_soon_at_the_other_node() {
    let stores = Stores::Shared(Arc::new(memory()));
    let [one, other] = two_nodes(&stores).await;
    apply(&one, &set("gold", "500/min")).await;
    assert_eq!(
        (allowed(&one, "gold").await, allowed(&other, "gold").await),
        (500, 100)
    );
    wait_for_reads().await;
    assert_eq!(
        (allowed(&one, "gold").await, allowed(&other, "gold").await),
        (500, 500)
    );
    let later = node(&stores, &api());
    later.learn().await;
    assert_eq!(
        allowed(&later, "gold").await,
        500,
        "the override outlives a restart"
    );
}

/// Both nodes read the store before either has written.
#[tokio::test(start_paused = true)]
async fn concurrent_commands_at_two_nodes_are_both_kept() {
    let store = memory();
    let stores = Stores::Shared(Arc::new(store.clone()));
    let [one, other] = [node(&stores, &api()), node(&stores, &api())];
    apply(&one, &set("gold", "500/min")).await;
    let before = store.requests();
    apply(&one, &set("lead", "2/min")).await;
    let of_one = store.requests() - before;
    store.set_delay(Duration::from_millis(10));
    let before = store.requests();
    let (gold, tin) = (unset("gold"), set("tin", "1/min"));
    tokio::join!(apply(&one, &gold), apply(&other, &tin));
    let of_both = store.requests() - before;
    assert!(of_both > 2 * of_one, "no conflict: {of_both} calls");
    for node in [&one, &other, &node(&stores, &api())] {
        node.learn().await;
        let mut found = [0; 3];
        for (found, client) in found.iter_mut().zip(["gold", "lead", "tin"]) {
            *found = allowed(node, client).await;
        }
        assert_eq!(found, [100, 2, 1]);
    }
    assert_eq!(other.log().await.unwrap().entries.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_unavailable_known_overrides_apply_and_commands_fail() {
    let store = memory();
    let stores = Stores::Shared(Arc::new(store.clone()));
    let [one, other] = two_nodes(&stores).await;
    apply(&one, &set("gold", "500/min")).await;
    wait_for_reads().await;
    store.set_unavailable(true);
    let rejected = one.execute(&unset("gold"), &Actor::default()).await;
    assert!(
        matches!(rejected, Err(LimitCommandError::Unavailable(_))),
        "{rejected:?}"
    );
    let started = node(&stores, &api());
    started.learn().await;
    tokio::spawn(Arc::clone(&started).watch());
    wait_for_reads().await;
    let mut found = [0; 3];
    for (found, node) in found.iter_mut().zip([&one, &other, &started]) {
        *found = allowed(node, "gold").await;
    }
    assert_eq!(
        found,
        [500, 500, 100],
        "a node without a reply uses the file"
    );
    store.set_unavailable(false);
    wait_for_reads().await;
    assert_eq!(allowed(&started, "gold").await, 500);
}

#[tokio::test(start_paused = true)]
async fn nodes_restore_the_overrides_of_an_emptied_store() {
    let store = memory();
    let stores = Stores::Shared(Arc::new(store.clone()));
    let [one, _other] = two_nodes(&stores).await;
    apply(&one, &set("gold", "500/min")).await;
    wait_for_reads().await;
    store.wipe();
    wait_for_reads().await;
    let later = node(&stores, &api());
    later.learn().await;
    assert_eq!(allowed(&later, "gold").await, 500);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_without_the_root_knows_its_data_centers_overrides() {
    let (local, root) = (memory(), memory());
    let stores = Stores::TwoLevels {
        local: Arc::new(local),
        global: Arc::new(root.clone()),
    };
    let [one, _other] = two_nodes(&stores).await;
    apply(&one, &set("gold", "500/min")).await;
    wait_for_reads().await;
    root.set_unavailable(true);
    let later = node(&stores, &api());
    later.learn().await;
    assert_eq!(allowed(&later, "gold").await, 500);
}

/// Returns stores of two levels.
fn two_levels(local: &Memory, root: &Memory) -> Stores {
    Stores::TwoLevels {
        local: Arc::new(local.clone()),
        global: Arc::new(root.clone()),
    }
}

/// Returns a node that starts after an override was set, the root was emptied while no node ran,
/// and the copy became unavailable.
async fn node_after_loss(local: &Memory, root: &Memory) -> Arc<LiveLimits> {
    let stores = two_levels(local, root);
    apply(&node(&stores, &api()), &set("gold", "500/min")).await;
    wait_for_reads().await;
    root.wipe();
    local.set_unavailable(true);
    node(&stores, &api())
}

#[tokio::test(start_paused = true)]
async fn overrides_lost_by_the_root_return_from_the_copy() {
    let (local, root) = (memory(), memory());
    let one = node_after_loss(&local, &root).await;
    one.learn().await;
    assert_eq!(allowed(&one, "gold").await, 100);
    tokio::spawn(Arc::clone(&one).watch());
    local.set_unavailable(false);
    wait_for_reads().await;
    assert_eq!(allowed(&one, "gold").await, 500);
    let other_center = node(&two_levels(&memory(), &root), &api());
    other_center.learn().await;
    assert_eq!(allowed(&other_center, "gold").await, 500, "the root has it");
}

#[tokio::test(start_paused = true)]
async fn no_command_applies_before_the_copy_is_read() {
    let (local, root) = (memory(), memory());
    let one = node_after_loss(&local, &root).await;
    let result = one.execute(&set("tin", "7/min"), &Actor::default()).await;
    assert!(
        matches!(result, Err(LimitCommandError::Unavailable(_))),
        "{result:?}"
    );
    local.set_unavailable(false);
    apply(&one, &set("tin", "7/min")).await;
    assert_eq!(
        (allowed(&one, "gold").await, allowed(&one, "tin").await),
        (500, 7)
    );
}

#[tokio::test(start_paused = true)]
async fn the_newer_of_the_global_record_and_its_copy_applies() {
    let (local, root) = (memory(), memory());
    let one_center = two_levels(&local, &root);
    let other_center = two_levels(&memory(), &root);
    apply(&node(&one_center, &api()), &set("gold", "500/min")).await;
    wait_for_reads().await;
    // No node of the first data center runs during this command.
    let other = node(&other_center, &api());
    apply(&other, &set("gold", "600/min")).await;
    wait_for_reads().await;
    let one = node(&one_center, &api());
    one.learn().await;
    assert_eq!(allowed(&one, "gold").await, 600, "the copy is older");
    // The root returns in the state before the next command.
    let record_store: OverrideStore<LimitOverrides> =
        OverrideStore::new(Arc::new(root.clone()), "(limits)/0000000000000007");
    let backup = record_store.read().await.unwrap().unwrap();
    apply(&other, &set("gold", "800/min")).await;
    wait_for_reads().await;
    root.wipe();
    record_store.restore(&backup).await.unwrap();
    let again = node(&other_center, &api());
    again.learn().await;
    assert_eq!(allowed(&again, "gold").await, 800, "the root is older");
    wait_for_reads().await;
    one.learn().await;
    assert_eq!(allowed(&one, "gold").await, 800, "the root has it again");
}

#[tokio::test(start_paused = true)]
async fn an_override_outlives_its_limit_and_every_reload() {
    let stores = Stores::Shared(Arc::new(memory()));
    let node = node(&stores, &api());
    node.learn().await;
    apply(&node, &set("gold", "500/min")).await;
    let without = node.prepare(&file("")).unwrap();
    node.commit(without);
    let standing = node.standing("api", &["gold".to_owned()]).await;
    assert!(standing.is_err());
    assert!(node.knows("api") && node.names().is_empty());
    // A command between `prepare` and `commit` applies with the new file.
    let with = node.prepare(&api()).unwrap();
    apply(&node, &unset("gold")).await;
    node.commit(with);
    assert_eq!(allowed(&node, "gold").await, 100);
    let with = node.prepare(&api()).unwrap();
    apply(&node, &set("gold", "7/min")).await;
    node.commit(with);
    assert_eq!(allowed(&node, "gold").await, 7);
}

#[tokio::test(start_paused = true)]
async fn nodes_do_not_read_without_need() {
    let alone = memory();
    let stores = Stores::Alone(Arc::new(alone.clone()));
    let [..] = two_nodes(&stores).await;
    wait_for_reads().await;
    assert_eq!(
        alone.requests(),
        2,
        "one read per node: no other node writes there"
    );
    let shared = memory();
    let stores = Stores::Shared(Arc::new(shared.clone()));
    let node = node(&stores, &file(""));
    node.learn().await;
    tokio::spawn(Arc::clone(&node).watch());
    wait_for_reads().await;
    assert_eq!(shared.requests(), 1, "there are no limits");
    let limits = node.prepare(&api()).unwrap();
    node.commit(limits);
    wait_for_reads().await;
    assert!(shared.requests() > 1);
}

/// The override was set at a node whose store can count it.
#[tokio::test(start_paused = true)]
async fn an_override_beyond_a_store_does_not_block_others() {
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
    apply(&large, &set("gold", "5000/min")).await;
    apply(&large, &set("tin", "7/min")).await;
    wait_for_reads().await;
    let found = [
        allowed(&large, "gold").await,
        allowed(&small, "gold").await,
        allowed(&small, "tin").await,
    ];
    assert_eq!(found, [5_000, 100, 7]);
    let shown = small.shown(Some("api")).await;
    let problems = shown.limits[0]
        .overrides
        .iter()
        .map(|row| row.problems.len());
    assert_eq!(problems.collect::<Vec<_>>(), [1, 0], "{shown:?}");
    let rejected = small
        .execute(&set("iron", "1001/min"), &Actor::default())
        .await;
    let Err(LimitCommandError::Rejected(RejectedCommand::NotAllowed(problems))) = rejected else {
        panic!("{rejected:?}");
    };
    assert!(
        problems
            .to_string()
            .contains("small offers atomic adds only"),
        "{problems}"
    );
    // A reload succeeds beside it, and the next command applies.
    small.commit(small.prepare(&limits).unwrap());
    apply(&small, &set("iron", "1000/min")).await;
    assert_eq!(allowed(&small, "iron").await, 1_000);
}
