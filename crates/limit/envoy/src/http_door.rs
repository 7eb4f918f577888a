//! The HTTP door: questions as JSON, whether the service is well, and which limits it has.

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

use crate::asking::{RequestFailure, RequestHandler};
use crate::budget::{Budget, OverBudget, REQUEST_BYTES_MAX};
use crate::grpc::CALL_TIME_MAX;
use crate::json;
use crate::weighed::BoundedRequest;
use crate::wire::Code;

/// For the body of a request, within the time for the whole call.
const BODY_TIME_MAX: Duration = Duration::from_secs(5);

type Answer = Response<Full<Bytes>>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers requests.
#[derive(Clone)]
pub(crate) struct HttpEndpoint {
    pub(crate) asking: Arc<RequestHandler>,
    pub(crate) is_well: Arc<AtomicBool>,
    pub(crate) budget: Budget,
    pub(crate) calls: Arc<Semaphore>,
}

impl HttpEndpoint {
    /// Answers one request.
    pub(crate) async fn call<B>(self, request: Request<B>) -> Result<Answer, Infallible>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let (method, path) = (request.method(), request.uri().path());
        let is_get = method == Method::GET || method == Method::HEAD;
        Ok(match path {
            "/json" if method == Method::POST => {
                let answered = timeout(CALL_TIME_MAX, self.json(request.into_body()));
                let late = |_| say(StatusCode::GATEWAY_TIMEOUT, "the call took too long\n");
                answered.await.unwrap_or_else(late)
            }
            "/healthcheck" if is_get => self.healthcheck(),
            "/rlconfig" if is_get => {
                let text = shown(&self.asking.limits.load());
                say(StatusCode::OK, text)
            }
            "/json" => not_allowed("POST"),
            "/healthcheck" | "/rlconfig" => not_allowed("GET, HEAD"),
            _ => say(
                StatusCode::NOT_FOUND,
                "there is /json, /healthcheck and /rlconfig\n",
            ),
        })
    }

    async fn json<B>(&self, body: B) -> Answer
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let body = Limited::new(self.budget.count(body), REQUEST_BYTES_MAX);
        let bytes = match timeout(BODY_TIME_MAX, body.collect()).await {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let text = format!("the body is longer than {REQUEST_BYTES_MAX} bytes\n");
                return say(StatusCode::PAYLOAD_TOO_LARGE, text);
            }
            Ok(Err(error)) if error.is::<tonic::Status>() => {
                return refused(&OverBudget.into());
            }
            Ok(Err(_)) => return say(StatusCode::BAD_REQUEST, "the body broke off\n"),
            Err(_) => return say(StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
        };
        let request = match json::read(&bytes) {
            Ok(request) => request,
            Err(error) => return say(StatusCode::BAD_REQUEST, format!("{error}\n")),
        };
        // From here on it counts as what was read, not as what came.
        drop(bytes);
        let BoundedRequest { request, held } =
            match BoundedRequest::new(request, &self.asking, &self.budget) {
                Ok(weighed) => weighed,
                Err(error) => return refused(&error),
            };
        let asked = {
            let _permit = self.calls.acquire().await;
            self.asking.ask(&request).await
        };
        drop(request);
        let answered = match asked {
            Ok(answered) => answered,
            Err(error) => return refused(&error),
        };
        if !answered.hold.is_zero() {
            sleep(answered.hold).await;
        }
        drop(held);
        let is_over = answered.response.overall_code == i32::from(Code::OverLimit);
        let mut answer = Response::new(Full::from(json::write(&answered.response)));
        if is_over {
            *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        }
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(CONTENT_TYPE, json);
        answer
    }

    /// As the reference service says it.
    fn healthcheck(&self) -> Answer {
        if self.is_well.load(Ordering::Relaxed) {
            say(StatusCode::OK, "OK")
        } else {
            say(StatusCode::INTERNAL_SERVER_ERROR, "")
        }
    }
}

fn say(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, text);
    answer
}

fn refused(error: &RequestFailure) -> Answer {
    let status = match error {
        RequestFailure::Wrong(_) => StatusCode::BAD_REQUEST,
        RequestFailure::OverBudget(_) => StatusCode::SERVICE_UNAVAILABLE,
        RequestFailure::Unfit(_) | RequestFailure::StoreAway(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    say(status, format!("{error}\n"))
}

fn not_allowed(methods: &'static str) -> Answer {
    let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, "");
    let methods = HeaderValue::from_static(methods);
    answer.headers_mut().insert(ALLOW, methods);
    answer
}

/// All limits, a line each, as the reference service shows them; with the algorithm where it is
/// another one.
fn shown(limits: &RateLimits) -> String {
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
    use crate::asking::tests::asking;

    const FILE: &str = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: hour, requests_per_unit: 9}}
";
    const QUESTION: &str = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}"#;

    /// A door behind which so many calls are decided about at once.
    fn door(calls: usize, budget: &Budget) -> HttpEndpoint {
        HttpEndpoint {
            asking: Arc::new(asking(FILE, false)),
            is_well: Arc::new(AtomicBool::new(true)),
            budget: budget.clone(),
            calls: Arc::new(Semaphore::new(calls)),
        }
    }

    async fn status<B>(door: HttpEndpoint, body: B) -> StatusCode
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let Ok(answer) = door.call(Request::post("/json").body(body).unwrap()).await;
        answer.status()
    }

    // tidy: paused time
    #[tokio::test(start_paused = true)]
    async fn an_undecided_call_ends_and_gives_back_what_it_held() {
        let budget = Budget::default();
        let whole = budget.left();
        assert_eq!(
            status(door(1, &budget), Full::from(QUESTION)).await,
            StatusCode::OK
        );

        let start = Instant::now();
        let mut waiting = Box::pin(status(door(0, &budget), Full::from(QUESTION)));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(budget.left() < whole, "it holds its part");
        let ended = timeout(2 * CALL_TIME_MAX, waiting).await;
        assert_eq!(ended, Ok(StatusCode::GATEWAY_TIMEOUT));
        assert_eq!(start.elapsed(), CALL_TIME_MAX);
        assert_eq!(budget.left(), whole);
    }

    // tidy: paused time
    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for_as_long() {
        let start = Instant::now();
        let silence = pending::<Result<Frame<Bytes>, Infallible>>();
        let endless = StreamBody::new(silence);
        let late = status(door(1, &Budget::default()), endless).await;
        assert_eq!(late, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(start.elapsed(), BODY_TIME_MAX);
    }
}
