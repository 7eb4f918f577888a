//! Servers with and without TLS.

use std::fs;
use std::path::PathBuf;

use anteroom_config::{ValkeyAddress, ValkeyTls};
use anteroom_store::{Store, conformance};
use anteroom_testkit::redis_server::{Behaviour, Impostor, RedisServer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::support::{check_rejected, check_unavailable, key, single, store};

/// Certificates of an authority, and of a server that it signed.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Creates certificates for a server named `name`.
    fn for_server(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let self_signed = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let server_key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let server = server.signed_by(&server_key, &issuer).unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        write("ca.pem", self_signed.pem());
        write("server.pem", server.pem());
        write("server.key", server_key.serialize_pem());
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a server with TLS at its second port.
    async fn start_server(&self, client_certificates: &str) -> RedisServer {
        let [ca, certificate, key] = ["ca.pem", "server.pem", "server.key"]
            .map(|name| self.file(name).display().to_string());
        RedisServer::start_with(&[
            "--tls-port",
            "{second_port}",
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            client_certificates,
        ])
        .await
    }

    /// Returns the address of a server at `port` that trusts this authority.
    fn address(&self, port: u16) -> ValkeyAddress {
        let mut address = single(port);
        address.tls = Some(ValkeyTls {
            ca_file: Some(self.file("ca.pem")),
        });
        address
    }
}

#[tokio::test]
async fn a_server_that_speaks_tls_is_a_store() {
    let certificates = Certificates::for_server("127.0.0.1");
    let server = certificates.start_server("no").await;
    let store = store(&certificates.address(server.second_port()));
    conformance::check(&store).await.unwrap();
}

#[tokio::test]
async fn certificates_of_another_authority_are_reported() {
    let certificates = Certificates::for_server("127.0.0.1");
    let server = certificates.start_server("no").await;
    let others = Certificates::for_server("127.0.0.1");
    let store = store(&others.address(server.second_port()));
    let error = store.load(&key()).await.unwrap_err();
    check_rejected(&error, "certificate that is not trusted", "check ca_file");
}

#[tokio::test]
async fn certificates_for_another_name_are_reported() {
    let certificates = Certificates::for_server("other.example");
    let server = certificates.start_server("no").await;
    let store = store(&certificates.address(server.second_port()));
    let error = store.load(&key()).await.unwrap_err();
    check_rejected(&error, "certificate that is not trusted", "names the host");
}

#[tokio::test]
async fn a_server_that_requires_a_client_certificate_is_reported() {
    let certificates = Certificates::for_server("127.0.0.1");
    let server = certificates.start_server("yes").await;
    let store = store(&certificates.address(server.second_port()));
    let error = store.load(&key()).await.unwrap_err();
    check_rejected(
        &error,
        "requires a client certificate",
        "tls-auth-clients no",
    );
}

#[tokio::test]
async fn tls_to_a_port_without_tls_is_reported() {
    let certificates = Certificates::for_server("127.0.0.1");
    let server = certificates.start_server("no").await;
    let store = store(&certificates.address(server.port()));
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(
        &error,
        "check whether that port speaks TLS (a redis:// address",
    );
}

#[tokio::test]
async fn tls_to_a_server_of_another_protocol_is_reported() {
    let certificates = Certificates::for_server("127.0.0.1");
    let http = Impostor::start(Behaviour::AnswersHttp).await;
    let error = store(&certificates.address(http.port()))
        .load(&key())
        .await
        .unwrap_err();
    check_rejected(&error, "does not speak TLS", "redis://");
}

#[tokio::test]
async fn no_tls_to_a_port_with_tls_is_reported() {
    let certificates = Certificates::for_server("127.0.0.1");
    let server = certificates.start_server("no").await;
    let store = store(&single(server.second_port()));
    let error = store.load(&key()).await.unwrap_err();
    check_unavailable(
        &error,
        "whether that port requires TLS (a rediss:// address",
    );
}
