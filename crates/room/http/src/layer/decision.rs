//! Gets a room's verdict about a request, and marks its connection.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anteroom_node::{Arrival, BegunDecision, Intent, Outcome, RoomHandle};
use tokio::time::timeout;

use super::route_table::RoomRoute;
use crate::waiting::RequestKind;
use anteroom_proxy::cookies;
use anteroom_proxy::downstream::connection_table::Claim;
use anteroom_proxy::request_view::RequestView;

/// Decision of a room that was begun on the fast path; an extension of its request.
#[derive(Clone)]
pub(super) struct BegunHere {
    pub(super) room: Arc<RoomHandle>,
    pub(super) decision: Box<BegunDecision>,
}

impl BegunHere {
    /// Returns the decision if it is that of this room. After a reload it may be another one's.
    fn of(self, route: &RoomRoute) -> Option<Box<BegunDecision>> {
        Arc::ptr_eq(&self.room, &route.room).then_some(self.decision)
    }
}

/// Returns the intent of a request to the site. A client over its limit has to wait.
pub(super) const fn intent_of(is_over_limit: bool) -> Intent {
    if is_over_limit {
        Intent::Wait
    } else {
        Intent::Enter
    }
}

/// Returns the facts about a request that a room needs. `kind` is `None` for the requests of
/// waiting pages.
pub(super) fn arrival_of<'a>(
    request: &RequestView<'_>,
    tickets: &'a [&'a str],
    kind: Option<RequestKind>,
    intent: Intent,
) -> Arrival<'a> {
    Arrival {
        tickets,
        is_navigation: kind.is_some_and(RequestKind::is_page),
        gets_page: kind.is_some_and(|kind| kind.is_shown(request.method, request.headers)),
        intent,
    }
}

/// Wait for a verdict after which the end of the client is watched. Shorter waits are for a store.
const LONG_WAIT: Duration = Duration::from_millis(500);

/// Gets the room's verdict about a request with its tickets, or goes on with one that was begun.
///
/// A turn is not for a client that has hung up. So after a moment the connection ends with the
/// client's side of it.
pub(super) async fn decide_with_tickets(
    route: &RoomRoute,
    request: &RequestView<'_>,
    kind: Option<RequestKind>,
    intent: Intent,
    begun: Option<BegunHere>,
) -> Outcome {
    let begun = begun.and_then(|begun| begun.of(route));
    let mut decision = pin!(async {
        if let Some(begun) = begun {
            return Box::pin(route.room.go_on(begun)).await;
        }
        let tickets = cookies::values(request.headers, &route.cookie_name);
        let arrival = arrival_of(request, &tickets, kind, intent);
        route.room.decide(arrival).await
    });
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
    let _watch = request.connection.map(Claim::watch_hang_up);
    decision.await
}

/// Gets the room's verdict as if the request had no ticket.
pub(super) async fn decide_without_ticket(
    route: &RoomRoute,
    request: &RequestView<'_>,
    kind: RequestKind,
    intent: Intent,
) -> Outcome {
    let arrival = arrival_of(request, &[], Some(kind), intent);
    route.room.decide(arrival).await
}

/// Marks the connection of a request: those with a ticket are closed last under pressure.
pub(super) fn note_ticket(request: &RequestView<'_>, has_ticket: bool) {
    if let Some(connection) = request.connection {
        connection.set_ticket(has_ticket);
    }
}
