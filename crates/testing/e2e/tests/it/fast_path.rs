//! Decisions for gateways without rooms: every request passes.

use anteroom_proxy::body::Body;
use anteroom_proxy::fast_path::{AtOnce, DecideAtOnce, PassedRequest};
use anteroom_proxy::request_context::Upstream;
use anteroom_proxy::request_view::RequestView;
use anteroom_proxy::reverse_proxy::OriginOutcome;
use http::{HeaderValue, Response, StatusCode};

/// Header with the outcome of a request at its origin.
const OUTCOME: &str = "x-outcome";

/// Decider that passes every request to one upstream.
#[derive(Clone)]
pub(crate) struct Direct {
    pub(crate) upstream: Upstream,
    /// Path that has no origin; the layers decide about it.
    pub(crate) unknown: Option<&'static str>,
    /// Whether responses get a header with the outcome.
    pub(crate) shows_outcome: bool,
}

impl DecideAtOnce for Direct {
    type Passed = Self;

    fn decide_at_once(&self, request: &RequestView<'_>) -> AtOnce<Self> {
        let may_pass = self.upstream.group.takes_plain_http1();
        if may_pass && self.unknown != Some(request.path) {
            AtOnce::Pass(self.clone())
        } else {
            AtOnce::layers()
        }
    }
}

impl PassedRequest for Direct {
    fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    fn write_headers(&self, _: &mut Vec<u8>) {}

    fn changes_response(&self) -> bool {
        false
    }

    fn handle_response(&mut self, _: StatusCode, lines: &mut Vec<u8>) {
        if self.shows_outcome {
            lines.extend_from_slice(format!("{OUTCOME}: answered\r\n").as_bytes());
        }
    }

    async fn finish(&mut self, mut response: Response<Body>) -> Response<Body> {
        if self.shows_outcome {
            add_outcome(&mut response);
        }
        response
    }
}

/// Adds the outcome of a request at its origin to the response.
pub(crate) fn add_outcome(response: &mut Response<Body>) {
    let outcome = match response.extensions().get::<OriginOutcome>() {
        Some(OriginOutcome::Answered(_)) => "answered",
        Some(OriginOutcome::ConnectFailed) => "connect-failed",
        Some(OriginOutcome::TimedOut) => "timed-out",
        Some(OriginOutcome::Broken) => "broken",
        Some(OriginOutcome::Abandoned) => unreachable!("the client is gone"),
        None => "none",
    };
    let outcome = HeaderValue::from_static(outcome);
    response.headers_mut().insert(OUTCOME, outcome);
}
