//! Operator's view of a gateway: health and metrics.

use std::net::SocketAddr;

use http::StatusCode;
use serde_json::Value;

use super::client::Client;

/// Client of the admin address.
#[derive(Clone)]
pub(crate) struct Operator {
    client: Client,
}

impl Operator {
    pub(crate) fn at(admin: SocketAddr) -> Self {
        Self {
            client: Client::new(admin),
        }
    }

    /// Returns status and body of `/healthz`.
    pub(crate) async fn health(&self) -> (StatusCode, Value) {
        let response = self.client.new_client().get("/healthz").await;
        (response.status, response.json())
    }

    /// Returns the sample whose line begins with `series` (a name, or a name with labels), if it
    /// exists.
    pub(crate) async fn metric(&self, series: &str) -> Option<f64> {
        let response = self.client.new_client().get("/metrics").await;
        assert_eq!(response.status, StatusCode::OK);
        let text = response.text();
        let mut lines = text.lines();
        let line = lines.find(|line| {
            let rest = line.strip_prefix(series);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        })?;
        let value = line.rsplit(' ').next().unwrap();
        Some(value.parse().unwrap())
    }

    /// Whether there is a sample with this value.
    pub(crate) async fn shows(&self, series: &str, value: f64) -> bool {
        let found = self.metric(series).await;
        found.is_some_and(|found| (found - value).abs() < f64::EPSILON)
    }
}
