//! Commands of the origin end a session, once and for good.

use crate::support::eventually;
use crate::support::site::{Site, until_inside};

/// Waits until the seats were counted again: `taken` are in use, and none is free.
async fn check_full(site: &Site, taken: u32) {
    let syncs = "anteroom_syncs_total{room=\"main\"}";
    let before = site.metric(syncs).await.unwrap();
    // A seat that was freed twice would be granted again in the next replies of the ledger.
    eventually("the seats were counted again", || async {
        site.metric(syncs).await.unwrap() >= before + 3.0
    })
    .await;
    assert!(site.visitor().navigate("/").await.is_queued());
    assert_eq!(site.state("main").await["activeUsers"], taken);
}

#[tokio::test]
async fn an_origins_command_frees_the_seat_once_and_spends_the_ticket() {
    for path in ["/logout", "/cf-logout"] {
        let site = Site::with_room(1, "").await;
        let mut first = site.insider().await;
        let mut spent = first.clone();
        let id = site.origin.last().header("anteroom-visitor");

        let response = first.get(path).await;
        assert_eq!(response.status, 200);
        for name in ["anteroom-command", "cf-waiting-room-command"] {
            assert!(!response.headers.contains_key(name), "{path}: {name}");
        }
        let cookie = response.headers["set-cookie"].to_str().unwrap();
        assert!(
            cookie.contains("=; ") && cookie.contains("Max-Age=0"),
            "{cookie}"
        );
        assert!(
            response.headers["cache-control"]
                .to_str()
                .unwrap()
                .contains("private")
        );
        assert!(first.cookies.is_empty());

        let mut second = site.visitor();
        until_inside(&mut second, "/second").await;
        assert_ne!(site.origin.last().header("anteroom-visitor"), id);
        let seen = site.origin.count();

        // Neither the ticket nor its command is worth anything any more.
        let ticket = spent.cookies.clone();
        for path in ["/", path, "/stock"] {
            spent.cookies.clone_from(&ticket);
            assert!(spent.navigate(path).await.is_queued(), "{path}");
        }
        check_full(&site, 1).await;
        assert_eq!(site.origin.count(), seen);
    }
}

#[tokio::test]
async fn two_commands_at_once_free_one_seat() {
    let site = Site::with_room(2, "").await;
    let mut first = site.insider().await;
    let mut second = site.insider().await;
    let mut again = first.clone();
    let both = async { tokio::join!(first.get("/logout?held"), again.get("/logout?held")) };
    let release = async {
        eventually("both are at the origin", || async {
            site.origin.count() == 4
        })
        .await;
        site.origin.release();
    };
    tokio::join!(both, release);

    until_inside(&mut site.visitor(), "/third").await;
    check_full(&site, 2).await;
    assert!(
        !second.get("/").await.is_queued(),
        "the other one's seat is untouched"
    );
}

#[tokio::test]
async fn a_command_is_ignored_if_the_room_disables_it() {
    let site = Site::with_room(1, "enabled_origin_commands = []").await;
    let mut visitor = site.insider().await;
    for path in ["/logout", "/cf-logout"] {
        let response = visitor.get(path).await;
        for name in ["anteroom-command", "cf-waiting-room-command", "set-cookie"] {
            assert!(!response.headers.contains_key(name), "{path}: {name}");
        }
    }
    assert!(!visitor.navigate("/").await.is_queued());
    assert!(site.visitor().navigate("/").await.is_queued());
}
