//! Tests of `limits assume-empty`: which stores execute it, and what the record says.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use anteroom_admin::overrides::client_overrides::{LimitCommand, LimitOverrides, RejectedCommand};
use anteroom_admin::overrides::{LimitCommandError, LiveLimits};
use anteroom_config::overrides::Actor;
use anteroom_config::{Config, LimitConfig, LimitName, LimitStore};
use anteroom_limit::policy::Needs;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_http::{CountStores, Limiter, LimiterContext};
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use anteroom_node::{HandClock, Stores};
use anteroom_room::id::DeploymentId;
use anteroom_room::time::Timestamp;
use anteroom_store::memory::Memory;
use serde_json::json;

const NOW: Timestamp = Timestamp(1_900_000_000_000);

/// Store with leases; it counts only the resets.
#[derive(Debug, Default)]
struct LeaseStore {
    emptied: AtomicU32,
    is_unavailable: AtomicBool,
}

impl SharedCounts for LeaseStore {
    fn kind(&self) -> &'static str {
        "leases"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn assume_empty(&self) -> Option<BoxFuture<'_, Result<(), CountsError>>> {
        Some(Box::pin(async {
            if self.is_unavailable.load(SeqCst) {
                return Err(unavailable());
            }
            self.emptied.fetch_add(1, SeqCst);
            Ok(())
        }))
    }

    fn acquire<'a>(
        &'a self,
        _: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async { Err(unavailable()) })
    }
}

fn unavailable() -> CountsError {
    CountsError::Unreachable {
        store_name: "a test".to_owned(),
        source: "it is unavailable".into(),
    }
}

struct Still;

impl LimiterContext for Still {
    fn now(&self) -> TimestampUs {
        TimestampUs(NOW.0 * 1_000)
    }

    fn wall_seconds(&self) -> u64 {
        NOW.0 / 1_000
    }
}

/// Parses two local limits, and two with the settings of `store`.
fn file(store: &str) -> Vec<LimitConfig> {
    let limit = |name: &str, store: &str| {
        format!(
            "[[limit]]\nname = \"{name}\"\nlimit = \"9/min\"\nkey = \"header:X-Key\"\n{store}\n"
        )
    };
    let limits: String = [("one", ""), ("two", store), ("three", ""), ("four", store)]
        .map(|(name, store)| limit(name, store))
        .concat();
    let text = format!(
        "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\ntotal_active_users = 1\n\
         new_users_per_minute = 1\nbypass = []\n{limits}"
    );
    Config::parse("test.toml", &text).unwrap().config.limits
}

const LEASES: &str = "store = \"leases\"";

fn node(store: &Arc<LeaseStore>, file: &[LimitConfig]) -> Arc<LiveLimits> {
    let clock = Arc::new(HandClock::new(NOW));
    let memory = Memory::new(Arc::clone(&clock) as Arc<_>);
    let room_stores = Stores::Alone(Arc::new(memory));
    let stores = CountStores::from_iter([(
        LimitStore::Leases,
        Arc::clone(store) as Arc<dyn SharedCounts>,
    )]);
    let limiter = Limiter::new(file, stores, Still).unwrap();
    LiveLimits::new(limiter, file, (&room_stores, DeploymentId(7)), clock)
}

async fn entries(node: &LiveLimits) -> Vec<String> {
    let log = node.log().await.unwrap();
    log.entries.into_iter().map(|entry| entry.what).collect()
}

#[tokio::test]
async fn the_lease_store_resets_and_the_limits_are_returned() {
    let store = Arc::default();
    let node = node(&store, &file(LEASES));
    let named = node.assume_empty(&Actor::default()).await.unwrap();
    assert_eq!(named, ["two", "four"]);
    assert_eq!(store.emptied.load(SeqCst), 1);
    assert_eq!(entries(&node).await, ["limits assume-empty"]);
}

#[tokio::test]
async fn without_leases_nothing_is_reset_or_recorded() {
    let store = Arc::default();
    let node = node(&store, &file(""));
    let rejected = node.assume_empty(&Actor::default()).await.unwrap_err();
    assert!(
        matches!(
            rejected,
            LimitCommandError::Rejected(RejectedCommand::NoLeases)
        ),
        "{rejected:?}"
    );
    assert_eq!(store.emptied.load(SeqCst), 0);
    assert!(entries(&node).await.is_empty());
}

#[tokio::test]
async fn an_unavailable_store_resets_nothing_and_the_command_is_recorded() {
    let store: Arc<LeaseStore> = Arc::default();
    store.is_unavailable.store(true, SeqCst);
    let node = node(&store, &file(LEASES));
    let failed = node.assume_empty(&Actor::default()).await.unwrap_err();
    assert!(
        matches!(failed, LimitCommandError::NotReset(_)),
        "{failed:?}"
    );
    assert_eq!(entries(&node).await, ["limits assume-empty"]);
    store.is_unavailable.store(false, SeqCst);
    node.assume_empty(&Actor::default()).await.unwrap();
    assert_eq!(store.emptied.load(SeqCst), 1);
}

#[test]
fn overrides_of_single_clients_remain() {
    let file = file(LEASES);
    let set = LimitCommand::Set {
        limit: LimitName::new("two").unwrap(),
        typed: [("key", json!("gold")), ("limit", json!("90/min"))]
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    };
    let who = Actor::default();
    let before = LimitOverrides::default();
    let before = before
        .after(&set, &file, &|_, _| Ok(()), &who, NOW)
        .unwrap();
    let after = before
        .after(&LimitCommand::AssumeEmpty, &file, &|_, _| Ok(()), &who, NOW)
        .unwrap();
    assert_eq!(after.overrides, before.overrides);
    let newest = after.newest.unwrap();
    assert_eq!((newest.version, after.version), (2, 2));
    assert!(newest.at > NOW.0, "no two entries have the same time");
    assert!(newest.changes.is_empty());
}
