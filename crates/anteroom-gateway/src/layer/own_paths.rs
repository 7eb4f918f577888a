//! What is answered below `/.well-known/anteroom/`: where a page's visitor stands, when to ask, and which
//! language was chosen. The origin hears of none of it.

use std::sync::Arc;

use anteroom_node::Outcome;
use http::{Method, Request, Response};

use super::access::{Access, Verdict};
use super::doors::Doors;
use super::{Gate, answer, ask, hand_out, refuse};
use crate::body::Body;
use crate::cookies;
use crate::forwarded::Client;
use crate::serve::ConnectionHold;
use crate::status::Refusal;
use crate::waiting::{language, place_endpoint, push};

impl Gate {
    /// Answers a waiting page that asks where it stands.
    pub(super) async fn tell_place(
        &self,
        doors: &Doors,
        request: &Request<Body>,
        client: &Client,
        access: &mut Access,
    ) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return place_endpoint::bad_question().map(Body::full);
        }
        let room = place_endpoint::room_of(request.uri().query().unwrap_or_default());
        let door = room
            .as_deref()
            .map(|room| doors.by_name(room, client.host()));
        let door = match door {
            None => return place_endpoint::bad_question().map(Body::full),
            // Whoever waits for a room that is gone or open to all has no reason to wait.
            Some(None) => {
                access.pass_by(Verdict::NoRoom);
                return place_endpoint::not_waiting().map(Body::full);
            }
            Some(Some(door)) => door,
        };
        access.enter(door);
        if door.room.is_suspended().await {
            access.pass_by(Verdict::Suspended);
            return place_endpoint::not_waiting().map(Body::full);
        }
        // Whoever waits may come in by asking here. Whoever has no place only looks: an image on
        // another site must not take seats.
        match ask(door, request.headers(), false, true).await {
            Outcome::MayCome => {
                access.pass_by(Verdict::Look);
                place_endpoint::not_waiting().map(Body::full)
            }
            Outcome::Pass(pass) => {
                access.pass(&pass);
                let response = place_endpoint::not_waiting().map(Body::full);
                answer::carry_ticket(door, &pass, client.scheme, response)
            }
            Outcome::Queue { ticket, place } => {
                let asked = request.uri().query().unwrap_or_default();
                let language = place_endpoint::language_of(asked);
                let language = language.unwrap_or_else(|| door.language(request.headers()));
                let holds = door.holds();
                let view = holds.view(place, language);
                access.queue(&view);
                let push = push::is_near(&view) && self.streams.has_room();
                let response = place_endpoint::still_waiting(&view, push).map(Body::full);
                hand_out(door, response, ticket, client.scheme, &view)
            }
        }
    }

    /// Lets somebody who waits listen for its turn. Asks no room.
    pub(super) async fn listen(
        &self,
        doors: &Doors,
        request: &Request<Body>,
        client: &Client,
        access: &mut Access,
    ) -> Response<Body> {
        let room = place_endpoint::room_of(request.uri().query().unwrap_or_default());
        let hold = request.extensions().get::<ConnectionHold>();
        let (Some(room), Some(hold), &Method::GET) = (room, hold, request.method()) else {
            return place_endpoint::bad_question().map(Body::full);
        };
        let door = doors.by_name(&room, client.host());
        let Some(door) = door else {
            access.pass_by(Verdict::NoRoom);
            return push::nothing_to_say().map(Body::full);
        };
        access.enter(door);
        if door.room.is_suspended().await {
            access.pass_by(Verdict::Suspended);
            return push::nothing_to_say().map(Body::full);
        }
        access.pass_by(Verdict::Listen);
        let tickets = cookies::values(request.headers(), &door.cookie_name);
        let Some(ticket) = door.room.waiting_ticket(&tickets) else {
            return push::nothing_to_say().map(Body::full);
        };
        let room = Arc::clone(&door.room);
        match self.streams.begin(room, ticket, hold.signal()) {
            Some(events) => push::stream(Body::events(events)),
            None => push::too_many().map(Body::full),
        }
    }
}

/// Remembers the language that was chosen in the page's form, and leads back to the page.
pub(super) fn remember_language(
    doors: &Doors,
    request: &Request<Body>,
    client: &Client,
) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default();
    let room = place_endpoint::room_of(query);
    let door = room.and_then(|room| doors.by_name(&room, client.host()));
    let choice = language::Choice::of(query, request.headers(), client.host());
    let (Some(door), Some(choice)) = (door, choice) else {
        return refuse(Refusal::BadRequest, request.headers());
    };
    let mut response = language::go_back(&choice).map(Body::full);
    answer::set_language(door, response.headers_mut(), choice.language, client.scheme);
    response
}
