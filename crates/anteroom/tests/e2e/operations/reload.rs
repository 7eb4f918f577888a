//! A running gateway reloads a changed config file, and rejects a bad one.

use crate::support::client::Client;
use crate::support::config::{SERVER, room};
use crate::support::eventually;
use crate::support::site::{Site, until_inside};

/// Reloads, and waits until the gateway has reported this outcome for the `times`-th time.
async fn reload(site: &Site, outcome: &str, times: f64) {
    site.gateway.signal("HUP");
    let sample = format!("anteroom_config_reloads_total{{outcome=\"{outcome}\"}}");
    eventually("the reload is counted", || async {
        site.metric(&sample).await == Some(times)
    })
    .await;
}

async fn last_reload_error(site: &Site) -> serde_json::Value {
    let response = site.operators("/healthz").await;
    assert_eq!(
        response.status, 200,
        "a bad file is no reason to be taken out of service"
    );
    response.json()["lastReloadError"].clone()
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_is_reported_everywhere() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut waiting = site.visitor();
    waiting.get("/").await;
    assert!(last_reload_error(&site).await.is_null());

    let good = SERVER.to_owned() + &room("main", site.origin.address, 5, "");
    let bad = good.replace(
        "total_active_users = 5",
        "total_active_users = 0\nsesion = 1",
    );
    for (times, text) in [(1.0, bad.as_str()), (2.0, "not toml ["), (3.0, "")] {
        site.file.write(text);
        reload(&site, "failed", times).await;
        assert!(last_reload_error(&site).await.is_string(), "{text}");
        assert_eq!(site.metric("anteroom_config_rejected").await, Some(1.0));
        assert!(!inside.navigate("/").await.is_queued(), "{text}");
        assert!(waiting.navigate("/").await.is_queued(), "{text}");
        assert_eq!(site.state("main").await["totalActiveUsers"], 1);
    }
    for expected in [
        "total_active_users",
        "sesion",
        "the old configuration stays",
    ] {
        site.gateway.log_with(expected).await;
    }

    site.file.write(&good);
    reload(&site, "ok", 1.0).await;
    assert!(last_reload_error(&site).await.is_null());
    assert_eq!(site.metric("anteroom_config_rejected").await, Some(0.0));
    until_inside(&mut waiting, "/").await;
}

async fn position(visitor: &mut Client) -> u64 {
    let response = visitor.get("/").await;
    assert!(response.is_queued());
    response.json()["cfWaitingRoom"]["position"]
        .as_u64()
        .unwrap()
}

#[tokio::test]
async fn changed_limits_apply_at_once_and_positions_stay() {
    let site = Site::with_room(1, "").await;
    let write = |total, more: &str| {
        let room = room("main", site.origin.address, total, more);
        site.file.write(&(SERVER.to_owned() + &room));
    };
    let mut inside = site.insider().await;
    let mut first = site.visitor();
    position(&mut first).await;
    // Order is by the second of arrival.
    let next = jiff::Timestamp::now().as_second() + 2;
    eventually("it is later", || async {
        jiff::Timestamp::now().as_second() >= next
    })
    .await;
    let mut second = site.visitor();
    let line = tokio::sync::Mutex::new((&mut first, &mut second));
    let in_order = || async {
        let (first, second) = &mut *line.lock().await;
        (position(first).await, position(second).await) == (1, 2)
    };
    eventually("they are in order", in_order).await;

    write(1, "position_grace = \"10m\"\nqueueing_status_code = 503");
    reload(&site, "ok", 1.0).await;
    eventually("they are in order", in_order).await;
    assert_eq!(site.visitor().navigate("/").await.status, 503);

    write(2, "");
    reload(&site, "ok", 2.0).await;
    until_inside(&mut first, "/").await;
    let second = tokio::sync::Mutex::new(&mut second);
    eventually("the second one has moved up", || async {
        position(*second.lock().await).await == 1
    })
    .await;

    // Lowered: the active visitor stays, and no other enters.
    write(1, "");
    reload(&site, "ok", 3.0).await;
    for visitor in [&mut inside, &mut first] {
        assert!(!visitor.navigate("/").await.is_queued());
    }
    assert!(second.lock().await.navigate("/").await.is_queued());
    let state = site.state("main").await;
    assert_eq!(
        (&state["activeUsers"], &state["totalActiveUsers"]),
        (&2.into(), &1.into())
    );
    inside.get("/logout").await;
    assert!(second.lock().await.navigate("/").await.is_queued());
    first.get("/logout").await;
    until_inside(*second.lock().await, "/").await;
}

#[tokio::test]
async fn rooms_come_and_go() {
    let site = Site::with_room(10, "").await;
    let mut visitor = site.insider().await;
    let hold = room(
        "hold",
        site.origin.address,
        1,
        "path = \"/hold\"\nqueue_all = true",
    );
    let main = room("main", site.origin.address, 10, "");
    site.file.write(&(SERVER.to_owned() + &hold + &main));
    reload(&site, "ok", 1.0).await;
    assert!(visitor.navigate("/hold/on").await.is_queued());
    assert!(!visitor.navigate("/").await.is_queued());

    site.file.write(&(SERVER.to_owned() + &main));
    reload(&site, "ok", 2.0).await;
    assert!(!visitor.navigate("/hold/on").await.is_queued());
    assert_eq!(site.operators("/api/v1/rooms/hold/state").await.status, 404);
}

#[tokio::test]
async fn ticket_keys_can_be_rotated_without_ending_sessions() {
    let [old, new] = [
        "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=",
        "Dx4tPEtaaXiHlqW0w9Lh8A8eLTxLWml4h5altMPS4fA=",
    ];
    let config = |keys: &[&str], origin| {
        let keys = format!("ticket_keys = {keys:?}\n");
        SERVER.to_owned() + &keys + &room("main", origin, 10, "")
    };
    let site = Site::start(|origin| config(&[old], origin)).await;
    let write = |keys: &[&str]| site.file.write(&config(keys, site.origin.address));
    let id = || site.origin.last().header("anteroom-visitor");
    let mut early = site.insider().await;
    let early_id = id();

    write(&[new, old]);
    reload(&site, "ok", 1.0).await;
    early.navigate("/").await;
    assert_eq!(id(), early_id);
    let mut late = site.insider().await;
    let late_id = id();

    write(&[new]);
    reload(&site, "ok", 2.0).await;
    late.navigate("/").await;
    assert_eq!(id(), late_id);
    until_inside(&mut early, "/").await;
    assert_ne!(id(), early_id, "without its key a ticket is not valid");
}
