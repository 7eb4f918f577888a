//! An operator says that nobody has spent anything of what is lent: who does it, what is written
//! down, and what is not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use anteroom_admin::overrides::orders::{LimitCommand, LimitOverrides, RejectedCommand};
use anteroom_admin::overrides::{LimitCommandError, LiveLimits};
use anteroom_config::overrides::Actor;
use anteroom_config::{Config, LimitConfig, LimitName, LimitStore};
use anteroom_limit::policy::Needs;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_http::{CountStores, Limiter, Surroundings};
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use anteroom_node::{HandClock, Stores};
use anteroom_room::id::DeploymentId;
use anteroom_room::time::Timestamp;
use anteroom_store::memory::Memory;
use serde_json::json;

const NOW: Timestamp = Timestamp(1_900_000_000_000);

/// A store that lends, of which only that is of interest.
#[derive(Debug, Default)]
struct Lender {
    emptied: AtomicU32,
    is_away: AtomicBool,
}

impl SharedCounts for Lender {
    fn kind(&self) -> &'static str {
        "leases"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn assume_empty(&self) -> Option<BoxFuture<'_, Result<(), CountsError>>> {
        Some(Box::pin(async {
            if self.is_away.load(SeqCst) {
                return Err(away());
            }
            self.emptied.fetch_add(1, SeqCst);
            Ok(())
        }))
    }

    fn charge<'a>(
        &'a self,
        _: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async { Err(away()) })
    }
}

fn away() -> CountsError {
    CountsError::Unreachable {
        place: "a test".to_owned(),
        source: "it is away".into(),
    }
}

struct Still;

impl Surroundings for Still {
    fn now(&self) -> TimestampUs {
        TimestampUs(NOW.0 * 1_000)
    }

    fn wall_seconds(&self) -> u64 {
        NOW.0 / 1_000
    }
}

/// Two limits that are counted here, and two that are lent if `store` says so.
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

const LENT: &str = "store = \"leases\"";

fn node(lender: &Arc<Lender>, file: &[LimitConfig]) -> Arc<LiveLimits> {
    let clock = Arc::new(HandClock::new(NOW));
    let memory = Memory::new(Arc::clone(&clock) as Arc<_>);
    let places = Stores::Alone(Arc::new(memory));
    let stores = CountStores::from_iter([(
        LimitStore::Leases,
        Arc::clone(lender) as Arc<dyn SharedCounts>,
    )]);
    let meter = Limiter::new(file, stores, Still).unwrap();
    LiveLimits::new(meter, file, (&places, DeploymentId(7)), clock)
}

async fn entries(node: &LiveLimits) -> Vec<String> {
    let log = node.log().await.unwrap();
    log.entries.into_iter().map(|entry| entry.what).collect()
}

#[tokio::test]
async fn the_store_that_lends_forgets_and_the_limits_are_named() {
    let lender = Arc::default();
    let node = node(&lender, &file(LENT));
    let named = node.assume_empty(&Actor::default()).await.unwrap();
    assert_eq!(named, ["two", "four"]);
    assert_eq!(lender.emptied.load(SeqCst), 1);
    assert_eq!(entries(&node).await, ["limits assume-empty"]);
}

#[tokio::test]
async fn where_nothing_is_lent_nothing_is_forgotten_and_nothing_written_down() {
    let lender = Arc::default();
    let node = node(&lender, &file(""));
    let refused = node.assume_empty(&Actor::default()).await.unwrap_err();
    assert!(
        matches!(
            refused,
            LimitCommandError::Refused(RejectedCommand::NothingIsLent)
        ),
        "{refused:?}"
    );
    assert_eq!(lender.emptied.load(SeqCst), 0);
    assert!(entries(&node).await.is_empty());
}

#[tokio::test]
async fn an_unavailable_store_forgets_nothing_and_the_wish_is_known() {
    let lender: Arc<Lender> = Arc::default();
    lender.is_away.store(true, SeqCst);
    let node = node(&lender, &file(LENT));
    let failed = node.assume_empty(&Actor::default()).await.unwrap_err();
    assert!(
        matches!(failed, LimitCommandError::NotForgotten(_)),
        "{failed:?}"
    );
    assert_eq!(entries(&node).await, ["limits assume-empty"]);
    lender.is_away.store(false, SeqCst);
    node.assume_empty(&Actor::default()).await.unwrap();
    assert_eq!(lender.emptied.load(SeqCst), 1);
}

#[test]
fn what_was_said_about_single_clients_stays() {
    let file = file(LENT);
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
