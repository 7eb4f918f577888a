//! Visitors that are prepared before a measurement: they get their cookies.

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

/// Load generator for one gateway.
pub(crate) struct LoadGenerator {
    address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl LoadGenerator {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { address, client }
    }

    /// Returns the size of a response.
    pub(crate) async fn bytes_of(address: SocketAddr, path: &str) -> anyhow::Result<usize> {
        let (_, _, body) = Self::new(address).get(path).await?;
        Ok(body.len())
    }

    /// Returns the cookies (`name=value`) of new visitors.
    pub(crate) async fn cookies(
        &self,
        course: Course,
        count: usize,
    ) -> anyhow::Result<Vec<String>> {
        let mut cookies = Vec::with_capacity(count);
        for _ in 0..count {
            let (status, headers, _) = self.get(course.path()).await?;
            ensure!(status == StatusCode::OK, "a new visitor got {status}");
            let cookie = headers
                .get(SET_COOKIE)
                .and_then(|value| value.to_str().ok());
            let cookie = cookie.and_then(|cookie| cookie.split(';').next());
            cookies.push(cookie.context("a new visitor got no ticket")?.to_owned());
        }
        Ok(cookies)
    }

    async fn get(&self, path: &str) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
        let request = Request::get(format!("http://{}{path}", self.address))
            .header(ACCEPT, "text/html")
            .header("sec-fetch-mode", "navigate");
        let response = self.client.request(request.body(Full::default())?).await?;
        let (head, body) = response.into_parts();
        Ok((head.status, head.headers, body.collect().await?.to_bytes()))
    }
}
