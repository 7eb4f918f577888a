//! Which limits HTTP/1.1 connections have, as far as the parser keeps them.
//!
//! Where a request ends is judged before the parser sees it (`screen`), and how long a head may
//! take is counted there, too (`screened`).

use anteroom_config::SizeLimits;
use hyper::server::conn::http1::Builder;

/// The smallest buffer that hyper works with (hyper 1.12, `MINIMUM_MAX_BUFFER_SIZE`).
const BUFFER_MIN: usize = 8192;

/// hyper's own limit of headers (hyper 1.12, `DEFAULT_MAX_HEADERS`). A higher one costs an
/// allocation for each request; whether there are more than a lower one is counted by the intake.
const HEADERS_CHEAP: usize = 100;

/// Settings of HTTP/1.1 connections.
pub(crate) fn builder(sizes: &SizeLimits) -> Builder {
    // Not `pipeline_flush`: with it, hyper buffers without bound for a client that does not read,
    // and loses the last response of a connection that closes with requests unread (hyper 1.12,
    // `Buffered::can_buffer` and `Buffered::poll_flush`).
    let mut http1 = Builder::new();
    // Timeouts of heads are kept by `Screened`. hyper's own runs while a connection is kept open
    // as well (hyper 1.12, `Conn::poll_read_head`): it cannot be short for one and long for the
    // other.
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
