//! How does a visitor ask and understand an answer? As a browser does, with a cookie jar.
//!
//! It follows no redirect (the gateway never sends one), runs no script and keeps no cache. What
//! a script would do on the waiting page, the visitor does.

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
use super::route::Route;
use super::{LoadPlan, Target};
use crate::clock::Clock;
use crate::origin::SHOP_SEAT_ENDS;

/// Where to ask for one's place.
const PLACE_PATH: &str = "/.well-known/anteroom/place";

/// The longest answer that is read: a waiting page or a page of the shop is far below.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// How long connections are kept for the next request of anybody. Shorter than servers keep them,
/// so that a request seldom meets a connection that is being closed.
const KEEP_IDLE_FOR: Duration = Duration::from_secs(5);

/// When to ask again if an answer does not say. The gateway's own interval near the front.
const ASK_AFTER_DEFAULT: Duration = Duration::from_secs(2);

/// The least and the longest that an answer is obeyed: below, a crowd would hammer; above, it
/// would sleep through the demo on the word of a broken answer.
const ASK_AFTER_RANGE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(300));

/// What all visitors share.
#[derive(Debug)]
pub(super) struct Network {
    client: Client<HttpConnector, Full<Bytes>>,
    nodes: Vec<Node>,
    permits: Semaphore,
    answer_within: Duration,
    pub(super) clock: Clock,
    pub(super) counters: Arc<LoadCounters>,
}

/// A gateway, and where it tells places.
#[derive(Debug)]
struct Node {
    url: Url,
    place: Url,
}

/// One visitor's browser.
#[derive(Debug)]
pub(super) struct Browser {
    network: Arc<Network>,
    route: Route,
    jar: CookieStore,
}

/// An answer to a navigation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Page {
    /// A page of the shop.
    Shop {
        /// When the visitor's seat ends, if the shop said so.
        seat_ends_at: Option<Timestamp>,
    },
    /// The waiting page.
    Queue {
        /// When to ask again.
        ask_after: Duration,
        /// When the answer was here.
        received_at: Timestamp,
    },
}

/// An answer to somebody who asks for its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum PositionReply {
    /// Come in.
    In,
    /// Not yet.
    Queue {
        /// When to ask again.
        ask_after: Duration,
    },
}

/// The part of the place's JSON that a visitor needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlaceBody {
    cf_waiting_room: PlaceFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlaceFields {
    in_waiting_room: bool,
    refresh_interval_seconds: Option<f64>,
}

impl Network {
    /// The way to `target`.
    ///
    /// # Panics
    ///
    /// If it has no gateway.
    pub(super) fn new(
        target: Target,
        plan: &LoadPlan,
        clock: Clock,
        counters: Arc<LoadCounters>,
    ) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(plan.answer_within));
        let permits = plan.requests_at_once.clamp(1, Semaphore::MAX_PERMITS);
        assert!(!target.urls.is_empty(), "a crowd needs somewhere to go");
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
            answer_within: plan.answer_within,
            clock,
            counters,
        }
    }

    /// How many gateways there are.
    pub(super) fn nodes(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Sends one request and reads the whole answer, in time.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, RequestErrorKind> {
        let _permit = self
            .permits
            .acquire()
            .await
            .expect("nobody closes this semaphore");
        self.counters.requested();
        let answer = async {
            let response = self.client.request(request).await.map_err(|error| {
                if error.is_connect() {
                    RequestErrorKind::Connect
                } else {
                    RequestErrorKind::Broken
                }
            })?;
            read_whole(response).await
        };
        tokio::time::timeout(self.answer_within, answer)
            .await
            .unwrap_or(Err(RequestErrorKind::TimedOut))
    }
}

impl Node {
    fn new(url: Url, room: &str) -> Self {
        let mut place = url.clone();
        place.set_path(PLACE_PATH);
        place.query_pairs_mut().clear().append_pair("room", room);
        Self { url, place }
    }
}

async fn read_whole(response: Response<Incoming>) -> Result<Response<Bytes>, RequestErrorKind> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX)
        .collect()
        .await
        .map_err(|_| RequestErrorKind::Broken)?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

impl Browser {
    /// A browser without cookies.
    pub(super) fn new(network: Arc<Network>, route: Route) -> Self {
        Self {
            network,
            route,
            jar: CookieStore::default(),
        }
    }

    /// Opens a page, as a click would.
    pub(super) async fn open(&mut self, path: &str) -> Result<Page, RequestErrorKind> {
        self.navigate(Method::GET, path, "").await
    }

    /// Sends a form, as a button would.
    pub(super) async fn submit(
        &mut self,
        path: &str,
        form: &str,
    ) -> Result<Page, RequestErrorKind> {
        self.navigate(Method::POST, path, form).await
    }

    /// The gateway for the next request.
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
                ask_after: within_reason(retry_after(response.headers())),
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

    /// Asks for the visitor's place, as the waiting page's script does.
    pub(super) async fn ask_place(&mut self) -> Result<PositionReply, RequestErrorKind> {
        let url = self.next_node().place.clone();
        let request = Request::builder()
            .header(ACCEPT, "application/json")
            .header("sec-fetch-dest", "empty")
            .header("sec-fetch-mode", "cors");
        let response = self.send(&url, request, "").await?;
        // The status of a waiting answer is the operator's choice; the body decides, if it can
        // be read. An error without such a body is an error.
        let Ok(body) = serde_json::from_slice::<PlaceBody>(response.body()) else {
            return Err(match response.status() {
                StatusCode::OK => RequestErrorKind::UnreadablePlace,
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
            ask_after: within_reason(interval.or_else(|| retry_after(response.headers()))),
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
        // Only a cookie that no header can hold gets here, and only a server could have sent it.
        let request = request
            .body(Full::from(body.to_owned()))
            .map_err(|_| RequestErrorKind::Broken)?;
        let outcome = self.network.exchange(request).await;
        if let Ok(response) = &outcome {
            for cookie in response.headers().get_all(SET_COOKIE) {
                // What cannot be read is not kept, as in a browser.
                if let Ok(cookie) = cookie.to_str() {
                    drop(self.jar.parse(cookie, url));
                }
            }
        }
        outcome
    }
}

/// Whether the answer is the gateway's and means: wait.
fn is_queued(headers: &HeaderMap) -> bool {
    headers
        .get("anteroom-verdict")
        .is_some_and(|verdict| verdict == "queue")
}

/// `Retry-After` in seconds. The date form is for proxies; the gateway does not send it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn seat_ends_at(headers: &HeaderMap) -> Option<Timestamp> {
    let millis = headers.get(SHOP_SEAT_ENDS)?.to_str().ok()?.parse().ok()?;
    Some(Timestamp(millis))
}

fn within_reason(ask_after: Option<Duration>) -> Duration {
    let (least, longest) = ASK_AFTER_RANGE;
    ask_after.unwrap_or(ASK_AFTER_DEFAULT).clamp(least, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_whole_seconds_and_obeyed_within_reason() {
        for (value, seconds) in [
            ("7", 7),
            ("86400", 300),
            ("soon", 2),
            ("-1", 2),
            ("99999999999999999999", 2),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            let ask_after = within_reason(retry_after(&headers));
            assert_eq!(ask_after, Duration::from_secs(seconds), "{value}");
        }
        assert_eq!(within_reason(Some(Duration::ZERO)), ASK_AFTER_RANGE.0);
    }

    #[test]
    fn a_place_needs_only_one_field() {
        let body = r#"{"cfWaitingRoom":{"inWaitingRoom":false,"peopleAhead":null}}"#;
        let place: PlaceBody = serde_json::from_str(body).unwrap();
        assert!(!place.cf_waiting_room.in_waiting_room);
        assert_eq!(place.cf_waiting_room.refresh_interval_seconds, None);
    }
}
