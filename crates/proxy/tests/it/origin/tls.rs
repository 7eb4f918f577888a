//! Tests of origins with TLS: trusted certificates, and the HTTP version by ALPN.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use anteroom_proxy::upstream::{Group, Origins};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::origin::support::{Body, LIMITS, get, room, text};

/// Origin with a certificate for `localhost`; it responds with the HTTP version and host of the
/// request.
struct Secure {
    address: SocketAddr,
    folder: TempDir,
}

async fn secure(protocols: &[&str]) -> Secure {
    let folder = tempfile::tempdir().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let self_signed = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&key, &issuer).unwrap();
    fs::write(folder.path().join("ca.pem"), self_signed.pem()).unwrap();
    let chain = vec![CertificateDer::from(server.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not trust the certificate closes the connection.
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let service = service_fn(echo);
                let io = TokioIo::new(stream);
                if is_http2 {
                    let http = http2::Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(io, service).await;
                } else {
                    let _ = http1::Builder::new().serve_connection(io, service).await;
                }
            });
        }
    });
    Secure { address, folder }
}

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let host = request
        .headers()
        .get("host")
        .map(|host| host.to_str().unwrap());
    let text = format!("{:?} {} host {host:?}", request.version(), request.uri());
    Ok(Response::new(Full::from(text)))
}

impl Secure {
    /// Creates a group with this origin by the name `host`, with more lines of config.
    fn group(&self, host: &str, more: &str) -> Arc<Group<Body>> {
        let ca = self.folder.path().join("ca.pem");
        let lines = format!(
            "origin = \"https://{host}:{}\"\norigin_ca_file = \"{}\"\n{more}",
            self.address.port(),
            ca.display()
        );
        let origins = Origins::new(LIMITS);
        let room = room("shop", &lines);
        let plan = origins.plan(room.own_origins()).unwrap();
        let group = plan.group(&room.origin_owner()).unwrap();
        origins.commit(plan);
        group
    }
}

const NEVER: &str = "origin_http2 = \"never\"";
const AUTO: &str = "origin_http2 = \"auto\"";
const ALWAYS: &str = "origin_http2 = \"always\"";

const BY_1: &str = "HTTP/1.1 / host Some(\"shop.example\")";
const BY_2: &str = "HTTP/2.0 https://shop.example/ host None";

#[tokio::test]
async fn alpn_selects_the_http_version() {
    let cases: [(&[&str], &str, &str); 7] = [
        (&["h2", "http/1.1"], NEVER, BY_1),
        (&["h2", "http/1.1"], AUTO, BY_2),
        (&["h2", "http/1.1"], ALWAYS, BY_2),
        (&["http/1.1"], AUTO, BY_1),
        (&[], NEVER, BY_1),
        (&[], AUTO, BY_1),
        (&["h2"], ALWAYS, BY_2),
    ];
    for (protocols, wanted, expected) in cases {
        let origin = secure(protocols).await;
        let group = origin.group("localhost", wanted);
        for _ in 0..3 {
            let response = get(&group).await.unwrap();
            assert_eq!(text(response).await.1, expected, "{protocols:?} {wanted}");
        }
    }
}

#[tokio::test]
async fn an_http_2_only_origin_without_http_2_is_not_connected() {
    for protocols in [&["http/1.1"][..], &[]] {
        let origin = secure(protocols).await;
        let failure = get(&origin.group("localhost", ALWAYS)).await.unwrap_err();
        assert_eq!(failure.outcome().name(), "connect_failed", "{failure:?}");
    }
}

#[tokio::test]
async fn only_a_certificate_for_this_name_by_a_trusted_issuer_is_accepted() {
    let origin = secure(&[]).await;
    let group = origin.group("127.0.0.1", "");
    let failure = get(&group).await.unwrap_err();
    assert_eq!(failure.outcome().name(), "connect_failed");
    let error = group.stats().origins[0].last_error.clone().unwrap();
    assert!(
        error.contains("no TLS") && error.contains("not valid for name"),
        "{error}"
    );

    let other_authority = secure(&[]).await;
    fs::copy(
        other_authority.folder.path().join("ca.pem"),
        origin.folder.path().join("ca.pem"),
    )
    .unwrap();
    let group = origin.group("localhost", "");
    get(&group).await.unwrap_err();
    let error = group.stats().origins[0].last_error.clone().unwrap();
    assert!(error.contains("invalid peer certificate"), "{error}");
}

#[tokio::test]
async fn an_origin_without_tls_has_its_own_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = Secure {
        address: listener.local_addr().unwrap(),
        folder: secure(&[]).await.folder,
    };
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let serve =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(echo));
            tokio::spawn(serve);
        }
    });
    let group = plain.group("localhost", "");
    get(&group).await.unwrap_err();
    let error = group.stats().origins[0].last_error.clone().unwrap();
    assert!(error.contains("no TLS on the connection"), "{error}");
}
