//! Tests of `/metrics`: names, types, values, and a strict parse.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use anteroom_admin::{ConnectionStats, ExtraStats, LimitStats, QuotaStats, RateLimitServiceStats};
use anteroom_config::OriginOwner;
use anteroom_node::Outcome;
use anteroom_proxy::upstream::{Condition, GroupStats, OriginStats, RetryStats};
use anteroom_room::time::DurationMs;

use crate::control::bench::{Bench, NOW, room_name};
use crate::control::exposition::{Family, parse};

/// Returns stats of the rest of the program, each with its own value.
fn everything() -> ExtraStats {
    let shop = room_name("shop");
    ExtraStats {
        connections: ConnectionStats {
            open: 3,
            with_ticket: 2,
            limit: 10,
            near: 7,
            reclaimed: [("total", 13)].into(),
            turned_away: [("address", 14)].into(),
            fast_path: [("forwarded", 15)].into(),
        },
        accept_pauses: 1,
        accept_failures: 2,
        handshakes_failed: 11,
        connections_broken_off: [("framing", 12)].into(),
        certificate_expires_at: Some(1_800_000_000),
        bypass_failures: [(shop.clone(), 4)].into(),
        shared_tickets: [(shop.clone(), 47)].into(),
        shared_ticket_requests: [(shop.clone(), 48)].into(),
        tickets_evicted: 49,
        journal_rewrites: 5,
        journal_loss: Some("the journal was empty".to_owned()),
        reloads: 6,
        failed_reloads: 7,
        last_reload_error: Some("no".to_owned()),
        origin_outcomes: [((shop.clone(), "answered"), 8)].into(),
        origins: [(OriginOwner::Room(shop.clone()), origins())].into(),
        verdicts: [((shop.clone(), "admit"), 9), ((shop, "a \"b\"\n\\"), 10)].into(),
        limits: [("api".to_owned(), limit())].into(),
        limit_stores: [(("valkey", "disagreement"), 28)].into(),
        rate_limits: Some(rate_limits()),
    }
}

fn rate_limits() -> RateLimitServiceStats {
    let names = [
        "total_hits",
        "within_limit",
        "near_limit",
        "over_limit",
        "shadow_mode",
    ];
    let mut count = 30;
    let hits = names.map(|name| {
        count += 1;
        (name, count)
    });
    RateLimitServiceStats {
        answers: vec![("ok", 27), ("over_limit", 28)],
        hits: [("edge.path_api".to_owned(), hits)].into(),
        unknown_domains: 36,
        loads: 37,
        failed_loads: 38,
        keys: 39,
        crowded: 40,
        quota: QuotaStats {
            streams: 41,
            limits: 42,
            buckets: 43,
            requests: vec![("assigned", 44), ("denied", 45)],
            events: vec![("rejected", 46)],
        },
    }
}

fn limit() -> LimitStats {
    LimitStats {
        requests: [("allow", 22), ("reject", 23)].into(),
        keys: 24,
        keys_max: 25,
        crowded: 26,
        store_failures: 27,
        store: "valkey",
        store_failed_ago: None,
        store_cause: None,
        is_joining_store: false,
    }
}

fn origins() -> GroupStats {
    let ms = |ms| Some(Duration::from_millis(ms));
    let origin = OriginStats {
        url: "http://a:80".to_owned(),
        condition: Condition::Out,
        since: Duration::from_secs(12),
        last_error: Some("no".to_owned()),
        in_flight: 13,
        outcomes: vec![("answered", 14), ("broken", 15)],
        response_times: vec![(ms(1), 16), (ms(10), 17), (None, 18)],
        response_time_sum: Duration::from_millis(1_900),
        recent_response_time: Some(Duration::from_millis(25)),
        good_checks: 20,
        bad_checks: 21,
    };
    GroupStats {
        origins: vec![origin],
        retries: RetryStats {
            stale: 11,
            elsewhere: 12,
        },
        is_down: false,
    }
}

async fn scrape(bench: &Bench) -> BTreeMap<String, Family> {
    let response = bench.get("/metrics").await;
    assert_eq!(response.status, 200);
    assert_eq!(
        response.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    parse(&response.body)
}

/// Returns the value of a family for these labels; `None` if there is no such sample.
fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let family = families.get(name).expect("a family of this name");
    let mut samples = family.samples.iter();
    let is_it = |known: &[(String, String)]| {
        known.len() == labels.len()
            && labels
                .iter()
                .all(|(name, value)| known.contains(&((*name).to_owned(), (*value).to_owned())))
    };
    samples
        .find(|sample| is_it(&sample.labels))
        .map(|sample| sample.value)
}

const SHOP: [(&str, &str); 1] = [("room", "shop")];

#[tokio::test]
async fn names_types_and_labels_match_the_golden_file() {
    let bench = Bench::with_extras(everything()).await;
    let mut lines = String::new();
    for (name, family) in scrape(&bench).await {
        assert!(name.starts_with("anteroom_"), "{name}");
        let help = &family.help;
        assert!(help.len() > 15 && help.ends_with('.'), "{name}: {help}");
        let keys: BTreeSet<_> = family
            .samples
            .iter()
            .flat_map(|sample| sample.labels.iter().map(|(key, _)| key.as_str()))
            .collect();
        let keys = keys.into_iter().collect::<Vec<_>>().join(",");
        lines.push_str(&format!("{} {name} {{{keys}}}\n", family.kind));
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/metrics.txt");
    if std::env::var_os("ANTEROOM_UPDATE").is_some() {
        fs::write(&golden, &lines).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(
        lines, expected,
        "dashboards use these names; ANTEROOM_UPDATE=1 updates the golden file"
    );
    bench.stop().await;
}

#[tokio::test]
async fn a_scrape_counts_visits() {
    let bench = Bench::new().await;
    for _ in 0..3 {
        assert!(matches!(bench.visit("shop").await, Outcome::Pass(_)));
    }
    assert!(matches!(
        bench.visit("tickets").await,
        Outcome::Queue { .. }
    ));
    bench
        .until(|room| room.config().name.as_str() != "shop" || room.stats().snapshot.active == 3)
        .await;
    let families = scrape(&bench).await;
    let check = |name: &str, expected: f64| {
        assert_eq!(value(&families, name, &SHOP), Some(expected), "{name}");
    };
    check("anteroom_seats_active", 3.0);
    check("anteroom_admissions", 3.0);
    check("anteroom_admissions_outside_limits", 0.0);
    check("anteroom_queued_responses", 0.0);
    check("anteroom_total_active_users_limit", 200.0);
    check("anteroom_new_users_per_minute_limit", 300.0);
    check("anteroom_lease_live", 1.0);
    check("anteroom_nodes", 1.0);
    // Ten seconds, less a margin for drift; the clock does not move.
    check("anteroom_lease_remaining_seconds", 9.95);
    check("anteroom_snapshot_age_seconds", 0.0);
    let tickets = [("room", "tickets")];
    let queued = value(&families, "anteroom_queued_responses", &tickets);
    assert_eq!(queued, Some(1.0));
    let started = value(&families, "anteroom_start_time_seconds", &[]);
    assert_eq!(started, Some(NOW.0 as f64 / 1_000.0));
    let offset = value(&families, "anteroom_clock_offset_seconds", &[]);
    assert_eq!(offset, Some(0.0));
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(value(&families, "anteroom_build", &version), Some(1.0));
    assert_eq!(
        value(&families, "anteroom_reopens_timestamp_seconds", &SHOP),
        None
    );
    bench.stop().await;
}

#[tokio::test]
async fn an_expired_lease_is_visible() {
    let bench = Bench::new().await;
    let reason = |reason| [("room", "shop"), ("reason", reason)];
    let families = scrape(&bench).await;
    for name in ["store_unavailable", "recovering", "origin_down"] {
        let degraded = value(&families, "anteroom_degraded", &reason(name));
        assert_eq!(degraded, Some(0.0), "{name}");
    }
    bench.lose_leases();
    bench
        .until(|room| room.stats().failed_syncs_total > 0)
        .await;
    bench.clock.advance(DurationMs(1_500));
    let families = scrape(&bench).await;
    let check = |name: &str, expected: f64| {
        assert_eq!(value(&families, name, &SHOP), Some(expected), "{name}");
    };
    check("anteroom_lease_live", 0.0);
    check("anteroom_lease_remaining_seconds", 0.0);
    check("anteroom_snapshot_age_seconds", 12.5);
    let degraded = value(&families, "anteroom_degraded", &reason("store_unavailable"));
    assert_eq!(degraded, Some(1.0));
    let failed = value(&families, "anteroom_sync_failures", &SHOP);
    assert!(failed >= Some(1.0), "{failed:?}");
    bench.stop().await;
}

#[tokio::test]
async fn stats_of_the_rest_of_the_program_are_passed_on() {
    let bench = Bench::with_extras(everything()).await;
    let families = scrape(&bench).await;
    let check = |name: &str, labels: &[(&str, &str)], expected: f64| {
        let name = format!("anteroom_{name}");
        assert_eq!(value(&families, &name, labels), Some(expected), "{name}");
    };
    check("connections_open", &[], 3.0);
    check("connections_with_ticket", &[], 2.0);
    check("connections_limit", &[], 10.0);
    check("connections_reclaimed", &[("reason", "total")], 13.0);
    check("connections_rejected", &[("reason", "address")], 14.0);
    check("fast_path_requests", &[("outcome", "forwarded")], 15.0);
    check("accept_pauses", &[], 1.0);
    check("accept_failures", &[], 2.0);
    check("tls_handshakes_failed", &[], 11.0);
    check("connections_aborted", &[("reason", "framing")], 12.0);
    check("tls_certificate_expires_at_seconds", &[], 1_800_000_000.0);
    check("bypass_failures", &SHOP, 4.0);
    check("shared_tickets", &SHOP, 47.0);
    check("shared_ticket_requests", &SHOP, 48.0);
    check("ticket_addresses_evicted", &[], 49.0);
    check("journal_rewrites", &[], 5.0);
    check("config_reloads", &[("outcome", "ok")], 6.0);
    check("config_reloads", &[("outcome", "failed")], 7.0);
    check("config_rejected", &[], 1.0);
    check(
        "origin_outcomes",
        &[("room", "shop"), ("class", "answered")],
        8.0,
    );
    check("verdicts", &[("room", "shop"), ("verdict", "admit")], 9.0);
    check(
        "limit_requests",
        &[("limit", "api"), ("verdict", "reject")],
        23.0,
    );
    check("limit_keys", &[("limit", "api")], 24.0);
    check("limit_keys_max", &[("limit", "api")], 25.0);
    check("limit_overflow_requests", &[("limit", "api")], 26.0);
    check("limit_store_failures", &[("limit", "api")], 27.0);
    check(
        "limit_store_events",
        &[("store", "valkey"), ("event", "disagreement")],
        28.0,
    );
    check("rate_limit_responses", &[("outcome", "over_limit")], 28.0);
    let near = [("limit", "edge.path_api"), ("kind", "near_limit")];
    check("rate_limit_hits", &near, 33.0);
    check("rate_limit_unknown_domains", &[], 36.0);
    check("rate_limit_loads", &[("outcome", "good")], 37.0);
    check("rate_limit_loads", &[("outcome", "bad")], 38.0);
    check("rate_limit_keys", &[], 39.0);
    check("rate_limit_overflow_hits", &[], 40.0);
    check("quota_streams", &[], 41.0);
    check("quota_limits", &[], 42.0);
    check("quota_buckets", &[], 43.0);
    check("quota_requests", &[("kind", "assigned")], 44.0);
    check("quota_requests", &[("kind", "denied")], 45.0);
    check("quota_events", &[("event", "rejected")], 46.0);
    let odd = "a \"b\"\n\\";
    check("verdicts", &[("room", "shop"), ("verdict", odd)], 10.0);
    bench.stop().await;
}

#[tokio::test]
async fn each_origin_has_stats_of_its_own() {
    let bench = Bench::with_extras(everything()).await;
    let families = scrape(&bench).await;
    let check = |name: &str, more: &[(&str, &str)], expected: f64| {
        let labels = [&[("room", "shop"), ("origin", "http://a:80")], more].concat();
        assert_eq!(value(&families, name, &labels), Some(expected), "{name}");
    };
    check("anteroom_origin_up", &[], 0.0);
    check("anteroom_origin_requests_in_flight", &[], 13.0);
    check("anteroom_origin_requests", &[("class", "broken")], 15.0);
    check("anteroom_origin_checks", &[("outcome", "bad")], 21.0);
    let retries = [("room", "shop"), ("reason", "stale")];
    let retries = value(&families, "anteroom_origin_retries", &retries);
    assert_eq!(retries, Some(11.0));
    let state = bench.get("/api/v1/rooms/shop/state").await.json();
    let expected = serde_json::json!([{
        "url": "http://a:80", "condition": "out", "forMs": 12_000, "inFlight": 13,
        "responseTimeMs": 25, "lastError": "no",
    }]);
    assert_eq!(state["origins"], expected);
    let states = bench.get("/api/v1/state").await.json();
    assert_eq!(states["rooms"][0]["origins"], expected);
    assert_eq!(states["rooms"][1]["origins"], serde_json::json!([]));
    bench.stop().await;
}
