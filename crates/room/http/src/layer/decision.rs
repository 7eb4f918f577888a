//! Gets a room's verdict about a request, and marks its connection.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use anteroom_node::{Arrival, Intent, Outcome};
use http::Request;
use tokio::time::timeout;

use super::route_table::RoomRoute;
use crate::waiting::RequestKind;
use anteroom_proxy::cookies;
use anteroom_proxy::downstream::connection_table::Claim;
use anteroom_proxy::request_context::RequestContext;

/// Returns the intent of a request to the site. A client over its limit has to wait.
pub(super) fn intent_of<B>(request: &Request<B>) -> Intent {
    let context = RequestContext::of(request);
    if context.is_some_and(|context| context.is_over_limit) {
        Intent::Wait
    } else {
        Intent::Enter
    }
}

/// Wait for a verdict after which the end of the client is watched. Shorter waits are for a store.
const LONG_WAIT: Duration = Duration::from_millis(500);

/// Gets the room's verdict about a request with its tickets. `kind` is `None` for the requests of
/// waiting pages.
///
/// A turn is not for a client that has hung up. So after a moment the connection ends with the
/// client's side of it.
pub(super) async fn decide_with_tickets<B>(
    route: &RoomRoute,
    request: &Request<B>,
    kind: Option<RequestKind>,
    intent: Intent,
) -> Outcome {
    let tickets = cookies::values(request.headers(), &route.cookie_name);
    let mut decision = pin!(decide(route, &tickets, (kind, request), intent));
    // Most verdicts need no wait, and then no timer.
    let at_once = poll_fn(|cx| Poll::Ready(decision.as_mut().poll(cx)));
    if let Poll::Ready(outcome) = at_once.await {
        return outcome;
    }
    // One that asks for a wait is watched at once.
    if intent != Intent::LongPoll
        && let Ok(outcome) = timeout(LONG_WAIT, decision.as_mut()).await
    {
        return outcome;
    }
    let context = RequestContext::of(request);
    let connection = context.and_then(|context| context.connection.as_ref());
    let _watch = connection.map(Claim::watch_hang_up);
    decision.await
}

/// Gets the room's verdict as if the request had no ticket.
pub(super) async fn decide_without_ticket<B>(
    route: &RoomRoute,
    request: &Request<B>,
    kind: Option<RequestKind>,
    intent: Intent,
) -> Outcome {
    decide(route, &[], (kind, request), intent).await
}

async fn decide<B>(
    route: &RoomRoute,
    tickets: &[&str],
    (kind, request): (Option<RequestKind>, &Request<B>),
    intent: Intent,
) -> Outcome {
    let arrival = Arrival {
        tickets,
        is_navigation: kind.is_some_and(RequestKind::is_page),
        gets_page: kind.is_some_and(|kind| kind.is_shown(request)),
        intent,
    };
    route.room.decide(arrival).await
}

/// Marks the connection of a request: those with a ticket are closed last under pressure.
pub(super) fn note_ticket(request: &Request<()>, has_ticket: bool) {
    let context = RequestContext::of(request);
    if let Some(connection) = context.and_then(|context| context.connection.as_ref()) {
        connection.set_ticket(has_ticket);
    }
}
