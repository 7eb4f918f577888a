//! The origin is unavailable and comes back.

use http::StatusCode;

use crate::limits::{PLENTY, limits};
use crate::support::client::seat_end;
use crate::support::eventually;
use crate::support::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_origin_is_down_nobody_is_admitted_and_seats_are_kept() {
    let mut stage = Stage::open(limits(10, PLENTY), "30s").await;
    let mut inside = stage.newcomer();
    let seat = seat_end(&inside.navigate("/").await).expect("the room is empty");
    stage.origin.stop().await;

    // A visitor is admitted before the gateway notices: the error page carries the ticket.
    let mut unlucky = stage.newcomer();
    let response = unlucky.navigate("/unlucky").await;
    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    assert!(
        response.headers.contains_key("set-cookie"),
        "{:?}",
        response.headers
    );
    for _ in 0..2 {
        let response = inside.navigate("/").await;
        assert_eq!(
            response.status,
            StatusCode::BAD_GATEWAY,
            "inside, so not queued"
        );
    }
    stage.queues_newcomers("origin_down").await;
    let page = stage.newcomer().navigate("/").await;
    assert_eq!(page.headers["anteroom-reason"], "origin_down");
    let text = page.text();
    assert!(text.contains("isn’t answering properly"), "{text}");
    let operator = stage.operator();
    let degraded = "anteroom_degraded{room=\"main\",reason=\"origin_down\"}";
    assert_eq!(operator.metric(degraded).await, Some(1.0));
    let (status, health) = operator.health().await;
    assert_eq!(status, StatusCode::OK, "this node is healthy");
    assert_eq!(health["rooms"][0]["reason"], "origin_down", "{health}");

    stage.origin.resume().await;
    let response = inside.navigate("/").await;
    assert!(seat_end(&response).expect("it is inside") >= seat);
    let response = unlucky.navigate("/unlucky").await;
    assert!(
        seat_end(&response).is_some(),
        "inside by the ticket of the error page"
    );
    stage.admits_newcomers().await;
    eventually("all is healthy", async || {
        operator.metric(degraded).await == Some(0.0)
    })
    .await;
    stage.assert_within_limits();
}
