//! A room is asked what becomes of a request, and its connection is told.

use anteroom_node::{Arrival, Intent, Outcome};
use http::{HeaderMap, Request};

use super::route_table::RoomRoute;
use anteroom_proxy::cookies;
use anteroom_proxy::request_context::RequestContext;

/// What the sender of a request to the site is after: one that is over a limit has to wait.
pub(super) fn intent_of<B>(request: &Request<B>) -> Intent {
    let context = RequestContext::of(request);
    if context.is_some_and(|context| context.is_over_limit) {
        Intent::Wait
    } else {
        Intent::Enter
    }
}

pub(super) async fn ask(
    route: &RoomRoute,
    headers: &HeaderMap,
    is_navigation: bool,
    intent: Intent,
) -> Outcome {
    let tickets = cookies::values(headers, &route.cookie_name);
    decide(route, &tickets, is_navigation, intent).await
}

/// Asks as if no ticket had come along.
pub(super) async fn ask_without_ticket(
    route: &RoomRoute,
    is_navigation: bool,
    intent: Intent,
) -> Outcome {
    decide(route, &[], is_navigation, intent).await
}

async fn decide(
    route: &RoomRoute,
    tickets: &[&str],
    is_navigation: bool,
    intent: Intent,
) -> Outcome {
    let arrival = Arrival {
        tickets,
        is_navigation,
        intent,
    };
    route.room.decide(arrival).await
}

/// Tells the connection of a request whether a ticket let it pass: those that have one end last.
pub(super) fn note_ticket(request: &Request<()>, has_ticket: bool) {
    let context = RequestContext::of(request);
    if let Some(connection) = context.and_then(|context| context.connection.as_ref()) {
        connection.set_ticket(has_ticket);
    }
}
