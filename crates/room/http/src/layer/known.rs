//! What do limits of calls and waiting rooms say to each other? Who it is that calls, and who has
//! to wait.

use anteroom_node::{Arrival, Intent, Outcome};
use http::{HeaderMap, Request, Response, StatusCode};

use super::WaitingRoomLayer;
use super::doors::Door;
use anteroom_proxy::body::{AnswerBody, Body};
use anteroom_proxy::cookies;
use anteroom_proxy::forwarded::Client;
use anteroom_proxy::path::Readings;
use anteroom_proxy::visitor::{CannotWait, KnownVisitor, OverLimit};

/// What the sender of a request to the site is after: one that is over a limit has to wait.
pub(super) fn intent_of<B>(request: &Request<B>) -> Intent {
    match request.extensions().get::<OverLimit>() {
        Some(OverLimit) => Intent::Wait,
        None => Intent::Enter,
    }
}

/// The answer instead of passing on whoever was to wait.
pub(super) fn cannot_wait<R: AnswerBody>() -> Response<R> {
    let mut response = Response::new(R::from_own(Body::empty()));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.extensions_mut().insert(CannotWait);
    response
}

pub(super) async fn ask(
    door: &Door,
    headers: &HeaderMap,
    is_navigation: bool,
    intent: Intent,
) -> Outcome {
    let tickets = cookies::values(headers, &door.cookie_name);
    decide(door, &tickets, is_navigation, intent).await
}

/// The same as if no ticket had come along.
pub(super) async fn ask_without_ticket(
    door: &Door,
    is_navigation: bool,
    intent: Intent,
) -> Outcome {
    decide(door, &[], is_navigation, intent).await
}

async fn decide(door: &Door, tickets: &[&str], is_navigation: bool, intent: Intent) -> Outcome {
    let arrival = Arrival {
        tickets,
        is_navigation,
        intent,
    };
    door.room.decide(arrival).await
}

impl WaitingRoomLayer {
    /// Who shows a good ticket of the room that covers a request; `None` also where no room does.
    #[must_use]
    pub fn visitor_of(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: &HeaderMap,
    ) -> Option<KnownVisitor> {
        let doors = self.gate.doors.load();
        let door = doors.find(client.host(), readings).ok()??;
        let tickets = cookies::values(headers, &door.cookie_name);
        let (visitor, is_inside) = door.room.visitor_of(&tickets)?;
        Some(KnownVisitor {
            id: visitor.0,
            is_inside,
        })
    }
}
