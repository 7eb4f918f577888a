//! Certificates: visitors are served by https, and a new certificate takes the place of the old one.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anteroom_cluster::eventually;
use anteroom_cluster::judge::JudgingOrigin;
use anteroom_cluster::node::Node;
use anteroom_core::rules::Limits;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{config, node};

/// Writes a new certificate and its key, and returns it.
fn renew(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // An end without a goodbye of TLS is an end, too.
    let _ = stream.read_to_string(&mut answer).await;
    answer.to_lowercase()
}

/// Asks by https, trusting this certificate alone; `None` if another one is shown.
async fn ask_trusting(address: SocketAddr, trusted: &CertificateDer<'static>) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.ok()?;
    Some(ask(stream, "/").await)
}

async fn operators(node: &Node, path: &str) -> String {
    let address = node.admin().address().unwrap();
    ask(TcpStream::connect(address).await.unwrap(), path).await
}

#[tokio::test]
async fn visitors_are_served_by_https_and_a_renewed_certificate_is_taken_if_it_can_be_used() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    let limits = Limits {
        total_active_users: 10,
        new_users_per_minute: 100_000,
    };
    let origin = JudgingOrigin::start(limits, Duration::from_secs(30)).await;
    let first = renew(&folder);
    let tls = "tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"";
    let node = node(&temp, &config(origin.address(), 10, tls)).await;
    let door = node.door().address().unwrap();

    let answer = ask_trusting(door, &first).await.unwrap();
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    let cookie = answer
        .lines()
        .find(|line| line.starts_with("set-cookie:"))
        .unwrap();
    assert!(cookie.contains("; secure"), "{cookie}");
    let plain = ask(TcpStream::connect(door).await.unwrap(), "/").await;
    assert!(
        plain.starts_with("http/1.1 400 ") && plain.contains("https"),
        "{plain}"
    );
    let metrics = operators(&node, "/metrics").await;
    assert!(
        metrics.contains("\nanteroom_tls_certificate_expires_at_seconds "),
        "{metrics}"
    );
    // That one, and the one who did not trust it.
    assert!(
        metrics.contains("\nanteroom_tls_handshakes_failed_total 1\n"),
        "{metrics}"
    );

    // A key that belongs to another certificate.
    let key = std::fs::read(folder.join("key.pem")).unwrap();
    let second = renew(&folder);
    let new_key = std::fs::read(folder.join("key.pem")).unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
    let edit = |text: &str| format!("{text}\n");
    node.reload(edit);
    eventually("it is refused", async || {
        operators(&node, "/metrics")
            .await
            .contains("\nanteroom_config_refused 1\n")
    })
    .await;
    assert!(
        operators(&node, "/healthz")
            .await
            .contains("do not go together")
    );
    assert!(
        ask_trusting(door, &first).await.is_some(),
        "the old one holds"
    );
    assert!(ask_trusting(door, &second).await.is_none());

    std::fs::write(folder.join("key.pem"), new_key).unwrap();
    node.reload(edit);
    eventually("it is taken", async || {
        operators(&node, "/metrics")
            .await
            .contains("\nanteroom_config_refused 0\n")
    })
    .await;
    assert!(ask_trusting(door, &second).await.is_some());
    assert!(ask_trusting(door, &first).await.is_none());
}
