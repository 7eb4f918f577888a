//! HTTP/1.1 connection that sends prepared bytes and reads strictly.

use anyhow::{Context as _, bail, ensure};
use httparse::{EMPTY_HEADER, Header, Status, parse_chunk_size};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Most headers of a response.
const HEADERS_MAX: usize = 64;
/// Room for the gateway's own page in one read.
const BUFFER_BYTES: usize = 16_384;

pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// HTTP/1.1 connection, without or with TLS.
pub(crate) struct Http1 {
    wire: Box<dyn Wire>,
    /// Last response, or the part of it that has arrived.
    received: Vec<u8>,
}

/// Response that has arrived completely.
#[derive(Debug, Eq, PartialEq)]
struct Complete {
    /// Bytes of its head and body on the wire.
    bytes: usize,
    /// Bytes of its body without the frames of chunks.
    body_bytes: usize,
}

impl Http1 {
    pub(crate) fn new(wire: Box<dyn Wire>) -> Self {
        Self {
            wire,
            received: Vec::with_capacity(BUFFER_BYTES),
        }
    }

    pub(crate) async fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.wire.write_all(request).await?;
        self.wire.flush().await?;
        Ok(())
    }

    /// Reads a whole response and returns the length of its body.
    ///
    /// A status other than 2xx is an error, and so is a connection that will close.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<usize> {
        self.received.clear();
        loop {
            let count = self.wire.read_buf(&mut self.received).await?;
            ensure!(count > 0, "the connection ended before its response");
            if let Some(complete) = parse(&self.received)? {
                ensure!(
                    complete.bytes == self.received.len(),
                    "bytes follow the response"
                );
                return Ok(complete.body_bytes);
            }
        }
    }

    /// Returns the first value of a header of the response read last.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(&self.received).ok()?;
        let value = value_of(response.headers, name)?;
        String::from_utf8(value.to_vec()).ok()
    }
}

fn value_of<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    let mut named = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case(name));
    named.next().map(|header| header.value)
}

/// Returns `None` if the response is incomplete.
fn parse(bytes: &[u8]) -> anyhow::Result<Option<Complete>> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let Status::Complete(head) = response.parse(bytes)? else {
        return Ok(None);
    };
    let status = response.code.context("a response has a status")?;
    ensure!((200..300).contains(&status), "the status is {status}");
    let connection = value_of(response.headers, "connection").unwrap_or_default();
    ensure!(
        !connection.eq_ignore_ascii_case(b"close"),
        "the proxy closes the connection"
    );
    let body = &bytes[head..];
    let length = value_of(response.headers, "content-length");
    let coding = value_of(response.headers, "transfer-encoding");
    let (wire_bytes, body_bytes) = match (length, coding) {
        (Some(length), None) => {
            let length: usize = std::str::from_utf8(length)?.parse()?;
            if body.len() < length {
                return Ok(None);
            }
            (length, length)
        }
        (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => match chunked(body)? {
            Some(lengths) => lengths,
            None => return Ok(None),
        },
        _ => bail!("the response has no length, or two"),
    };
    Ok(Some(Complete {
        bytes: head + wire_bytes,
        body_bytes,
    }))
}

/// Returns the bytes of a chunked body with and without its frames, or `None` if it is incomplete.
/// Trailers are an error.
fn chunked(bytes: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let (mut at, mut body_bytes) = (0, 0);
    loop {
        let size = parse_chunk_size(&bytes[at..]);
        let Status::Complete((line, size)) = size.ok().context("the size of a chunk is invalid")?
        else {
            return Ok(None);
        };
        let size = usize::try_from(size)?;
        let end = at + line + size;
        let Some(line_end) = bytes.get(end..end + 2) else {
            return Ok(None);
        };
        ensure!(line_end == b"\r\n", "a chunk does not end with its length");
        at = end + 2;
        body_bytes += size;
        if size == 0 {
            return Ok(Some((at, body_bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bytes: usize, body_bytes: usize) {
        let expected = Complete { bytes, body_bytes };
        assert_eq!(parse(text.as_bytes()).unwrap(), Some(expected));
        for end in 0..bytes {
            assert_eq!(parse(&text.as_bytes()[..end]).unwrap(), None, "{end}");
        }
    }

    #[test]
    fn a_response_is_complete_with_its_last_byte() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 40, 2);
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                       2\r\nhi\r\na;x\r\n0123456789\r\n0\r\n\r\n";
        check(chunked, chunked.len(), 12);
    }

    #[test]
    fn failures_and_unclear_lengths_are_errors() {
        for text in [
            "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhiho",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\r\n\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn a_response_in_pieces_is_read_whole() {
        let (near, mut far) = tokio::io::duplex(7);
        let mut connection = Http1::new(Box::new(near));
        let response = b"HTTP/1.1 200 OK\r\nset-cookie: a=b; Path=/\r\ncontent-length: 2\r\n\r\nhi";
        let (sent, body_bytes) = tokio::join!(far.write_all(response), connection.receive());
        sent.unwrap();
        assert_eq!(body_bytes.unwrap(), 2);
        assert_eq!(
            connection.header("Set-Cookie").as_deref(),
            Some("a=b; Path=/")
        );
        drop(far);
        assert!(connection.receive().await.is_err());
    }
}
