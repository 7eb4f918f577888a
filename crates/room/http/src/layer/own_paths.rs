//! What is answered below `/.well-known/anteroom/`: where a page's visitor stands, when to ask, and
//! which language was chosen. The origin hears of none of it.

use std::sync::Arc;

use anteroom_node::{Intent, Outcome};
use http::{Method, Request, Response};

use super::access_log::AccessEntry;
use super::decision::{ask, note_ticket};
use super::event_streams::EventStreams;
use super::headers;
use super::route_table::{RoomRoute, RouteTable};
use super::verdict::Verdict;
use crate::waiting::{language_form, position_endpoint, push};
use anteroom_proxy::body::Body;
use anteroom_proxy::cookies;
use anteroom_proxy::error_page;
use anteroom_proxy::forwarded::Client;
use anteroom_proxy::status::Refusal;

/// Whether waiting pages ask by this path, which the rooms answer themselves. No other path is like
/// it in any reading: it never gets to an origin.
#[must_use]
pub fn is_own_path(path: &str) -> bool {
    matches!(
        path,
        position_endpoint::PATH | push::PATH | language_form::PATH
    )
}

/// The room that a request names.
enum Found<'a> {
    /// This one, and it queues people.
    Room(&'a RoomRoute),
    /// One that is gone, or open to all: nobody has a reason to wait for it.
    Open,
    /// None.
    Unnamed,
}

/// Which room `query` names, and what is said about the request if that was all.
async fn room_of<'a>(
    table: &'a RouteTable,
    query: &str,
    client: &Client,
    access: &mut AccessEntry<'_>,
) -> Found<'a> {
    let Some(room) = position_endpoint::room_of(query) else {
        return Found::Unnamed;
    };
    let Some(route) = table.by_name(&room, client.host()) else {
        access.say(Verdict::NoRoom);
        return Found::Open;
    };
    access.enter(route);
    if route.room.is_suspended().await {
        access.say(Verdict::Suspended);
        return Found::Open;
    }
    Found::Room(route)
}

fn is_look(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Responds to requests for our own paths.
pub(super) struct OwnPaths {
    streams: Arc<EventStreams>,
}

impl OwnPaths {
    pub(super) fn new(streams: EventStreams) -> Self {
        Self {
            streams: Arc::new(streams),
        }
    }

    /// Answers what waiting pages ask by paths of ours; `None` if it is another path.
    pub(super) async fn respond(
        &self,
        table: &RouteTable,
        request: &Request<()>,
        client: &Client,
        access: &mut AccessEntry<'_>,
    ) -> Option<Response<Body>> {
        Some(match request.uri().path() {
            position_endpoint::PATH => self.tell_place(table, request, client, access).await,
            push::PATH => self.listen(table, request, client, access).await,
            language_form::PATH => remember_language(table, request, client, access),
            _ => return None,
        })
    }

    /// Answers a waiting page that asks where it stands.
    async fn tell_place(
        &self,
        table: &RouteTable,
        request: &Request<()>,
        client: &Client,
        access: &mut AccessEntry<'_>,
    ) -> Response<Body> {
        if !is_look(request.method()) {
            return position_endpoint::bad_question().map(Body::full);
        }
        let query = request.uri().query().unwrap_or_default();
        let route = match room_of(table, query, client, access).await {
            Found::Room(route) => route,
            Found::Open => return position_endpoint::not_waiting().map(Body::full),
            Found::Unnamed => return position_endpoint::bad_question().map(Body::full),
        };
        // Whoever waits may come in by asking here. Whoever has no place only looks: an image on
        // another site must not take seats.
        match ask(route, request.headers(), false, Intent::Look).await {
            Outcome::MayCome => {
                access.say(Verdict::Look);
                position_endpoint::not_waiting().map(Body::full)
            }
            Outcome::Pass(pass) => {
                access.pass(&pass);
                note_ticket(request, true);
                let response = position_endpoint::not_waiting().map(Body::full);
                headers::carry_ticket(route, &pass, client.scheme, response)
            }
            Outcome::Queue { ticket, place } => {
                note_ticket(request, false);
                let language = position_endpoint::language_of(query);
                let language = language.unwrap_or_else(|| route.language(request.headers()));
                let holds = route.holds();
                let view = holds.view(place, language);
                access.queue(&view);
                let push = push::is_near(&view) && self.streams.has_room();
                let response = position_endpoint::still_waiting(&view, push).map(Body::full);
                headers::hand_out(route, response, ticket, client.scheme, &view)
            }
        }
    }

    /// Lets somebody who waits listen for its turn. Asks no room.
    async fn listen(
        &self,
        table: &RouteTable,
        request: &Request<()>,
        client: &Client,
        access: &mut AccessEntry<'_>,
    ) -> Response<Body> {
        if request.method() != Method::GET {
            return position_endpoint::bad_question().map(Body::full);
        };
        let query = request.uri().query().unwrap_or_default();
        let route = match room_of(table, query, client, access).await {
            Found::Room(route) => route,
            Found::Open => return push::nothing_to_say().map(Body::full),
            Found::Unnamed => return position_endpoint::bad_question().map(Body::full),
        };
        let tickets = cookies::values(request.headers(), &route.cookie_name);
        let Some(ticket) = route.room.waiting_ticket(&tickets) else {
            return push::nothing_to_say().map(Body::full);
        };
        let room = Arc::clone(&route.room);
        let Some(events) = self.streams.begin(room, ticket) else {
            return push::too_many().map(Body::full);
        };
        access.say(Verdict::Listen);
        push::stream(Body::events(events))
    }
}

/// Remembers the language that was chosen in the page's form, and leads back to the page.
fn remember_language(
    table: &RouteTable,
    request: &Request<()>,
    client: &Client,
    access: &mut AccessEntry<'_>,
) -> Response<Body> {
    if !is_look(request.method()) {
        return error_page::answer_to(request.headers(), Refusal::BadRequest);
    }
    let query = request.uri().query().unwrap_or_default();
    let room = position_endpoint::room_of(query);
    let route = room.and_then(|room| table.by_name(&room, client.host()));
    let choice = language_form::Choice::of(query, request.headers(), client.host());
    let (Some(route), Some(choice)) = (route, choice) else {
        return error_page::answer_to(request.headers(), Refusal::BadRequest);
    };
    access.enter(route);
    access.say(Verdict::Language);
    let mut response = language_form::go_back(&choice).map(Body::full);
    headers::set_language(
        route,
        response.headers_mut(),
        choice.language,
        client.scheme,
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_paths_are_our_own() {
        for path in [position_endpoint::PATH, push::PATH, language_form::PATH] {
            assert!(is_own_path(path), "{path}");
            for end in ["/x", "/", "/../../v1/orders", "/%2e%2e/%2e%2e/v1/orders"] {
                assert!(!is_own_path(&format!("{path}{end}")), "{path}{end}");
            }
            assert!(!is_own_path(&path.to_uppercase()), "{path}");
        }
        assert!(!is_own_path("/.well-known/anteroom/"));
        assert!(!is_own_path("/.well-known/anteroom/../../v1/orders"));
    }
}
