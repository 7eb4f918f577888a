//! Visitor of HTTP/2 who waits on our own page and learns of its turn, on one connection.

use std::time::Duration;

use anteroom_demo::checking_origin::LOGOUT;
use anteroom_e2e::eventually;
use anteroom_e2e::origin;
use anteroom_room::rules::Limits;
use anteroom_testkit::http2::{Connection, connect};
use http::{Request, Response, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use serde_json::Value;

use crate::processes::tls::renew;
use crate::processes::{config, node};

/// Visitor with a jar for one cookie.
struct Visitor {
    connection: Connection,
    cookie: Option<String>,
}

impl Visitor {
    fn new(connection: &Connection) -> Self {
        Self {
            connection: connection.clone(),
            cookie: None,
        }
    }

    async fn ask(&mut self, path: &str) -> Response<Incoming> {
        let mut request = Request::builder()
            .version(Version::HTTP_2)
            .uri(format!("https://localhost{path}"))
            .header("accept", "text/html")
            .header("sec-fetch-dest", "document");
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let request = request.body(Empty::new()).unwrap();
        let response = self.connection.send_request(request).await.unwrap();
        if let Some(line) = response.headers().get("set-cookie") {
            let line = line.to_str().unwrap();
            let pair = line.split(';').next().unwrap();
            self.cookie = Some(pair.to_owned());
        }
        response
    }

    async fn place(&mut self) -> Value {
        let response = self.ask("/.well-known/anteroom/position?room=shop").await;
        serde_json::from_slice(&text(response).await.into_bytes()).unwrap()
    }
}

async fn text(response: Response<Incoming>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// Reads events up to `end`.
async fn read_events(events: &mut Incoming, end: &str) {
    let mut received = String::new();
    while !received.contains(end) {
        let piece = events.frame().await.unwrap().unwrap().into_data().unwrap();
        received += std::str::from_utf8(&piece).unwrap();
    }
}

#[tokio::test]
async fn an_event_stream_reports_the_turn_beside_other_requests() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    let own = renew(&folder);
    let limits = Limits {
        total_active_users: 1,
        new_users_per_minute: 100_000,
    };
    let origin = origin::start(limits, Duration::from_secs(30)).await;
    let tls = "tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"";
    let node = node(&temp, &config(origin.address(), 1, tls)).await;
    let connection = connect(node.address().get().unwrap(), own).await;

    let mut inside = Visitor::new(&connection);
    let response = inside.ask("/").await;
    assert!(
        response
            .headers()
            .get("anteroom-verdict")
            .is_none_or(|verdict| verdict != "queue")
    );
    let mut waiting = Visitor::new(&connection);
    let response = waiting.ask("/").await;
    assert_eq!(response.headers()["anteroom-verdict"], "queue");
    let page = text(response).await;
    assert!(page.trim_end().ends_with("</html>"), "{page}");
    let place = waiting.place().await;
    assert_eq!(place["push"], true, "near the front: {place}");

    let response = waiting.ask("/.well-known/anteroom/events?room=shop").await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut events = response.into_body();
    read_events(&mut events, "retry:").await;
    inside.ask(LOGOUT).await;
    read_events(&mut events, "event: ask").await;
    let waiting = tokio::sync::Mutex::new(waiting);
    eventually("polling admits the visitor", async || {
        waiting.lock().await.place().await["cfWaitingRoom"]["inWaitingRoom"] == false
    })
    .await;
    assert!(
        origin.verdict().is_within_limits(),
        "{:?}",
        origin.evidence()
    );
}
