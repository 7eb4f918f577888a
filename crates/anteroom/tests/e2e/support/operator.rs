//! What an operator sees: health and metrics of a gateway.

use std::net::SocketAddr;

use http::StatusCode;
use serde_json::Value;

use super::client::Client;

/// A look at the admin address.
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

    /// Status and body of `/healthz`.
    pub(crate) async fn health(&self) -> (StatusCode, Value) {
        let answer = self.client.somebody_else().get("/healthz").await;
        (answer.status, answer.json())
    }

    /// The sample whose line begins with `series` (a name, or a name with labels), if there is one.
    pub(crate) async fn metric(&self, series: &str) -> Option<f64> {
        let answer = self.client.somebody_else().get("/metrics").await;
        assert_eq!(answer.status, StatusCode::OK);
        let text = answer.text();
        let mut lines = text.lines();
        let line = lines.find(|line| {
            let rest = line.strip_prefix(series);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        })?;
        let value = line.rsplit(' ').next().unwrap();
        Some(value.parse().unwrap())
    }

    /// Whether there is a sample of this value.
    pub(crate) async fn shows(&self, series: &str, value: f64) -> bool {
        let found = self.metric(series).await;
        found.is_some_and(|found| (found - value).abs() < f64::EPSILON)
    }
}
