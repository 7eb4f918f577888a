//! Shared tickets: counts the networks from which each ticket is used, at this node for all rooms.

use std::net::IpAddr;

use anteroom_node::{Outcome, Pass};
use anteroom_room::ticket_addresses::{Network, Seen, TicketAddresses};
use parking_lot::Mutex;

use super::decision::{BegunHere, decide_with_tickets, decide_without_ticket, intent_of};
use super::route_table::RoomRoute;
use crate::waiting::RequestKind;
use anteroom_proxy::request_view::RequestView;

/// Most tickets in memory, of all rooms: 13.5 MiB.
const TICKETS_MAX: usize = 65_536;

/// Number of tables with a lock each, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// Number of networks above which a ticket counts as shared if the room sets no maximum. One person
/// seldom has more than four within ten minutes.
const SHARED_ABOVE: usize = 8;

/// Networks from which tickets were used recently.
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
    /// Counts tickets that were forgotten although they were used recently.
    pub(super) fn evicted_total(&self) -> u64 {
        let evicted = self.shards.iter().map(|table| table.lock().evicted_total());
        evicted.sum()
    }

    /// Whether a ticket is used from too many networks, so that the request counts as without it.
    ///
    /// In a room without a maximum only requests that get a new ticket are counted. They are few,
    /// and an active visitor sends one for each part of a session.
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
        // A visitor who was admitted just now has a seat of its own.
        let is_above = max.is_some() && seen != Seen::Within && !pass.is_admission;
        if is_above {
            route.counters.count_without_ticket();
        }
        is_above
    }

    /// Gets the room's verdict about a request. A ticket that too many networks use is ignored.
    pub(super) async fn decide(
        &self,
        route: &RoomRoute,
        request: &RequestView<'_>,
        kind: RequestKind,
        begun: Option<BegunHere>,
    ) -> Outcome {
        let max_addresses = route.room.config().max_addresses_per_ticket;
        let intent = intent_of(request.is_over_limit);
        let outcome = decide_with_tickets(route, request, Some(kind), intent, begun).await;
        match &outcome {
            Outcome::Pass(pass)
                if self.is_above(route, pass, request.client.address, max_addresses) =>
            {
                decide_without_ticket(route, request, kind, intent).await
            }
            _ => outcome,
        }
    }

    /// Counts the network of a request that passes in a room without a maximum.
    pub(super) fn note(&self, route: &RoomRoute, request: &RequestView<'_>, pass: &Pass) {
        self.is_above(route, pass, request.client.address, None);
    }
}
