//! `/client/v4`: the part of Cloudflare's API that is about waiting rooms, so that its SDKs and
//! scripts work here with another base address and token.
//!
//! A zone is a `[[site]]` of the file. Rooms of the file are shown; rooms that are made here are
//! kept in the store, see [`crate::api_rooms`]. Clients of this API send fields that they do not
//! mean, so unknown ones are ignored with a message.

mod cel;
mod envelope;
mod events;
mod fields;
pub(crate) mod preview;
mod rooms;
mod rules;
mod zones;

use std::collections::BTreeMap;
use std::sync::Arc;

use anteroom_config::overrides::Actor;
use anteroom_room::time::Timestamp;
use axum::body::to_bytes;
use axum::extract::{Query, Request, State};
use axum::http::Method;
use axum::http::header::{HOST, IF_MATCH};
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::api_error::ApiError;
use crate::api_rooms::Applied;
use crate::api_state::Inner;
use crate::command::actor;
use crate::tokens::Role;
use envelope::{Refusal, Reply};
use zones::Zone;

/// Prefix of all paths of this API.
pub(crate) const PREFIX: &str = "/client/v4/";

/// Returns the response to a request of this API that reaches no handler.
pub(crate) fn refused(error: ApiError) -> Response {
    Refusal::from(error).into_response()
}
/// Most bytes of a body: a page of the largest size, and as much again for escapes.
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Elements of a page of a list, unless the client asks for another number.
const PER_PAGE: usize = 25;
const PER_PAGE_MAX: usize = 1_000;

type Answer = Result<Reply, Refusal>;

/// Request after its token was checked.
struct Call<'a> {
    inner: &'a Inner,
    who: Actor,
    method: Method,
    query: BTreeMap<String, String>,
    /// Host that the client asked for.
    host: String,
    /// Tag that the client expects, without quotes.
    expected: Option<String>,
    body: Value,
    /// Nodes that serve the change that was made.
    applied: Mutex<Option<Applied>>,
}

/// Responds to a request.
pub(crate) async fn respond(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    match answer(&inner, request).await {
        Ok(reply) => reply.into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(inner: &Inner, request: Request) -> Answer {
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let path = request.uri().path().strip_prefix(PREFIX);
    let path = path.unwrap_or_default().trim_end_matches('/').to_owned();
    // A rule may hold a secret, such as the cookie of those who need not wait.
    let is_of_rules = path.split('/').any(|step| step == "rules");
    let role = if is_read && !is_of_rules {
        Role::Viewer
    } else {
        Role::Admin
    };
    let who = actor(inner, &request, role).await?;
    let Query(query) = Query::try_from_uri(request.uri())
        .map_err(|_| Refusal::body("the query is not readable".to_owned()))?;
    let expected = request.headers().get(IF_MATCH);
    // A tag that is not readable is none of ours.
    let expected = expected.map(|tag| tag.to_str().unwrap_or("?"));
    let expected = expected.map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.unwrap_or("localhost").to_owned();
    let method = request.method().clone();
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let body = body.map_err(|_| Refusal::too_large())?;
    let body = if body.trim_ascii().is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| Refusal::body(format!("the body is not JSON: {error}")))?
    };
    let call = Call {
        inner,
        who,
        method,
        query,
        host,
        expected: expected.filter(|tag| tag != "*"),
        body,
        applied: Mutex::default(),
    };
    // As new as the store's, so that what one node has made is found at the next one.
    inner.api_rooms.read().await;
    if !inner.api_rooms.are_known() {
        // A client would take it for a deployment without rooms.
        return Err(ApiError::StoreUnavailable.into());
    }
    let steps: Vec<&str> = path.split('/').collect();
    let reply = call.dispatch(&steps).await?;
    let applied = *call.applied.lock();
    Ok(Reply { applied, ..reply })
}

impl Call<'_> {
    /// Notes which nodes serve a change, for the response.
    fn note_applied(&self, applied: Option<Applied>) {
        *self.applied.lock() = applied;
    }

    async fn dispatch(&self, steps: &[&str]) -> Answer {
        match *steps {
            ["accounts"] => self.only_get().and_then(|()| zones::accounts(self)),
            ["user", "tokens", "verify"] => self.only_get().map(|()| zones::verify(self)),
            ["zones"] => self.only_get().and_then(|()| zones::list(self)),
            ["zones", zone] => {
                self.only_get()?;
                Ok(Reply::of(self.zone(zone)?.written()))
            }
            ["zones", zone, "waiting_rooms", ref rest @ ..] => {
                let zone = self.zone(zone)?;
                self.in_zone(&zone, rest).await
            }
            ["accounts", account, "waiting_rooms"] => {
                self.only_get()?;
                zones::check_account(account)?;
                rooms::list(self, None)
            }
            _ => Err(Refusal::no_route()),
        }
    }

    async fn in_zone(&self, zone: &Zone, steps: &[&str]) -> Answer {
        match *steps {
            [] if self.method == Method::POST => rooms::create(self, zone).await,
            [] => self.only_get().and_then(|()| rooms::list(self, Some(zone))),
            ["settings"] => zones::settings(self),
            ["preview"] => preview::create(self),
            [room] => rooms::one(self, zone, room).await,
            [room, "status"] => {
                self.only_get()?;
                rooms::status(self, &rooms::find(self, zone, room)?).await
            }
            [room, "events"] => events::all(self, &rooms::find(self, zone, room)?).await,
            [room, "events", event] => {
                events::one(self, &rooms::find(self, zone, room)?, event).await
            }
            [room, "events", event, "details"] => {
                self.only_get()?;
                events::details(&rooms::find(self, zone, room)?, event)
            }
            [room, "rules"] => rules::all(self, &rooms::find(self, zone, room)?).await,
            [room, "rules", rule] => rules::one(self, &rooms::find(self, zone, room)?, rule).await,
            _ => Err(Refusal::no_route()),
        }
    }

    fn now(&self) -> Timestamp {
        self.inner.node.clock().wall()
    }

    fn only_get(&self) -> Result<(), Refusal> {
        if self.method == Method::GET || self.method == Method::HEAD {
            Ok(())
        } else {
            Err(Refusal::method())
        }
    }

    /// Returns the body, which has to be an object.
    fn object(&self) -> Result<&Map<String, Value>, Refusal> {
        let object = self.body.as_object();
        object.ok_or_else(|| Refusal::body("the body has to be a JSON object".to_owned()))
    }

    /// Returns a page of a list.
    fn page(&self, all: Vec<Value>) -> Answer {
        let number = |key: &str, default: usize| match self.query.get(key) {
            None => Ok(default),
            Some(text) => {
                let number = text.parse().ok().filter(|number| *number > 0);
                number.ok_or_else(|| Refusal::body(format!("{key} has to be a number from 1")))
            }
        };
        let (page, per_page) = (number("page", 1)?, number("per_page", PER_PAGE)?);
        let per_page = per_page.min(PER_PAGE_MAX);
        let total = all.len();
        let first = (page - 1).saturating_mul(per_page);
        let shown: Vec<Value> = all.into_iter().skip(first).take(per_page).collect();
        let info = json!({
            "page": page,
            "per_page": per_page,
            "count": shown.len(),
            "total_count": total,
            "total_pages": total.div_ceil(per_page),
        });
        Ok(Reply {
            result: shown.into(),
            info: Some(info),
            ..Reply::default()
        })
    }

    fn zone(&self, id: &str) -> Result<Zone, Refusal> {
        let found = zones::all(&self.inner.api_rooms.file()).find(|zone| zone.id == id);
        found.ok_or_else(Refusal::no_route)
    }
}
