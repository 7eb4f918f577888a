//! HTTP client that acts like a browser or a program, with cookies.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anteroom::demo::checking_origin::CHECKER_SEAT_ENDS;
use anteroom_room::time::Timestamp;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// A client with cookies. Clones share connections, not cookies.
#[derive(Clone)]
pub(crate) struct Client {
    http: HyperClient<HttpConnector, Full<Bytes>>,
    pub(crate) cookies: BTreeMap<String, String>,
    address: SocketAddr,
}

/// A response with its whole body.
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether this is one of the gateway's own waiting responses.
    pub(crate) fn is_queued(&self) -> bool {
        self.headers
            .get("anteroom-verdict")
            .is_some_and(|v| v == "queue")
    }
}

/// Returns the end of the seat as the origin reports it; `None` if the response is not the
/// origin's.
pub(crate) fn seat_end(response: &TestResponse) -> Option<Timestamp> {
    let end = response.headers.get(CHECKER_SEAT_ENDS)?.to_str().unwrap();
    Some(Timestamp(end.parse().unwrap()))
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            http: HyperClient::builder(TokioExecutor::new()).build_http(),
            cookies: BTreeMap::new(),
            address,
        }
    }

    /// Returns a client without cookies on the same connections.
    pub(crate) fn new_client(&self) -> Self {
        Self {
            cookies: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// Returns this visitor at another gateway.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    /// Requests a page like a browser that navigates.
    pub(crate) async fn navigate(&mut self, path: &str) -> TestResponse {
        let headers = [("accept", "text/html"), ("sec-fetch-dest", "document")];
        self.send(Method::GET, path, &headers, "").await
    }

    /// Requests a path like a program.
    pub(crate) async fn get(&mut self, path: &str) -> TestResponse {
        self.send(Method::GET, path, &[], "").await
    }

    /// Sends any request, with cookies, and keeps the cookies of the response.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        let response = self.try_send(method, path, headers, body).await.unwrap();
        let (head, body) = response.into_parts();
        TestResponse {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    /// Sends a request like [`send`](Self::send); `None` without a response.
    pub(crate) async fn try_send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<Response<Bytes>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !self.cookies.is_empty() {
            let pairs = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let line: Vec<String> = pairs.collect();
            request = request.header("cookie", line.join("; "));
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        let response = self.http.request(request.body(body).unwrap()).await.ok()?;
        self.keep_cookies(response.headers());
        let (head, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some(Response::from_parts(head, body))
    }

    fn keep_cookies(&mut self, headers: &HeaderMap) {
        for line in headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}
