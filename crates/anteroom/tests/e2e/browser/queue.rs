//! Waiting in the queue: position updates, the visitor's turn, and one position over reloads.

use std::collections::BTreeSet;

use anteroom_testkit::browser::{Browser, Setup};

use super::neighbour::Stage;
use super::{Scene, arrival, until_in_line, until_position};

const MINUTE: &str = "session_duration = \"60s\"";

#[tokio::test]
async fn a_browser_shows_the_queue_and_enters_at_its_turn() {
    let scene = Scene::new(1, MINUTE).await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    assert_eq!(inside.stage(), Stage::Inside);
    let first = scene.neighbour().await;
    let mut second = scene.neighbour().await;
    assert_eq!(second.stage(), Stage::Waiting);

    let address = scene.url("/lamps?colour=red#third");
    browser.open(&address).await;
    until_in_line(&browser).await;
    until_position(&browser, 3).await;
    browser.take_pictures("waiting-unknown").await;
    browser.run("window.marker = 'the same page'").await;
    let later = scene.neighbour().await;
    assert_eq!(later.stage(), Stage::Waiting);

    first.leave().await;
    until_position(&browser, 2).await;
    inside.leave().await;
    second.until_inside().await;
    until_position(&browser, 1).await;
    let marker = browser.run("return window.marker").await;
    assert_eq!(marker, "the same page", "it was reloaded");
    assert!(
        scene.shop.requests_of_browser().is_empty(),
        "before its turn"
    );
    let is_estimated = async || browser.text("#v1").await.unwrap() != "Not known yet";
    browser.until("there is an estimate", is_estimated).await;
    browser.take_pictures("waiting").await;

    second.leave().await;
    browser.until_shows("#shop", "The shop").await;
    assert_eq!(browser.address().await, address);
    assert_eq!(
        later.stage(),
        Stage::Waiting,
        "arrived later, entered earlier"
    );
    let requests = scene.shop.requests_of_browser();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].target, "/lamps?colour=red");
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn reloads_and_tabs_share_one_position_and_one_seat() {
    let scene = Scene::new(1, MINUTE).await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    let mut ahead = scene.neighbour().await;

    browser.open(&scene.url("/")).await;
    until_position(&browser, 2).await;
    let since = arrival(&browser).await;
    let check_position = async || {
        assert_eq!(arrival(&browser).await, since, "another position");
        assert_eq!(browser.text("#number").await.as_deref(), Some("2"));
        let queued = scene.queued().await;
        assert!(queued <= 2, "two wait, and {queued} are counted");
    };
    for _ in 0..10 {
        browser.reload().await;
        check_position().await;
    }
    for _ in 0..2 {
        browser.open_tab().await;
        browser.open(&scene.url("/")).await;
        check_position().await;
    }
    assert_eq!(browser.tabs().await, 3);
    for tab in 0..3 {
        browser.switch_to_tab(tab).await;
        until_position(&browser, 2).await;
        check_position().await;
    }
    let both_wait = async || scene.queued().await == 2;
    browser.until("both are counted", both_wait).await;

    inside.leave().await;
    ahead.until_inside().await;
    ahead.leave().await;
    for tab in 0..3 {
        browser.switch_to_tab(tab).await;
        browser.until_shows("#shop", "The shop").await;
    }
    let requests = scene.shop.requests_of_browser();
    assert_eq!(requests.len(), 3);
    let admissions = requests.iter().map(|request| {
        let sighting = request.sighting.unwrap();
        (sighting.visitor, sighting.accepted_at)
    });
    let admissions: BTreeSet<_> = admissions.collect();
    assert_eq!(admissions.len(), 1, "three tabs, one visitor, one seat");
    scene.check_limits();
    browser.close().await;
}
