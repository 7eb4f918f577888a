//! What do limits of calls and waiting rooms say to each other? Who it is that calls, and who has to wait.

use http::{HeaderMap, Request};

use super::WaitingRoomLayer;
use crate::cookies;
use crate::forwarded::Client;
use crate::path::Readings;

/// An extension of a request that calls more often than it may: whoever is not inside waits, whatever is free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OverLimit;

/// A visitor who shows a good ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KnownVisitor {
    /// Its number, the same as in its ticket.
    pub id: [u8; 16],
    /// Whether it is inside, and does not only wait.
    pub is_inside: bool,
}

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
        match request.extensions().get::<OverLimit>() {
            Some(OverLimit) => Self::Wait,
            None => Self::Enter,
        }
    }
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
