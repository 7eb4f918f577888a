//! Settings of HTTP/2 connections: streams, windows, resets, pings.
//!
//! `stall` watches streams whose clients do not read their response.

pub(crate) mod stall;

use std::time::Duration;

use anteroom_config::SizeLimits;
use hyper::server::conn::http2::Builder;
use hyper_util::rt::TokioTimer;

use stall::StreamExecutor;

/// Bytes of one request's body that may arrive before they are read. Enough for 2 MB/s at 100 ms;
/// each stream of each connection may take so much memory.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Bytes of all bodies of a connection that may arrive before they are read.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of one response that wait to be sent. A client that does not read could cost hyper's
/// default (1.12: 400 KiB) times the streams of a connection.
const SEND_BUFFER: usize = 64 * 1024;
/// Maximum streams that a client resets before they are handled; more close the connection ("rapid
/// reset").
const RESETS_MAX: usize = 20;
/// Maximum streams that we reset because of the client's protocol errors; more close the
/// connection. hyper's default (1.12) is 1,024.
const MISTAKES_MAX: usize = 100;
/// Longest time for a ping reply; without one the connection is closed.
const PING_WAIT: Duration = Duration::from_secs(20);

/// Limits of HTTP/2 from the config.
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

    /// Returns the settings of a connection whose streams run on `streams`.
    pub(crate) fn builder(&self, streams: StreamExecutor) -> Builder<StreamExecutor> {
        let mut http2 = Builder::new(streams);
        // Extended CONNECT is off: upgrades are supported over HTTP/1.1 only.
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
