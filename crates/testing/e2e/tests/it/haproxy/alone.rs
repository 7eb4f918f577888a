//! One HAProxy: which requests pass, which count, and which entries are dropped.

use crate::haproxy::clients::{Client, Counting, Counts, burst};
use crate::haproxy::process::Haproxy;
use crate::haproxy::recipe::{CLOCK, LIMIT, Recipe, SLIDING};

#[tokio::test]
async fn of_many_requests_at_once_exactly_the_limit_passes() {
    let origin = Counting::start().await;
    for connections in [1, 8] {
        let haproxy = Haproxy::start(&Recipe::of(SLIDING), origin.address).await;
        let before = origin.served();
        let counters = burst(haproxy.address(), connections, 400 / connections).await;
        assert_eq!(counters, Counts::new(LIMIT, 400 - LIMIT));
        assert_eq!(origin.served() - before, LIMIT);
    }
}

#[tokio::test]
async fn in_a_clock_minute_exactly_the_limit_passes() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&Recipe::of(CLOCK), origin.address).await;
    let counters = burst(haproxy.address(), 8, 100).await;
    // If a minute has ended meanwhile, there are two, and each has its own hundred.
    let minutes = haproxy.counts("calls").await;
    assert!((1..=2).contains(&minutes.len()), "{minutes:?}");
    let counted = minutes.iter().map(|(_, count)| count);
    assert_eq!(counted.clone().sum::<usize>(), 800);
    let passed: usize = counted.map(|&count| count.min(LIMIT)).sum();
    assert_eq!(counters, Counts::new(passed, 800 - passed));
    assert_eq!(origin.served(), passed);
}

#[tokio::test]
async fn rejected_requests_count_and_polls_do_not() {
    let origin = Counting::start().await;
    for file in [SLIDING, CLOCK] {
        let haproxy = Haproxy::start(&Recipe::of(file), origin.address).await;
        let mut client = Client::connect(haproxy.address()).await;
        let counters = client.requests(2 * LIMIT + 50, &[]).await;
        assert!(counters.rejected > 0, "{counters:?}");
        for path in ["position?room=shop", "events?room=shop", "language"] {
            let path = format!("/.well-known/anteroom/{path}");
            assert!(client.passes(&path, &[]).await, "{file} {path}");
        }
        let counts = haproxy.counts("calls").await;
        let counted: usize = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 2 * LIMIT + 50, "{file}");
    }
}

#[tokio::test]
async fn a_request_that_only_looks_like_a_poll_counts() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&Recipe::of(SLIDING), origin.address).await;
    let mut client = Client::connect(haproxy.address()).await;
    client.requests(LIMIT, &[]).await;
    for path in [
        "/.well-known/anteroom/position/../../../api",
        "/.well-known/anteroom/position/",
        "/.well-known/anteroom/positionments",
        "/api?/.well-known/anteroom/position",
        "//.well-known/anteroom/position",
    ] {
        assert!(!client.passes(path, &[]).await, "{path}");
    }
}

/// Returns the file for one HAProxy with a small table, where a header names the client, as behind
/// Anteroom.
fn named_by_header(table: &str) -> Recipe {
    let acl = "    acl polling path /.well-known/anteroom/position";
    let named = format!("    http-request set-src req.hdr_ip(x-forwarded-for,-1)\n{acl}");
    Recipe::of(SLIDING)
        .with("size 100k", table)
        .with(acl, &named)
}

/// Sends requests from forty new addresses.
async fn forty_new_clients(client: &mut Client) {
    for other in 0..40 {
        let other = format!("x-forwarded-for: 198.51.100.{other}");
        assert!(client.passes("/", &[&other]).await);
    }
}

#[tokio::test]
async fn a_full_table_drops_clients_over_the_limit() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&named_by_header("size 10"), origin.address).await;
    let mut client = Client::connect(haproxy.address()).await;
    let first = ["x-forwarded-for: 192.0.2.1"];
    let one_too_many = Counts::new(LIMIT, 1);
    assert_eq!(client.requests(LIMIT + 1, &first).await, one_too_many);
    forty_new_clients(&mut client).await;
    assert_eq!(client.requests(LIMIT + 1, &first).await, one_too_many);
}

#[tokio::test]
async fn a_full_table_without_eviction_counts_no_new_client() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&named_by_header("size 10 nopurge"), origin.address).await;
    let mut client = Client::connect(haproxy.address()).await;
    let first = ["x-forwarded-for: 192.0.2.1"];
    assert_eq!(client.requests(LIMIT, &first).await, Counts::new(LIMIT, 0));
    forty_new_clients(&mut client).await;
    assert_eq!(client.requests(1, &first).await, Counts::new(0, 1));
    let newcomer = ["x-forwarded-for: 192.0.2.2"];
    let all = Counts::new(2 * LIMIT, 0);
    assert_eq!(client.requests(2 * LIMIT, &newcomer).await, all);
}

#[tokio::test]
async fn an_address_is_a_client_and_of_ipv6_its_network() {
    let origin = Counting::start().await;
    let recipe = named_by_header("size 100k");
    let haproxy = Haproxy::start(&recipe, origin.address).await;
    let mut client = Client::connect(haproxy.address()).await;
    let spent = ["x-forwarded-for: 2001:db8:1:2:3::4"];
    assert_eq!(client.requests(LIMIT, &spent).await, Counts::new(LIMIT, 0));
    for (address, passes) in [
        ("2001:db8:1:2:ffff::1", false),
        ("2001:db8:1:3::4", true),
        ("192.0.2.1", true),
        ("::ffff:192.0.2.2", true),
    ] {
        let header = format!("x-forwarded-for: {address}");
        assert_eq!(client.passes("/", &[&header]).await, passes, "{address}");
    }
    let mut clients: Vec<_> = haproxy.counts("calls").await;
    clients.sort();
    let expected = [
        ("2001:db8:1:2::", LIMIT + 1),
        ("2001:db8:1:3::", 1),
        ("::ffff:192.0.2.1", 1),
        ("::ffff:192.0.2.2", 1),
    ];
    assert_eq!(
        clients,
        expected.map(|(key, count)| (key.to_owned(), count))
    );
}
