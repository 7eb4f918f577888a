//! TLS towards clients: certificates, their expiry, and their reload.
//!
//! Certificates and keys come from PEM files. [`Tls::reload`] reads them again; if one cannot be
//! used, the old ones stay in force. Of several certificates, the one with the requested name is
//! used (`names`). ALPN selects the protocol: `h2` or `http/1.1`.

mod names;

use std::fmt;
use std::io::{self, Error as IoError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{PemError, TlsConfig};
use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::ProducesTickets;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;
use tracing::{error, warn};

use crate::downstream::timed_io::TimedIo;
use names::{ByName, names_of};

/// Word in the PEM header of a key with a password.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

/// TLS connection of a client.
pub(crate) type Stream = TlsStream<TimedIo<TcpStream>>;

const DAY: i64 = 86_400;
/// Time before its expiry from which a certificate is warned of, in seconds. Automatic renewal
/// happens a month before; now a person must act.
const WARN_BEFORE: i64 = 14 * DAY;
/// Interval of the expiry check.
const CHECK_INTERVAL: Duration = Duration::from_secs(43_200);

/// First byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 22;

/// Response to a client that sends HTTP without TLS.
const TLS_REQUIRED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 49\r\n\r\n\
    This port speaks https. Use https:// to reach it.";

/// Error of loading certificates and keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file does not exist or is not PEM.
    #[error("cannot read the certificate {}", .path.display())]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        #[source]
        source: PemError,
    },
    /// The file has no certificate.
    #[error(
        "there is no certificate in {}. It must be plain text, not UTF-16, with a line \
         -----BEGIN CERTIFICATE-----. `openssl x509 -inform der` converts DER",
        .path.display()
    )]
    NoCertificate {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file does not exist or has no key.
    #[error("cannot read the key {}", .path.display())]
    Key {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        #[source]
        source: PemError,
    },
    /// The key needs a password.
    #[error(
        "the key {} is encrypted. Decrypt it with `openssl pkey -in FILE -out NEW`, and let only \
         its owner read the result",
        .path.display()
    )]
    Encrypted {
        /// Path of the file.
        path: PathBuf,
    },
    /// The certificate belongs to another key.
    #[error(
        "the certificate {} belongs to another key than {}",
        .files.certificate.display(),
        .files.key.display()
    )]
    KeyMismatch {
        /// Files of the certificate and the key.
        files: Box<TlsConfig>,
    },
    /// The key has an unsupported type.
    #[error(
        "the key {} cannot be used. Allowed: RSA of 2,048 to 8,192 bits, ECDSA (P-256, P-384, \
         P-521), Ed25519",
        .path.display()
    )]
    Unusable {
        /// Path of the file.
        path: PathBuf,
    },
    /// The certificate has no readable expiry.
    #[error("the certificate {} is malformed", .path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
    },
    /// An additional certificate has no host name, so no client can request it.
    #[error("the certificate {} names no host, so it would never be used", .path.display())]
    Nameless {
        /// Path of the file.
        path: PathBuf,
    },
    /// The machine has no randomness.
    #[error("cannot set up TLS")]
    Setup(#[source] rustls::Error),
}

/// Error of a TLS handshake.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("the handshake took longer than {} ms", .after.as_millis())]
    TimedOut { after: Duration },
    #[error("what came is not TLS")]
    NotTls,
    #[error("the handshake failed")]
    Failed(#[source] IoError),
}

/// Certificates in force.
struct Loaded {
    acceptor: TlsAcceptor,
    /// Offers HTTP/1.1 only.
    http1: TlsAcceptor,
    /// Expiry of each certificate, in seconds since the Unix epoch.
    ends: Vec<(PathBuf, i64)>,
}

/// Certificate with its key, names and expiry.
struct Certificate {
    key: CertifiedKey,
    names: Vec<String>,
    expires_at: i64,
}

/// TLS termination with the certificates in force. Clones share it.
#[derive(Clone)]
pub struct Tls {
    loaded: Arc<ArcSwap<Loaded>>,
    // Kept across reloads, so that sessions can be resumed.
    tickets: Arc<dyn ProducesTickets>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("expires_at", &self.expires_at())
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads certificates and keys. The first certificate also serves clients that request an
    /// unknown name.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if they cannot be used.
    pub fn load(files: &[TlsConfig]) -> Result<Self, TlsError> {
        let tickets = aws_lc_rs::Ticketer::new().map_err(TlsError::Setup)?;
        let loaded = read(files, &tickets)?;
        Ok(Self {
            loaded: Arc::new(ArcSwap::from_pointee(loaded)),
            tickets,
        })
    }

    /// Reads the files again, for connections from now on.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if they cannot be used; nothing changes then.
    pub fn reload(&self, files: &[TlsConfig]) -> Result<(), TlsError> {
        let loaded = read(files, &self.tickets)?;
        self.loaded.store(Arc::new(loaded));
        Ok(())
    }

    /// Warns while a certificate in force expires soon, now and twice a day. `now` is the time in
    /// seconds since the Unix epoch.
    pub async fn watch_end(self, now: impl Fn() -> i64) {
        loop {
            for (path, end) in &self.loaded.load().ends {
                let left = end.saturating_sub(now());
                let certificate = path.display();
                if left <= 0 {
                    error!(%certificate, "the TLS certificate has expired: browsers reject it");
                } else if left < WARN_BEFORE {
                    warn!(%certificate, days = left / DAY, "the TLS certificate expires soon");
                }
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Returns the certificates and keys that cannot be used, with their errors.
    #[must_use]
    pub fn check(files: &[TlsConfig]) -> Vec<(&TlsConfig, TlsError)> {
        let provider = aws_lc_rs::default_provider();
        let read = files.iter().map(|files| {
            let read = read_one(files, &provider);
            read.err().map(|error| (files, error))
        });
        read.flatten().collect()
    }

    /// Returns the earliest expiry of all certificates, in seconds since the Unix epoch.
    #[must_use]
    pub fn expires_at(&self) -> i64 {
        let loaded = self.loaded.load();
        let ends = loaded.ends.iter().map(|(_, end)| *end);
        ends.min().unwrap_or(i64::MAX)
    }

    /// Performs the handshake on a connection for HTTP/1.1 within `wait`.
    ///
    /// # Errors
    ///
    /// If the client does not speak TLS, accepts no certificate, or takes too long.
    pub async fn accept_http1(
        &self,
        stream: TcpStream,
        wait: Duration,
    ) -> Result<TlsStream<TcpStream>, IoError> {
        let acceptor = self.loaded.load().http1.clone();
        let shaken = tokio::time::timeout(wait, acceptor.accept(stream)).await;
        shaken.unwrap_or_else(|late| Err(IoError::new(io::ErrorKind::TimedOut, late)))
    }

    /// Performs the handshake within `wait`.
    pub(crate) async fn accept(
        &self,
        stream: TimedIo<TcpStream>,
        wait: Duration,
    ) -> Result<Stream, HandshakeError> {
        let shaken = tokio::time::timeout(wait, self.handshake(stream)).await;
        shaken.unwrap_or(Err(HandshakeError::TimedOut { after: wait }))
    }

    async fn handshake(&self, mut stream: TimedIo<TcpStream>) -> Result<Stream, HandshakeError> {
        let mut first = [0];
        let peeked = stream.inner().peek(&mut first).await;
        if peeked.map_err(HandshakeError::Failed)? == 1 && first != [HANDSHAKE] {
            reject_plain(&mut stream).await;
            return Err(HandshakeError::NotTls);
        }
        self.handshake_on(stream).await
    }

    /// Performs the handshake with a client that speaks TLS.
    async fn handshake_on<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: T,
    ) -> Result<TlsStream<T>, HandshakeError> {
        let acceptor = self.loaded.load().acceptor.clone();
        acceptor
            .accept(stream)
            .await
            .map_err(HandshakeError::Failed)
    }
}

/// Responds to a client that does not speak TLS. It begins with letters: most likely a browser with
/// an http:// link. Other clients get the same.
async fn reject_plain(stream: &mut TimedIo<TcpStream>) {
    let _ = stream.write_all(TLS_REQUIRED).await;
    // Reads the rest, so that a reset does not destroy the response.
    let _ = stream.shutdown().await;
}

/// Whether ALPN selected HTTP/2.
pub(crate) fn is_http2(stream: &Stream) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}

/// Whether users other than the owner and its group may read or write a private key.
#[must_use]
pub fn is_open_to_all(key: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(key).is_ok_and(|metadata| metadata.permissions().mode() & 0o007 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = key;
        false
    }
}

fn read(files: &[TlsConfig], tickets: &Arc<dyn ProducesTickets>) -> Result<Loaded, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut by_name = ByName::default();
    let mut ends = Vec::with_capacity(files.len());
    for files in files {
        let one = read_one(files, &provider)?;
        ends.push((files.certificate.clone(), one.expires_at));
        by_name.add(one.names, one.key);
    }
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let mut config = config
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(by_name));
    config.ticketer = Arc::clone(tickets);
    let acceptor = |protocols: &[&[u8]]| {
        let mut config = config.clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    };
    Ok(Loaded {
        acceptor: acceptor(&[b"h2", b"http/1.1"]),
        http1: acceptor(&[b"http/1.1"]),
        ends,
    })
}

/// Reads one certificate and its key.
fn read_one(files: &TlsConfig, provider: &CryptoProvider) -> Result<Certificate, TlsError> {
    let path = || files.certificate.clone();
    let unreadable = |error: pem::Error| TlsError::Certificate {
        path: path(),
        source: error.into(),
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(unreadable)?;
    let Some(own) = chain.first() else {
        return Err(TlsError::NoCertificate { path: path() });
    };
    let parsed = x509_parser::parse_x509_certificate(own);
    let (_, parsed) = parsed.map_err(|_| TlsError::Malformed { path: path() })?;
    let expires_at = parsed.validity().not_after.timestamp();
    let names = names_of(&parsed);
    if files.number > 0 && names.is_empty() {
        return Err(TlsError::Nameless { path: path() });
    }
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| no_key(&files.key, error))?;
    let key = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::KeyMismatch {
            files: Box::new(files.clone()),
        },
        _ => TlsError::Unusable {
            path: files.key.clone(),
        },
    })?;
    Ok(Certificate {
        key,
        names,
        expires_at,
    })
}

fn no_key(path: &Path, error: pem::Error) -> TlsError {
    let path = path.to_owned();
    let is_encrypted = matches!(error, pem::Error::NoItemsFound)
        && std::fs::read(&path)
            .is_ok_and(|text| text.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED));
    if is_encrypted {
        return TlsError::Encrypted { path };
    }
    TlsError::Key {
        path,
        source: error.into(),
    }
}

#[cfg(test)]
mod tests;
