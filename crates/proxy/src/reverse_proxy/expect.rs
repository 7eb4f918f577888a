//! May the client send its body? `Expect: 100-continue` (RFC 9110, section 10.1.1).
//!
//! The question is passed on, so that an origin can refuse an upload before it is sent: the body is
//! not read before the origin says `100 Continue`, and reading it is what makes our server say the
//! same to the client. Many origins never say it, so after a second the body goes anyway. An answer
//! that comes first is passed back, and the body is not read any more. Other expectations are
//! refused.

use std::sync::Arc;
use std::time::Duration;

use http::header::{EXPECT, HeaderValue};
use http::{HeaderMap, Request, StatusCode};
use http_body::Body as _;
use parking_lot::Mutex;
use tokio::sync::oneshot::{Sender, channel};

use crate::body::Body;

/// How long an origin may think about it. What curl waits for a proxy.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// An expectation that nobody here meets.
#[derive(Debug)]
pub(super) struct Unknown;

/// The client waits for `100 Continue`.
pub(super) struct Expected(());

/// Lets the body go.
pub(super) struct Permission(Arc<Mutex<Option<Sender<()>>>>);

/// Whether a request expects something that nobody here meets: it is answered with 417, and
/// does not reach an origin.
#[must_use]
pub fn is_unknown(headers: &HeaderMap) -> bool {
    let is_known = |line: &HeaderValue| line.as_bytes().eq_ignore_ascii_case(b"100-continue");
    !headers.get_all(EXPECT).iter().all(is_known)
}

/// Takes the expectation out of a request; without a body it means nothing.
pub(super) fn take(request: &mut Request<Body>) -> Result<Option<Expected>, Unknown> {
    if is_unknown(request.headers()) {
        return Err(Unknown);
    }
    if !request.headers().contains_key(EXPECT) {
        return Ok(None);
    }
    request.headers_mut().remove(EXPECT);
    Ok((!request.body().is_end_stream()).then_some(Expected(())))
}

impl Expected {
    /// Asks the origin, and holds the body back until it says yes.
    pub(super) fn ask(self, request: &mut Request<Body>) -> Permission {
        let (sender, granted) = channel();
        let permission = Permission(Arc::new(Mutex::new(Some(sender))));
        request.body_mut().hold(granted);
        let line = HeaderValue::from_static("100-continue");
        request.headers_mut().insert(EXPECT, line);
        let told = Permission(Arc::clone(&permission.0));
        hyper::ext::on_informational(request, move |answer| {
            if answer.status() == StatusCode::CONTINUE {
                told.grant();
            }
        });
        permission
    }
}

impl Permission {
    pub(super) fn grant(&self) {
        if let Some(sender) = self.0.lock().take() {
            // Nobody waits any more: then the body is gone.
            let _ = sender.send(());
        }
    }

    /// The answer is there. What is left of the permission ends the body when it is dropped.
    pub(super) fn close(self) -> Option<Sender<()>> {
        self.0.lock().take()
    }
}
