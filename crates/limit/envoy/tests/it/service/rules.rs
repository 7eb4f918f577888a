//! Tests of responses: the reference service's rules, and where ours differ.

use anteroom_config::RateLimitHeaders;
use anteroom_envoy::wire::{Code, Kind, Override, RateLimit};

use crate::service::support::{Stage, hits, local, request_of};

const FILE: &str = "
domain: d
descriptors:
- {key: two, rate_limit: {unit: minute, requests_per_unit: 2, name: pair}}
- {key: ten, rate_limit: {unit: hour, requests_per_unit: 10}}
- {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: any, rate_limit: {unlimited: true}}
- {key: look, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: quota_a, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: quota_b, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: bucket, rate_limit: {unit: minute, requests_per_unit: 6, algorithm: token-bucket, burst: 3}}
- {key: named, metadata: {a: {b: 1}}, rate_limit: {unit: minute, requests_per_unit: 9}}
- {key: other, metadata: {a: {b: 2, c: [x]}, d: true},
   rate_limit: {unit: minute, requests_per_unit: 1}}
";

#[tokio::test]
async fn a_limit_admits_its_number_and_reports_what_is_left() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    for expected in [(true, 1), (true, 0), (false, 0)] {
        let response = client.send(&request_of(&["two"])).await;
        let status = &response.statuses[0];
        assert_eq!(status.code == i32::from(Code::Ok), expected.0);
        assert_eq!(response.overall_code, status.code);
        assert_eq!(status.limit_remaining, expected.1);
        let limit = RateLimit {
            requests_per_unit: 2,
            unit: 2,
            name: "pair".to_owned(),
        };
        assert_eq!(status.current_limit, Some(limit));
        // The clock stands at 13 s past the minute.
        assert_eq!(status.duration_until_reset.unwrap().seconds, 47);
    }
    stage.wait_seconds(47);
    let outcome = client.outcome(&request_of(&["two"])).await;
    assert_eq!(outcome, (true, vec![(true, 1)]));
}

#[tokio::test]
async fn requests_without_a_limit_and_unlimited_ones_are_admitted() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let response = client.send(&request_of(&["nobody", "any", "none"])).await;
    let codes: Vec<_> = response.statuses.iter().map(|status| status.code).collect();
    assert_eq!(codes, [1, 1, 2]);
    assert_eq!(response.statuses[0].current_limit, None);
    assert_eq!(response.statuses[0].limit_remaining, 0);
    assert_eq!(response.statuses[1].limit_remaining, u32::MAX);
    let mut request = request_of(&["two"]);
    request.domain = "unknown".to_owned();
    assert!(client.outcome(&request).await.0);
    assert_eq!(stage.service.stats().domains_unknown, 1);
}

#[tokio::test]
async fn a_request_that_one_descriptor_rejects_takes_from_none() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let both = request_of(&["ten=1", "two=1"]);
    assert_eq!(
        client.outcome(&both).await,
        (true, vec![(true, 9), (true, 1)])
    );
    assert_eq!(
        client.outcome(&both).await,
        (true, vec![(true, 8), (true, 0)])
    );
    for _ in 0..5 {
        assert_eq!(
            client.outcome(&both).await,
            (false, vec![(true, 8), (false, 0)])
        );
    }
    assert_eq!(client.outcome(&request_of(&["ten=1"])).await.1, [(true, 7)]);
}

#[tokio::test]
async fn charge_rejected_takes_for_rejected_requests() {
    let stage = Stage::with(FILE, local(), |config| config.charge_rejected = true).await;
    let mut client = stage.client().await;
    let mut both = request_of(&["ten=1", "none"]);
    assert_eq!(
        client.outcome(&both).await,
        (false, vec![(true, 9), (false, 0)])
    );
    both.hits_addend = 7;
    assert!(!client.outcome(&both).await.0);
    // Seven exceed the two that are left, and take them.
    assert!(!client.outcome(&both).await.0);
    assert_eq!(
        client.outcome(&request_of(&["ten=1"])).await,
        (false, vec![(false, 0)])
    );
}

#[tokio::test]
async fn a_shadow_limit_rejects_nothing_and_counts_admitted_requests() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let rejected = request_of(&["look", "none"]);
    assert_eq!(client.outcome(&rejected).await.1, [(true, 1), (false, 0)]);
    for left in [0, 0, 0] {
        assert_eq!(
            client.outcome(&request_of(&["look"])).await,
            (true, vec![(true, left)])
        );
    }
    let stats = &stage.service.stats().limits["d.look"];
    assert_eq!(stats[3..], [("over_limit", 2), ("shadow_mode", 2)]);
}

#[tokio::test]
async fn one_quota_limit_with_something_left_is_enough() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let all = request_of(&["quota_a", "quota_b", "ten"]);
    let outcomes = [
        (true, vec![(true, 0), (true, 1), (true, 9)]),
        (true, vec![(false, 0), (true, 0), (true, 8)]),
        (false, vec![(false, 0), (false, 0), (true, 8)]),
        (false, vec![(false, 0), (false, 0), (true, 8)]),
    ];
    for expected in outcomes {
        assert_eq!(client.outcome(&all).await, expected);
    }
}

#[tokio::test]
async fn a_service_in_shadow_mode_rejects_nothing() {
    let stage = Stage::with(FILE, local(), |config| config.shadow_mode = true).await;
    let mut client = stage.client().await;
    for expected in [true, true, false] {
        let (is_ok, statuses) = client.outcome(&request_of(&["two"])).await;
        assert!(is_ok);
        assert_eq!(statuses[0].0, expected);
    }
    let answers = stage.service.stats().answers;
    assert!(answers.contains(&("shadow", 1)) && answers.contains(&("over_limit", 0)));
}

#[tokio::test]
async fn hits_of_a_descriptor_go_before_those_of_the_request() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = request_of(&["ten=a", "ten=b", "ten=c"]);
    request.hits_addend = 3;
    request.descriptors[1].hits_addend = hits(5);
    request.descriptors[2].hits_addend = hits(0);
    let expected = (true, vec![(true, 7), (true, 5), (true, 10)]);
    assert_eq!(client.outcome(&request).await, expected);
    // All of it is over the limit if it is more than what is left.
    request.descriptors[1].hits_addend = hits(6);
    let expected = (false, vec![(true, 7), (false, 5), (true, 10)]);
    assert_eq!(client.outcome(&request).await, expected);
    request.descriptors[1].hits_addend = hits(u64::MAX);
    assert!(!client.outcome(&request).await.0);
}

#[tokio::test]
async fn refunds_are_available_again() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = request_of(&["ten=a"]);
    request.descriptors[0].hits_addend = hits(8);
    assert_eq!(client.outcome(&request).await.1, [(true, 2)]);
    request.descriptors[0].is_negative_hits = true;
    request.descriptors[0].hits_addend = hits(3);
    assert_eq!(client.outcome(&request).await, (true, vec![(true, 5)]));
    let stats = &stage.service.stats().limits["d.ten"];
    assert_eq!(stats[0], ("total_hits", 8));
}

#[tokio::test]
async fn a_limit_of_the_request_overrides_the_file() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = request_of(&["two"]);
    request.descriptors[0].limit = Some(Override {
        requests_per_unit: 3,
        unit: 3,
    });
    for left in [2, 1, 0] {
        let response = client.send(&request).await;
        let limit = response.statuses[0].current_limit.clone().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit), (3, 3));
        assert_eq!(response.statuses[0].limit_remaining, left);
    }
    assert!(!client.outcome(&request).await.0);
    assert!(
        client.outcome(&request_of(&["two"])).await.0,
        "another counter"
    );
}

#[tokio::test]
async fn a_bucket_refills_and_reports_when() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    for left in [2, 1, 0] {
        assert_eq!(
            client.outcome(&request_of(&["bucket"])).await.1,
            [(true, left)]
        );
    }
    let response = client.send(&request_of(&["bucket"])).await;
    assert_eq!(response.overall_code, i32::from(Code::OverLimit));
    assert_eq!(
        response.statuses[0].duration_until_reset.unwrap().seconds,
        10
    );
    stage.wait_seconds(10);
    assert_eq!(
        client.outcome(&request_of(&["bucket"])).await,
        (true, vec![(true, 0)])
    );
}

#[tokio::test]
async fn headers_describe_the_nearest_limit_or_the_last_that_rejects() {
    let stage = Stage::with(FILE, local(), |config| {
        config.headers = RateLimitHeaders::RateLimit;
    });
    let stage = stage.await;
    let mut client = stage.client().await;
    let mut check = async |descriptors: &[&str], expected: &[&str]| {
        let response = client.send(&request_of(descriptors)).await;
        let headers = response.response_headers_to_add.iter();
        let headers: Vec<_> = headers
            .map(|header| format!("{}: {}", header.key, header.value))
            .collect();
        assert_eq!(headers, expected, "{descriptors:?}");
    };
    let two = |left| {
        [
            "RateLimit-Limit: 2".to_owned(),
            format!("RateLimit-Remaining: {left}"),
            "RateLimit-Reset: 47".to_owned(),
        ]
    };
    let [a, b, c] = &two(1);
    check(&["ten", "two", "any"], &[a, b, c]).await;
    let [a, b, c] = &two(0);
    check(&["two", "ten"], &[a, b, c]).await;
    check(&["none", "two"], &[a, b, c]).await;
    check(&["any", "nobody"], &[]).await;
}

#[tokio::test]
async fn metadata_of_admitting_limits_is_returned() {
    let stage = Stage::with(FILE, local(), |config| config.dynamic_metadata = true).await;
    let mut client = stage.client().await;
    let metadata = client
        .send(&request_of(&["named=x", "other"]))
        .await
        .dynamic_metadata
        .unwrap();
    let shown = format!("{metadata:?}");
    assert!(shown.contains("named=x"), "{shown}");
    let Some(Kind::StructValue(of_files)) = &metadata.fields["metadata"].kind else {
        panic!("{shown}");
    };
    let Some(Kind::StructValue(a)) = &of_files.fields["a"].kind else {
        panic!("{shown}");
    };
    // The first value of a name stays, and the rest is merged.
    assert_eq!(a.fields["b"].kind, Some(Kind::NumberValue(1.0)));
    assert!(a.fields.contains_key("c") && of_files.fields.contains_key("d"));
    let metadata = client
        .send(&request_of(&["named=x", "other"]))
        .await
        .dynamic_metadata
        .unwrap();
    assert!(!format!("{:?}", metadata.fields["metadata"]).contains("\"d\""));
}
