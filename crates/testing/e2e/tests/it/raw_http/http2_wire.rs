//! Raw HTTP/2: frames with fields that no client library would send.

use std::net::SocketAddr;
use std::sync::Arc;

use anteroom_config::TlsConfig;
use anteroom_proxy::downstream::tls::Tls;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Name and value of a field.
pub(crate) type Field = (&'static [u8], &'static [u8]);

/// End of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// Response with this status.
    Answered(u16),
    /// Reset of the stream, with this code.
    Reset(u32),
    /// End of the connection, with this code.
    GoAway(u32),
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns TLS for a gateway, and for a client that trusts it; the client offers HTTP/2.
pub(crate) fn tls() -> (Tls, TlsConnector) {
    tls_offering(&["h2"])
}

/// Returns TLS for a client that offers these protocols.
pub(crate) fn tls_offering(protocols: &[&str]) -> (Tls, TlsConnector) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["a".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = TlsConfig {
        number: 0,
        line: 0,
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
    };
    std::fs::write(&files.certificate, cert.pem()).unwrap();
    std::fs::write(&files.key, signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    (
        Tls::load(&[files]).unwrap(),
        TlsConnector::from(Arc::new(config)),
    )
}

/// Returns the fields of a plain request.
pub(crate) fn get(path: &'static [u8]) -> Vec<Field> {
    vec![
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":path", path),
        (b":authority", b"a"),
    ]
}

/// Client end of an HTTP/2 connection.
pub(crate) struct Http2Wire {
    stream: TlsStream<TcpStream>,
}

impl Http2Wire {
    pub(crate) async fn connect(address: SocketAddr, connector: &TlsConnector) -> Self {
        Self::connect_with(address, connector, &[]).await
    }

    /// Connects with a window of so many bytes for each response.
    pub(crate) async fn with_window(
        address: SocketAddr,
        connector: &TlsConnector,
        bytes: u32,
    ) -> Self {
        let initial_window_size = [&[0, 4][..], &bytes.to_be_bytes()].concat();
        Self::connect_with(address, connector, &initial_window_size).await
    }

    async fn connect_with(address: SocketAddr, connector: &TlsConnector, settings: &[u8]) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("a").unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        stream.write_all(preface).await.unwrap();
        let mut wire = Self { stream };
        wire.frame(SETTINGS, 0, 0, settings).await;
        wire
    }

    /// Sends a frame; the other side may be gone.
    async fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.stream.write_all(&frame).await;
        let _ = self.stream.flush().await;
    }

    /// Sends a request's fields, unchanged.
    pub(crate) async fn headers(&mut self, stream: u32, fields: &[Field], is_last: bool) {
        let mut block = Vec::new();
        for (name, value) in fields {
            // A literal without indexing, with a new name.
            block.push(0);
            string(&mut block, name);
            string(&mut block, value);
        }
        let flags = END_HEADERS | if is_last { END_STREAM } else { 0 };
        self.frame(HEADERS, flags, stream, &block).await;
    }

    pub(crate) async fn data(&mut self, stream: u32, data: &[u8], is_last: bool) {
        let flags = if is_last { END_STREAM } else { 0 };
        self.frame(DATA, flags, stream, data).await;
    }

    /// Resets a stream.
    pub(crate) async fn reset(&mut self, stream: u32) {
        self.frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
            .await;
    }

    /// Waits for the end of a request, or of the connection.
    pub(crate) async fn end(&mut self, stream: u32) -> End {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await.unwrap();
            let number = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let word = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
            match head[3] {
                HEADERS if number == stream => return End::Answered(status(&payload)),
                RST_STREAM if number == stream => return End::Reset(word(0)),
                GOAWAY => return End::GoAway(word(4)),
                _ => {}
            }
        }
    }
}

/// Appends a string without encoding, with its length in front.
fn string(block: &mut Vec<u8>, text: &[u8]) {
    let mut length = text.len();
    if length < 127 {
        block.push(u8::try_from(length).unwrap());
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push(u8::try_from(length % 128).unwrap() | 128);
            length /= 128;
        }
        block.push(u8::try_from(length).unwrap());
    }
    block.extend(text);
}

/// Returns the status of a response: always its first field.
fn status(block: &[u8]) -> u16 {
    const KNOWN: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    let first = block[0];
    if first & 0x80 != 0 {
        return KNOWN[usize::from(first & 0x7f) - 8];
    }
    // A literal whose name is known; its value is three digits in Huffman's code, in 15 to 18 bits.
    assert_eq!(block[1] & 0x80, 0x80, "{block:x?}");
    let length = usize::from(block[1] & 0x7f);
    let bits = block[2..2 + length]
        .iter()
        .fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
    let mut left = length * 8;
    let mut number = 0;
    for _ in 0..3 {
        let five = (bits >> (left - 5)) & 0x1f;
        let digit = if five < 3 {
            left -= 5;
            five
        } else {
            left -= 6;
            ((bits >> left) & 0x3f) - 0x19 + 3
        };
        number = number * 10 + digit;
    }
    u16::try_from(number).unwrap()
}
