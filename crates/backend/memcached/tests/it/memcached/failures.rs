//! Errors of failed requests, and the counts after them.

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::swapping::LOG_LONGEST;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _};
use anteroom_testkit::eventually;
use anteroom_testkit::memcached_server::MemcachedServer;
use anteroom_testkit::redis_server::{Behaviour, Impostor};

use crate::memcached::support::{a_minute, call, counts, counts_with_timeout, gcra, rate};

#[tokio::test]
async fn a_server_that_was_restarted_has_forgotten_all_and_is_used_again() {
    let mut server = MemcachedServer::start().await;
    let counts = counts(server.port());
    for policy in [a_minute(5), gcra(5)] {
        call(&counts, &policy, Cost::take(5)).await.unwrap();
        assert!(
            !call(&counts, &policy, Cost::ONE)
                .await
                .unwrap()
                .is_allowed()
        );
    }
    server.restart().await;
    eventually("the server is used again", async || {
        call(&counts, &a_minute(5), Cost::Peek).await.is_ok()
    })
    .await;
    for policy in [a_minute(5), gcra(5)] {
        let verdict = call(&counts, &policy, Cost::ONE).await.unwrap();
        assert_eq!(verdict.remaining, 4);
    }
}

#[tokio::test]
async fn silence_is_late_and_a_missing_server_is_unavailable() {
    let server = MemcachedServer::start().await;
    // Shorter than the time after which a connection without replies is closed.
    let late = counts_with_timeout(&[server.port()], Duration::from_millis(300));
    eventually("the node is connected", async || {
        call(&late, &a_minute(5), Cost::Peek).await.is_ok()
    })
    .await;
    server.pause();
    let error = call(&late, &a_minute(5), Cost::ONE).await.unwrap_err();
    assert!(matches!(error, CountsError::Late { .. }), "{error:?}");
    assert!(error.is_transient());
    server.resume();
    // The late request was counted when the server resumed, and undone.
    eventually("the request was undone", async || {
        server.stat("decr_hits").await == 1
    })
    .await;
    eventually("nothing is counted", async || {
        let verdict = call(&late, &a_minute(5), Cost::Peek).await;
        verdict.is_ok_and(|verdict| verdict.remaining == 5)
    })
    .await;
    late.close();
    let error = call(&late, &a_minute(5), Cost::ONE).await.unwrap_err();
    assert!(
        matches!(error, CountsError::Unreachable { .. }),
        "{error:?}"
    );
    let unavailable = counts(1);
    for _ in 0..3 {
        let error = call(&unavailable, &a_minute(5), Cost::ONE)
            .await
            .unwrap_err();
        assert!(
            matches!(error, CountsError::Unreachable { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    }
}

#[tokio::test]
async fn another_protocol_than_memcached_is_rejected() {
    for (manner, expected) in [
        (Behaviour::AnswersHttp, "check host and port"),
        (Behaviour::Answers("ERROR\r\n"), "meta commands"),
        (
            Behaviour::Answers("CLIENT_ERROR unauthenticated\r\n"),
            "no -Y",
        ),
        (Behaviour::Answers("HD\r\n"), "check host and port"),
        (
            Behaviour::Answers("VA 99999999999\r\n"),
            "check host and port",
        ),
    ] {
        let impostor = Impostor::start(manner.clone()).await;
        let counts = counts(impostor.port());
        let error = call(&counts, &a_minute(5), Cost::ONE).await.unwrap_err();
        assert!(matches!(error, CountsError::Rejected { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{manner:?}: {error}");
    }
    let silent = Impostor::start(Behaviour::HangsUp).await;
    let error = call(&counts(silent.port()), &a_minute(5), Cost::ONE).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, CountsError::Unreachable { .. }),
        "{error:?}"
    );
}

/// Such a value neither counts as a new client nor is overwritten.
#[tokio::test]
async fn values_of_another_program_under_our_keys_are_rejected() {
    for (policy, value) in [(a_minute(5), "none"), (gcra(5), "17")] {
        let server = MemcachedServer::start().await;
        let counts = counts(server.port());
        call(&counts, &policy, Cost::ONE).await.unwrap();
        let values = server.values().await;
        let (name, _) = values.last().unwrap();
        let put = format!("ms {name} {} T60\r\n{value}", value.len());
        assert_eq!(server.send(&put).await, "HD\r\n");
        for cost in [Cost::ONE, Cost::Peek, Cost::refund(1)] {
            let error = call(&counts, &policy, cost).await.unwrap_err();
            assert!(error.to_string().contains("prefix"), "{cost:?}: {error}");
        }
        let get = format!("mg {name} v");
        assert!(server.send(&get).await.contains(value));
    }
}

#[tokio::test]
async fn a_server_without_compare_and_swap_keeps_only_sums() {
    let server = MemcachedServer::start_with(&["-C"]).await;
    let counts = counts(server.port());
    // A missing value can be written; an existing one has no unique number.
    call(&counts, &gcra(5), Cost::ONE).await.unwrap();
    for cost in [Cost::ONE, Cost::Peek] {
        let error = call(&counts, &gcra(5), cost).await.unwrap_err();
        assert!(matches!(error, CountsError::Rejected { .. }), "{error:?}");
        assert!(error.to_string().contains("without -C"), "{error}");
    }
    for left in [4, 3] {
        let verdict = call(&counts, &a_minute(5), Cost::ONE).await.unwrap();
        assert_eq!(verdict.remaining, left);
    }
}

/// The last of several limits of a client fails.
#[tokio::test]
async fn acquires_before_a_failed_one_are_undone() {
    let server = MemcachedServer::start().await;
    let counts = counts(server.port());
    let (window, state) = (a_minute(5), gcra(5));
    let acquire = |limit, policy| SharedAcquire {
        limit,
        policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    };
    let name = counts.name_of("foreign", ClientKey(1));
    server.send(&format!("ms {name} 2 T60\r\nno")).await;
    let acquires = [
        acquire("window", &window),
        acquire("state", &state),
        acquire("foreign", &state),
    ];
    let error = counts.acquire(&acquires).await.unwrap_err();
    assert!(matches!(error, CountsError::Rejected { .. }), "{error:?}");
    for (limit, policy) in [("window", &window), ("state", &state)] {
        let peek = SharedAcquire {
            cost: Cost::Peek,
            ..acquire(limit, policy)
        };
        let left = counts.acquire(&[peek]).await.unwrap()[0].remaining;
        assert_eq!(left, 5, "{limit}");
    }
}

#[tokio::test]
async fn a_log_too_long_for_a_value_is_rejected() {
    let server = MemcachedServer::start().await;
    let counts = counts(server.port());
    let log = |requests| Policy::SlidingLog(SlidingLog::new(rate(requests, 60)).unwrap());
    assert_eq!(counts.check("api", &log(LOG_LONGEST)), Ok(()));
    let text = counts.check("api", &log(LOG_LONGEST + 1)).unwrap_err();
    let text = text.to_string();
    assert!(
        text.ends_with("memcached keeps logs of up to 10000"),
        "{text}"
    );
    let error = call(&counts, &log(LOG_LONGEST + 1), Cost::ONE).await;
    assert!(
        matches!(error, Err(CountsError::Rejected { .. })),
        "{error:?}"
    );
    assert_eq!(server.values().await, []);
}
