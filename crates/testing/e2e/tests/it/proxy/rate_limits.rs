//! Envoy's rate limit service in a whole gateway: by the config file, with its metrics, until the
//! end.

use std::fs;
use std::net::SocketAddr;

use anteroom::gateway::Gateway;
use tokio::net::TcpStream;

use crate::proxy::support::Wire;
use crate::proxy::whole_gateway::config;

const LIMITS: &str =
    "domain: edge\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 2}\n";
const REQUEST: &str = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;

async fn send(address: SocketAddr, request: &str, body: &str) -> String {
    let mut wire = Wire::connect(address).await;
    let length = body.len();
    wire.send(&format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    ))
    .await;
    wire.rest().await
}

#[tokio::test]
async fn the_configured_service_starts_and_ends_with_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits");
    fs::create_dir(&limits).unwrap();
    fs::write(limits.join("edge.yaml"), LIMITS).unwrap();
    let table = format!(
        "[rate_limit_service]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\n\
         config_dir = {limits:?}\n"
    );
    let unused = SocketAddr::from(([127, 0, 0, 1], 9));
    let gateway = Gateway::start(&config(&folder, &[unused], &table)).await;
    let gateway = gateway.unwrap();
    let service = gateway.rate_limits().unwrap();
    let (grpc, http) = (service.grpc().unwrap(), service.http().unwrap());
    for status in [200, 200, 429] {
        let response = send(http, "POST /json", REQUEST).await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{response}"
        );
    }
    let metrics = send(gateway.admin(), "GET /metrics", "").await;
    for sample in [
        "anteroom_rate_limit_responses_total{outcome=\"ok\"} 2\n",
        "anteroom_rate_limit_hits_total{limit=\"edge.k\",kind=\"over_limit\"} 1\n",
        "anteroom_rate_limit_keys 1\n",
    ] {
        assert!(metrics.contains(sample), "{sample}: {metrics}");
    }
    gateway.stop().await;
    for address in [grpc, http] {
        assert!(TcpStream::connect(address).await.is_err());
    }
}

#[tokio::test]
async fn a_mistake_in_the_files_of_limits_is_one_of_the_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), LIMITS.replace("day", "eon")).unwrap();
    let table = format!(
        "[rate_limit_service]\nhttp = \"127.0.0.1:0\"\nconfig_dir = {:?}\n",
        folder.path()
    );
    let unused = SocketAddr::from(([127, 0, 0, 1], 9));
    let started = Gateway::start(&config(&folder, &[unused], &table)).await;
    let error = format!("{:#}", started.unwrap_err());
    assert!(
        error.contains("a.yaml:4: invalid rate limit unit 'eon'"),
        "{error}"
    );
}
