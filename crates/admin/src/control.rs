//! Routes of the admin address, and the handlers that only read.

use std::fmt;
use std::sync::Arc;

use crate::overrides::LiveLimits;
use anteroom_node::Node;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{any, get};
use axum::{Json, Router, middleware};

use crate::api_error::{ApiError, status_of_health};
use crate::api_rooms::LiveApiRooms;
use crate::api_state::Inner;
use crate::api_v1;
use crate::bodies::{Health, Liveness, Readiness};
use crate::client_v4;
use crate::command::{WrongTokens, check_reader};
use crate::extras::Extras;
use crate::guard::guard;
use crate::health;
use crate::metrics::{self, Metrics};
use crate::probes::{self, Ready};
use crate::reload::Reloader;
use crate::tokens::Tokens;

/// Body of `GET /`.
const INDEX: &str = "\
Anteroom admin API. Paths without a method are read with GET.

/healthz             200 while every room has a live lease, else 503; JSON says why
/livez               200; no response: restart this process (stores do not matter)
/readyz              200 while visitors may be sent here, else 503: just started, or about to end
/metrics             metrics in the OpenMetrics text format
/api/v1/state        the states of all rooms, JSON
/openapi.json        all paths of /api/v1, as an OpenAPI document
/client/v4/...       rooms, events and rules, as Cloudflare's API for waiting rooms

Probes need no token. Metrics and states need none at a loopback address. Everything else needs the
header `Authorization: Bearer TOKEN`, as the commands of operators send it.
The role viewer may read, the role operator may set overrides, and admin may do everything.
";

/// Admin API of a node.
pub struct Control {
    inner: Arc<Inner>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Control({:?})", self.inner.node)
    }
}

impl Control {
    /// Creates the API of `node`, its rate limits and its rooms of the API, for operators with one
    /// of `tokens`. `extras` are the stats of the rest of the program, [`crate::NoExtras`] if there
    /// are none. `reloader` asks for the configuration file to be read again. The start time in the
    /// metrics is now.
    #[must_use]
    pub fn new(
        node: Arc<Node>,
        (limits, api_rooms): (Arc<LiveLimits>, Arc<LiveApiRooms>),
        extras: Arc<dyn Extras>,
        (tokens, reloader): (Arc<Tokens>, Reloader),
    ) -> Self {
        let metrics = Metrics::new(Arc::clone(&node), Arc::clone(&extras));
        let ready = Ready::new(&node);
        let inner = Inner {
            ready,
            node,
            tokens,
            wrong_tokens: WrongTokens::default(),
            limits,
            api_rooms,
            extras,
            metrics,
            previews: Default::default(),
            reloader,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns a router of all paths, for [`crate::serve()`] or any other server.
    pub fn router(&self) -> Router {
        api_v1::router()
            .route(
                &format!("{}{{*path}}", client_v4::PREFIX),
                any(client_v4::respond),
            )
            .route("/client/v4", any(client_v4::respond))
            .route(client_v4::PREFIX, any(client_v4::respond))
            .route("/preview/{id}", get(client_v4::preview::show))
            .route("/", get(async || INDEX))
            .route("/healthz", get(healthz))
            .route("/livez", get(livez))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics_text))
            .fallback(async || ApiError::UnknownPath)
            .method_not_allowed_fallback(async || ApiError::Method)
            .layer(middleware::from_fn(guard))
            .with_state(Arc::clone(&self.inner))
    }
}

async fn healthz(State(inner): State<Arc<Inner>>) -> (StatusCode, Json<Health>) {
    let health = health::of(&inner.node, inner.extras.read());
    (status_of_health(health.healthy), Json(health))
}

async fn livez(State(inner): State<Arc<Inner>>) -> Json<Liveness> {
    Json(probes::liveness(&inner.node))
}

async fn readyz(State(inner): State<Arc<Inner>>) -> (StatusCode, Json<Readiness>) {
    let readiness = inner
        .ready
        .of(&inner.node, &inner.api_rooms, &*inner.extras);
    (status_of_health(readiness.ready), Json(readiness))
}

async fn metrics_text(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    check_reader(&inner, &request).await?;
    let text = inner.metrics.text().map_err(|_| ApiError::Metrics)?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
}
