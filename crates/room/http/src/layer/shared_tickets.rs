//! Who uses a ticket that many others use as well? Counted by this node, for all its rooms.

use std::net::IpAddr;

use anteroom_node::{Outcome, Pass};
use anteroom_room::ticket_addresses::{Network, Seen, TicketAddresses};
use http::Request;
use parking_lot::Mutex;

use super::decision::{ask, ask_without_ticket, intent_of};
use super::route_table::RoomRoute;

/// Tickets that are remembered, of all rooms: 13.5 MiB if there are so many.
const TICKETS_MAX: usize = 65_536;

/// Tables with a lock each, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// From how many networks a ticket is called shared where the room sets no maximum. One person has
/// seldom more than four within ten minutes.
const SHARED_ABOVE: usize = 8;

/// From which networks tickets were used lately.
pub(super) struct SharedTickets {
    shards: [Mutex<TicketAddresses>; SHARDS],
}

impl Default for SharedTickets {
    fn default() -> Self {
        let table = |_| Mutex::new(TicketAddresses::new(TICKETS_MAX / SHARDS));
        Self {
            shards: std::array::from_fn(table),
        }
    }
}

impl SharedTickets {
    /// How many tickets were forgotten although they had been used lately.
    pub(super) fn evicted_total(&self) -> u64 {
        let evicted = self.shards.iter().map(|table| table.lock().evicted_total());
        evicted.sum()
    }

    /// Whether a request has to do without its ticket, as too many others use that.
    ///
    /// In a room without a maximum only the requests count that get a new ticket: they are few, and
    /// whoever stays inside sends one for each part of a session.
    fn is_above(&self, route: &RoomRoute, pass: &Pass, address: IpAddr, max: Option<u32>) -> bool {
        if max.is_none() && pass.new_ticket.is_none() {
            return false;
        }
        let visitor = pass.ticket.visitor;
        let shard = usize::from(visitor.0[0]) % SHARDS;
        let networks_max = max.map_or(SHARED_ABOVE, |max| max as usize);
        let network = Network::of(address);
        let seen = self.shards[shard]
            .lock()
            .see(visitor, network, networks_max, route.room.now());
        if seen == Seen::FirstAbove {
            route.counters.count_shared_ticket();
        }
        // Somebody who was let in just now has a seat of its own.
        let is_above = max.is_some() && seen != Seen::Within && !pass.is_admission;
        if is_above {
            route.counters.count_without_ticket();
        }
        is_above
    }

    /// Asks the room what becomes of a request. One with a ticket that too many use has none.
    pub(super) async fn decide(
        &self,
        route: &RoomRoute,
        request: &Request<()>,
        address: IpAddr,
        is_navigation: bool,
    ) -> Outcome {
        let max_addresses = route.room.config().max_addresses_per_ticket;
        let intent = intent_of(request);
        let outcome = ask(route, request.headers(), is_navigation, intent).await;
        match &outcome {
            Outcome::Pass(pass) if self.is_above(route, pass, address, max_addresses) => {
                ask_without_ticket(route, is_navigation, intent).await
            }
            _ => outcome,
        }
    }
}
