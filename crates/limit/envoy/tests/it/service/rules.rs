//! What is answered: the reference service's rules, and where ours are others.

use anteroom_config::RateLimitHeaders;
use anteroom_envoy::wire::{Code, Kind, Override, RateLimit};

use crate::service::support::{Stage, hits, local, question};

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
async fn a_limit_lets_through_what_it_says_and_tells_what_is_left() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    for expected in [(true, 1), (true, 0), (false, 0)] {
        let answer = client.ask(&question(&["two"])).await;
        let status = &answer.statuses[0];
        assert_eq!(status.code == i32::from(Code::Ok), expected.0);
        assert_eq!(answer.overall_code, status.code);
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
    let told = client.told(&question(&["two"])).await;
    assert_eq!(told, (true, vec![(true, 1)]));
}

#[tokio::test]
async fn what_meets_no_limit_goes_through_and_what_is_unlimited_says_so() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let answer = client.ask(&question(&["nobody", "any", "none"])).await;
    let codes: Vec<_> = answer.statuses.iter().map(|status| status.code).collect();
    assert_eq!(codes, [1, 1, 2]);
    assert_eq!(answer.statuses[0].current_limit, None);
    assert_eq!(answer.statuses[0].limit_remaining, 0);
    assert_eq!(answer.statuses[1].limit_remaining, u32::MAX);
    let mut request = question(&["two"]);
    request.domain = "unknown".to_owned();
    assert!(client.told(&request).await.0);
    assert_eq!(stage.service.stats().domains_unknown, 1);
}

#[tokio::test]
async fn a_request_that_one_descriptor_rejects_is_charged_to_none() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let both = question(&["ten=1", "two=1"]);
    assert_eq!(client.told(&both).await, (true, vec![(true, 9), (true, 1)]));
    assert_eq!(client.told(&both).await, (true, vec![(true, 8), (true, 0)]));
    for _ in 0..5 {
        assert_eq!(
            client.told(&both).await,
            (false, vec![(true, 8), (false, 0)])
        );
    }
    assert_eq!(client.told(&question(&["ten=1"])).await.1, [(true, 7)]);
}

#[tokio::test]
async fn who_wants_the_reference_s_way_charges_what_is_rejected() {
    let stage = Stage::with(FILE, local(), |config| config.charge_rejected = true).await;
    let mut client = stage.client().await;
    let mut both = question(&["ten=1", "none"]);
    assert_eq!(
        client.told(&both).await,
        (false, vec![(true, 9), (false, 0)])
    );
    both.hits_addend = 7;
    assert!(!client.told(&both).await.0);
    // Seven do not fit into two any more: they take what is left.
    assert!(!client.told(&both).await.0);
    assert_eq!(
        client.told(&question(&["ten=1"])).await,
        (false, vec![(false, 0)])
    );
}

#[tokio::test]
async fn a_limit_that_only_looks_rejects_nobody_and_counts_what_goes_through() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let rejected = question(&["look", "none"]);
    assert_eq!(client.told(&rejected).await.1, [(true, 1), (false, 0)]);
    for left in [0, 0, 0] {
        assert_eq!(
            client.told(&question(&["look"])).await,
            (true, vec![(true, left)])
        );
    }
    let stats = &stage.service.stats().limits["d.look"];
    assert_eq!(stats[3..], [("over_limit", 2), ("shadow_mode", 2)]);
}

#[tokio::test]
async fn of_quotas_one_that_has_something_left_is_enough() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let all = question(&["quota_a", "quota_b", "ten"]);
    let told = [
        (true, vec![(true, 0), (true, 1), (true, 9)]),
        (true, vec![(false, 0), (true, 0), (true, 8)]),
        (false, vec![(false, 0), (false, 0), (true, 8)]),
        (false, vec![(false, 0), (false, 0), (true, 8)]),
    ];
    for expected in told {
        assert_eq!(client.told(&all).await, expected);
    }
}

#[tokio::test]
async fn a_service_that_only_looks_rejects_nobody() {
    let stage = Stage::with(FILE, local(), |config| config.shadow_mode = true).await;
    let mut client = stage.client().await;
    for expected in [true, true, false] {
        let (is_ok, statuses) = client.told(&question(&["two"])).await;
        assert!(is_ok);
        assert_eq!(statuses[0].0, expected);
    }
    let answers = stage.service.stats().answers;
    assert!(answers.contains(&("shadow", 1)) && answers.contains(&("over_limit", 0)));
}

#[tokio::test]
async fn hits_count_by_descriptor_before_they_count_by_request() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = question(&["ten=a", "ten=b", "ten=c"]);
    request.hits_addend = 3;
    request.descriptors[1].hits_addend = hits(5);
    request.descriptors[2].hits_addend = hits(0);
    let told = (true, vec![(true, 7), (true, 5), (true, 10)]);
    assert_eq!(client.told(&request).await, told);
    // More than is left is over the limit, all of it.
    request.descriptors[1].hits_addend = hits(6);
    let told = (false, vec![(true, 7), (false, 5), (true, 10)]);
    assert_eq!(client.told(&request).await, told);
    request.descriptors[1].hits_addend = hits(u64::MAX);
    assert!(!client.told(&request).await.0);
}

#[tokio::test]
async fn what_is_given_back_is_there_again() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = question(&["ten=a"]);
    request.descriptors[0].hits_addend = hits(8);
    assert_eq!(client.told(&request).await.1, [(true, 2)]);
    request.descriptors[0].is_negative_hits = true;
    request.descriptors[0].hits_addend = hits(3);
    assert_eq!(client.told(&request).await, (true, vec![(true, 5)]));
    let stats = &stage.service.stats().limits["d.ten"];
    assert_eq!(stats[0], ("total_hits", 8));
}

#[tokio::test]
async fn a_limit_that_the_request_brings_holds_instead_of_the_file_s() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = question(&["two"]);
    request.descriptors[0].limit = Some(Override {
        requests_per_unit: 3,
        unit: 3,
    });
    for left in [2, 1, 0] {
        let answer = client.ask(&request).await;
        let limit = answer.statuses[0].current_limit.clone().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit), (3, 3));
        assert_eq!(answer.statuses[0].limit_remaining, left);
    }
    assert!(!client.told(&request).await.0);
    assert!(client.told(&question(&["two"])).await.0, "another counter");
}

#[tokio::test]
async fn a_bucket_fills_and_says_when_there_is_something_in_it() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    for left in [2, 1, 0] {
        assert_eq!(client.told(&question(&["bucket"])).await.1, [(true, left)]);
    }
    let answer = client.ask(&question(&["bucket"])).await;
    assert_eq!(answer.overall_code, i32::from(Code::OverLimit));
    assert_eq!(answer.statuses[0].duration_until_reset.unwrap().seconds, 10);
    stage.wait_seconds(10);
    assert_eq!(
        client.told(&question(&["bucket"])).await,
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
        let answer = client.ask(&question(descriptors)).await;
        let headers = answer.response_headers_to_add.iter();
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
async fn metadata_of_limits_that_are_passed_goes_along() {
    let stage = Stage::with(FILE, local(), |config| config.dynamic_metadata = true).await;
    let mut client = stage.client().await;
    let metadata = client
        .ask(&question(&["named=x", "other"]))
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
    // What was there first stays, and the rest is added.
    assert_eq!(a.fields["b"].kind, Some(Kind::NumberValue(1.0)));
    assert!(a.fields.contains_key("c") && of_files.fields.contains_key("d"));
    let metadata = client
        .ask(&question(&["named=x", "other"]))
        .await
        .dynamic_metadata
        .unwrap();
    assert!(!format!("{:?}", metadata.fields["metadata"]).contains("\"d\""));
}
