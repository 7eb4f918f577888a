//! A scheduled event of a room: countdown, start, own values and page, end.

use http::Method;
use jiff::{SignedDuration, Timestamp};

use crate::night::{room_json, token_file};
use crate::support::command::run;
use crate::support::eventually;
use crate::support::site::{Site, until_inside};

/// Returns the lines of an event that gathers visitors already, and starts and ends at these times.
fn sale(starts_at: Timestamp, ends_at: Timestamp) -> String {
    let prequeue_at = starts_at - SignedDuration::from_mins(10);
    format!(
        "new_users_per_minute = 1000\n[[room.event]]\nname = \"sale\"\n\
         prequeue_start_time = \"{prequeue_at}\"\nevent_start_time = \"{starts_at}\"\n\
         event_end_time = \"{ends_at}\"\nshuffle_at_event_start = true\n\
         total_active_users = 3\nnew_users_per_minute = 500\n\
         custom_page_html = \"<title>sale</title><p>{{{{timeUntilEventStart}}}} min\"\n"
    )
}

fn in_secs(secs: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(secs)
}

#[tokio::test]
async fn visitors_gather_for_an_event_and_enter_at_its_start() {
    // Far enough ahead that a busy machine starts a gateway and sends requests before.
    let starts_at = in_secs(10);
    let site = Site::with_room(10, &sale(starts_at, in_secs(3_600))).await;
    let mut visitor = site.visitor();
    let body = visitor.get("/").await.json()["cfWaitingRoom"].clone();
    assert_eq!(body["reason"], "not_open_yet");
    assert_eq!(body["isEventActive"], true);
    assert_eq!(body["isEventPrequeueing"], true);
    assert_eq!(body["timeUntilEventStart"], 1);
    assert_eq!(body["timeUntilEventEnd"], 60);
    assert_eq!(body["shuffleAtEventStart"], true);
    let headers = [("accept", "text/html")];
    let page = visitor.send(Method::GET, "/", &headers, "").await.text();
    assert!(page.contains("<p>1 min"), "{page}");
    let event = site.state("main").await["event"].clone();
    assert_eq!(event["name"], "sale");
    assert_eq!(event["phase"], "prequeue");
    assert_eq!(
        site.metric("anteroom_event_phase{room=\"main\"}").await,
        Some(1.0)
    );

    until_inside(&mut visitor, "/").await;
    let accepted_at = site.origin.last().number("anteroom-accepted-at");
    assert!(i64::try_from(accepted_at).unwrap() >= starts_at.as_millisecond());
    let state = site.state("main").await;
    assert_eq!(state["event"]["phase"], "running");
    assert_eq!(state["totalActiveUsers"], 3);
    let token = token_file(&site.file.path().with_file_name("anteroom-data"));
    let settings = room_json(&site.gateway, &token, &["show"]).await;
    assert_eq!(settings["values"]["total_active_users"]["from"], "event");
    assert_eq!(settings["values"]["total_active_users"]["file"], 10);
    let admin = site.gateway.admin.to_string();
    let status = run(&["status", "--admin", &admin]).await;
    assert!(status.out.contains("event sale until "), "{}", status.out);
}

#[tokio::test]
async fn an_event_ends_and_the_next_one_is_announced() {
    let more = format!(
        "{}[[room.event]]\nname = \"next\"\nevent_start_time = \"2130-01-31T10:00:00Z\"\n",
        sale(in_secs(-3_000), in_secs(6))
    );
    let site = Site::with_room(10, &more).await;
    assert_eq!(site.state("main").await["totalActiveUsers"], 3);
    eventually("the event is over", async || {
        site.state("main").await["totalActiveUsers"] == 10
    })
    .await;
    let state = site.state("main").await;
    assert!(state["event"].is_null());
    assert_eq!(state["nextEvent"]["name"], "next");
    assert_eq!(state["nextEvent"]["startsAt"], "2130-01-31T10:00:00.000Z");
    assert_eq!(
        site.metric("anteroom_event_phase{room=\"main\"}").await,
        Some(0.0)
    );
    let admin = site.gateway.admin.to_string();
    let status = run(&["status", "--admin", &admin]).await;
    let next = "ok; next event next at 2130-01-31T10:00:00.000Z (in ";
    assert!(status.out.contains(next), "{}", status.out);
}
