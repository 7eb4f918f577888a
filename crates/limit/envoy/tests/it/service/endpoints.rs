//! Tests of JSON, health checks, the list of limits, and the shutdown.

use std::time::Duration;

use anteroom_envoy::ServiceSockets;
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::service::support::{Stage, framed, http, local, request_of, settings};

const FILE: &str = "
domain: d
descriptors:
- {key: k, value: v, rate_limit: {unit: minute, requests_per_unit: 1, name: one}}
- key: g
  shadow_mode: true
  rate_limit: {unit: hour, requests_per_unit: 5, algorithm: gcra}
  descriptors:
  - {key: n, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 7}}
";

#[tokio::test]
async fn json_responses_equal_those_of_the_reference() {
    let stage = Stage::new(FILE).await;
    let address = stage.service.http().unwrap();
    let body = r#"{"domain":"d","descriptors":[
        {"entries":[{"key":"k","value":"v"}]},{"entries":[{"key":"x"}]}]}"#;
    let limit = r#""currentLimit":{"name":"one","requestsPerUnit":1,"unit":"MINUTE"},
        "durationUntilReset":"47s""#;
    for (status, code) in [
        (StatusCode::OK, "OK"),
        (StatusCode::TOO_MANY_REQUESTS, "OVER_LIMIT"),
    ] {
        let (found, headers, text) = http(address, Method::POST, "/json", body).await;
        assert_eq!(found, status);
        assert_eq!(headers["content-type"], "application/json");
        let expected: serde_json::Value = serde_json::from_str(&format!(
            r#"{{"overallCode":"{code}","statuses":[{{"code":"{code}",{limit}}},{{"code":"OK"}}]}}"#
        ))
        .unwrap();
        let text: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, expected);
    }
    for bad in [
        "",
        "{",
        r#"{"domain":"d"}"#,
        r#"{"domain":"d","descriptor":[]}"#,
    ] {
        let (status, _, text) = http(address, Method::POST, "/json", bad).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}");
        assert!(text.len() > 5, "no reason: {text}");
    }
    let (status, headers, _) = http(address, Method::GET, "/json", "").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(headers["allow"], "POST");
    let (status, _, _) = http(address, Method::GET, "/", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn loaded_limits_are_listed_like_the_reference() {
    let stage = Stage::new(FILE).await;
    let address = stage.service.http().unwrap();
    let (_, _, text) = http(address, Method::GET, "/rlconfig", "").await;
    let expected = "\
        d.k_v: unit=MINUTE requests_per_unit=1, shadow_mode: false, quota_mode: false\n\
        d.g: unit=HOUR requests_per_unit=5, shadow_mode: true, quota_mode: false, algorithm: gcra\n\
        d.g.n: unit=DAY requests_per_unit=7, shadow_mode: false, quota_mode: true\n";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn the_service_is_healthy_until_it_stops_and_accepts_no_one_afterwards() {
    let stage = Stage::new(FILE).await;
    let address = stage.service.http().unwrap();
    let (status, _, text) = http(address, Method::GET, "/healthcheck", "").await;
    assert_eq!((status, &*text), (StatusCode::OK, "OK"));
    let mut client = stage.client().await;
    // HealthCheckRequest { service: "ratelimit" }, and HealthCheckResponse { status: SERVING }.
    let check = "/grpc.health.v1.Health/Check";
    let called = client.call(check, framed(b"\x0a\x09ratelimit")).await;
    assert_eq!(
        (called.code, &called.body[..]),
        (0, &framed(b"\x08\x01")[..])
    );
    assert_eq!(client.call(check, framed(b"\x0a\x02no")).await.code, 5);

    stage.service.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
    let grpc = stage.service.grpc().unwrap();
    assert!(TcpStream::connect(grpc).await.is_err());
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn a_client_that_stays_is_disconnected_at_shutdown() {
    let stage = Stage::new(FILE).await;
    let address = stage.service.grpc().unwrap();
    let mut mute = TcpStream::connect(address).await.unwrap();
    // It begins like HTTP/2, and then sends nothing more.
    let begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    mute.write_all(begin).await.unwrap();
    let mut received = vec![0; 9];
    mute.read_exact(&mut received).await.unwrap();
    stage.service.stop().await;
    // This is sooner than a ping would notice.
    let ended = timeout(Duration::from_secs(1), mute.read_to_end(&mut received)).await;
    assert!(ended.is_ok(), "it is still connected");
}

/// Returns both sockets, as a process that shares them has them.
fn shared(sockets: &[std::net::TcpListener; 2]) -> ServiceSockets {
    let [grpc, http] = sockets.each_ref().map(|socket| {
        let same = socket.try_clone().unwrap();
        same.set_nonblocking(true).unwrap();
        Some(TcpListener::from_std(same).unwrap())
    });
    ServiceSockets { grpc, http }
}

async fn at(sockets: ServiceSockets) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let config = settings(&folder);
    Stage::at(sockets, FILE, local(), (folder, config)).await
}

const HEALTH: &[u8] = b"GET /healthcheck HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

async fn read_response(stream: &mut TcpStream) -> String {
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test]
async fn a_successor_serves_connections_that_its_predecessor_did_not_accept() {
    let sockets = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let first = at(shared(&sockets)).await;
    let address = first.service.http().unwrap();
    let grpc = first.service.grpc();
    first.service.stop().await;
    // No process accepts, and the kernel refuses no connection.
    let mut waiting = TcpStream::connect(address).await.unwrap();
    waiting.write_all(HEALTH).await.unwrap();
    let second = at(shared(&sockets)).await;
    assert!(
        read_response(&mut waiting)
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    assert_eq!(second.service.grpc(), grpc);
    assert!(
        second
            .client()
            .await
            .outcome(&request_of(&["other"]))
            .await
            .0
    );
}

#[tokio::test]
async fn a_client_that_connected_before_the_shutdown_gets_a_response() {
    let stage = Stage::new(FILE).await;
    let address = stage.service.http().unwrap();
    let mut mute = TcpStream::connect(address).await.unwrap();
    // Connections are accepted in order.
    http(address, Method::GET, "/healthcheck", "").await;
    let ending = tokio::spawn(stage.service.stop());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    mute.write_all(HEALTH).await.unwrap();
    let response = read_response(&mut mute).await;
    assert!(
        response.starts_with("HTTP/1.1 500 "),
        "not unhealthy: {response}"
    );
    ending.await.unwrap();
}
