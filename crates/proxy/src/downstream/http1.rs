//! Settings of HTTP/1.1 connections that the parser enforces.
//!
//! `screen` checks request boundaries before the parser sees them; `screened` enforces the timeouts
//! of heads.

use anteroom_config::SizeLimits;
use hyper::server::conn::http1::Builder;

/// Minimum buffer size of hyper (hyper 1.12, `MINIMUM_MAX_BUFFER_SIZE`).
const BUFFER_MIN: usize = 8192;

/// hyper's default limit of headers (hyper 1.12, `DEFAULT_MAX_HEADERS`). A higher limit costs an
/// allocation per request; the intake enforces a lower one.
const HEADERS_CHEAP: usize = 100;

/// Returns the settings of HTTP/1.1 connections.
pub(crate) fn builder(sizes: &SizeLimits) -> Builder {
    // Not `pipeline_flush`: with it, hyper buffers without bound for a client that does not read,
    // and loses the last response of a connection that closes with requests unread (hyper 1.12,
    // `Buffered::can_buffer` and `Buffered::poll_flush`).
    let mut http1 = Builder::new();
    // `Screened` enforces the timeouts of heads. hyper's own also runs between requests (hyper
    // 1.12, `Conn::poll_read_head`), so it cannot be short for a head and long for keep-alive.
    http1
        .header_read_timeout(None)
        .half_close(true)
        .max_header_size(sizes.request_head_bytes)
        .max_buf_size(sizes.request_head_bytes.max(BUFFER_MIN));
    if sizes.request_headers > HEADERS_CHEAP {
        http1.max_headers(sizes.request_headers);
    }
    http1
}
