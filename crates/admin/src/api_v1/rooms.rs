//! Handlers of rooms and events: what the file or the API says about them.
//!
//! A room of the file is shown and can be changed there only. A room of the API has the keys of
//! `[[room]]` as its values, and each change is checked as the file is.

pub(crate) mod document;
pub(crate) mod transfer;

use std::sync::Arc;

use anteroom_config::api_rooms::{ApiRoom, ApiRooms};
use anteroom_config::overrides::Log;
use anteroom_config::{Problem, RoomId};
use anteroom_store::ChangeError;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::IF_MATCH;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::timeout;

use self::document::{
    Deleted, RoomBody, RoomDocument, RoomDocuments, merge, name_of, written_event,
};
use super::pointer;
use super::room_commands::UndoBody;
use crate::api_error::{ApiError, ErrorBody, ProblemBody};
use crate::api_rooms::{Edit, RoomChangeError, RoomRefusal, SITE, Written};
use crate::api_state::Inner;
use crate::command::{actor, parse};
use crate::deadline::COMMAND_TIMEOUT;
use crate::known_rooms::{self, Room, RoomEdit, random_id, repeated};
use crate::tokens::Role;

/// Most bytes of a body: a page of the largest size, and as much again for escapes.
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Request after its token and its path were checked.
struct Call<'a> {
    inner: &'a Inner,
    who: anteroom_config::overrides::Actor,
    /// Tag that the client expects, without quotes.
    expected: Option<String>,
    body: axum::body::Bytes,
}

impl<'a> Call<'a> {
    async fn of(inner: &'a Inner, request: Request, role: Role) -> Result<Self, ApiError> {
        let who = actor(inner, &request, role).await?;
        let expected = request.headers().get(IF_MATCH);
        // A tag that is not readable is none of ours.
        let expected = expected.map(|tag| tag.to_str().unwrap_or("?"));
        let expected =
            expected.map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
        let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
        // As new as the store's, so that what one node has made is found at the next one.
        inner.api_rooms.read().await;
        if !inner.api_rooms.are_known() {
            return Err(ApiError::StoreUnavailable);
        }
        Ok(Self {
            inner,
            who,
            expected: expected.filter(|tag| tag != "*"),
            body: body.map_err(|_| ApiError::Body)?,
        })
    }

    fn body<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        parse(&self.body)
    }

    /// Finds a room by its name or its id.
    fn room(&self, name: Name) -> Result<Room, ApiError> {
        let rooms = known_rooms::all(self.inner, None, None);
        let names: Vec<String> = rooms.iter().map(name_of_room).collect();
        let wanted = name.map(|Path(name)| name).unwrap_or_default();
        let named = rooms.into_iter().zip(&names);
        let mut named: Vec<(Room, &String)> = named.collect();
        // A room may have a name that is the id of another one.
        let by_name = named.iter().position(|(_, name)| **name == wanted);
        let by_id = || {
            named
                .iter()
                .position(|(room, _)| room.id.as_str() == wanted)
        };
        let found = by_name
            .or_else(by_id)
            .map(|found| named.swap_remove(found).0);
        found.ok_or(ApiError::UnknownRoom { rooms: names })
    }

    /// Finds a room that may be changed over the API.
    fn room_of_api(&self, name: Name) -> Result<Room, ApiError> {
        let room = self.room(name)?;
        match known_rooms::reason_against_change(&room) {
            None => Ok(room),
            Some(problem) => Err(ApiError::Forbidden { problem }),
        }
    }

    async fn change(
        &self,
        room: &Room,
        what: &str,
        edit: impl Fn(&ApiRoom, u64) -> Result<Option<ApiRoom>, RoomRefusal>,
    ) -> Result<Written, ApiError> {
        let change = RoomEdit {
            who: &self.who,
            what,
            expected: self.expected.as_deref(),
        };
        change.apply(self.inner, room, edit).await.map_err(refused)
    }

    /// Returns a room as a change made it. Another change may have followed already.
    fn shown(&self, written: &Written) -> Result<RoomDocument, ApiError> {
        let found = known_rooms::all(self.inner, None, Some(written.id.as_str())).pop();
        let room = found.ok_or(ApiError::NotFound)?;
        let room = room.in_record(&written.record, &self.inner.api_rooms);
        Ok(RoomDocument::of(self.inner, &room).after(written.applied))
    }
}

/// Name in a path.
type Name = Result<Path<String>, PathRejection>;

fn name_of_room(room: &Room) -> String {
    let served = room.config.as_ref().map(|config| config.name.to_string());
    served.unwrap_or_else(|| {
        name_of(&room.content().values)
            .unwrap_or_default()
            .to_owned()
    })
}

/// Returns the error of a change that was not made.
fn refused(error: RoomChangeError) -> ApiError {
    match error {
        ChangeError::Rejected(RoomRefusal::NotFound) => ApiError::NotFound,
        ChangeError::Rejected(RoomRefusal::Changed { tag }) => ApiError::Changed { tag },
        ChangeError::Rejected(RoomRefusal::NotAllowed(problems)) => ApiError::NotAllowed {
            problems: problems.into_iter().map(problem).collect(),
        },
        ChangeError::Rejected(other @ RoomRefusal::OlderNodes { .. }) => ApiError::Forbidden {
            problem: other.to_string(),
        },
        ChangeError::Rejected(other) => ApiError::not_allowed(other.to_string()),
        error => {
            let cause = anteroom_store::chain(&error);
            tracing::warn!(cause, "a change of the rooms of the API failed");
            ApiError::StoreUnavailable
        }
    }
}

/// Key of problems about the version of an undo.
const VERSION: &str = "version";

/// Returns a problem with its place in a [`RoomBody`].
fn problem(mut problem: Problem) -> ProblemBody {
    // The room that the client sent.
    problem.owner = None;
    let place = pointer(&problem.key);
    let place = if problem.key == SITE || problem.key == VERSION {
        place
    } else if let Some(rest) = place.strip_prefix("/event/") {
        format!("/events/{rest}")
    } else if let Some(rest) = place.strip_prefix("/bypass") {
        format!("/rules{rest}")
    } else {
        format!("/values{place}")
    };
    ProblemBody::at(place, problem.to_string())
}

/// Returns all rooms, those of the file and those of the API.
#[utoipa::path(
    get,
    path = "/rooms",
    tag = "rooms",
    responses(
        (status = 200, body = RoomDocuments),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
        (status = 503, body = ErrorBody, description = "The rooms are not known"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn list_rooms(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<RoomDocuments>, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let rooms = known_rooms::all(call.inner, None, None);
    let rooms = rooms.iter().map(|room| RoomDocument::of(&inner, room));
    Ok(Json(RoomDocuments {
        rooms: rooms.collect(),
    }))
}

/// Creates a room.
#[utoipa::path(
    post,
    path = "/rooms",
    tag = "rooms",
    request_body = RoomBody,
    responses(
        (status = 201, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn create_room(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<(StatusCode, RoomDocument), ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let body: RoomBody = call.body()?;
    let id = random_id().as_deref().and_then(RoomId::new);
    let id = id.ok_or(ApiError::StoreUnavailable)?;
    let new = ApiRoom {
        created_by: call.who.token.clone(),
        ..ApiRoom::default()
    };
    let edit = |record: &ApiRooms, at: u64| {
        let room = ApiRoom {
            created_at: at,
            ..body.written_to(&new, at)
        };
        let as_kept = inner.api_rooms.without_pages(&room);
        if let Some(same) = repeated(record, &as_kept, at) {
            return Ok(Edit::Keep(same));
        }
        Ok(Edit::Write(id.clone(), Some(Box::new(room))))
    };
    let written = inner.api_rooms.change(&call.who, "create", edit).await;
    let written = written.map_err(refused)?;
    Ok((StatusCode::CREATED, call.shown(&written)?))
}

/// Returns a room by its name or its id.
#[utoipa::path(
    get,
    path = "/rooms/{room}",
    tag = "rooms",
    params(("room" = String, Path, description = "Name or id of the room")),
    responses(
        (status = 200, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "There is no such room"),
        (status = 503, body = ErrorBody, description = "The rooms are not known"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn show_room(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<RoomDocument, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    Ok(RoomDocument::of(&inner, &call.room(name)?))
}

/// Replaces a room of the API: what the body does not say gets its default.
#[utoipa::path(
    put,
    path = "/rooms/{room}",
    tag = "rooms",
    params(("room" = String, Path, description = "Name or id of the room")),
    request_body = RoomBody,
    responses(
        (status = 200, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn replace_room(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<RoomDocument, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let room = call.room_of_api(name)?;
    let mut body: RoomBody = call.body()?;
    body.events.get_or_insert_default();
    body.rules.get_or_insert_default();
    let edit = |known: &ApiRoom, at: u64| {
        let mut base = known.clone();
        base.values.clear();
        base.description.clear();
        Ok(Some(body.written_to(&base, at)))
    };
    let written = call.change(&room, "edit", edit).await?;
    call.shown(&written)
}

/// Changes what the body says in a room of the API.
#[utoipa::path(
    patch,
    path = "/rooms/{room}",
    tag = "rooms",
    params(("room" = String, Path, description = "Name or id of the room")),
    request_body = RoomBody,
    responses(
        (status = 200, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn edit_room(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<RoomDocument, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let room = call.room_of_api(name)?;
    let body: RoomBody = call.body()?;
    let edit = |known: &ApiRoom, at: u64| Ok(Some(body.written_to(known, at)));
    let written = call.change(&room, "edit", edit).await?;
    call.shown(&written)
}

/// Deletes a room of the API in which nobody waits, or that is suspended.
#[utoipa::path(
    delete,
    path = "/rooms/{room}",
    tag = "rooms",
    params(("room" = String, Path, description = "Name or id of the room")),
    responses(
        (status = 200, body = Deleted),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn delete_room(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<Deleted>, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let room = call.room(name)?;
    if let Some(problem) = known_rooms::reason_against_deletion(&inner, &room).await {
        return Err(ApiError::Forbidden { problem });
    }
    let written = call.change(&room, "delete", |_, _| Ok(None)).await?;
    Ok(Json(Deleted {
        id: written.id.to_string(),
    }))
}

/// Adds an event to a room of the API.
#[utoipa::path(
    post,
    path = "/rooms/{room}/events",
    tag = "rooms",
    params(("room" = String, Path, description = "Name or id of the room")),
    request_body = std::collections::BTreeMap<String, Value>,
    responses(
        (status = 201, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn create_event(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<(StatusCode, RoomDocument), ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let room = call.room_of_api(name)?;
    let values: Map<String, Value> = call.body()?;
    let prefix = format!("/events/{}", room.content().events.len());
    let edit = |known: &ApiRoom, at: u64| {
        let mut next = known.clone();
        let nameless = ApiRoom::default();
        next.events.push(written_event(&nameless, &values, at));
        Ok(Some(next))
    };
    let written = call.change(&room, "event create", edit).await;
    let written = written.map_err(|error| within(error, &prefix))?;
    Ok((StatusCode::CREATED, call.shown(&written)?))
}

/// Changes values of an event; `null` removes one.
#[utoipa::path(
    patch,
    path = "/rooms/{room}/events/{event}",
    tag = "rooms",
    params(
        ("room" = String, Path, description = "Name or id of the room"),
        ("event" = String, Path, description = "Name of the event"),
    ),
    request_body = std::collections::BTreeMap<String, Value>,
    responses(
        (status = 200, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn edit_event(
    State(inner): State<Arc<Inner>>,
    path: Names,
    request: Request,
) -> Result<RoomDocument, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let (room, event) = names(path);
    let room = call.room_of_api(room)?;
    let values: Map<String, Value> = call.body()?;
    let prefix = format!("/events/{}", number_of(&room.content(), &event)?);
    let edit = |known: &ApiRoom, at: u64| {
        let mut next = known.clone();
        let mut events = next.events.iter_mut();
        let found = events.find(|known| name_of(&known.values) == Some(&event));
        let found = found.ok_or(RoomRefusal::NotFound)?;
        merge(&mut found.values, &values);
        found.modified_at = at;
        Ok(Some(next))
    };
    let written = call.change(&room, "event edit", edit).await;
    let written = written.map_err(|error| within(error, &prefix))?;
    call.shown(&written)
}

/// Deletes an event of a room of the API.
#[utoipa::path(
    delete,
    path = "/rooms/{room}/events/{event}",
    tag = "rooms",
    params(
        ("room" = String, Path, description = "Name or id of the room"),
        ("event" = String, Path, description = "Name of the event"),
    ),
    responses(
        (status = 200, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn delete_event(
    State(inner): State<Arc<Inner>>,
    path: Names,
    request: Request,
) -> Result<RoomDocument, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let (room, event) = names(path);
    let room = call.room_of_api(room)?;
    number_of(&room.content(), &event)?;
    let edit = |known: &ApiRoom, _: u64| {
        let mut next = known.clone();
        next.events
            .retain(|known| name_of(&known.values) != Some(&event));
        Ok(Some(next))
    };
    let written = call.change(&room, "event delete", edit).await?;
    call.shown(&written)
}

/// Names of a room and an event in a path.
type Names = Result<Path<(String, String)>, PathRejection>;

fn names(path: Names) -> (Name, String) {
    match path {
        Ok(Path((room, event))) => (Ok(Path(room)), event),
        Err(error) => (Err(error), String::new()),
    }
}

/// Returns the number of an event from 0.
fn number_of(room: &ApiRoom, event: &str) -> Result<usize, ApiError> {
    let mut events = room.events.iter();
    let number = events.position(|known| name_of(&known.values) == Some(event));
    number.ok_or_else(|| {
        let names: Vec<&str> = room
            .events
            .iter()
            .filter_map(|event| name_of(&event.values))
            .collect();
        ApiError::UnknownEvent {
            events: names.join(", "),
        }
    })
}

/// Returns an error with pointers into the part of the room that the client sent.
fn within(error: ApiError, prefix: &str) -> ApiError {
    match error {
        ApiError::NotAllowed { problems } => ApiError::NotAllowed {
            problems: problems
                .into_iter()
                .map(|problem| problem.within(prefix))
                .collect(),
        },
        error => error,
    }
}

/// Returns who changed what in rooms of the API.
#[utoipa::path(
    get,
    path = "/audit/rooms",
    tag = "audit",
    responses(
        (status = 200, body = Log),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn show_rooms_log(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<Log>, ApiError> {
    actor(&inner, &request, Role::Admin).await?;
    match timeout(COMMAND_TIMEOUT, inner.api_rooms.log()).await {
        Ok(Ok(log)) => Ok(Json(log)),
        _ => Err(ApiError::StoreUnavailable),
    }
}

/// Undoes a change of a room of the API: each key gets its value before it, if none has changed
/// since.
///
/// A room that was deleted is created anew. The creation of a room, an import, and a change of a
/// value of more than 8 KiB cannot be undone.
#[utoipa::path(
    post,
    path = "/audit/rooms/undo",
    tag = "audit",
    request_body = UndoBody,
    responses(
        (status = 200, body = RoomDocument),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn undo_room_change(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<RoomDocument>, ApiError> {
    let call = Call::of(&inner, request, Role::Admin).await?;
    let UndoBody { version } = call.body()?;
    let new_id = random_id().as_deref().and_then(RoomId::new);
    let new_id = new_id.ok_or(ApiError::StoreUnavailable)?;
    let undone = inner.api_rooms.undo(&call.who, version, &new_id).await;
    call.shown(&undone.map_err(refused)?).map(Json)
}
