//! TLS towards visitors: which certificate, until when it is good, and how it is changed.
//!
//! Certificates and keys are read from PEM files; [`Tls::reload`] reads them again, and what cannot
//! be used leaves the old ones in force. Of several, the one is shown in which the name stands that
//! is asked for (`names`). Which protocol is spoken inside is settled by ALPN: `h2` or `http/1.1`.

mod names;

use std::fmt;
use std::io::Error as IoError;
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

/// PEM has this word above a key with a password.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

/// What a TLS connection is.
pub(crate) type Stream = TlsStream<TimedIo<TcpStream>>;

const DAY: i64 = 86_400;
/// How long before its end a certificate is warned of. Those who renew by a program do it a month
/// before; this is when nothing but a hand helps.
const WARN_BEFORE: i64 = 14 * DAY;
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(43_200);

/// First byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 22;

/// What somebody is told who speaks HTTP without TLS here.
const SPEAK_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 49\r\n\r\n\
    This port speaks https. Use https:// to reach it.";

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// No such file, or no PEM in it.
    #[error("cannot read the certificate {}", .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: PemError,
    },
    /// A file without any certificate.
    #[error(
        "there is no certificate in {}. It must be plain text, not UTF-16, with a line \
         -----BEGIN CERTIFICATE-----. `openssl x509 -inform der` converts DER",
        .path.display()
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// No such file, or no key in it.
    #[error("cannot read the key {}", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: PemError,
    },
    /// A key that needs a password.
    #[error(
        "the key {} is encrypted. Decrypt it with `openssl pkey -in FILE -out NEW`, and let only \
         its owner read the result",
        .path.display()
    )]
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// The certificate belongs to another key.
    #[error(
        "the certificate {} belongs to another key than {}",
        .files.certificate.display(),
        .files.key.display()
    )]
    Unfit {
        /// The files.
        files: Box<TlsConfig>,
    },
    /// A key of a kind that cannot be used.
    #[error(
        "the key {} cannot be used. Allowed: RSA of 2,048 to 8,192 bits, ECDSA (P-256, P-384, \
         P-521), Ed25519",
        .path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
    },
    /// A certificate that does not say until when it is good.
    #[error("the certificate {} is malformed", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// A certificate beside others that nobody can ask for.
    #[error("the certificate {} names no host, so it would never be shown", .path.display())]
    Nameless {
        /// The file.
        path: PathBuf,
    },
    /// The machine has no randomness.
    #[error("cannot set up TLS")]
    Setup(#[source] rustls::Error),
}

/// Why a connection did not become a TLS connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("the handshake took longer than {} ms", .after.as_millis())]
    TimedOut { after: Duration },
    #[error("what came is not TLS")]
    NotTls,
    #[error("the handshake failed")]
    Failed(#[source] IoError),
}

/// The certificates in force.
struct Loaded {
    acceptor: TlsAcceptor,
    /// Until when each is good, in seconds since 1970.
    ends: Vec<(PathBuf, i64)>,
}

/// One of them, and what stands in it.
struct Certificate {
    key: CertifiedKey,
    names: Vec<String>,
    expires_at: i64,
}

/// Ends TLS with the certificates in force. Clones share it.
#[derive(Clone)]
pub struct Tls {
    loaded: Arc<ArcSwap<Loaded>>,
    // Kept over reloads, so that sessions can be resumed.
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
    /// Reads certificates and keys; the first certificate is for those, too, who ask for a name in
    /// none.
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

    /// Reads them again, for connections from now on.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if they cannot be used; nothing changes then.
    pub fn reload(&self, files: &[TlsConfig]) -> Result<(), TlsError> {
        let loaded = read(files, &self.tickets)?;
        self.loaded.store(Arc::new(loaded));
        Ok(())
    }

    /// Warns as long as a certificate in force ends soon, now and twice a day. `now` is the time in
    /// seconds since 1970.
    pub async fn watch_end(self, now: impl Fn() -> i64) {
        loop {
            for (path, end) in &self.loaded.load().ends {
                let left = end.saturating_sub(now());
                let certificate = path.display();
                if left <= 0 {
                    error!(%certificate, "the TLS certificate has expired: browsers refuse it");
                } else if left < WARN_BEFORE {
                    warn!(%certificate, days = left / DAY, "the TLS certificate ends soon");
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Says which certificates and keys could not be used.
    #[must_use]
    pub fn check(files: &[TlsConfig]) -> Vec<(&TlsConfig, TlsError)> {
        let provider = aws_lc_rs::default_provider();
        let read = files.iter().map(|files| {
            let read = read_one(files, &provider);
            read.err().map(|error| (files, error))
        });
        read.flatten().collect()
    }

    /// Until when all certificates are good, in seconds since 1970.
    #[must_use]
    pub fn expires_at(&self) -> i64 {
        let loaded = self.loaded.load();
        let ends = loaded.ends.iter().map(|(_, end)| *end);
        ends.min().unwrap_or(i64::MAX)
    }

    /// Shakes hands within `wait`.
    pub(crate) async fn accept(
        &self,
        stream: TimedIo<TcpStream>,
        wait: Duration,
    ) -> Result<Stream, HandshakeError> {
        let shaken = tokio::time::timeout(wait, self.shake(stream)).await;
        shaken.unwrap_or(Err(HandshakeError::TimedOut { after: wait }))
    }

    async fn shake(&self, mut stream: TimedIo<TcpStream>) -> Result<Stream, HandshakeError> {
        let mut first = [0];
        let peeked = stream.inner().peek(&mut first).await;
        if peeked.map_err(HandshakeError::Failed)? == 1 && first != [HANDSHAKE] {
            turn_away(&mut stream).await;
            return Err(HandshakeError::NotTls);
        }
        self.shake_on(stream).await
    }

    /// Shakes hands with somebody who is about to.
    async fn shake_on<T: AsyncRead + AsyncWrite + Unpin>(
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

/// Tells somebody who does not speak TLS. All letters: a browser that was told http:// by mistake.
/// Others get the same.
async fn turn_away(stream: &mut TimedIo<TcpStream>) {
    let _ = stream.write_all(SPEAK_TLS).await;
    // Reads what comes, so that the answer is not destroyed by a reset.
    let _ = stream.shutdown().await;
}

/// Whether HTTP/2 was settled on.
pub(crate) fn is_http2(stream: &Stream) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}

/// Whether others than the owner and its group may read a private key, or write it.
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
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = Arc::clone(tickets);
    Ok(Loaded {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        ends,
    })
}

/// Reads one of several certificates, and its key.
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
        rustls::Error::InconsistentKeys(_) => TlsError::Unfit {
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
