//! Which limits HTTP/2 connections have: streams, windows, resets, pings.
//!
//! A stream whose client does not take its response is watched in `stall`.

pub(crate) mod stall;

use std::time::Duration;

use anteroom_config::SizeLimits;
use hyper::server::conn::http2::Builder;
use hyper_util::rt::TokioTimer;

use stall::StreamExecutor;

/// What one request's body may bring before somebody reads it. Enough for 2 MB/s at 100 ms; each
/// stream of each connection may take so much memory.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all streams of a connection together.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What waits to be sent, of one response. hyper's own figure (1.12: 400 KiB) times the streams of
/// a connection is what one client that does not read could cost.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that a client opened and took back before anybody looked at them; more than so many end
/// the connection ("rapid reset").
const RESETS_MAX: usize = 20;
/// Streams that we reset because of the client's mistakes; more than so many end the connection.
/// hyper's own figure (1.12) is 1,024.
const MISTAKES_MAX: usize = 100;
/// How long a client may take to answer a ping before its connection counts as dead.
const PING_WAIT: Duration = Duration::from_secs(20);

/// Limits of HTTP/2 that an operator sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http2Limits {
    head_bytes: u32,
    streams: u32,
}

impl Http2Limits {
    pub(crate) fn of(sizes: &SizeLimits) -> Self {
        Self {
            head_bytes: u32::try_from(sizes.request_head_bytes).unwrap_or(u32::MAX),
            streams: sizes.http2_streams,
        }
    }

    /// Settings of a connection whose streams this executor runs.
    pub(crate) fn builder(&self, streams: StreamExecutor) -> Builder<StreamExecutor> {
        let mut http2 = Builder::new(streams);
        // Extended CONNECT stays off: upgrades are a matter of HTTP/1.1.
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.streams)
            .max_header_list_size(self.head_bytes)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_pending_accept_reset_streams(RESETS_MAX)
            .max_local_error_reset_streams(MISTAKES_MAX)
            .keep_alive_interval(PING_WAIT)
            .keep_alive_timeout(PING_WAIT);
        http2
    }
}
