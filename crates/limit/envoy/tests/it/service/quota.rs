//! Tests of quota assignments over a stream like Envoy's.

use std::fs;
use std::sync::Arc;

use anteroom_config::OnStoreFailure;
use anteroom_envoy::Counts;
use anteroom_envoy::wire::quota::RateLimitQuotaUsageReports;
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::RedisServer;

use crate::service::quota_client::{Quotas, Update, usage};
use crate::service::store::{Unavailable, node_with};
use crate::service::support::{Grpc, Stage, hits, request_of};

const FILE: &str = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: minute, requests_per_unit: 160}}
- {key: free, rate_limit: {unlimited: true}}
- {key: look, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: second, rate_limit: {unit: second, requests_per_unit: 10}}
- {key: slides, rate_limit: {unit: minute, requests_per_unit: 10, algorithm: sliding-log}}
- key: tenant
  descriptors:
  - {key: path, rate_limit: {unit: hour, requests_per_unit: 16}}
";

const ONE: &str =
    "domain: d\ndescriptors: [{key: z, rate_limit: {unit: day, requests_per_unit: 1}}]";

/// Returns what is left of a limit, by a peek.
pub(crate) async fn left(client: &mut Grpc, descriptor: &str) -> u32 {
    let mut request = request_of(&[descriptor]);
    request.descriptors[0].hits_addend = hits(0);
    client.outcome(&request).await.1[0].1
}

pub(crate) async fn open(stage: &Stage) -> Quotas {
    Quotas::open(stage.service.grpc().unwrap()).await
}

#[tokio::test]
async fn assignments_and_single_requests_share_one_limit() {
    let stage = Stage::new(FILE).await;
    let (mut client, mut quotas) = (stage.client().await, open(&stage).await);
    for _ in 0..3 {
        assert!(client.outcome(&request_of(&["k=a"])).await.0);
    }
    quotas.report(&[("k=a", 0, 1)]);
    // A sixteenth of what the minute has left, which is 46 s with a margin.
    assert!(matches!(
        quotas.next_update().await,
        Update::Assigned(7, 30..=46)
    ));
    assert_eq!(left(&mut client, "k=a").await, 160 - 3 - 7);
    // Another value is another counter.
    assert_eq!(left(&mut client, "k=b").await, 160);
    assert_eq!(stage.service.stats().quota.assigned, 7);
    assert_eq!(stage.service.stats().quota.streams, 1);
}

#[tokio::test]
async fn two_greedy_streams_together_get_no_more_than_the_limit() {
    let stage = Stage::new(FILE).await;
    let mut streams = [open(&stage).await, open(&stage).await];
    for quotas in &mut streams {
        quotas.report(&[("k=a", 0, 1)]);
        let update = quotas.next_update().await;
        assert!(matches!(update, Update::Assigned(1..=8, _)), "{update:?}");
    }
    eventually("most of it is assigned", async || {
        for quotas in &streams {
            // Each reports many rejections.
            quotas.report(&[("k=a", 0, 100_000)]);
        }
        let assigned = stage.service.stats().quota.assigned;
        assert!(assigned <= 160, "{assigned}");
        assigned >= 120
    })
    .await;
    let stats = stage.service.stats();
    assert_eq!((stats.quota.limits, stats.quota.buckets), (1, 2));
}

#[tokio::test]
async fn nothing_is_assigned_twice_and_a_new_window_needs_no_report() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    quotas.report(&[("tenant=a,path=b", 0, 1)]);
    let first = quotas.next_update().await;
    assert!(matches!(first, Update::Assigned(1, 500..=600)), "{first:?}");
    // Single requests spend the rest.
    let mut client = stage.client().await;
    for _ in 0..15 {
        assert!(client.outcome(&request_of(&["tenant=a,path=b"])).await.0);
    }
    quotas.report(&[("tenant=a,path=b", 1, 50)]);
    eventually("its rejections are known", async || {
        stage.service.stats().quota.denied == 51
    })
    .await;
    assert_eq!(stage.service.stats().quota.assigned, 1);
    stage.wait_seconds(3_600);
    let next = quotas.next_update().await;
    assert!(matches!(next, Update::Assigned(1..=16, _)), "{next:?}");
}

#[tokio::test]
async fn unlimited_requests_pass_and_unassignable_ones_do_not() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    let buckets = ["free=x", "other=x", "second=x", "slides=x", "tenant=x"];
    let usages: Vec<_> = buckets.iter().map(|bucket| (*bucket, 5, 0)).collect();
    quotas.report(&usages);
    let mut updates = Vec::new();
    while updates.len() < buckets.len() {
        updates.extend(quotas.updates().await);
    }
    updates.sort_by(|one, other| one.0.cmp(&other.0));
    let updates: Vec<_> = updates.into_iter().map(|(_, update)| update).collect();
    let (allowed, denied) = (Update::Allowed, Update::Denied);
    let expected = [&allowed, &allowed, &denied, &denied, &allowed].map(Clone::clone);
    assert_eq!(updates, expected);
    assert_eq!(stage.service.stats().quota.unfit, 2);
    // A domain that is in no file.
    let mut quotas = open(&stage).await;
    quotas.send(&RateLimitQuotaUsageReports {
        domain: "unknown".to_owned(),
        bucket_quota_usages: vec![usage("k=a", 1, 0)],
    });
    assert_eq!(quotas.next_update().await, Update::Allowed);
}

#[tokio::test]
async fn a_shadow_limit_admits_everything_and_is_counted() {
    let stage = Stage::new(FILE).await;
    let (mut client, mut quotas) = (stage.client().await, open(&stage).await);
    quotas.report(&[("look=a", 4, 0)]);
    assert_eq!(quotas.next_update().await, Update::Allowed);
    eventually("admitted requests are counted", async || {
        left(&mut stage.client().await, "look=a").await == 6
    })
    .await;
    quotas.report(&[("look=a", 100, 0)]);
    eventually("the limit is used up", async || {
        left(&mut stage.client().await, "look=a").await == 0
    })
    .await;
    assert!(client.outcome(&request_of(&["look=a"])).await.0);
}

#[tokio::test]
async fn a_lowered_limit_holds_from_the_next_assignment_on() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    quotas.report(&[("k=a", 0, 1)]);
    assert!(matches!(
        quotas.next_update().await,
        Update::Assigned(7, 30..=46)
    ));
    let lower = FILE.replace("160", "20");
    let new = stage.folder.path().join("new");
    fs::write(&new, lower).unwrap();
    fs::rename(new, stage.folder.path().join("limits.yaml")).unwrap();
    eventually("the new limit holds", async || {
        stage.service.stats().loads == 2
    })
    .await;
    quotas.report(&[("k=a", 7, 100_000)]);
    // Two reports that arrive together count as one, so the first may not show the demand.
    eventually("all that is left is assigned", async || {
        quotas.report(&[("k=a", 0, 100_000)]);
        let assigned = stage.service.stats().quota.assigned;
        assert!(assigned <= 20, "{assigned}");
        assigned == 20
    })
    .await;
    assert_eq!(left(&mut stage.client().await, "k=a").await, 0);
    // A limit that was removed.
    fs::write(stage.folder.path().join("limits.yaml"), ONE).unwrap();
    eventually("the file without it holds", async || {
        stage.service.stats().loads == 3
    })
    .await;
    quotas.report(&[("k=a", 0, 1)]);
    // After all earlier updates.
    while quotas.next_update().await != Update::Allowed {}
}

#[tokio::test]
async fn invalid_or_oversized_reports_are_rejected() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    quotas.send(&RateLimitQuotaUsageReports::default());
    assert_eq!(quotas.code().await, 3, "no domain");
    let mut quotas = open(&stage).await;
    for domain in ["d", "", "e"] {
        quotas.send(&RateLimitQuotaUsageReports {
            domain: domain.to_owned(),
            ..RateLimitQuotaUsageReports::default()
        });
    }
    assert_eq!(quotas.code().await, 3, "two domains");
    let mut quotas = open(&stage).await;
    quotas.send(&RateLimitQuotaUsageReports {
        domain: "d".repeat(2 << 20),
        ..RateLimitQuotaUsageReports::default()
    });
    assert_eq!(quotas.code().await, 11, "too long");
    let mut quotas = open(&stage).await;
    quotas.report(&[("", 0, 0); 2_001]);
    assert_eq!(quotas.code().await, 11, "too many");
    let pairs = |count| (0..count).map(|at| format!("k{at}=")).collect::<Vec<_>>();
    let mut quotas = open(&stage).await;
    quotas.report(&[(&pairs(7_999).join(","), 0, 0), ("other=a", 1, 0)]);
    assert_eq!(quotas.next_update().await, Update::Allowed);
    quotas.report(&[(&pairs(8_000).join(","), 0, 0), ("other=a", 1, 0)]);
    assert_eq!(quotas.code().await, 11, "too many keys");

    let mut quotas = open(&stage).await;
    let long = format!("k={}", "x".repeat(600));
    quotas.report(&[("", 1, 1), (&long, 1, 1)]);
    assert_eq!(quotas.next_update().await, Update::Abandoned);
    // One more than a stream may have.
    let many: Vec<String> = (0..1_001).map(|at| format!("other={at}")).collect();
    let usages: Vec<_> = many.iter().map(|bucket| (bucket.as_str(), 1, 0)).collect();
    quotas.report(&usages);
    let mut updates = Vec::new();
    while updates.len() < many.len() {
        updates.extend(quotas.updates().await);
    }
    let abandoned = updates
        .iter()
        .filter(|(_, update)| *update == Update::Abandoned);
    assert_eq!(abandoned.count(), 1);
    assert_eq!(stage.service.stats().quota.abandoned, 2);
}

#[tokio::test]
async fn updates_for_a_client_that_does_not_read_are_bounded() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    // Some fit into the connection's buffers, one into the budget here.
    let stage = &stage;
    let refused = async |count| {
        eventually("all are rejected", async || {
            stage.service.stats().quota.refused == count
        })
        .await;
    };
    for at in 0..100 {
        let name = format!("k={at}{}", "x".repeat(200 << 10));
        quotas.report(&[(&name, 1, 1)]);
    }
    refused(100).await;
    let abandoned = stage.service.stats().quota.abandoned;
    assert!((1..=40).contains(&abandoned), "{abandoned}");
    // One that is too long for the budget.
    quotas.report(&[(&format!("k={}", "x".repeat(600 << 10)), 1, 1)]);
    refused(101).await;
    assert_eq!(stage.service.stats().quota.abandoned, abandoned);
    // A client that reads gets the updates, and goes on.
    for _ in 0..abandoned {
        assert_eq!(quotas.next_update().await, Update::Abandoned);
    }
    quotas.report(&[("k=a", 0, 1)]);
    assert!(matches!(quotas.next_update().await, Update::Assigned(7, _)));
}

#[tokio::test]
async fn streams_are_bounded_in_number_and_end_with_the_service() {
    let stage = Stage::new(FILE).await;
    let mut all = Vec::new();
    for _ in 0..128 {
        all.push(open(&stage).await);
    }
    let mut beyond = open(&stage).await;
    assert_eq!(beyond.code().await, 8);
    drop(all.pop());
    eventually("there is room for one more", async || {
        stage.service.stats().quota.streams < 128
    })
    .await;
    let mut quotas = open(&stage).await;
    quotas.report(&[("k=a", 0, 1)]);
    assert!(matches!(quotas.next_update().await, Update::Assigned(7, _)));
    let stopping = stage.service.stop();
    let stopping = tokio::spawn(stopping);
    assert_eq!(quotas.code().await, 0);
    for quotas in &mut all {
        assert_eq!(quotas.code().await, 0);
    }
    drop((quotas, all));
    stopping.await.unwrap();
}

#[tokio::test]
async fn two_nodes_that_share_a_store_assign_no_more_than_the_limit() {
    let server = RedisServer::start().await;
    // The unit is a year, as the server's clock counts.
    let file = FILE.replace(
        "{unit: minute, requests_per_unit: 160}",
        "{unit: year, requests_per_unit: 160}",
    );
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let stage = node_with(&server, &file).await;
        let mut quotas = open(&stage).await;
        quotas.report(&[("k=a", 0, 1)]);
        assert!(matches!(
            quotas.next_update().await,
            Update::Assigned(1, 500..=600)
        ));
        nodes.push((stage, quotas));
    }
    eventually("all is assigned", async || {
        let mut assigned = 0;
        for (stage, quotas) in &nodes {
            quotas.report(&[("k=a", 0, 100_000)]);
            assigned += stage.service.stats().quota.assigned;
        }
        assert!(assigned <= 160, "{assigned}");
        assigned == 160
    })
    .await;
    let mut client = nodes[0].0.client().await;
    assert!(!client.outcome(&request_of(&["k=a"])).await.0);
}

#[tokio::test]
async fn without_the_store_the_settings_decide() {
    for (on_store_failure, expected) in [
        (OnStoreFailure::Open, Some(Update::Allowed)),
        (OnStoreFailure::Closed, None),
    ] {
        let counts = Counts::Shared(Arc::new(Unavailable::default()));
        let file =
            "domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 9}}]";
        let stage = Stage::with(file, counts, |config| {
            config.on_store_failure = on_store_failure;
        });
        let stage = stage.await;
        let mut quotas = open(&stage).await;
        // An update for the second bucket alone shows that the first got none.
        quotas.report(&[("k=a", 0, 1)]);
        match expected {
            Some(update) => assert_eq!(quotas.next_update().await, update),
            None => {
                quotas.report(&[("other=a", 0, 1)]);
                assert_eq!(
                    quotas.updates().await,
                    [("other=a".to_owned(), Update::Allowed)]
                );
            }
        }
        assert_eq!(stage.service.stats().quota.assigned, 0);
    }
}
