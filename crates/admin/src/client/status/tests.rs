//! Output and exit code of `anteroom status`.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// Result of the command, the request that it sent, and its output.
struct Ended {
    result: anyhow::Result<ExitCode>,
    request: String,
    out: String,
}

impl Ended {
    /// Fails unless this is the exit code. `ExitCode` has no `PartialEq`.
    fn assert_code(&self, expected: ExitCode) {
        let code = self.result.as_ref().unwrap();
        assert_eq!(format!("{code:?}"), format!("{expected:?}"));
    }
}

fn connection(json: bool) -> Connection {
    Connection {
        token_file: "nowhere".into(),
        ca_file: None,
        json,
    }
}

/// Runs the command against a server that sends one response.
async fn run_against(ready: bool, status: &str, body: &str) -> Ended {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = StatusOptions {
        admin: vec![AdminAddress::Http(listener.local_addr().unwrap())],
        ready,
        connection: connection(false),
    };
    let length = body.len();
    let response = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
    let serving = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 1_024];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(response.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (result, request) = tokio::join!(run(options, &mut out, &mut err), serving);
    assert_eq!(err, b"");
    Ended {
        result,
        request,
        out: String::from_utf8(out).unwrap(),
    }
}

async fn check(status: &str, body: &str, expected: ExitCode) {
    let ended = run_against(true, status, body).await;
    assert!(
        ended.request.starts_with("GET /readyz HTTP/1.1\r\n"),
        "{}",
        ended.request
    );
    ended.assert_code(expected);
}

#[tokio::test]
async fn readiness_decides_the_exit_code() {
    let ready = r#"{"ready": true, "detail": null}"#;
    check("200 OK", ready, ExitCode::SUCCESS).await;
    let not_yet = r#"{"ready": false, "detail": "the store has not replied yet"}"#;
    check("503 Service Unavailable", not_yet, ExitCode::FAILURE).await;
}

#[tokio::test]
async fn a_limit_with_an_unavailable_store_prints_a_line_and_fails() {
    let trouble = r#"{"limit": "api", "store": "valkey", "lastFailureMs": 9,
        "detail": "requests cannot be counted"}"#;
    let body = format!(r#"{{"rooms": [], "limits": [{trouble}]}}"#);
    let ended = run_against(false, "200 OK", &body).await;
    assert!(
        ended.request.starts_with("GET /api/v1/state HTTP/1.1\r\n"),
        "{}",
        ended.request
    );
    ended.assert_code(ExitCode::FAILURE);
    let line = "limit api: DEGRADED: requests cannot be counted\n";
    assert!(ended.out.ends_with(line), "{}", ended.out);
}

#[tokio::test]
async fn a_shortage_of_connections_prints_a_line_and_succeeds() {
    let short = r#"{"open": 71, "withTicket": 2, "limit": 100, "detail": "71 of 100"}"#;
    let body = format!(r#"{{"rooms": [], "connections": {short}}}"#);
    let ended = run_against(false, "200 OK", &body).await;
    ended.assert_code(ExitCode::SUCCESS);
    let line = "connections: 71 of 100\n";
    assert!(ended.out.ends_with(line), "{}", ended.out);
}

#[tokio::test]
async fn a_foreign_server_is_an_error() {
    let ended = run_against(true, "404 Not Found", "nothing is here").await;
    let error = ended.result.unwrap_err();
    let text = format!("{error:#}");
    assert!(text.starts_with("cannot query 127.0.0.1:"), "{text}");
    assert_eq!(error.chain().nth(1).unwrap().to_string(), NOT_OURS);
}

fn room(more: &str) -> RoomState {
    let text = format!(
        r#"{{"activeUsers": 3, "globalWorkersActive": 1, "dataCenterWorkersActive": 1,
        "trafficHistory": {{}}, "room": "shop", "totalActiveUsers": 200,
        "newUsersPerMinute": 300, "queuedUsers": 0, "admissionsThisMinute": 0,
        "watermark": null, "watermarkOpen": true, "ageMs": 1, "epoch": 0,
        "reopensAt": null, "degraded": null, "queueingMethod": "fifo",
        "allocation": "leases", "queueAll": false, "suspended": false, {more}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_state_of_a_room_is_formatted() {
    let check = |more: &str, expected: &str| {
        let room = room(&format!("\"phantomSeats\": 0, {more}"));
        assert_eq!(state(&room), expected, "{more}");
    };
    let opens = r#""opensAt": "2023-09-11T11:45:54.000Z", "opensInMs": 7500000"#;
    check(r#""paused": false"#, "ok");
    check(opens, "opens at 2023-09-11T11:45:54.000Z (in 2 h 5 min)");
    check(
        &format!(r#""paused": true, {opens}"#),
        "PAUSED; opens at 2023-09-11T11:45:54.000Z (in 2 h 5 min)",
    );
    check(
        r#""opensAt": "2023-09-11T11:45:54.000Z", "opensInMs": null"#,
        "ok",
    );
    check(
        r#""rootStoreUnavailable": true"#,
        "ok; root store UNAVAILABLE",
    );
    let stop = r#"{"command": "pause", "since": "2023-09-11T11:45:54.000Z", "isKept": true}"#;
    check(
        &format!(r#""paused": true, "heldCommands": [{stop}]"#),
        "PAUSED; at this node only: pause",
    );
}

#[test]
fn the_table_has_phantom_seats_and_the_latency_of_the_slowest_origin() {
    let origin = |ms: &str| {
        format!(
            r#"{{"url": "http://a:80", "condition": "up", "forMs": 1, "inFlight": 0,
            "lastError": null, "responseTimeMs": {ms}}}"#
        )
    };
    let check = |origins: &[&str], expected: &str| {
        let origins: Vec<String> = origins.iter().map(|ms| origin(ms)).collect();
        let more = format!(r#""phantomSeats": 2, "origins": [{}]"#, origins.join(","));
        let row = row(&room(&more));
        assert_eq!(row[1], "3/200 (+2 phantom seats)");
        assert_eq!(row[6], expected);
    };
    check(&[], "-");
    check(&["null"], "-");
    check(&["0"], "<1 ms");
    check(&["12", "340", "null"], "340 ms");
}

#[test]
fn limits_that_differ_are_listed_by_node() {
    let node = |port: u16, total: u32| {
        let mut room = room(r#""phantomSeats": 0"#);
        room.total_active_users = total;
        let states = RoomStates {
            rooms: vec![room],
            sites: Vec::new(),
            limits: Vec::new(),
            journal: None,
            connections: None,
            clocks: Vec::new(),
        };
        (AdminAddress::Http(([127, 0, 0, 1], port).into()), states)
    };
    assert_eq!(differences(&[node(1, 200), node(2, 200)]), "");
    assert_eq!(
        differences(&[node(1, 200), node(2, 300), node(3, 200)]),
        "room shop: LIMITS DIFFER: total_active_users is 200 at 127.0.0.1:1, 300 at \
         127.0.0.1:2, 200 at 127.0.0.1:3; nodes of one store \
         keep to the lowest\n"
    );
}

#[test]
fn a_wait_has_two_units() {
    let expected = [
        (1, "1 s"),
        (59_001, "1 min 0 s"),
        (3_600_000, "1 h 0 min"),
        (90_000_000, "1 d 1 h"),
    ];
    for (ms, words) in expected {
        assert_eq!(in_words(ms), words);
    }
}

#[test]
fn the_reply_of_one_of_several_nodes_has_its_address() {
    let admin = AdminAddress::Http(([127, 0, 0, 1], 1).into());
    let check = |ready: bool, json: bool, text: &str, expected: &str| {
        let options = StatusOptions {
            admin: vec![admin.clone(), admin.clone()],
            ready,
            connection: connection(json),
        };
        assert_eq!(labelled(&admin, text, &options).unwrap(), expected);
    };
    check(false, false, "room\n", "127.0.0.1:1:\nroom\n");
    check(true, false, "ready\n", "127.0.0.1:1: ready\n");
    let body = "{\"rooms\":[]}\n";
    let expected = "{\"node\":\"127.0.0.1:1\",\"rooms\":[]}\n";
    check(false, true, body, expected);
}

#[test]
fn a_site_has_a_line_with_the_conditions_of_its_origins() {
    let origin = |url: &str, condition: &str| OriginState {
        url: url.to_owned(),
        condition: condition.to_owned(),
        for_ms: 3_900,
        in_flight: 0,
        response_time_ms: None,
        last_error: None,
    };
    let shop = SiteState {
        site: "shop".to_owned(),
        origins: vec![
            origin("http://a:80", "up"),
            origin("http://b:80", "unhealthy"),
        ],
    };
    assert_eq!(sites(&[]), "");
    assert_eq!(
        sites(&[shop]),
        "site shop: http://a:80 up, http://b:80 unhealthy for 3 s\n"
    );
}
