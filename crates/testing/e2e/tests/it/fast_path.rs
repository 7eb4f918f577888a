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

/// Path whose responses become maps of headers, whatever is in them.
pub(crate) const MAPPED: &str = "/mapped";

/// Request that passes.
pub(crate) struct Passed {
    direct: Direct,
    is_mapped: bool,
}

impl DecideAtOnce for Direct {
    type Passed = Passed;

    fn decide_at_once(&self, request: &RequestView<'_>) -> AtOnce<Passed> {
        let may_pass = self.upstream.group.takes_plain_http1();
        if may_pass && self.unknown != Some(request.path) {
            AtOnce::Pass(Passed {
                direct: self.clone(),
                is_mapped: request.path == MAPPED,
            })
        } else {
            AtOnce::layers()
        }
    }
}

impl PassedRequest for Passed {
    fn upstream(&self) -> &Upstream {
        &self.direct.upstream
    }

    fn write_headers(&self, _: &mut Vec<u8>) {}

    fn changes_response(&self) -> bool {
        self.is_mapped
    }

    fn handle_response(&mut self, _: StatusCode, lines: &mut Vec<u8>) {
        if self.direct.shows_outcome {
            lines.extend_from_slice(format!("{OUTCOME}: answered\r\n").as_bytes());
        }
    }

    async fn finish(&mut self, mut response: Response<Body>) -> Response<Body> {
        if self.direct.shows_outcome {
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
