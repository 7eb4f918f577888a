//! Responses below `/.well-known/anteroom/`: a visitor's position, event streams, the choice of a
//! language, and the end of a wait. The origin gets none of these requests.

use std::sync::Arc;

use anteroom_config::language::Language;
use anteroom_node::{Intent, Leave, Outcome};
use bytes::Bytes;
use http::{Method, Response};

use super::access_log::AccessEntry;
use super::decision::{BegunHere, decide_with_tickets, note_ticket};
use super::event_streams::EventStreams;
use super::headers;
use super::queued_lines::QueuedLines;
use super::route_table::{RoomRoute, RouteTable};
use super::verdict::Verdict;
use crate::waiting::position_endpoint::Needed;
use crate::waiting::{WaitingView, cookies_page, language_form, leave, position_endpoint, push};
use anteroom_proxy::body::Body;
use anteroom_proxy::cookies;
use anteroom_proxy::error_page;
use anteroom_proxy::request_view::RequestView;
use anteroom_proxy::status::RequestError;

/// Whether a path belongs to waiting pages, so that the rooms respond themselves. The comparison is
/// exact: no other reading of a path counts.
#[must_use]
pub fn is_own_path(path: &str) -> bool {
    matches!(
        path,
        position_endpoint::PATH
            | position_endpoint::TURN_PATH
            | push::PATH
            | language_form::PATH
            | leave::PATH
            | cookies_page::PATH
    )
}

/// Room that a request names.
enum NamedRoom<'a> {
    /// A room that is not suspended.
    Room(&'a RoomRoute),
    /// A room that is removed or suspended, so that nobody has to wait.
    Open,
    /// The request names no room.
    Unnamed,
}

/// Finds the room that the query names, and sets the verdict if there is nothing to wait for.
async fn room_of<'a>(
    table: &'a RouteTable,
    request: &RequestView<'_>,
    access: &mut AccessEntry,
) -> NamedRoom<'a> {
    let Some(room) = position_endpoint::room_of(request.query) else {
        return NamedRoom::Unnamed;
    };
    let Some(route) = table.by_name(&room, request.client.host()) else {
        access.set_verdict(Verdict::NoRoom);
        return NamedRoom::Open;
    };
    access.set_room(route);
    if route.room.is_suspended().await {
        access.set_verdict(Verdict::Suspended);
        return NamedRoom::Open;
    }
    NamedRoom::Room(route)
}

/// Finds the room that the query names, whatever its state.
pub(super) fn named<'a>(table: &'a RouteTable, request: &RequestView<'_>) -> Option<&'a RoomRoute> {
    let name = position_endpoint::room_of(request.query)?;
    table.by_name(&name, request.client.host())
}

/// Returns the language that the query names, or else the one that the visitor wants.
fn language_of(route: &RoomRoute, request: &RequestView<'_>) -> Language {
    position_endpoint::language_of(request.query).unwrap_or_else(|| route.language(request.headers))
}

/// Whether a page of this site sent the request to change something.
fn is_own_form(request: &RequestView<'_>) -> bool {
    *request.method == Method::POST && leave::is_of_this_site(request.headers, request.host)
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

    /// Responds to a request of a waiting page, whose path is ours. `begun`: a decision about it.
    pub(super) async fn respond(
        &self,
        table: &RouteTable,
        request: &RequestView<'_>,
        begun: Option<BegunHere>,
        (access, lines): (&mut AccessEntry, &QueuedLines),
    ) -> Response<Body> {
        match request.path {
            position_endpoint::PATH if !request.is_read() => {
                position_endpoint::bad_request(Needed::Read).map(Body::full)
            }
            position_endpoint::PATH => {
                let intent = position_endpoint::intent_of(request.query);
                self.position(table, request, (intent, begun), (access, lines))
                    .await
            }
            position_endpoint::TURN_PATH if !is_own_form(request) => {
                position_endpoint::bad_request(Needed::OwnForm).map(Body::full)
            }
            position_endpoint::TURN_PATH => {
                let decision = (Intent::ExtendTurn, None);
                self.position(table, request, decision, (access, lines))
                    .await
            }
            push::PATH => self.stream(table, request, access).await,
            language_form::PATH => remember_language(table, request, access),
            cookies_page::PATH => explain_cookies(table, request, access),
            leave::PATH => leave_queue(table, request, access),
            _ => error_page::error_response(request.headers, RequestError::NotFound),
        }
    }

    /// Responds to a waiting page that polls its position, or extends its turn.
    async fn position(
        &self,
        table: &RouteTable,
        request: &RequestView<'_>,
        (intent, begun): (Intent, Option<BegunHere>),
        (access, lines): (&mut AccessEntry, &QueuedLines),
    ) -> Response<Body> {
        let route = match room_of(table, request, access).await {
            NamedRoom::Room(route) => route,
            NamedRoom::Open => return may_enter(None, request).map(Body::full),
            NamedRoom::Unnamed => {
                return position_endpoint::bad_request(Needed::Room).map(Body::full);
            }
        };
        // A waiting visitor may be admitted by a poll. Without a ticket a poll takes no slot: an
        // image on another site must not take seats.
        let outcome = decide_with_tickets(route, request, None, intent, begun).await;
        self.position_of(route, request, outcome, (access, lines))
    }

    /// Responds to a poll whose verdict is there.
    pub(super) fn position_of(
        &self,
        route: &RoomRoute,
        request: &RequestView<'_>,
        outcome: Outcome,
        (access, lines): (&mut AccessEntry, &QueuedLines),
    ) -> Response<Body> {
        let scheme = request.client.scheme;
        let known = position_endpoint::key_of(request.query);
        match outcome {
            Outcome::MayCome => {
                access.set_verdict(Verdict::Poll);
                may_enter(Some(route), request).map(Body::full)
            }
            Outcome::Pass(pass) => {
                access.set_pass(&pass);
                note_ticket(request, true);
                let response = match pass.ticket.held_turn() {
                    Some(turn) => {
                        let view = route.current().turn_view(turn, language_of(route, request));
                        position_endpoint::turn(&view, known.is_some())
                    }
                    None => may_enter(Some(route), request),
                };
                headers::add_ticket(route, &pass, scheme, response.map(Body::full))
            }
            Outcome::Queue {
                ticket, position, ..
            } => {
                note_ticket(request, false);
                let room = route.current();
                let view = WaitingView {
                    host: request.client.host(),
                    ..room.view(position, language_of(route, request))
                };
                access.set_queued(&view, lines);
                let push = push::is_near(&view) && self.streams.has_room();
                let Some(known) = known else {
                    let response = position_endpoint::still_waiting(&view, push).map(Body::full);
                    return headers::add_waiting(route, response, ticket, scheme, &view);
                };
                let response = position_endpoint::still_waiting_page(&view, push, known);
                let mut response = response.map(Body::full);
                headers::add_waiting_ticket(route, &mut response, ticket, scheme, &view);
                response
            }
        }
    }

    /// Opens an event stream for a waiting visitor. Gets no verdict of a room.
    async fn stream(
        &self,
        table: &RouteTable,
        request: &RequestView<'_>,
        access: &mut AccessEntry,
    ) -> Response<Body> {
        if *request.method != Method::GET {
            return position_endpoint::bad_request(Needed::Read).map(Body::full);
        };
        let route = match room_of(table, request, access).await {
            NamedRoom::Room(route) => route,
            NamedRoom::Open => return push::no_stream().map(Body::full),
            NamedRoom::Unnamed => {
                return position_endpoint::bad_request(Needed::Room).map(Body::full);
            }
        };
        let tickets = cookies::values(request.headers, &route.cookie_name);
        let Some(ticket) = route.room.waiting_ticket(&tickets) else {
            return push::no_stream().map(Body::full);
        };
        let room = Arc::clone(&route.room);
        let Some(events) = self.streams.begin(room, ticket) else {
            return push::too_many().map(Body::full);
        };
        access.set_verdict(Verdict::Stream);
        push::stream(Body::events(events))
    }
}

/// Builds the response to the poll of a visitor who may enter: our own page gets words as well.
fn may_enter(route: Option<&RoomRoute>, request: &RequestView<'_>) -> Response<Bytes> {
    if position_endpoint::key_of(request.query).is_none() {
        return position_endpoint::not_waiting();
    }
    let language = position_endpoint::language_of(request.query);
    let default = || route.map(|route| route.language(request.headers));
    let language = language.or_else(default).unwrap_or_default();
    position_endpoint::entering(language)
}

/// Explains to a visitor how to allow cookies.
fn explain_cookies(
    table: &RouteTable,
    request: &RequestView<'_>,
    access: &mut AccessEntry,
) -> Response<Body> {
    let (Some(route), true) = (named(table, request), request.is_read()) else {
        return error_page::error_response(request.headers, RequestError::BadRequest);
    };
    access.set_room(route);
    access.set_verdict(Verdict::Cookies);
    let language = language_of(route, request);
    cookies_page::page(request.query, request.client.host(), language).map(Body::full)
}

/// Stores the language of the page's form in a cookie, and redirects to the page.
fn remember_language(
    table: &RouteTable,
    request: &RequestView<'_>,
    access: &mut AccessEntry,
) -> Response<Body> {
    if !request.is_read() {
        return error_page::error_response(request.headers, RequestError::BadRequest);
    }
    let Some(route) = named(table, request) else {
        return error_page::error_response(request.headers, RequestError::BadRequest);
    };
    let (sent, host) = (request.headers, request.client.host());
    let shown = route.language(sent);
    if let Some(page) = language_form::languages(request.query, sent, host, shown) {
        access.set_room(route);
        access.set_verdict(Verdict::Language);
        return page.map(Body::full);
    }
    let Some(choice) = language_form::Choice::of(request.query, sent, host) else {
        return error_page::error_response(sent, RequestError::BadRequest);
    };
    access.set_room(route);
    access.set_verdict(Verdict::Language);
    let mut response = language_form::redirect_back(&choice.back).map(Body::full);
    headers::set_language(
        route,
        response.headers_mut(),
        choice.language,
        request.client.scheme,
    );
    response
}

/// Ends the wait of a visitor who asks for it with the page's own form, by POST. A GET only shows
/// the page after that, and only to visitors without a ticket.
fn leave_queue(
    table: &RouteTable,
    request: &RequestView<'_>,
    access: &mut AccessEntry,
) -> Response<Body> {
    let may_leave = is_own_form(request);
    let may_see = may_leave || request.is_read();
    let (Some(route), true) = (named(table, request), may_see) else {
        return error_page::error_response(request.headers, RequestError::BadRequest);
    };
    access.set_room(route);
    access.set_verdict(Verdict::Leave);
    let tickets = cookies::values(request.headers, &route.cookie_name);
    let goes_on = if may_leave {
        // A page that was left open while another tab entered must not end the session.
        route.room.leave(&tickets) == Leave::Active
    } else {
        route.room.has_ticket(&tickets)
    };
    if goes_on {
        return leave::back(request.query).map(Body::full);
    }
    let language = language_of(route, request);
    let mut response = leave::left(request.query, request.client.host(), language).map(Body::full);
    if may_leave {
        headers::forget_ticket(route, &mut response, request.client.scheme);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_paths_are_our_own() {
        for path in [
            position_endpoint::PATH,
            position_endpoint::TURN_PATH,
            push::PATH,
            language_form::PATH,
            leave::PATH,
            cookies_page::PATH,
        ] {
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
