//! How does a request get to the origin, and the answer back?
//!
//! One pooled HTTP/1.1 client for all origins. Bodies stream, and nothing is tried twice except
//! what hyper-util tries again by itself: a request of which not one byte was sent because its
//! pooled connection had just been closed.
//!
//! Deliberately absent: which origin (a layer above puts [`Upstream`] into the request), whether
//! the request may pass at all, TLS and HTTP/2 to the origin, `Via`. Interim answers (103) are
//! dropped, and `100 Continue` is said by this process itself, so `Expect` is not passed on.

pub(crate) mod hop;
mod upgrade;
mod wait;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anteroom_config::TimeOuts;
use anteroom_core::time::Span;
use http::header::EXPECT;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tracing::debug;

use crate::body::Body;
use crate::error_page::{self, Format};
use crate::forwarded::{self, Client};
use crate::status::Refusal;

/// How long an idle connection to an origin is kept.
///
/// Shorter than what common origins keep theirs (Node.js: 5 s, Apache: 5 s, nginx: 75 s). Longer,
/// and requests race with the origin closing the connection, which looks like a broken origin.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// How many idle connections to one origin are kept. A burst above that reconnects.
const POOL_IDLE_MAX: usize = 1024;

/// The longest time that is waited for anything: longer spans overflow timers and mean "for ever".
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Where a request is to go; an extension that a layer above puts into it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Upstream {
    /// `host:port` of the origin.
    pub authority: Authority,
}

/// What the origin did with a request; an extension of every response that the proxy gives back.
///
/// It is absent where the origin is not to blame: a request without [`Upstream`], and one whose
/// own body failed. A body that breaks after its head is not seen here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OriginOutcome {
    /// It answered, with this status.
    Answered(StatusCode),
    /// No connection within `origin_connect`.
    ConnectFailed,
    /// No head of an answer within `origin_response`.
    TimedOut,
    /// It closed the connection, or what it said is not HTTP.
    Broken,
}

/// Takes requests to their origins. Clones share one pool of connections.
#[derive(Clone, Debug)]
pub struct ReverseProxy {
    client: HttpClient<HttpConnector, Body>,
    response_wait: Duration,
    body_idle: Duration,
}

impl ReverseProxy {
    /// A proxy with an empty pool.
    #[must_use]
    pub fn new(time_outs: &TimeOuts) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(wait_of(time_outs.origin_connect)));
        connector.set_nodelay(true);
        let client = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .set_host(false)
            .build(connector);
        Self {
            client,
            response_wait: wait_of(time_outs.origin_response),
            body_idle: wait_of(time_outs.body_idle),
        }
    }

    /// Takes one request to its [`Upstream`] and returns the answer, or a page that says why there
    /// is none.
    ///
    /// The path and query go on byte for byte; `Host` as it is in the request.
    pub async fn forward(&self, mut request: Request<Body>) -> Response<Body> {
        let format = Format::asked_for(request.headers());
        let Some(upstream) = request.extensions_mut().remove::<Upstream>() else {
            return error_page::answer(Refusal::NotFound, format);
        };
        let upgrade = upgrade::Asked::by(&mut request);
        let Some(request) = prepare(request, upstream, upgrade.as_ref()) else {
            return error_page::answer(Refusal::BadRequest, format);
        };
        let mut request = request;
        let progress = request.body_mut().watch();
        let answer = self.client.request(request);
        match wait::for_head(answer, self.response_wait, progress.as_ref()).await {
            Ok(answer) => self.pass_back(answer, upgrade, format),
            Err(wait::NoAnswer::TimedOut) => failed(OriginOutcome::TimedOut, format),
            Err(wait::NoAnswer::Failed(error)) => {
                debug!(error = &error as &dyn std::error::Error, "no answer");
                if error.is_connect() {
                    return failed(OriginOutcome::ConnectFailed, format);
                }
                match progress.and_then(|progress| progress.failure()) {
                    Some(refusal) => error_page::answer(refusal, format),
                    None => failed(OriginOutcome::Broken, format),
                }
            }
        }
    }

    fn pass_back(
        &self,
        mut answer: Response<Incoming>,
        upgrade: Option<upgrade::Asked>,
        format: Format,
    ) -> Response<Body> {
        let status = answer.status();
        if hop::has_foreign_coding(answer.headers()) {
            return failed(OriginOutcome::Broken, format);
        }
        let granted = match (status, upgrade) {
            (StatusCode::SWITCHING_PROTOCOLS, Some(asked))
                if asked.is_granted_by(answer.headers()) =>
            {
                Some(asked)
            }
            (StatusCode::SWITCHING_PROTOCOLS, _) => return failed(OriginOutcome::Broken, format),
            _ => None,
        };
        let origin = granted.is_some().then(|| hyper::upgrade::on(&mut answer));
        let (mut head, body) = answer.into_parts();
        hop::clean_response(&mut head.headers);
        if let (Some(asked), Some(origin)) = (granted, origin) {
            asked.write(&mut head.headers);
            asked.splice(origin, self.body_idle);
        }
        // An origin that speaks HTTP/1.0 is no reason to speak it to the client.
        head.version = Version::HTTP_11;
        head.extensions.insert(OriginOutcome::Answered(status));
        Response::from_parts(head, Body::incoming(body, self.body_idle))
    }
}

/// The request as the origin gets it; `None` if it has no path.
fn prepare(
    request: Request<Body>,
    upstream: Upstream,
    upgrade: Option<&upgrade::Asked>,
) -> Option<Request<Body>> {
    let (mut head, body) = request.into_parts();
    hop::clean_request(&mut head.headers);
    if let Some(upgrade) = upgrade {
        upgrade.write(&mut head.headers);
    }
    match head.extensions.get::<Client>() {
        Some(client) => forwarded::write(&mut head.headers, client),
        None => forwarded::strip_hearsay(&mut head.headers),
    }
    let is_continue =
        |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if head.headers.get(EXPECT).is_some_and(is_continue) {
        head.headers.remove(EXPECT);
    }
    let target = head.uri.path_and_query();
    let target = target.filter(|target| target.as_str().starts_with('/'))?;
    head.uri = origin_uri(upstream.authority, target.clone())?;
    head.version = Version::HTTP_11;
    Some(Request::from_parts(head, body))
}

fn origin_uri(authority: Authority, target: PathAndQuery) -> Option<Uri> {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority);
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).ok()
}

fn failed(outcome: OriginOutcome, format: Format) -> Response<Body> {
    let refusal = match outcome {
        OriginOutcome::TimedOut => Refusal::GatewayTimeOut,
        _ => Refusal::BadGateway,
    };
    let mut response = error_page::answer(refusal, format);
    response.extensions_mut().insert(outcome);
    response
}

/// A configured span as a timer takes it.
pub(crate) fn wait_of(span: Span) -> Duration {
    Duration::from_millis(span.0).min(WAIT_MAX)
}

impl tower::Service<Request<Body>> for ReverseProxy {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.forward(request).await) })
    }
}
