//! Handling of `Expect: 100-continue` (RFC 9110, section 10.1.1).
//!
//! The expectation is forwarded, so that an origin can reject an upload before it is sent. The body
//! is read only after the origin's `100 Continue`; reading it makes hyper send the same to the
//! client. Many origins never send it, so after a second the body is sent anyway. After an earlier
//! response the body is no longer read. Other expectations are rejected.

use std::sync::Arc;
use std::time::Duration;

use http::header::{EXPECT, HeaderValue};
use http::{HeaderMap, Request, StatusCode};
use http_body::Body as _;
use parking_lot::Mutex;
use tokio::sync::oneshot::{Sender, channel};

use crate::body::Body;

/// Time to wait for `100 Continue` before the body is sent anyway; curl waits as long.
pub(super) const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// Error of an unsupported expectation.
#[derive(Debug)]
pub(super) struct Unsupported;

/// Expectation of a client that waits for `100 Continue`.
pub(super) struct Expected(());

/// Permission to send the body.
pub(super) struct Permission(Arc<Mutex<Option<Sender<()>>>>);

/// Whether a request has an unsupported expectation: it gets status 417, and does not reach an
/// origin.
#[must_use]
pub fn is_unknown(headers: &HeaderMap) -> bool {
    let is_known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    !headers.get_all(EXPECT).iter().all(is_known)
}

/// Removes the expectation from a request; without a body it has no effect.
pub(super) fn take(request: &mut Request<Body>) -> Result<Option<Expected>, Unsupported> {
    if is_unknown(request.headers()) {
        return Err(Unsupported);
    }
    if !request.headers().contains_key(EXPECT) {
        return Ok(None);
    }
    request.headers_mut().remove(EXPECT);
    Ok((!request.body().is_end_stream()).then_some(Expected(())))
}

impl Expected {
    /// Forwards the expectation, and defers the body until the origin's `100 Continue`.
    pub(super) fn defer_body(self, request: &mut Request<Body>) -> Permission {
        let (sender, granted) = channel();
        let permission = Permission(Arc::new(Mutex::new(Some(sender))));
        request.body_mut().hold(granted);
        let value = HeaderValue::from_static("100-continue");
        request.headers_mut().insert(EXPECT, value);
        let on_continue = Permission(Arc::clone(&permission.0));
        hyper::ext::on_informational(request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                on_continue.grant();
            }
        });
        permission
    }
}

impl Permission {
    pub(super) fn grant(&self) {
        if let Some(sender) = self.0.lock().take() {
            // An error means that the body is dropped already.
            let _ = sender.send(());
        }
    }

    /// Ends the wait after the final response. Dropping the returned permission ends the body.
    pub(super) fn close(self) -> Option<Sender<()>> {
        self.0.lock().take()
    }
}
