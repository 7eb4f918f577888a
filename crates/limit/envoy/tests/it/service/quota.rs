//! Calls that are assigned ahead, over a stream as Envoy has one.

use std::fs;
use std::sync::Arc;

use anteroom_config::OnStoreFailure;
use anteroom_envoy::Counts;
use anteroom_envoy::wire::quota::RateLimitQuotaUsageReports;
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::RedisServer;

use crate::service::quota_client::{Quotas, Told, usage};
use crate::service::store::{Away, node_with};
use crate::service::support::{Grpc, Stage, hits, question};

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

/// A call that says how many are left, and is none.
pub(crate) async fn left(client: &mut Grpc, descriptor: &str) -> u32 {
    let mut request = question(&[descriptor]);
    request.descriptors[0].hits_addend = hits(0);
    client.told(&request).await.1[0].1
}

pub(crate) async fn open(stage: &Stage) -> Quotas {
    Quotas::open(stage.service.grpc().unwrap()).await
}

#[tokio::test]
async fn what_is_assigned_is_charged_and_both_doors_count_together() {
    let stage = Stage::new(FILE).await;
    let (mut client, mut quotas) = (stage.client().await, open(&stage).await);
    for _ in 0..3 {
        assert!(client.told(&question(&["k=a"])).await.0);
    }
    quotas.report(&[("k=a", 0, 1)]);
    // A sixteenth of what a minute has left, of which 46 s are; a margin before it ends.
    assert!(matches!(
        quotas.told_one().await,
        Told::Assigned(7, 30..=46)
    ));
    assert_eq!(left(&mut client, "k=a").await, 160 - 3 - 7);
    // Another value is another counter.
    assert_eq!(left(&mut client, "k=b").await, 160);
    assert_eq!(stage.service.stats().quota.assigned, 7);
    assert_eq!(stage.service.stats().quota.streams, 1);
}

#[tokio::test]
async fn two_who_want_everything_get_no_more_than_the_limit_together() {
    let stage = Stage::new(FILE).await;
    let mut streams = [open(&stage).await, open(&stage).await];
    for quotas in &mut streams {
        quotas.report(&[("k=a", 0, 1)]);
        let told = quotas.told_one().await;
        assert!(matches!(told, Told::Assigned(1..=8, _)), "{told:?}");
    }
    eventually("most of it is assigned", async || {
        for quotas in &streams {
            // Each has refused many.
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
async fn nothing_is_assigned_twice_and_a_new_window_is_shared_by_itself() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    quotas.report(&[("tenant=a,path=b", 0, 1)]);
    let first = quotas.told_one().await;
    assert!(matches!(first, Told::Assigned(1, 500..=600)), "{first:?}");
    // All is spent by calls.
    let mut client = stage.client().await;
    for _ in 0..15 {
        assert!(client.told(&question(&["tenant=a,path=b"])).await.0);
    }
    quotas.report(&[("tenant=a,path=b", 1, 50)]);
    eventually("what it refused is known", async || {
        stage.service.stats().quota.denied == 51
    })
    .await;
    assert_eq!(stage.service.stats().quota.assigned, 1);
    stage.wait_seconds(3_600);
    let next = quotas.told_one().await;
    assert!(matches!(next, Told::Assigned(1..=16, _)), "{next:?}");
}

#[tokio::test]
async fn unlimited_requests_pass_and_unassignable_ones_do_not() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    let buckets = ["free=x", "other=x", "second=x", "slides=x", "tenant=x"];
    let usages: Vec<_> = buckets.iter().map(|bucket| (*bucket, 5, 0)).collect();
    quotas.report(&usages);
    let mut told = Vec::new();
    while told.len() < buckets.len() {
        told.extend(quotas.told().await);
    }
    told.sort_by(|one, other| one.0.cmp(&other.0));
    let told: Vec<_> = told.into_iter().map(|(_, told)| told).collect();
    let (allowed, denied) = (Told::Allowed, Told::Denied);
    let expected = [&allowed, &allowed, &denied, &denied, &allowed].map(Clone::clone);
    assert_eq!(told, expected);
    assert_eq!(stage.service.stats().quota.unfit, 2);
    // A domain that no file has.
    let mut quotas = open(&stage).await;
    quotas.send(&RateLimitQuotaUsageReports {
        domain: "unknown".to_owned(),
        bucket_quota_usages: vec![usage("k=a", 1, 0)],
    });
    assert_eq!(quotas.told_one().await, Told::Allowed);
}

#[tokio::test]
async fn a_limit_that_only_looks_lets_everything_through_and_is_charged() {
    let stage = Stage::new(FILE).await;
    let (mut client, mut quotas) = (stage.client().await, open(&stage).await);
    quotas.report(&[("look=a", 4, 0)]);
    assert_eq!(quotas.told_one().await, Told::Allowed);
    eventually("what went through is charged", async || {
        left(&mut stage.client().await, "look=a").await == 6
    })
    .await;
    quotas.report(&[("look=a", 100, 0)]);
    eventually("as much as there is", async || {
        left(&mut stage.client().await, "look=a").await == 0
    })
    .await;
    assert!(client.told(&question(&["look=a"])).await.0);
}

#[tokio::test]
async fn a_limit_that_is_lowered_holds_from_the_next_assignment_on() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    quotas.report(&[("k=a", 0, 1)]);
    assert!(matches!(
        quotas.told_one().await,
        Told::Assigned(7, 30..=46)
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
    // Two reports that come at once are one, so the first may not say how much it wants.
    eventually("all that is left is assigned", async || {
        quotas.report(&[("k=a", 0, 100_000)]);
        let assigned = stage.service.stats().quota.assigned;
        assert!(assigned <= 20, "{assigned}");
        assigned == 20
    })
    .await;
    assert_eq!(left(&mut stage.client().await, "k=a").await, 0);
    // A limit that is gone.
    fs::write(stage.folder.path().join("limits.yaml"), ONE).unwrap();
    eventually("the file without it holds", async || {
        stage.service.stats().loads == 3
    })
    .await;
    quotas.report(&[("k=a", 0, 1)]);
    // After all that was told before.
    while quotas.told_one().await != Told::Allowed {}
}

#[tokio::test]
async fn what_is_wrong_or_too_much_is_refused() {
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
    assert_eq!(quotas.told_one().await, Told::Allowed);
    quotas.report(&[(&pairs(8_000).join(","), 0, 0), ("other=a", 1, 0)]);
    assert_eq!(quotas.code().await, 11, "too many keys");

    let mut quotas = open(&stage).await;
    let long = format!("k={}", "x".repeat(600));
    quotas.report(&[("", 1, 1), (&long, 1, 1)]);
    assert_eq!(quotas.told_one().await, Told::Abandoned);
    // One more than a stream may have.
    let many: Vec<String> = (0..1_001).map(|at| format!("other={at}")).collect();
    let usages: Vec<_> = many.iter().map(|bucket| (bucket.as_str(), 1, 0)).collect();
    quotas.report(&usages);
    let mut told = Vec::new();
    while told.len() < many.len() {
        told.extend(quotas.told().await);
    }
    let abandoned = told.iter().filter(|(_, told)| *told == Told::Abandoned);
    assert_eq!(abandoned.count(), 1);
    assert_eq!(stage.service.stats().quota.abandoned, 2);
}

#[tokio::test]
async fn what_waits_for_who_does_not_read_is_bounded() {
    let stage = Stage::new(FILE).await;
    let mut quotas = open(&stage).await;
    // Some fit into what goes ahead on a connection, one into what may wait here.
    let stage = &stage;
    let refused = async |count| {
        eventually("all are refused", async || {
            stage.service.stats().quota.refused == count
        })
        .await;
    };
    for at in 0..100 {
        let name = format!("k={at}{}", "x".repeat(200 << 10));
        quotas.report(&[(&name, 1, 1)]);
    }
    refused(100).await;
    let told = stage.service.stats().quota.abandoned;
    assert!((1..=40).contains(&told), "{told}");
    // One that may never wait.
    quotas.report(&[(&format!("k={}", "x".repeat(600 << 10)), 1, 1)]);
    refused(101).await;
    assert_eq!(stage.service.stats().quota.abandoned, told);
    // Whoever reads is told of the others, and goes on.
    for _ in 0..told {
        assert_eq!(quotas.told_one().await, Told::Abandoned);
    }
    quotas.report(&[("k=a", 0, 1)]);
    assert!(matches!(quotas.told_one().await, Told::Assigned(7, _)));
}

#[tokio::test]
async fn streams_end_with_the_service_and_beyond_a_number_are_refused() {
    let stage = Stage::new(FILE).await;
    let mut all = Vec::new();
    for _ in 0..128 {
        all.push(open(&stage).await);
    }
    let mut beyond = open(&stage).await;
    assert_eq!(beyond.code().await, 8);
    drop(all.pop());
    eventually("there is place for one more", async || {
        stage.service.stats().quota.streams < 128
    })
    .await;
    let mut quotas = open(&stage).await;
    quotas.report(&[("k=a", 0, 1)]);
    assert!(matches!(quotas.told_one().await, Told::Assigned(7, _)));
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
    // By the server's clock.
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
            quotas.told_one().await,
            Told::Assigned(1, 500..=600)
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
    assert!(!client.told(&question(&["k=a"])).await.0);
}

#[tokio::test]
async fn while_the_store_is_away_it_goes_as_the_settings_say() {
    for (on_store_failure, expected) in [
        (OnStoreFailure::Open, Some(Told::Allowed)),
        (OnStoreFailure::Closed, None),
    ] {
        let counts = Counts::Shared(Arc::new(Away::default()));
        let file =
            "domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 9}}]";
        let stage = Stage::with(file, counts, |config| {
            config.on_store_failure = on_store_failure;
        });
        let stage = stage.await;
        let mut quotas = open(&stage).await;
        // What is said of the second is all that is said, if nothing is said of the first.
        quotas.report(&[("k=a", 0, 1)]);
        match expected {
            Some(told) => assert_eq!(quotas.told_one().await, told),
            None => {
                quotas.report(&[("other=a", 0, 1)]);
                assert_eq!(quotas.told().await, [("other=a".to_owned(), Told::Allowed)]);
            }
        }
        assert_eq!(stage.service.stats().quota.assigned, 0);
    }
}
