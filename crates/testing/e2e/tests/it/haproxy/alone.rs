//! One HAProxy: how many pass, what counts, what is forgotten.

use crate::haproxy::calls::{Caller, Counting, Tally, burst};
use crate::haproxy::process::Haproxy;
use crate::haproxy::recipe::{CLOCK, LIMIT, Recipe, SLIDING};

#[tokio::test]
async fn of_many_calls_at_once_exactly_as_many_as_the_limit_pass() {
    let origin = Counting::start().await;
    for connections in [1, 8] {
        let haproxy = Haproxy::start(&Recipe::of(SLIDING), origin.address).await;
        let before = origin.served();
        let counters = burst(haproxy.address(), connections, 400 / connections).await;
        assert_eq!(counters, Tally::new(LIMIT, 400 - LIMIT));
        assert_eq!(origin.served() - before, LIMIT);
    }
}

#[tokio::test]
async fn in_a_clock_minute_exactly_the_limit_passes() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&Recipe::of(CLOCK), origin.address).await;
    let counters = burst(haproxy.address(), 8, 100).await;
    // A minute may have ended meanwhile: then there are two, and each has its own hundred.
    let minutes = haproxy.counts("calls").await;
    assert!((1..=2).contains(&minutes.len()), "{minutes:?}");
    let called = minutes.iter().map(|(_, count)| count);
    assert_eq!(called.clone().sum::<usize>(), 800);
    let passed: usize = called.map(|&count| count.min(LIMIT)).sum();
    assert_eq!(counters, Tally::new(passed, 800 - passed));
    assert_eq!(origin.served(), passed);
}

#[tokio::test]
async fn refused_calls_count_and_those_of_a_waiting_page_do_not() {
    let origin = Counting::start().await;
    for file in [SLIDING, CLOCK] {
        let haproxy = Haproxy::start(&Recipe::of(file), origin.address).await;
        let mut caller = Caller::connect(haproxy.address()).await;
        let counters = caller.calls(2 * LIMIT + 50, &[]).await;
        assert!(counters.refused > 0, "{counters:?}");
        for path in ["place?room=shop", "events?room=shop", "language"] {
            let path = format!("/.well-known/anteroom/{path}");
            assert!(caller.passes(&path, &[]).await, "{file} {path}");
        }
        let counts = haproxy.counts("calls").await;
        let counted: usize = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 2 * LIMIT + 50, "{file}");
    }
}

#[tokio::test]
async fn what_only_looks_like_a_question_of_a_waiting_page_counts() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&Recipe::of(SLIDING), origin.address).await;
    let mut caller = Caller::connect(haproxy.address()).await;
    caller.calls(LIMIT, &[]).await;
    for path in [
        "/.well-known/anteroom/place/../../../api",
        "/.well-known/anteroom/place/",
        "/.well-known/anteroom/placements",
        "/api?/.well-known/anteroom/place",
        "//.well-known/anteroom/place",
    ] {
        assert!(!caller.passes(path, &[]).await, "{path}");
    }
}

/// The file for one, with a small table, and whoever says which address he has: as behind Anteroom.
fn named_by_header(table: &str) -> Recipe {
    let acl = "    acl polling path /.well-known/anteroom/place";
    let named = format!("    http-request set-src req.hdr_ip(x-forwarded-for,-1)\n{acl}");
    Recipe::of(SLIDING)
        .with("size 100k", table)
        .with(acl, &named)
}

/// Calls from forty addresses that nobody has seen before.
async fn forty_others(caller: &mut Caller) {
    for other in 0..40 {
        let other = format!("x-forwarded-for: 198.51.100.{other}");
        assert!(caller.passes("/", &[&other]).await);
    }
}

#[tokio::test]
async fn a_full_table_forgets_who_was_over_the_limit() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&named_by_header("size 10"), origin.address).await;
    let mut caller = Caller::connect(haproxy.address()).await;
    let first = ["x-forwarded-for: 192.0.2.1"];
    let one_too_many = Tally::new(LIMIT, 1);
    assert_eq!(caller.calls(LIMIT + 1, &first).await, one_too_many);
    forty_others(&mut caller).await;
    assert_eq!(caller.calls(LIMIT + 1, &first).await, one_too_many);
}

#[tokio::test]
async fn a_full_table_that_forgets_nobody_counts_nobody_who_is_new() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&named_by_header("size 10 nopurge"), origin.address).await;
    let mut caller = Caller::connect(haproxy.address()).await;
    let first = ["x-forwarded-for: 192.0.2.1"];
    assert_eq!(caller.calls(LIMIT, &first).await, Tally::new(LIMIT, 0));
    forty_others(&mut caller).await;
    assert_eq!(caller.calls(1, &first).await, Tally::new(0, 1));
    let newcomer = ["x-forwarded-for: 192.0.2.2"];
    let all = Tally::new(2 * LIMIT, 0);
    assert_eq!(caller.calls(2 * LIMIT, &newcomer).await, all);
}

#[tokio::test]
async fn an_address_is_a_client_and_of_ipv6_its_network() {
    let origin = Counting::start().await;
    let recipe = named_by_header("size 100k");
    let haproxy = Haproxy::start(&recipe, origin.address).await;
    let mut caller = Caller::connect(haproxy.address()).await;
    let spent = ["x-forwarded-for: 2001:db8:1:2:3::4"];
    assert_eq!(caller.calls(LIMIT, &spent).await, Tally::new(LIMIT, 0));
    for (address, passes) in [
        ("2001:db8:1:2:ffff::1", false),
        ("2001:db8:1:3::4", true),
        ("192.0.2.1", true),
        ("::ffff:192.0.2.2", true),
    ] {
        let header = format!("x-forwarded-for: {address}");
        assert_eq!(caller.passes("/", &[&header]).await, passes, "{address}");
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
