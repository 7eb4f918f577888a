//! Visitors before the clock runs: they come in or take their places, and keep their cookies.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::header::{ACCEPT, SET_COOKIE};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::peers::Course;

/// Visitors of one gateway.
pub(crate) struct LoadGenerator {
    door: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl LoadGenerator {
    pub(crate) fn new(door: SocketAddr) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { door, client }
    }

    /// How long an answer is.
    pub(crate) async fn bytes_of(door: SocketAddr, path: &str) -> anyhow::Result<usize> {
        let (_, _, body) = Self::new(door).ask(path).await?;
        Ok(body.len())
    }

    /// The cookies (`name=value`) of so many newcomers.
    pub(crate) async fn cookies(
        &self,
        course: Course,
        count: usize,
    ) -> anyhow::Result<Vec<String>> {
        let mut cookies = Vec::with_capacity(count);
        for _ in 0..count {
            let (status, headers, _) = self.ask(course.path()).await?;
            ensure!(status == StatusCode::OK, "a newcomer got {status}");
            let cookie = headers
                .get(SET_COOKIE)
                .and_then(|value| value.to_str().ok());
            let cookie = cookie.and_then(|cookie| cookie.split(';').next());
            cookies.push(cookie.context("a newcomer got no ticket")?.to_owned());
        }
        Ok(cookies)
    }

    async fn ask(&self, path: &str) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
        let request = Request::get(format!("http://{}{path}", self.door))
            .header(ACCEPT, "text/html")
            .header("sec-fetch-mode", "navigate");
        let response = self.client.request(request.body(Full::default())?).await?;
        let (head, body) = response.into_parts();
        Ok((head.status, head.headers, body.collect().await?.to_bytes()))
    }
}
