//! A ticket that several people share, up to a number of addresses.

use http::Method;

use crate::support::client::{Client, TestResponse};
use crate::support::config::{SERVER, room};
use crate::support::eventually;
use crate::support::site::Site;

/// Starts a site that takes visitors' addresses from a header.
async fn site(total: u32, more: &str) -> Site {
    Site::start(|origin| {
        let proxies = "trusted_proxies = [\"127.0.0.1\"]\n";
        SERVER.to_owned() + proxies + &room("main", origin, total, more)
    })
    .await
}

/// Navigates from an address.
async fn navigate(client: &mut Client, address: &str) -> TestResponse {
    let headers = [
        ("accept", "text/html"),
        ("sec-fetch-dest", "document"),
        ("x-forwarded-for", address),
    ];
    client.send(Method::GET, "/", &headers, "").await
}

/// Returns an active visitor at this address.
async fn insider(site: &Site, address: &str) -> Client {
    let shared = tokio::sync::Mutex::new(site.visitor());
    eventually("the visitor is inside", || async {
        !navigate(&mut *shared.lock().await, address)
            .await
            .is_queued()
    })
    .await;
    shared.into_inner()
}

async fn counted(site: &Site) -> [f64; 2] {
    let read = async |name: &str| {
        let sample = format!("anteroom_{name}_total{{room=\"main\"}}");
        site.metric(&sample).await.unwrap()
    };
    [
        read("shared_tickets").await,
        read("shared_ticket_requests").await,
    ]
}

#[tokio::test]
async fn of_two_hundred_who_share_a_ticket_only_the_maximum_pass() {
    let site = site(1, "max_addresses_per_ticket = 4").await;
    let mut owner = insider(&site, "10.0.0.1").await;
    let ticket = owner.clone();
    let mut passed = 0;
    for last in 1..=200 {
        let mut sharer = ticket.clone();
        let address = format!("10.0.0.{last}");
        let response = navigate(&mut sharer, &address).await;
        if !response.is_queued() {
            passed += 1;
            continue;
        }
        assert_ne!(sharer.cookies, ticket.cookies, "it has a ticket of its own");
        if last == 200 {
            assert!(navigate(&mut sharer, &address).await.is_queued());
        }
    }
    assert_eq!(passed, 4);
    assert_eq!(counted(&site).await, [1.0, 196.0]);
    // The first owner keeps its seat, from any of those addresses.
    assert!(!navigate(&mut owner, "10.0.0.1").await.is_queued());
}

#[tokio::test]
async fn an_address_too_many_is_a_new_visitor_with_its_own_seat() {
    let site = site(10, "max_addresses_per_ticket = 2").await;
    let owner = insider(&site, "10.0.0.1").await;
    let id = site.origin.last().header("anteroom-visitor");
    for (address, is_same) in [("10.0.0.2", true), ("10.0.0.3", false)] {
        let response = navigate(&mut owner.clone(), address).await;
        assert!(!response.is_queued(), "{address}");
        let seen = site.origin.last().header("anteroom-visitor");
        assert_eq!(seen == id, is_same, "{address}");
    }
    assert_eq!(counted(&site).await, [1.0, 1.0]);
}

#[tokio::test]
async fn a_phone_that_changes_networks_is_never_queued() {
    let site = site(1, "max_addresses_per_ticket = 4").await;
    let mut phone = insider(&site, "2001:db8:0:1::1").await;
    for round in 0..20 {
        for address in [
            // At home over IPv4 and IPv6, with an address for each hour.
            format!("2001:db8:0:1:aaaa::{round:x}"),
            "203.0.113.9".to_owned(),
            // On the way.
            format!("2001:db8:7:7::{round:x}"),
            "198.51.100.3".to_owned(),
        ] {
            let response = navigate(&mut phone, &address).await;
            assert!(!response.is_queued(), "round {round}, {address}");
        }
    }
    assert_eq!(counted(&site).await, [0.0, 0.0]);
}

#[tokio::test]
async fn without_a_maximum_nobody_is_queued_and_a_shared_ticket_is_counted() {
    // A ticket that is not sent back is reissued each time.
    let site = site(1, "seat_needs_cookie = \"always\"").await;
    let ticket = insider(&site, "10.0.0.1").await;
    for last in 1..=20 {
        let response = navigate(&mut ticket.clone(), &format!("10.0.0.{last}")).await;
        assert!(!response.is_queued(), "{last}");
    }
    assert_eq!(counted(&site).await, [1.0, 0.0]);
}
