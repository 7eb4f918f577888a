//! A room is asked what becomes of a request, and its connection is told.

use anteroom_node::{Arrival, Outcome};
use http::{HeaderMap, Request};

use super::route_table::RoomRoute;
use anteroom_proxy::cookies;
use anteroom_proxy::request_context::RequestContext;

/// Why somebody asks who is not inside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Wish {
    /// To go in.
    Enter,
    /// To know where it would stand, if it is new.
    Look,
    /// To have a place, as it has to wait.
    Wait,
}

impl Wish {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        if RequestContext::of(request).is_some_and(|context| context.is_over_limit) {
            Self::Wait
        } else {
            Self::Enter
        }
    }
}

pub(super) async fn ask(
    route: &RoomRoute,
    headers: &HeaderMap,
    is_navigation: bool,
    wish: Wish,
) -> Outcome {
    let tickets = cookies::values(headers, &route.cookie_name);
    decide(route, &tickets, is_navigation, wish).await
}

/// The same as if no ticket had come along.
pub(super) async fn ask_without_ticket(
    route: &RoomRoute,
    is_navigation: bool,
    wish: Wish,
) -> Outcome {
    decide(route, &[], is_navigation, wish).await
}

async fn decide(route: &RoomRoute, tickets: &[&str], is_navigation: bool, wish: Wish) -> Outcome {
    let arrival = Arrival {
        tickets,
        is_navigation,
        is_look: wish == Wish::Look,
        is_held: wish == Wish::Wait,
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
