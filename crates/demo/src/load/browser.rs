//! Browser of a simulated visitor, with a cookie jar.
//!
//! It follows no redirect (the gateway never sends one), runs no script and keeps no cache. The
//! visitor does what the script of the waiting page would do.

use std::sync::Arc;
use std::time::Duration;

use anteroom_room::time::Timestamp;
use bytes::Bytes;
use cookie_store::CookieStore;
use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, RETRY_AFTER, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;

use super::counters::{LoadCounters, RequestErrorKind};
use super::plan::{LoadPlan, Target};
use super::route::Route;
use crate::clock::Clock;
use crate::origin::SHOP_SEAT_ENDS;

/// Path for requests for the position.
const POSITION_PATH: &str = "/.well-known/anteroom/position";

/// Largest response body that is read; a waiting page or a page of the shop is far smaller.
const RESPONSE_BYTES_MAX: usize = 256 * 1024;

/// Time for which idle connections are kept. Shorter than on servers, so that a request seldom
/// uses a connection that is being closed.
const KEEP_IDLE_FOR: Duration = Duration::from_secs(5);

/// Poll interval if a response has none. The gateway uses it for visitors near the front.
const POLL_AFTER_DEFAULT: Duration = Duration::from_secs(2);

/// Range of accepted poll intervals. Shorter ones would overload the gateway, longer ones would let
/// a broken response stop a visitor for the whole demo.
const POLL_AFTER_RANGE: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_secs(300));

/// State that all visitors share.
#[derive(Debug)]
pub(super) struct Network {
    client: Client<HttpConnector, Full<Bytes>>,
    nodes: Vec<Node>,
    permits: Semaphore,
    response_timeout: Duration,
    pub(super) clock: Clock,
    pub(super) counters: Arc<LoadCounters>,
}

/// A gateway, and its address for positions.
#[derive(Debug)]
struct Node {
    url: Url,
    position: Url,
}

/// Browser of one visitor.
#[derive(Debug)]
pub(super) struct Browser {
    network: Arc<Network>,
    route: Route,
    jar: CookieStore,
}

/// Response to a navigation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Page {
    /// A page of the shop.
    Shop {
        /// End of the visitor's seat, if the shop sent it.
        seat_ends_at: Option<Timestamp>,
    },
    /// The waiting page.
    Queue {
        /// Time until the next request.
        poll_after: Duration,
        /// Time at which the response arrived.
        received_at: Timestamp,
    },
}

/// Response to a request for the position.
#[derive(Clone, Copy, Debug)]
pub(super) enum PositionReply {
    /// The visitor may enter.
    In,
    /// The visitor must wait.
    Queue {
        /// Time until the next request.
        poll_after: Duration,
    },
}

/// The part of the position's JSON that a visitor needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PositionBody {
    cf_waiting_room: PositionFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PositionFields {
    in_waiting_room: bool,
    refresh_interval_seconds: Option<f64>,
}

impl Network {
    /// Creates the connections to `target`.
    ///
    /// # Panics
    ///
    /// If the target has no gateway.
    pub(super) fn new(
        target: Target,
        plan: &LoadPlan,
        clock: Clock,
        counters: Arc<LoadCounters>,
    ) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(plan.response_timeout));
        let permits = plan.requests_at_once.clamp(1, Semaphore::MAX_PERMITS);
        assert!(!target.urls.is_empty(), "a target has at least one gateway");
        let nodes: Vec<Node> = target
            .urls
            .into_iter()
            .map(|url| Node::new(url, &target.room))
            .collect();
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(KEEP_IDLE_FOR)
            .pool_max_idle_per_host((permits / nodes.len()).max(1))
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self {
            client,
            nodes,
            permits: Semaphore::new(permits),
            response_timeout: plan.response_timeout,
            clock,
            counters,
        }
    }

    /// Returns the number of gateways.
    pub(super) fn nodes(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Sends one request and reads the whole response, within the timeout.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, RequestErrorKind> {
        let _permit = self
            .permits
            .acquire()
            .await
            .expect("this semaphore is never closed");
        self.counters.requested();
        let response = async {
            let response = self.client.request(request).await.map_err(|error| {
                if error.is_connect() {
                    RequestErrorKind::Connect
                } else {
                    RequestErrorKind::Broken
                }
            })?;
            read_whole(response).await
        };
        tokio::time::timeout(self.response_timeout, response)
            .await
            .unwrap_or(Err(RequestErrorKind::TimedOut))
    }
}

impl Node {
    fn new(url: Url, room: &str) -> Self {
        let mut position = url.clone();
        position.set_path(POSITION_PATH);
        position.query_pairs_mut().clear().append_pair("room", room);
        Self { url, position }
    }
}

async fn read_whole(response: Response<Incoming>) -> Result<Response<Bytes>, RequestErrorKind> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, RESPONSE_BYTES_MAX)
        .collect()
        .await
        .map_err(|_| RequestErrorKind::Broken)?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

impl Browser {
    /// Creates a browser without cookies.
    pub(super) fn new(network: Arc<Network>, route: Route) -> Self {
        Self {
            network,
            route,
            jar: CookieStore::default(),
        }
    }

    /// Opens a page, as a click does.
    pub(super) async fn open(&mut self, path: &str) -> Result<Page, RequestErrorKind> {
        self.navigate(Method::GET, path, "").await
    }

    /// Sends a form, as a button does.
    pub(super) async fn submit(
        &mut self,
        path: &str,
        form: &str,
    ) -> Result<Page, RequestErrorKind> {
        self.navigate(Method::POST, path, form).await
    }

    /// Returns the gateway for the next request.
    fn next_node(&mut self) -> &Node {
        let node = self.route.next() as usize;
        &self.network.nodes[node]
    }

    async fn navigate(
        &mut self,
        method: Method,
        path: &str,
        form: &str,
    ) -> Result<Page, RequestErrorKind> {
        let mut url = self.next_node().url.clone();
        url.set_path(path);
        let mut request = Request::builder()
            .method(&method)
            .header(ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")
            .header("sec-fetch-dest", "document")
            .header("sec-fetch-mode", "navigate");
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let response = self.send(&url, request, form).await?;
        if is_queued(response.headers()) {
            return Ok(Page::Queue {
                poll_after: clamped(retry_after(response.headers())),
                received_at: self.network.clock.now(),
            });
        }
        if !response.status().is_success() {
            return Err(RequestErrorKind::Status(response.status().as_u16()));
        }
        Ok(Page::Shop {
            seat_ends_at: seat_ends_at(response.headers()),
        })
    }

    /// Requests the visitor's position, as the waiting page's script does.
    pub(super) async fn poll_position(&mut self) -> Result<PositionReply, RequestErrorKind> {
        let url = self.next_node().position.clone();
        let request = Request::builder()
            .header(ACCEPT, "application/json")
            .header("sec-fetch-dest", "empty")
            .header("sec-fetch-mode", "cors");
        let response = self.send(&url, request, "").await?;
        // The operator chooses the status of a waiting response, so the body decides. An error
        // status without such a body is an error.
        let Ok(body) = serde_json::from_slice::<PositionBody>(response.body()) else {
            return Err(match response.status() {
                StatusCode::OK => RequestErrorKind::UnreadablePosition,
                status => RequestErrorKind::Status(status.as_u16()),
            });
        };
        let fields = body.cf_waiting_room;
        if !fields.in_waiting_room {
            return Ok(PositionReply::In);
        }
        let interval = fields
            .refresh_interval_seconds
            .filter(|seconds| *seconds > 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(PositionReply::Queue {
            poll_after: clamped(interval.or_else(|| retry_after(response.headers()))),
        })
    }

    async fn send(
        &mut self,
        url: &Url,
        request: request::Builder,
        body: &str,
    ) -> Result<Response<Bytes>, RequestErrorKind> {
        let mut request = request
            .uri(url.as_str())
            .header(USER_AGENT, "anteroom-demo");
        let cookies: Vec<String> = self
            .jar
            .get_request_values(url)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies.join("; "));
        }
        // Only a server could have set a cookie that no header can hold.
        let request = request
            .body(Full::from(body.to_owned()))
            .map_err(|_| RequestErrorKind::Broken)?;
        let outcome = self.network.exchange(request).await;
        if let Ok(response) = &outcome {
            for cookie in response.headers().get_all(SET_COOKIE) {
                // A cookie that cannot be read is ignored, as in a browser.
                if let Ok(cookie) = cookie.to_str() {
                    drop(self.jar.parse(cookie, url));
                }
            }
        }
        outcome
    }
}

/// Whether the gateway has queued the request.
fn is_queued(headers: &HeaderMap) -> bool {
    headers
        .get("anteroom-verdict")
        .is_some_and(|verdict| verdict == "queue")
}

/// Reads `Retry-After` in seconds. The gateway does not send the date form.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn seat_ends_at(headers: &HeaderMap) -> Option<Timestamp> {
    let millis = headers.get(SHOP_SEAT_ENDS)?.to_str().ok()?.parse().ok()?;
    Some(Timestamp(millis))
}

fn clamped(poll_after: Option<Duration>) -> Duration {
    let (least, longest) = POLL_AFTER_RANGE;
    poll_after
        .unwrap_or(POLL_AFTER_DEFAULT)
        .clamp(least, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_in_whole_seconds_and_clamped() {
        for (value, seconds) in [
            ("7", 7),
            ("86400", 300),
            ("soon", 2),
            ("-1", 2),
            ("99999999999999999999", 2),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            let poll_after = clamped(retry_after(&headers));
            assert_eq!(poll_after, Duration::from_secs(seconds), "{value}");
        }
        assert_eq!(clamped(Some(Duration::ZERO)), POLL_AFTER_RANGE.0);
    }

    #[test]
    fn a_position_needs_only_one_field() {
        let body = r#"{"cfWaitingRoom":{"inWaitingRoom":false,"peopleAhead":null}}"#;
        let position: PositionBody = serde_json::from_str(body).unwrap();
        assert!(!position.cf_waiting_room.in_waiting_room);
        assert_eq!(position.cf_waiting_room.refresh_interval_seconds, None);
    }
}
