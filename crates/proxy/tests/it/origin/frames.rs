//! Origin that speaks HTTP/2 frame by frame, and can send what no library would.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::origin::support::in_time;

pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;

const ACK: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 1 | 4;
/// Encoded `:status: 204` from the static table (RFC 7541, appendix A).
const NO_CONTENT: [u8; 1] = [0x80 | 9];

/// Error codes of streams and connections.
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;

/// HTTP/2 connection.
pub(crate) struct Frames(TcpStream);

pub(crate) struct Frame {
    pub(crate) kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frames {
    /// Accepts a connection as an origin that allows so many concurrent requests.
    pub(crate) async fn accept_with(listener: &TcpListener, streams_max: u32) -> Self {
        let (mut stream, _) = in_time("a client connects", listener.accept())
            .await
            .unwrap();
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut frames = Self(stream);
        let mut settings = vec![0, 3];
        settings.extend(streams_max.to_be_bytes());
        frames.send(SETTINGS, 0, 0, &settings).await;
        frames
    }

    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        Self::accept_with(listener, 100).await
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }

    /// Reads the next frame; `None` once the other side has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        let read = in_time("a frame comes", self.0.read_exact(&mut head)).await;
        read.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// Reads up to the next request, and returns its stream. Acknowledges pings and settings.
    pub(crate) async fn request(&mut self) -> u32 {
        loop {
            let frame = self.next().await.expect("the connection is open");
            match frame.kind {
                HEADERS => return frame.stream,
                SETTINGS if frame.flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[]).await,
                PING if frame.flags & ACK == 0 => self.send(PING, ACK, 0, &frame.payload).await,
                _ => {}
            }
        }
    }

    /// Fails if another request has arrived.
    pub(crate) async fn no_more_requests(&mut self) {
        self.send(PING, 0, 0, &[7; 8]).await;
        loop {
            let frame = self.next().await.expect("the connection is open");
            assert_ne!(frame.kind, HEADERS, "one request too many");
            if frame.kind == PING && frame.flags & ACK != 0 {
                return;
            }
        }
    }

    /// Reads until the other side has closed the connection.
    pub(crate) async fn ends(&mut self) {
        while self.next().await.is_some() {}
    }

    /// Responds to a request with 204.
    pub(crate) async fn respond(&mut self, stream: u32) {
        self.send(HEADERS, END_STREAM_AND_HEADERS, stream, &NO_CONTENT)
            .await;
    }

    /// Resets a stream without a response.
    pub(crate) async fn reset(&mut self, stream: u32, reason: u32) {
        self.send(RST_STREAM, 0, stream, &reason.to_be_bytes())
            .await;
    }

    /// Sends a GOAWAY: no later stream was processed.
    pub(crate) async fn go_away(&mut self, last_stream: u32) {
        let mut payload = last_stream.to_be_bytes().to_vec();
        payload.extend(NO_ERROR.to_be_bytes());
        self.send(GOAWAY, 0, 0, &payload).await;
    }
}
