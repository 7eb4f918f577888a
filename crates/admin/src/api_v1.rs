//! `/api/v1`: what operators and their programs do to a running deployment. The command line uses
//! it.
//!
//! Each handler describes itself, and all descriptions make one OpenAPI document. A path without a
//! description is not served, and a test compares the document with the one in the docs. Unknown
//! fields are mistakes here.

mod deployment;
mod history;
mod limits;
mod parameters;
mod pointer;
mod process;
mod room_commands;
mod rooms;
mod states;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api_state::Inner;

pub(crate) use history::HistoryBody;
pub(crate) use pointer::pointer;
pub(crate) use rooms::document::{RoomDocument, RoomDocuments};

/// Prefix of all paths of this API.
pub(crate) const PREFIX: &str = "/api/v1";
/// Path of the description of this API.
pub(crate) const DOCUMENT_PATH: &str = "/openapi.json";
/// Security scheme of all paths with a token.
const TOKEN: &str = "token";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Anteroom",
        description = "What operators do to a running deployment. Paths are those of the admin \
            address. Times are RFC 3339 in UTC. Unknown fields are mistakes.",
    ),
    modifiers(&Tokens),
    tags(
        (name = "state", description = "What happens now"),
        (name = "history", description = "What happened: points over time, and reports"),
        (name = "rooms", description = "Rooms and their events: what the file or the API says"),
        (name = "overrides", description = "What operators set while a room runs"),
        (name = "limits", description = "Overrides of single clients of rate limits"),
        (name = "audit", description = "Who changed what"),
    )
)]
struct Description;

/// Declares the tokens of operators.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(TOKEN, scheme);
    }
}

/// Returns the description as JSON.
#[must_use]
pub fn document() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let (_, document) = described().split_for_parts();
        document.to_pretty_json().unwrap_or_default()
    });
    &TEXT
}

/// Returns the routes of this API and of its description.
pub(crate) fn router() -> Router<Arc<Inner>> {
    let (router, _) = described().split_for_parts();
    router.route(DOCUMENT_PATH, axum::routing::get(show_document))
}

async fn show_document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], document())
}

fn described() -> OpenApiRouter<Arc<Inner>> {
    let paths = OpenApiRouter::new()
        .routes(routes!(states::show_state))
        .routes(routes!(deployment::show_nodes))
        .routes(routes!(deployment::show_data_centers))
        .routes(routes!(deployment::show_origins))
        .routes(routes!(process::reload))
        .routes(routes!(rooms::list_rooms, rooms::create_room))
        .routes(routes!(
            rooms::show_room,
            rooms::replace_room,
            rooms::edit_room,
            rooms::delete_room
        ))
        .routes(routes!(rooms::create_event))
        .routes(routes!(rooms::edit_event, rooms::delete_event))
        .routes(routes!(
            rooms::transfer::export_rooms,
            rooms::transfer::import_rooms
        ))
        .routes(routes!(states::show_room_state))
        .routes(routes!(history::show_history))
        .routes(routes!(history::show_report))
        .routes(routes!(room_commands::show_settings))
        .routes(routes!(room_commands::show_room_log))
        .routes(routes!(room_commands::find_visitor))
        .routes(routes!(room_commands::set_overrides))
        .routes(routes!(room_commands::pause_room))
        .routes(routes!(room_commands::resume_room))
        .routes(routes!(room_commands::queue_everybody))
        .routes(routes!(room_commands::open_room))
        .routes(routes!(room_commands::set_message))
        .routes(routes!(room_commands::reset_overrides))
        .routes(routes!(room_commands::undo_change))
        .routes(routes!(room_commands::revoke_visitor))
        .routes(routes!(room_commands::assume_room_empty))
        .routes(routes!(limits::list_limits))
        .routes(routes!(limits::show_limit))
        .routes(routes!(limits::set_client))
        .routes(routes!(limits::unset_client))
        .routes(routes!(limits::show_client))
        .routes(routes!(limits::assume_limits_empty))
        .routes(routes!(limits::show_limits_log))
        .routes(routes!(rooms::show_rooms_log))
        .routes(routes!(rooms::undo_room_change));
    OpenApiRouter::with_openapi(Description::openapi()).nest(PREFIX, paths)
}
