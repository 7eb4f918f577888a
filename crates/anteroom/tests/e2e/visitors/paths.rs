//! Attempts to bypass a room: hosts and paths in every spelling, and bypass rules.

use crate::support::config::{SERVER, room};
use crate::support::raw::{ask, is_queued, status_of};
use crate::support::site::{Site, until_inside};

/// Starts a shop that admits nobody, under one path of one host; nothing else is guarded.
async fn guarded_shop() -> Site {
    Site::start(|origin| {
        let shop = "host = \"shop.example.com\"\npath = \"/shop\"\nqueue_all = true";
        SERVER.to_owned() + &room("shop", origin, 10, shop)
    })
    .await
}

#[tokio::test]
async fn no_spelling_of_a_path_bypasses_the_room() {
    let site = guarded_shop().await;
    let covered = [
        "/shop",
        "/shop/",
        "/shop?x=/other",
        "/shop/cart/1",
        "//shop",
        "///shop//cart",
        "/./shop",
        "/%2e/shop",
        "/%2E/shop",
        "/other/../shop",
        "/other/%2e%2e/shop",
        "/other/.%2e/shop",
        "/../shop",
        "/other/..%2fshop",
        "/other/..%5cshop",
        "/s%68op",
        "/%73%68%6f%70",
        "/%u0073hop",
        "/SHOP",
        "/Shop/cart",
        "/shop;v=1",
        "/shop;v=1/cart",
        "/;v=1/shop",
        "/other;/../shop",
        "/shop%2fcart",
        "/shop%2Fcart",
        "%2fshop",
        "/%2fshop",
        "/%5cshop",
        "/shop%5ccart",
        "/shop/..;/shop",
        "/shop.",
        "/shop%20",
        "/shop%00",
        "/shop%0a",
        "/%c0%afshop",
        "/other/%c0%ae%c0%ae/shop",
        "http://shop.example.com/shop",
        "http://SHOP.example.com:80//shop",
    ];
    for target in covered {
        let response = ask(site.gateway.address, "shop.example.com", target, "").await;
        let is_rejected = status_of(&response) == 400;
        assert!(is_queued(&response) || is_rejected, "{target}: {response}");
        assert_eq!(site.origin.count(), 0, "{target}");
    }
    // Bytes that are not text, and a raw backslash, which some parsers read as a slash.
    for target in [
        "/shop\u{fffd}/../shop",
        "\\shop",
        "/\\shop",
        "/other\\..\\shop",
    ] {
        let response = ask(site.gateway.address, "shop.example.com", target, "").await;
        assert!(
            is_queued(&response) || status_of(&response) == 400,
            "{target}: {response}"
        );
        assert_eq!(site.origin.count(), 0, "{target}");
    }
}

#[tokio::test]
async fn a_room_covers_whole_segments_and_the_rest_passes_unchanged() {
    let site = guarded_shop().await;
    let uncovered = [
        "/",
        "/?path=/shop",
        "/shopping",
        "/shop-2",
        "/sho",
        "/other/shop",
        "/other//a/./b/%2e%2E/c;d?x=%2e&y=../shop",
    ];
    for target in uncovered {
        let headers = "cookie: theme=dark; __anteroom_shop=x\r\nanteroom-room: forged\r\n";
        let response = ask(site.gateway.address, "shop.example.com", target, headers).await;
        assert_eq!(status_of(&response), 200, "{target}: {response}");
        assert!(!response.contains("set-cookie"), "{target}: {response}");
        let head = site.origin.last();
        assert_eq!(head.target, target);
        assert_eq!(head.header("host").unwrap(), "shop.example.com");
        assert_eq!(head.header("cookie").unwrap(), "theme=dark");
        assert!(head.header("anteroom-room").is_none());
    }
}

#[tokio::test]
async fn no_path_bypasses_the_room_of_an_origin_that_decodes_twice() {
    let site = guarded_shop().await;
    let covered = [
        "/shop%3fx",
        "/shop%3Fx/../other",
        "/shop%23x",
        "/%2573hop",
        "/%25%37%33hop",
        "/%%37%33hop",
        "/other/%252e%252e/shop",
        "/other%252f..%252fshop",
        "/other/..%252fshop",
        "/shop%253fx",
        "/shop%2500.css",
        "/%25c0%25afshop",
    ];
    for target in covered {
        let response = ask(site.gateway.address, "shop.example.com", target, "").await;
        let is_rejected = status_of(&response) == 400;
        assert!(is_queued(&response) || is_rejected, "{target}: {response}");
        assert_eq!(site.origin.count(), 0, "{target}");
    }
}

#[tokio::test]
async fn paths_that_need_two_decodings_pass_if_so_configured() {
    let site = Site::start(|origin| {
        let shop = "path = \"/shop\"\nqueue_all = true";
        let server = SERVER.to_owned() + "guard_double_decoding = false\n";
        server + &room("shop", origin, 10, shop)
    })
    .await;
    for target in ["/shop%3fx", "/%2573hop", "/other/%252e%252e/shop"] {
        let response = ask(site.gateway.address, "a.example", target, "").await;
        assert_eq!(status_of(&response), 200, "{target}: {response}");
        assert_eq!(site.origin.last().target, target);
    }
    let response = ask(site.gateway.address, "a.example", "/%73hop", "").await;
    assert!(is_queued(&response), "{response}");
}

#[tokio::test]
async fn a_host_matches_in_any_case_with_port_and_dot() {
    let site = guarded_shop().await;
    for host in [
        "shop.example.com",
        "SHOP.Example.COM",
        "shop.example.com:8443",
        "shop.example.com.",
        "Shop.Example.Com.:80",
    ] {
        let response = ask(site.gateway.address, host, "/shop", "").await;
        assert!(is_queued(&response), "{host}: {response}");
    }
    // The target's host counts, not the header's.
    let target = "http://shop.example.com/shop";
    let response = ask(site.gateway.address, "elsewhere.example.com", target, "").await;
    assert!(is_queued(&response), "{response}");
    for host in ["elsewhere.example.com", "example.com", "xshop.example.com"] {
        let response = ask(site.gateway.address, host, "/shop", "").await;
        assert_eq!(status_of(&response), 404, "{host}: {response}");
    }
    let two = "host: elsewhere.example.com\r\n";
    let response = ask(site.gateway.address, "shop.example.com", "/shop", two).await;
    assert_eq!(status_of(&response), 400);
    assert_eq!(site.origin.count(), 0);
}

#[tokio::test]
async fn bypass_rules_match_path_extension_method_address_and_header() {
    let site = Site::start(|origin| {
        let proxy = "trusted_proxies = [\"127.0.0.1\"]\n";
        let rules = r#"queue_all = true
            bypass = [
                'path.startsWith("/webhooks/")',
                'extension == "css"',
                'method == "OPTIONS"',
                'in_network(address, "10.1.0.0/16")',
                'headers["x-monitor"] == "let me in"',
            ]"#;
        SERVER.to_owned() + proxy + &room("main", origin, 10, rules)
    })
    .await;
    let address = site.gateway.address;
    let passing = [
        ("/webhooks/paid", ""),
        ("/style.css", ""),
        ("/style.CSS?v=1", ""),
        ("/cart", "x-forwarded-for: 10.1.2.3\r\n"),
        ("/cart", "x-monitor: let me in\r\n"),
    ];
    for (target, headers) in passing {
        let response = ask(address, "a.example", target, headers).await;
        assert_eq!(status_of(&response), 200, "{target} {headers}: {response}");
        assert!(!response.contains("set-cookie"), "{target}: {response}");
        let head = site.origin.last();
        assert_eq!(head.target, target);
        assert!(head.header("anteroom-room").is_none());
        assert!(head.header("anteroom-visitor").is_none());
    }
    let mut visitor = site.visitor();
    let response = visitor.send(http::Method::OPTIONS, "/cart", &[], "").await;
    assert!(!response.is_queued());

    let seen = site.origin.count();
    let waiting = [
        ("/cart", ""),
        ("/webhooks", ""),
        ("/webhooks/../cart", ""),
        ("/webhooks/%2e%2e/cart", ""),
        ("/webhooks/..%2fcart", ""),
        ("/cart/x.css/../checkout", ""),
        ("/cart;.css", ""),
        ("/cart", "x-monitor: let me out\r\n"),
        // The right-most address that is not a trusted proxy is the visitor's.
        ("/cart", "x-forwarded-for: 10.1.2.3, 192.0.2.1\r\n"),
        ("/cart", "x-real-ip: 10.1.2.3\r\n"),
        ("/cart", "forwarded: for=10.1.2.3\r\n"),
    ];
    for (target, headers) in waiting {
        let response = ask(address, "a.example", target, headers).await;
        let is_rejected = status_of(&response) == 400;
        assert!(
            is_queued(&response) || is_rejected,
            "{target} {headers}: {response}"
        );
    }
    assert_eq!(site.origin.count(), seen);
}

#[tokio::test]
async fn an_untrusted_peer_cannot_set_its_address() {
    let rules = "queue_all = true\nbypass = ['in_network(address, \"10.0.0.0/8\")']";
    let site = Site::with_room(10, rules).await;
    let headers = "x-forwarded-for: 10.1.2.3\r\n";
    let response = ask(site.gateway.address, "a.example", "/", headers).await;
    assert!(is_queued(&response), "{response}");
}

#[tokio::test]
async fn a_ticket_is_valid_for_its_own_room_only() {
    let site = Site::start(|origin| {
        let vault = "path = \"/vault\"\nqueue_all = true";
        SERVER.to_owned() + &room("lobby", origin, 10, "") + &room("vault", origin, 10, vault)
    })
    .await;
    let mut visitor = site.visitor();
    until_inside(&mut visitor, "/").await;
    let cookies: Vec<_> = visitor
        .cookies
        .iter()
        .map(|(n, v)| format!("{n}={v}"))
        .collect();
    let cookie = format!("cookie: {}\r\n", cookies.join("; "));
    let seen = site.origin.count();
    for target in [
        "/vault",
        "/lobby/../vault",
        "/lobby/..%2fvault",
        "/lobby/%2e%2e/vault",
        "//vault",
        "/lobby/..;/vault",
    ] {
        let response = ask(site.gateway.address, "a.example", target, &cookie).await;
        assert!(
            is_queued(&response) || status_of(&response) == 400,
            "{target}: {response}"
        );
    }
    assert_eq!(site.origin.count(), seen);
    let response = ask(site.gateway.address, "a.example", "/lobby", &cookie).await;
    assert_eq!(status_of(&response), 200);
}
