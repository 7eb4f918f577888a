//! Handlers that carry all rooms of the API to another deployment.

use std::sync::Arc;

use anteroom_store::ChangeError;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Request, State};

use super::refused;
use crate::api_error::{ApiError, ErrorBody, ProblemBody};
use crate::api_rooms::{ImportError, ImportMode, Imported, RoomRefusal, RoomsDocument};
use crate::api_state::Inner;
use crate::api_v1::parameters::parameters;
use crate::command::{actor, parse};
use crate::tokens::Role;

/// Most bytes of a document of all rooms: 64 MiB of pages, and half as much again for escapes.
const DOCUMENT_BYTES_MAX: usize = 96 * 1024 * 1024;

/// Returns all rooms of the API with their custom pages, as one document for an import.
#[utoipa::path(
    get,
    path = "/rooms-document",
    tag = "rooms",
    responses(
        (status = 200, body = RoomsDocument),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
        (status = 503, body = ErrorBody, description = "The rooms or pages are not known"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn export_rooms(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<RoomsDocument>, ApiError> {
    actor(&inner, &request, Role::Admin).await?;
    let exported = inner.api_rooms.export().await;
    let document = exported.map_err(|error| {
        let cause = anteroom_store::chain(&error);
        tracing::warn!(cause, "the rooms of the API cannot be exported");
        ApiError::StoreUnavailable
    })?;
    Ok(Json(document))
}

/// Creates or replaces the rooms of a document in one change; other rooms stay.
///
/// With `?preview=true` nothing is written, and the response says what would change.
#[utoipa::path(
    post,
    path = "/rooms-document",
    tag = "rooms",
    params(("preview" = Option<bool>, Query, description = "Whether nothing is written")),
    request_body = RoomsDocument,
    responses(
        (status = 200, body = Imported),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn import_rooms(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<Imported>, ApiError> {
    let who = actor(&inner, &request, Role::Admin).await?;
    let [preview] = parameters(&request, ["preview"])?;
    let mode = match preview.as_deref() {
        Some("true") => ImportMode::Preview,
        None | Some("false") => ImportMode::Write,
        Some(other) => {
            let message = format!("preview: found {other:?}; allowed: true or false");
            let problems = vec![ProblemBody::at("/preview".to_owned(), message)];
            return Err(ApiError::NotAllowed { problems });
        }
    };
    let body = to_bytes(request.into_body(), DOCUMENT_BYTES_MAX).await;
    let document = parse(&body.map_err(|_| ApiError::Body)?)?;
    let imported = inner.api_rooms.import(&who, document, mode).await;
    imported.map(Json).map_err(|error| match error {
        // A problem names its room: the document has many.
        ImportError::Change(ChangeError::Rejected(RoomRefusal::NotAllowed(problems))) => {
            let problems = problems.iter().map(ToString::to_string);
            ApiError::NotAllowed {
                problems: problems.map(ProblemBody::about_all).collect(),
            }
        }
        ImportError::Change(error) => refused(error),
        error => ApiError::not_allowed(error.to_string()),
    })
}
