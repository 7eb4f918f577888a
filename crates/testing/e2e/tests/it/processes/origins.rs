//! Changes of origins while visitors come, and invalid changes.

use std::time::Duration;

use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use anteroom_e2e::origin;
use anteroom_room::rules::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::processes::{config, node};

/// Sends a request on its own connection and returns the response.
async fn ask(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

async fn metrics(node: &Node) -> String {
    ask(node.admin().get().unwrap(), "/metrics").await
}

#[tokio::test]
async fn origins_change_at_a_signal_and_no_visitor_notices() {
    let temp = tempfile::tempdir().unwrap();
    let limits = Limits {
        total_active_users: 10_000,
        new_users_per_minute: 100_000,
    };
    let start = || origin::start(limits, Duration::from_secs(30));
    let (first, second) = (start().await, start().await);
    let node = node(&temp, &config(first.address(), 10_000, "")).await;
    let address = node.address().get().unwrap();
    let comes = async || {
        let response = ask(address, "/").await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(!response.contains("anteroom-verdict"), "{response}");
    };
    comes().await;
    let before = first.admissions();
    assert_eq!((before > 0, second.admissions()), (true, 0));

    let (old, new) = (first.address().to_string(), second.address().to_string());
    node.reload(|text| text.replace(&old, &new));
    eventually("visitors come to the second", async || {
        comes().await;
        second.admissions() > 0
    })
    .await;
    let at_first = first.admissions();
    for _ in 0..10 {
        comes().await;
    }
    assert_eq!(first.admissions(), at_first, "no visitor goes to the first");
    let shown = metrics(&node).await;
    assert!(shown.contains(&new) && !shown.contains(&old), "{shown}");

    let bad = format!("origin = \"https://{old}\"\norigin_ca_file = \"none.pem\"");
    node.reload(|text| text.replace(&format!("origin = \"http://{new}\""), &bad));
    eventually("it is rejected", async || {
        metrics(&node)
            .await
            .contains("\nanteroom_config_rejected 1\n")
    })
    .await;
    let at_second = second.admissions();
    comes().await;
    assert_eq!(second.admissions(), at_second + 1);
}
