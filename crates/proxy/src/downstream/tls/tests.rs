//! Tests of reloads, unusable files and slow clients.

use std::fs;
use std::io::ErrorKind;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::net::TcpListener;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;
use crate::downstream::pace::Pace;

/// Writes a certificate that is valid until the first of January of a year, and its key.
fn write(folder: &TempDir, name: &str, until: i32) -> TlsConfig {
    write_for(folder, name, &["a"], until)
}

/// Writes a certificate for these hosts.
fn write_for(folder: &TempDir, name: &str, hosts: &[&str], until: i32) -> TlsConfig {
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let files = TlsConfig {
        number: 0,
        line: 0,
        certificate: folder.path().join(format!("{name}.pem")),
        key: folder.path().join(format!("{name}.key")),
    };
    fs::write(&files.certificate, certificate.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    files
}

/// First seconds of 2040 and 2050.
const IN_2040: i64 = 2_208_988_800;
const IN_2050: i64 = 2_524_608_000;

#[test]
fn a_certificate_is_replaced_only_by_a_usable_one() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (write(&folder, "a", 2040), write(&folder, "b", 2050));
    let tls = Tls::load(std::slice::from_ref(&first)).unwrap();
    assert_eq!(tls.expires_at(), IN_2040);

    let with = |certificate: &Path, key: &Path| TlsConfig {
        number: 1,
        line: 0,
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let pem = |name: &str, label: &str| {
        let file = folder.path().join(name);
        let text = format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
        fs::write(&file, text).unwrap();
        file
    };
    let broken = pem("broken", "CERTIFICATE");
    let encrypted = pem("encrypted", "ENCRYPTED PRIVATE KEY");
    let unusable = pem("unusable", "PRIVATE KEY");
    let gone = folder.path().join("gone");
    let rejected = |files: TlsConfig| {
        let files = [second.clone(), files];
        let error = tls.reload(&files).unwrap_err();
        assert_eq!(tls.expires_at(), IN_2040, "{error}");
        let [(found, _)] = &Tls::check(&files)[..] else {
            panic!("{error} and more");
        };
        assert_eq!(found.number, 1);
        error
    };
    assert!(matches!(
        rejected(with(&gone, &first.key)),
        TlsError::Certificate { .. }
    ));
    assert!(matches!(
        rejected(with(&empty, &first.key)),
        TlsError::NoCertificate { .. }
    ));
    assert!(matches!(
        rejected(with(&broken, &first.key)),
        TlsError::Malformed { .. }
    ));
    assert!(matches!(
        rejected(with(&first.certificate, &gone)),
        TlsError::Key { .. }
    ));
    assert!(matches!(
        rejected(with(&first.certificate, &empty)),
        TlsError::Key { .. }
    ));
    assert!(matches!(
        rejected(with(&first.certificate, &encrypted)),
        TlsError::Encrypted { .. }
    ));
    assert!(matches!(
        rejected(with(&first.certificate, &unusable)),
        TlsError::Unusable { .. }
    ));
    let other = rejected(with(&second.certificate, &first.key));
    assert!(matches!(other, TlsError::KeyMismatch { .. }), "{other}");

    tls.reload(&[second]).unwrap();
    assert_eq!(tls.expires_at(), IN_2050);
    assert_eq!(tls.clone().expires_at(), IN_2050, "clones share it");
}

#[test]
fn a_world_readable_key_is_detected() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let files = write(&folder, "a", 2040);
    for (mode, expected) in [(0o600, false), (0o640, false), (0o644, true)] {
        fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(is_open_to_all(&files.key), expected, "{mode:o}");
    }
}

#[test]
fn the_response_without_tls_has_the_declared_length() {
    let text = std::str::from_utf8(TLS_REQUIRED).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{}",
        body.len()
    );
}

const SECOND: Duration = Duration::from_secs(1);

/// Adds a timeout of a minute and no minimum rate.
fn timed<T>(stream: T) -> TimedIo<T> {
    TimedIo::new(stream, 60 * SECOND, Pace::new(0), None)
}

/// Returns a connection after its handshake, and the raw other end of it; at most 1,000 bytes are
/// in flight.
async fn shaken() -> (TlsStream<TimedIo<DuplexStream>>, DuplexStream) {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&folder, "a", 2040);
    let tls = Tls::load(std::slice::from_ref(&files)).unwrap();
    let connector = trusting(&[&files]);
    let (near, far) = tokio::io::duplex(1_000);
    let name = ServerName::try_from("a").unwrap();
    let (near, far) = tokio::join!(tls.handshake_on(timed(near)), connector.connect(name, far));
    (near.unwrap(), far.unwrap().into_inner().0)
}

/// Returns a client that trusts these certificates.
fn trusting(files: &[&TlsConfig]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for files in files {
        let own = CertificateDer::from_pem_file(&files.certificate).unwrap();
        roots.add(own).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_tls_records_piece_by_piece_is_served() {
    let (mut near, mut far) = shaken().await;
    let reader = tokio::spawn(async move {
        let mut piece = [0; 1_000];
        // Each pause is short; together they exceed the timeout.
        while far.read_exact(&mut piece).await.is_ok() {
            tokio::time::sleep(10 * SECOND).await; // tidy: time passes
        }
    });
    near.write_all(&[7; 40_000]).await.unwrap();
    near.flush().await.unwrap();
    drop(near);
    reader.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unread_close_message_is_not_waited_for_forever() {
    let (mut near, far) = shaken().await;
    // More bytes than fit in flight, so that the close message has to wait.
    near.write_all(&[7; 4_000]).await.unwrap();
    let ended = tokio::time::timeout(1_000 * SECOND, near.shutdown()).await;
    let error = ended.expect("it ends").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop(far);
}

#[tokio::test]
async fn a_plain_request_is_read_fully_so_no_reset_destroys_the_response() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    client.shutdown().await.unwrap();
    let mut near = timed(listener.accept().await.unwrap().0);
    reject_plain(&mut near).await;
    let unread = near.read(&mut [0; 100]).await.unwrap();
    assert_eq!(unread, 0);
    drop(near);
    let mut response = Vec::new();
    client.read_to_end(&mut response).await.unwrap();
    assert_eq!(response, TLS_REQUIRED);
}

#[tokio::test]
async fn the_certificate_with_the_requested_name_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_for(&folder, "first", &["a.example", "*.c.example"], 2040);
    let second = write_for(
        &folder,
        "second",
        &["b.example", "x.c.example", "a.example"],
        2050,
    );
    let star = write_for(&folder, "star", &["*.B.example"], 2050);
    let all = [first, second, star];
    let tls = Tls::load(&all).unwrap();
    assert_eq!(tls.expires_at(), IN_2040, "the earliest expiry");
    // Index of the certificate for a name, by a client that trusts only that one.
    let check = async |name: &'static str, shown: usize| {
        let connector = trusting(&[&all[shown]]);
        let (near, far) = tokio::io::duplex(10_000);
        let name = ServerName::try_from(name).unwrap();
        let (_near, far) =
            tokio::join!(tls.handshake_on(near), connector.connect(name.clone(), far));
        far.unwrap_or_else(|error| panic!("{name:?} {error}"));
    };
    check("a.example", 0).await;
    check("b.example", 1).await;
    check("B.example", 1).await;
    check("x.c.example", 1).await;
    check("y.c.example", 0).await;
    check("www.b.example", 2).await;
}

#[tokio::test]
async fn an_unknown_or_missing_name_gets_the_first_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_for(&folder, "first", &["a.example", "127.0.0.1"], 2040);
    let second = write_for(&folder, "second", &["b.example"], 2050);
    let tls = Tls::load(&[first.clone(), second.clone()]).unwrap();
    // An address is not requested by name. A name that is not in the certificate is rejected by the
    // client, which reports the certificate that it got.
    for (name, is_trusted) in [("127.0.0.1", true), ("z.example", false)] {
        let connector = trusting(&[&first]);
        let (near, far) = tokio::io::duplex(10_000);
        let name = ServerName::try_from(name).unwrap();
        let (_near, far) = tokio::join!(tls.handshake_on(near), connector.connect(name, far));
        match far {
            Ok(_) => assert!(is_trusted),
            Err(error) => assert!(
                !is_trusted && error.to_string().contains("a.example"),
                "{error}"
            ),
        }
    }
}

#[test]
fn an_additional_certificate_without_a_name_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (named, nameless) = (
        write(&folder, "a", 2040),
        write_for(&folder, "b", &[], 2040),
    );
    Tls::load(std::slice::from_ref(&nameless)).unwrap();
    let further = TlsConfig {
        number: 1,
        line: 0,
        ..nameless
    };
    let error = Tls::load(&[named, further]).unwrap_err();
    assert!(matches!(error, TlsError::Nameless { .. }), "{error}");
}
