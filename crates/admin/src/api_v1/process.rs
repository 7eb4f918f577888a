//! Handlers about the process: its configuration file.

use std::sync::Arc;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api_error::{ApiError, ErrorBody, ProblemBody};
use crate::api_state::Inner;
use crate::command::{BODY_BYTES_MAX, NoBody, actor, read};
use crate::reload::ReloadFailure;
use crate::tokens::Role;

/// Result of a reload.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct Reloaded {
    /// Constant `true`: a file with mistakes is an error.
    reloaded: bool,
}

/// Reads the configuration file of this node again, as SIGHUP does.
///
/// A file with mistakes changes nothing, and `problems` has all of them.
#[utoipa::path(
    post,
    path = "/reload",
    tag = "state",
    responses(
        (status = 200, body = Reloaded, description = "The file is in force"),
        (status = "4XX", body = ErrorBody, description = "The file before it is in force"),
        (status = 503, body = ErrorBody, description = "The node starts or ends"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn reload(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<Reloaded>, ApiError> {
    let who = actor(&inner, &request, Role::Admin).await?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    read::<NoBody>(&body.map_err(|_| ApiError::Body)?)?;
    tracing::warn!(
        token = who.token,
        user = who.user,
        from = who.address,
        "an operator has the configuration file read again"
    );
    match inner.reloader.reload().await {
        Ok(()) => Ok(Json(Reloaded { reloaded: true })),
        Err(ReloadFailure::Mistakes(lines)) => Err(ApiError::NotAllowed {
            problems: lines.into_iter().map(ProblemBody::about_all).collect(),
        }),
        Err(ReloadFailure::Late) => Err(ApiError::Busy),
    }
}
