//! Tests with a shared store: one that fails, and a real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anteroom_config::{HostPort, OnStoreFailure, StorePromise, Topology, ValkeyAddress};
use anteroom_envoy::Counts;
use anteroom_envoy::wire::Code;
use anteroom_limit::policy::Needs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use anteroom_testkit::redis_server::RedisServer;
use anteroom_valkey::ValkeyCounts;
use futures_util::future::join_all;
use http::{Method, StatusCode};

use crate::service::support::{Stage, http, request_of};

const FILE: &str = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: day, requests_per_unit: 100}}
- {key: l, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: look, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1, algorithm: gcra}}
";

/// Store that is unavailable.
#[derive(Debug, Default)]
pub(crate) struct Unavailable {
    was_used: AtomicBool,
}

impl SharedCounts for Unavailable {
    fn kind(&self) -> &'static str {
        "nothing"
    }

    fn offers(&self) -> Needs {
        Needs::AtomicAdd
    }

    fn acquire<'a>(
        &'a self,
        _charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        self.was_used.store(true, Ordering::SeqCst);
        let error = CountsError::Unreachable {
            store_name: "redis://secret".to_owned(),
            source: "gone".into(),
        };
        Box::pin(async { Err(error) })
    }
}

const ONE: &str =
    "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]";
const JSON: &str = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}"#;

#[tokio::test]
async fn an_outage_of_the_store_is_an_error_without_its_address() {
    let stage = Stage::with(
        ONE,
        Counts::Shared(Arc::new(Unavailable::default())),
        |_| {},
    )
    .await;
    let mut client = stage.client().await;
    let error = client.try_send(&request_of(&["k"])).await.unwrap_err();
    assert_eq!(
        error,
        (14, "the rate limit store is unavailable".to_owned())
    );
    let (status, _, text) = http(stage.service.http().unwrap(), Method::POST, "/json", JSON).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!text.contains("secret"));
    assert!(
        stage
            .service
            .stats()
            .answers
            .contains(&("store_unavailable_closed", 2))
    );
    // A request without a limit needs no store.
    assert!(client.outcome(&request_of(&["other"])).await.0);
}

#[tokio::test]
async fn with_fail_open_an_outage_admits_everything() {
    let store = Arc::new(Unavailable::default());
    let counts = Counts::Shared(Arc::clone(&store) as Arc<dyn SharedCounts>);
    let stage = Stage::with(ONE, counts, |config| {
        config.on_store_failure = OnStoreFailure::Open
    });
    let stage = stage.await;
    let mut client = stage.client().await;
    let response = client.send(&request_of(&["k", "k"])).await;
    assert_eq!(response.overall_code, i32::from(Code::Ok));
    assert_eq!(response.statuses.len(), 2);
    assert!(store.was_used.load(Ordering::SeqCst));
    assert!(
        stage
            .service
            .stats()
            .answers
            .contains(&("store_unavailable_open", 1))
    );
}

#[tokio::test]
async fn a_limit_that_the_store_cannot_keep_is_a_mistake() {
    let stage = Stage::with(
        ONE,
        Counts::Shared(Arc::new(Unavailable::default())),
        |_| {},
    )
    .await;
    let file = stage.folder.path().join("limits.yaml");
    std::fs::write(&file, FILE).unwrap();
    anteroom_testkit::eventually("it is reported", async || {
        stage.service.stats().failed_loads == 1
    })
    .await;
    let store = Unavailable::default();
    let read = anteroom_envoy::folder::read(stage.folder.path(), false, Some(&store));
    let lines = read.unwrap_err().lines();
    assert!(
        lines[0].contains("limits.yaml:6: limit by 'gcra' cannot be kept"),
        "{lines:?}"
    );
}

async fn node(server: &RedisServer) -> Stage {
    node_with(server, FILE).await
}

/// Starts a node with this file that counts in the store.
pub(crate) async fn node_with(server: &RedisServer, file: &str) -> Stage {
    let host = HostPort {
        host: "127.0.0.1".to_owned(),
        port: server.port(),
    };
    let address = ValkeyAddress {
        topology: Topology::Single(host),
        database: 0,
        username: None,
        password: None,
        tls: None,
        promise: StorePromise::default(),
    };
    let counts = ValkeyCounts::new(&address, "test").unwrap();
    Stage::with(file, Counts::Shared(Arc::new(counts)), |_| {}).await
}

#[tokio::test]
async fn two_services_over_one_store_admit_no_more_than_one() {
    let server = RedisServer::start().await;
    let stages = [node(&server).await, node(&server).await];
    let clients = (0..8).map(|at| {
        let stage = &stages[at % 2];
        async move {
            let mut client = stage.client().await;
            let mut admitted = 0;
            for _ in 0..40 {
                admitted += u32::from(client.outcome(&request_of(&["k", "look"])).await.0);
            }
            admitted
        }
    });
    let admitted: u32 = join_all(clients).await.into_iter().sum();
    assert_eq!(admitted, 100);

    // A rejected request takes from no limit, on either node.
    let both = request_of(&["l=1", "k"]);
    for stage in &stages {
        let outcome = stage.client().await.outcome(&both).await;
        assert_eq!(outcome, (false, vec![(true, 5), (false, 0)]));
    }
    // A restart forgets nothing.
    let again = node(&server).await;
    assert!(!again.client().await.outcome(&request_of(&["k"])).await.0);
}
