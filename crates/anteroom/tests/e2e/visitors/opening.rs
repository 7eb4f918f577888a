//! Opening of a room at its time, and the order of admission then.

use std::collections::BTreeSet;

use http::Method;
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::site::{Site, until_inside};

/// Returns a time far enough ahead that a busy machine starts a gateway and sends requests before;
/// in the middle of a second, because order is by the second of arrival.
fn soon() -> Timestamp {
    let second = Timestamp::now().as_second() + 10;
    Timestamp::from_millisecond(second * 1_000 + 300).unwrap()
}

async fn waiting_body(visitor: &mut Client) -> serde_json::Value {
    visitor.get("/").await.json()["cfWaitingRoom"].clone()
}

#[tokio::test]
async fn a_room_counts_down_and_opens() {
    let opens_at = soon();
    let site = Site::with_room(10, &format!("opens_at = \"{opens_at}\"")).await;
    let mut visitor = site.visitor();
    let room = waiting_body(&mut visitor).await;
    assert_eq!(room["reason"], "not_open_yet");
    assert_eq!(room["isEventPrequeueing"], true);
    assert_eq!(room["timeUntilEventStart"], 1);
    assert_eq!(room["shuffleAtEventStart"], false);
    let headers = [("accept", "text/html")];
    let page = visitor.send(Method::GET, "/", &headers, "").await.text();
    assert!(page.contains("<!doctype html>"));
    // The page counts down to this time, in ms.
    let second = opens_at.as_second();
    assert!(page.contains(&format!("data-until=\"{second}")), "{page}");

    until_inside(&mut visitor, "/").await;
    let accepted_at = site.origin.last().number("anteroom-accepted-at");
    assert!(i64::try_from(accepted_at).unwrap() >= opens_at.as_millisecond());
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_draw_gives_early_visitors_a_random_order_before_late_ones() {
    let opens_at = soon();
    let rules = format!("opens_at = \"{opens_at}\"\ndraw = true");
    let site = Site::with_room(2, &rules).await;
    let mut early: Vec<Client> = (0..8).map(|_| site.visitor()).collect();
    for visitor in &mut early {
        // Twice, because a visitor counts once its ticket is sent back.
        waiting_body(visitor).await;
        let room = waiting_body(visitor).await;
        assert_eq!(room["shuffleAtEventStart"], true);
        assert!(room["position"].is_null(), "there is no order yet");
    }
    let visitors = Mutex::new((early, site.visitor()));
    eventually("two of them are inside", || async {
        for visitor in &mut visitors.lock().await.0 {
            visitor.navigate("/").await;
        }
        ids(&site).len() == 2
    })
    .await;
    eventually("the rest are in the drawn order", || async {
        let (early, late) = &mut *visitors.lock().await;
        let mut positions = Vec::new();
        for visitor in early {
            let response = visitor.get("/").await;
            if response.is_queued() {
                positions.push(response.json()["cfWaitingRoom"]["position"].as_u64());
            }
        }
        assert_eq!(positions.len(), 6);
        // A visitor after the opening is last; two may have drawn the same step.
        let last = waiting_body(late).await["position"].as_u64();
        let mut others = positions.iter().flatten();
        last == Some(7) && others.all(|position| *position <= 6)
    })
    .await;
    assert_eq!(ids(&site).len(), 2, "no visitor too many");
}

fn ids(site: &Site) -> BTreeSet<Option<String>> {
    let heads = site.origin.heads();
    let ids = heads.iter().map(|head| head.header("anteroom-visitor"));
    ids.collect()
}
