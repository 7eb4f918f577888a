//! A client as a browser or a program would be, with a jar for one cookie after the other.

use std::collections::BTreeMap;
use std::net::SocketAddr;

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

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether this is one of the gateway's own waiting answers.
    pub(crate) fn is_queued(&self) -> bool {
        self.headers
            .get("anteroom-verdict")
            .is_some_and(|v| v == "queue")
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            http: HyperClient::builder(TokioExecutor::new()).build_http(),
            cookies: BTreeMap::new(),
            address,
        }
    }

    /// Somebody else on the same connections.
    pub(crate) fn somebody_else(&self) -> Self {
        Self {
            cookies: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// The same visitor at another gateway.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    /// Asks for a page as a browser does that navigates.
    pub(crate) async fn navigate(&mut self, path: &str) -> Answer {
        let headers = [("accept", "text/html"), ("sec-fetch-dest", "document")];
        self.send(Method::GET, path, &headers, "").await
    }

    /// The same where no answer may come.
    pub(crate) async fn try_navigate(&mut self, path: &str) -> Option<Answer> {
        let headers = [("accept", "text/html"), ("sec-fetch-dest", "document")];
        let response = self.try_send(Method::GET, path, &headers, "").await?;
        let (head, body) = response.into_parts();
        Some(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Asks as a program does.
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    /// Sends anything; takes cookies along and keeps what comes back.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let response = self.try_send(method, path, headers, body).await.unwrap();
        let (head, body) = response.into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    /// The same where no answer may come.
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
