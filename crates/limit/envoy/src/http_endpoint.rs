//! HTTP endpoint: JSON requests, health checks, and the list of limits.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::config::RateLimits;
use anteroom_limit::registry::AlgorithmKind;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::bounded_request::BoundedRequest;
use crate::budget::{Budget, OverBudget, REQUEST_BYTES_MAX};
use crate::grpc::REQUEST_TIME_MAX;
use crate::json;
use crate::request_handler::{RequestFailure, RequestHandler};
use crate::wire::Code;

/// Longest time for the body of a request, within the time for the whole request.
const BODY_TIME_MAX: Duration = Duration::from_secs(5);

type TextResponse = Response<Full<Bytes>>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// HTTP endpoint.
#[derive(Clone)]
pub(crate) struct HttpEndpoint {
    pub(crate) handler: Arc<RequestHandler>,
    pub(crate) is_healthy: Arc<AtomicBool>,
    pub(crate) budget: Budget,
    pub(crate) permits: Arc<Semaphore>,
}

impl HttpEndpoint {
    /// Serves one request.
    pub(crate) async fn call<B>(self, request: Request<B>) -> Result<TextResponse, Infallible>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let (method, path) = (request.method(), request.uri().path());
        let is_get = method == Method::GET || method == Method::HEAD;
        Ok(match path {
            "/json" if method == Method::POST => {
                let response = timeout(REQUEST_TIME_MAX, self.json(request.into_body()));
                let late =
                    |_| text_response(StatusCode::GATEWAY_TIMEOUT, "the request took too long\n");
                response.await.unwrap_or_else(late)
            }
            "/healthcheck" if is_get => self.healthcheck(),
            "/rlconfig" if is_get => {
                let text = limits_text(&self.handler.limits.load());
                text_response(StatusCode::OK, text)
            }
            "/json" => not_allowed("POST"),
            "/healthcheck" | "/rlconfig" => not_allowed("GET, HEAD"),
            _ => text_response(
                StatusCode::NOT_FOUND,
                "no such path; use /json, /healthcheck or /rlconfig\n",
            ),
        })
    }

    async fn json<B>(&self, body: B) -> TextResponse
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let body = Limited::new(self.budget.count(body), REQUEST_BYTES_MAX);
        let bytes = match timeout(BODY_TIME_MAX, body.collect()).await {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let text = format!("the body is longer than {REQUEST_BYTES_MAX} bytes\n");
                return text_response(StatusCode::PAYLOAD_TOO_LARGE, text);
            }
            Ok(Err(error)) if error.is::<tonic::Status>() => {
                return rejected(&OverBudget.into());
            }
            Ok(Err(_)) => return text_response(StatusCode::BAD_REQUEST, "the body ended early\n"),
            Err(_) => {
                return text_response(StatusCode::REQUEST_TIMEOUT, "the body took too long\n");
            }
        };
        let request = match json::read(&bytes) {
            Ok(request) => request,
            Err(error) => return text_response(StatusCode::BAD_REQUEST, format!("{error}\n")),
        };
        // From here on the decoded request counts against the budget, not the bytes.
        drop(bytes);
        let BoundedRequest { request, permit } =
            match BoundedRequest::new(request, &self.handler, &self.budget) {
                Ok(bounded) => bounded,
                Err(error) => return rejected(&error),
            };
        let result = {
            let _permit = self.permits.acquire().await;
            self.handler.handle(&request).await
        };
        drop(request);
        let delayed = match result {
            Ok(delayed) => delayed,
            Err(error) => return rejected(&error),
        };
        if !delayed.delay.is_zero() {
            sleep(delayed.delay).await;
        }
        drop(permit);
        let is_over = delayed.response.overall_code == i32::from(Code::OverLimit);
        let mut response = Response::new(Full::from(json::write(&delayed.response)));
        if is_over {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        }
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }

    /// Returns the health in the format of the reference service.
    fn healthcheck(&self) -> TextResponse {
        if self.is_healthy.load(Ordering::Relaxed) {
            text_response(StatusCode::OK, "OK")
        } else {
            text_response(StatusCode::INTERNAL_SERVER_ERROR, "")
        }
    }
}

fn text_response(status: StatusCode, text: impl Into<Bytes>) -> TextResponse {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

fn rejected(error: &RequestFailure) -> TextResponse {
    let status = match error {
        RequestFailure::Wrong(_) => StatusCode::BAD_REQUEST,
        RequestFailure::OverBudget(_) => StatusCode::SERVICE_UNAVAILABLE,
        RequestFailure::Unfit(_) | RequestFailure::StoreUnavailable(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    text_response(status, format!("{error}\n"))
}

fn not_allowed(methods: &'static str) -> TextResponse {
    let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "");
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods);
    response
}

/// Formats all limits, a line each, like the reference service. The algorithm is added if it is not
/// the fixed window.
fn limits_text(limits: &RateLimits) -> String {
    let mut text = String::new();
    for limit in limits.limits() {
        write!(
            text,
            "{}: unit={} requests_per_unit={}, shadow_mode: {}, quota_mode: {}",
            limit.metric,
            limit.unit.name(),
            limit.requests_per_unit,
            limit.is_shadow,
            limit.is_quota,
        )
        .expect("a String takes all that is written to it");
        if limit.algorithm.kind != AlgorithmKind::FixedWindow {
            text.push_str(", algorithm: ");
            text.push_str(limit.algorithm.kind.name());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::stream::pending;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use tokio::time::Instant;

    use super::*;
    use crate::request_handler::tests::handler;

    const FILE: &str = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: hour, requests_per_unit: 9}}
";
    const REQUEST: &str = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}"#;

    /// Returns an endpoint that decides `requests` requests at once.
    fn endpoint(requests: usize, budget: &Budget) -> HttpEndpoint {
        HttpEndpoint {
            handler: Arc::new(handler(FILE, false)),
            is_healthy: Arc::new(AtomicBool::new(true)),
            budget: budget.clone(),
            permits: Arc::new(Semaphore::new(requests)),
        }
    }

    async fn status<B>(endpoint: HttpEndpoint, body: B) -> StatusCode
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let Ok(response) = endpoint
            .call(Request::post("/json").body(body).unwrap())
            .await;
        response.status()
    }

    // tidy: paused time
    #[tokio::test(start_paused = true)]
    async fn an_undecided_request_times_out_and_returns_its_bytes() {
        let budget = Budget::default();
        let whole = budget.left();
        assert_eq!(
            status(endpoint(1, &budget), Full::from(REQUEST)).await,
            StatusCode::OK
        );

        let start = Instant::now();
        let mut waiting = Box::pin(status(endpoint(0, &budget), Full::from(REQUEST)));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(budget.left() < whole, "it takes its part");
        let ended = timeout(2 * REQUEST_TIME_MAX, waiting).await;
        assert_eq!(ended, Ok(StatusCode::GATEWAY_TIMEOUT));
        assert_eq!(start.elapsed(), REQUEST_TIME_MAX);
        assert_eq!(budget.left(), whole);
    }

    // tidy: paused time
    #[tokio::test(start_paused = true)]
    async fn a_missing_body_times_out_earlier() {
        let start = Instant::now();
        let silence = pending::<Result<Frame<Bytes>, Infallible>>();
        let endless = StreamBody::new(silence);
        let late = status(endpoint(1, &Budget::default()), endless).await;
        assert_eq!(late, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(start.elapsed(), BODY_TIME_MAX);
    }
}
