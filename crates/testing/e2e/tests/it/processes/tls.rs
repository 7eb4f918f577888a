//! Certificates: visitors use https, and a new certificate replaces the old one.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anteroom_e2e::node::Node;
use anteroom_e2e::origin;
use anteroom_e2e::{binary, eventually};
use anteroom_room::rules::Limits;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::processes::successor::count;
use crate::processes::{config, node};

/// Writes a new certificate and its key, and returns it.
pub(crate) fn renew(folder: &Path) -> CertificateDer<'static> {
    renew_for(folder, "localhost", "cert.pem", "key.pem")
}

fn renew_for(folder: &Path, host: &str, certificate: &str, key: &str) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([host.to_owned()]).unwrap();
    std::fs::write(folder.join(certificate), cert.pem()).unwrap();
    std::fs::write(folder.join(key), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    // An end without TLS's close is an end as well.
    let _ = stream.read_to_string(&mut response).await;
    response.to_lowercase()
}

/// Sends a request by https, trusting this certificate alone; returns `None` if another one is
/// shown.
async fn ask_trusting(address: SocketAddr, trusted: &CertificateDer<'static>) -> Option<String> {
    ask_for("localhost", address, trusted).await
}

async fn ask_for(
    host: &'static str,
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host).unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.ok()?;
    Some(ask(stream, "/").await)
}

async fn operators(node: &Node, path: &str) -> String {
    let address = node.admin().get().unwrap();
    ask(TcpStream::connect(address).await.unwrap(), path).await
}

#[tokio::test]
async fn https_is_served_and_a_usable_renewed_certificate_is_taken() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    let limits = Limits {
        total_active_users: 10,
        new_users_per_minute: 100_000,
    };
    let origin = origin::start(limits, Duration::from_secs(30)).await;
    let first = renew(&folder);
    let tls = "tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"";
    let node = node(&temp, &config(origin.address(), 10, tls)).await;
    let address = node.address().get().unwrap();

    let response = ask_trusting(address, &first).await.unwrap();
    assert!(response.starts_with("http/1.1 200 "), "{response}");
    let cookie = response
        .lines()
        .find(|line| line.starts_with("set-cookie:"))
        .unwrap();
    assert!(cookie.contains("; secure"), "{cookie}");
    let plain = ask(TcpStream::connect(address).await.unwrap(), "/").await;
    assert!(
        plain.starts_with("http/1.1 400 ") && plain.contains("https"),
        "{plain}"
    );
    let metrics = operators(&node, "/metrics").await;
    assert!(
        metrics.contains("\nanteroom_tls_certificate_expires_at_seconds "),
        "{metrics}"
    );
    // The client without TLS counts once it is gone.
    eventually("it is counted", async || {
        operators(&node, "/metrics")
            .await
            .contains("\nanteroom_tls_handshakes_failed_total 1\n")
    })
    .await;

    // A key of another certificate.
    let key = std::fs::read(folder.join("key.pem")).unwrap();
    let second = renew(&folder);
    let new_key = std::fs::read(folder.join("key.pem")).unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
    let edit = |text: &str| format!("{text}\n");
    node.reload(edit);
    eventually("it is rejected", async || {
        operators(&node, "/metrics")
            .await
            .contains("\nanteroom_config_rejected 1\n")
    })
    .await;
    assert!(
        operators(&node, "/healthz")
            .await
            .contains("belongs to another key")
    );
    assert!(
        ask_trusting(address, &first).await.is_some(),
        "the old one holds"
    );
    assert!(ask_trusting(address, &second).await.is_none());

    std::fs::write(folder.join("key.pem"), new_key).unwrap();
    node.reload(edit);
    eventually("it is taken", async || {
        operators(&node, "/metrics")
            .await
            .contains("\nanteroom_config_rejected 0\n")
    })
    .await;
    assert!(ask_trusting(address, &second).await.is_some());
    assert!(ask_trusting(address, &first).await.is_none());
}

#[tokio::test]
async fn a_further_certificate_is_served_for_its_name_and_renewed() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    let first = renew(&folder);
    let renew_further = || renew_for(&folder, "shop.example", "shop.pem", "shop.key");
    let further = renew_further();
    let server = "tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"\n\
        more_certificates = [{ tls_certificate = \"shop.pem\", tls_key = \"shop.key\" }]";
    let origin = SocketAddr::from(([127, 0, 0, 1], 9));
    let node = node(&temp, &config(origin, 10, server)).await;
    let address = node.address().get().unwrap();
    assert!(ask_for("localhost", address, &first).await.is_some());
    assert!(ask_for("shop.example", address, &further).await.is_some());
    assert!(ask_for("shop.example", address, &first).await.is_none());

    std::fs::write(folder.join("shop.key"), "").unwrap();
    let edit = |text: &str| format!("{text}\n");
    node.reload(edit);
    eventually("it is rejected", async || {
        let health = operators(&node, "/healthz").await;
        health.contains("server.more_certificates[1]: cannot read the key")
    })
    .await;
    let renewed = renew_further();
    node.reload(edit);
    eventually("it is taken", async || {
        ask_for("shop.example", address, &renewed).await.is_some()
    })
    .await;
    assert!(ask_for("localhost", address, &first).await.is_some());
}

#[tokio::test]
async fn visitors_of_http_are_sent_to_the_port_that_they_see() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    renew(&folder);
    // Use an own address, where no other process takes the port meanwhile.
    let plain = std::net::TcpListener::bind("127.9.8.7:0").unwrap();
    let address = plain.local_addr().unwrap();
    drop(plain);
    let server = format!(
        "tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"\nredirect_from = \"{address}\"\n\
         redirect_to_port = 8443"
    );
    let origin = SocketAddr::from(([127, 0, 0, 1], 9));
    let _node = node(&temp, &config(origin, 10, &server)).await;
    let response = ask(TcpStream::connect(address).await.unwrap(), "/x?y").await;
    assert!(response.starts_with("http/1.1 308 "), "{response}");
    assert!(
        response.contains("\r\nlocation: https://localhost:8443/x?y\r\n"),
        "{response}"
    );
}

#[tokio::test]
async fn a_key_readable_by_all_draws_a_warning_at_each_read() {
    const WORDS: &str = "every user of this machine can read the private key";
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    renew(&folder);
    let key = folder.join("key.pem");
    let open = |mode| std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
    let origin = SocketAddr::from(([127, 0, 0, 1], 9));
    let tls = "tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"";
    open(0o600);
    let node = node(&temp, &config(origin, 10, tls)).await;
    assert_eq!(count(&node, WORDS), 0, "{}", node.log());
    open(0o644);
    node.reload(|text| format!("{text}\n"));
    eventually("the log reports it", async || count(&node, WORDS) == 1).await;
    let check = Command::new(binary::path())
        .args(["check", "--config"])
        .arg(folder.join("anteroom.toml"))
        .output();
    let checked = check.await.unwrap();
    let output = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.status.success() && output.contains(WORDS),
        "{output}"
    );
}

#[tokio::test]
async fn operators_connect_by_https_if_the_file_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    renew(&folder);
    let server = "tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"\nadmin_tls = true";
    let origin = SocketAddr::from(([127, 0, 0, 1], 9));
    let node = node(&temp, &config(origin, 10, server)).await;
    let admin = node.admin().get().unwrap();
    let certificate = folder.join("cert.pem").display().to_string();
    let status = async |address: String, more: &[&str]| {
        let mut command = Command::new(binary::path());
        command.args(["status", "--admin", &address]).args(more);
        command.output().await.unwrap()
    };
    let by_name = format!("https://localhost:{}", admin.port());
    let ready = status(by_name.clone(), &["--ready", "--ca-file", &certificate]).await;
    assert!(ready.status.success(), "{ready:?}");
    let distrusted = status(by_name, &["--ready"]).await;
    let text = String::from_utf8_lossy(&distrusted.stderr).into_owned();
    assert!(text.contains("the TLS handshake failed"), "{text}");
    let plain = status(admin.to_string(), &["--ready"]).await;
    assert!(!plain.status.success(), "{plain:?}");
}
