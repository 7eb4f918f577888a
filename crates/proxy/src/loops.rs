//! Detection of request loops. An origin can lead back to the gateway: by a wrong address, by DNS,
//! or through a load balancer. Without an end, one request becomes thousands.
//!
//! Each process adds its own mark to [`HEADER`] of every request that it forwards. A request that
//! brings the mark back ends here with 508 (Loop Detected), before limits and rooms count it.
//!
//! The mark is random and new in each process. So several gateways in a row see marks that they do
//! not know, pass them on, and add their own. A loop through N nodes behind one load balancer ends
//! after at most N rounds, when a node sees its own mark.
//!
//! # Clients that send the header
//!
//! The header can only end the request that carries it. An unknown mark has no effect, and no
//! client can have a mark removed: `Connection` cannot name it. An origin sees the mark; a client
//! that learns it can only have its own requests rejected. Marks are neither keys nor secrets.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::Once;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use tracing::warn;

/// Header with the marks of the gateways that forwarded a request, the latest last.
pub(crate) const HEADER: HeaderName = HeaderName::from_static(NAME);

/// Name of [`HEADER`].
pub(crate) const NAME: &str = "anteroom-loop";

/// Maximum gateways that a request may have passed before this one. More than three in a row are a
/// mistake; a loop through more nodes ends here as well. If it is too small, long chains break.
const HOPS_MAX: usize = 15;

/// Text of the mark: the empty hash under a random key, which is 64 random bits from a source that
/// cannot fail.
static TEXT: LazyLock<String> =
    LazyLock::new(|| format!("{:016x}", RandomState::new().build_hasher().finish()));

/// Mark of this process. Its bytes are static, so that a copy does not allocate.
static MARK: LazyLock<HeaderValue> = LazyLock::new(|| HeaderValue::from_static(TEXT.as_str()));

/// Whether this process forwarded the request before, or too many gateways did.
pub(crate) fn is_loop(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(HEADER).iter().peekable();
    if lines.peek().is_none() {
        return false;
    }
    let marks = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let mut count = 0;
    for mark in marks {
        count += 1;
        if count > HOPS_MAX || mark.trim_ascii() == TEXT.as_bytes() {
            warn_once();
            return true;
        }
    }
    false
}

/// Marks a request as forwarded by this process.
pub(crate) fn mark(headers: &mut HeaderMap) {
    headers.append(HEADER, MARK.clone());
}

/// Returns the mark of this process.
pub(crate) fn mark_bytes() -> &'static [u8] {
    TEXT.as_bytes()
}

/// Logs a warning once, so that a loop does not fill the log.
fn warn_once() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        warn!(
            "request loop ended with 508: an origin leads back to this gateway; \
             check the origins of its rooms, this is logged once"
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let lines = lines
            .iter()
            .map(|line| HeaderValue::from_str(line).unwrap());
        let mut headers = HeaderMap::new();
        lines.for_each(|line| {
            headers.append(HEADER, line);
        });
        headers
    }

    #[test]
    fn a_request_is_a_loop_when_it_brings_the_mark_back() {
        assert!(!is_loop(&HeaderMap::new()));
        assert!(!is_loop(&headers(&["", "0123456789abcdef, x"])));
        let mut marked = headers(&["0123456789abcdef"]);
        mark(&mut marked);
        assert_eq!(marked.get_all(HEADER).iter().count(), 2);
        assert!(is_loop(&marked));
        assert!(is_loop(&headers(&[&format!("a,b , {} ,c", *TEXT)])));
    }

    #[test]
    fn a_request_with_too_many_marks_is_a_loop() {
        let many = |count| vec!["x"; count].join(",");
        assert!(!is_loop(&headers(&[&many(HOPS_MAX)])));
        assert!(is_loop(&headers(&[&many(HOPS_MAX), "y"])));
    }

    #[test]
    fn a_mark_is_sixteen_hex_digits_and_no_two_processes_share_one() {
        assert_eq!(TEXT.len(), 16);
        let other = format!("{:016x}", RandomState::new().build_hasher().finish());
        assert_ne!(*TEXT, other);
    }
}
