//! From how many networks was a ticket used lately? A bounded table of what one node saw.
//!
//! It forgets: a network after [`WINDOW`], and where a set is full the ticket that was used longest
//! ago. So a count is never too high, and may be too low. What becomes of a request is decided
//! elsewhere.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::id::VisitorId;
use crate::time::{DurationMs, Timestamp};

/// How long a network counts after it was seen last.
///
/// Longer than anybody who shares a ticket pauses, and so short that a phone on a journey does not
/// collect the networks of an hour.
pub const WINDOW: DurationMs = DurationMs::from_secs(600);

/// Most networks that are remembered of a ticket: whoever has more shares it, and 216 bytes a
/// ticket are spent on them.
pub const NETWORKS_MAX: usize = 16;

/// Tickets that share a place in the table; the one used longest ago makes room for another. With
/// eight, a table half as full as it can be forgets hardly any.
const WAYS: usize = 8;

/// What is nearest to "somebody" in an address: an IPv4 address, or the /64 of an IPv6 address, as
/// a phone has all of one and changes within it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network(u64);

impl Network {
    /// The network of an address; an IPv4 address within an IPv6 one is itself.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            // As a /64 within 0000::/8, which no host has.
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        })
    }
}

/// What a request adds to what is known of its ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// The network is among those that the ticket may be used from.
    Within,
    /// It is one too many, and for the first time within [`WINDOW`].
    FirstAbove,
    /// It is one too many, as another was before.
    Above,
}

/// The networks of the tickets that were used last.
///
/// # Invariants
///
/// - It never holds more tickets than [`Self::new`] was told, rounded up to whole sets.
/// - A network that was seen within [`WINDOW`] stays within the most that is allowed, whoever else
///   comes: those above wait until another one has not been seen for so long.
#[derive(Debug)]
pub struct TicketAddresses {
    /// Made when a ticket first needs one: a room where nobody is takes no memory.
    sets: Vec<Option<Box<[Entry; WAYS]>>>,
    evicted_total: u64,
}

/// What is known of a ticket. Times are in seconds, and 0 is never.
#[derive(Clone, Copy, Debug)]
struct Entry {
    visitor: VisitorId,
    used_at: u32,
    told_at: u32,
    networks: [u64; NETWORKS_MAX],
    seen_at: [u32; NETWORKS_MAX],
}

impl TicketAddresses {
    /// A table for so many tickets.
    #[must_use]
    pub fn new(tickets_max: usize) -> Self {
        let mut sets = Vec::new();
        sets.resize_with(tickets_max.div_ceil(WAYS).max(1), || None);
        Self {
            sets,
            evicted_total: 0,
        }
    }

    /// Takes note of a request with the ticket of `visitor`, which may be used from `max` networks
    /// (from 1 to [`NETWORKS_MAX`]) within [`WINDOW`].
    pub fn see(
        &mut self,
        visitor: VisitorId,
        network: Network,
        max: usize,
        now: Timestamp,
    ) -> Seen {
        let now = seconds(now);
        let place = place(visitor, self.sets.len());
        let set = self.sets[place].get_or_insert_with(|| Box::new([Entry::EMPTY; WAYS]));
        let known = set
            .iter()
            .position(|entry| entry.used_at != 0 && entry.visitor == visitor);
        let at = known.unwrap_or_else(|| oldest(set));
        let entry = &mut set[at];
        if known.is_none() {
            self.evicted_total += u64::from(is_recent(entry.used_at, now));
            *entry = Entry::EMPTY;
            entry.visitor = visitor;
        }
        entry.see(network, max.clamp(1, NETWORKS_MAX), now)
    }

    /// How many tickets were forgotten although they had been used within [`WINDOW`].
    #[must_use]
    pub const fn evicted_total(&self) -> u64 {
        self.evicted_total
    }
}

impl Entry {
    const EMPTY: Self = Self {
        visitor: VisitorId([0; 16]),
        used_at: 0,
        told_at: 0,
        networks: [0; NETWORKS_MAX],
        seen_at: [0; NETWORKS_MAX],
    };

    fn see(&mut self, network: Network, max: usize, now: u32) -> Seen {
        self.used_at = now;
        let networks = self.networks[..max].iter();
        let mut known = networks.zip(&self.seen_at);
        let is_known = |(known, at): (&u64, &u32)| *known == network.0 && is_recent(*at, now);
        let place = known.position(is_known);
        let place = place.or_else(|| {
            let mut times = self.seen_at[..max].iter();
            times.position(|at| !is_recent(*at, now))
        });
        if let Some(place) = place {
            self.networks[place] = network.0;
            self.seen_at[place] = now;
            return Seen::Within;
        }
        if is_recent(self.told_at, now) {
            return Seen::Above;
        }
        self.told_at = now;
        Seen::FirstAbove
    }
}

/// The entry that is free or was used longest ago.
fn oldest(set: &[Entry; WAYS]) -> usize {
    let oldest = set
        .iter()
        .enumerate()
        .min_by_key(|(_, entry)| entry.used_at);
    oldest.map_or(0, |(at, _)| at)
}

/// Visitors' numbers are drawn by ourselves and come out of authentic tickets: any bits will do.
fn place(visitor: VisitorId, sets: usize) -> usize {
    let [.., a, b, c, d] = visitor.0;
    u32::from_le_bytes([a, b, c, d]) as usize % sets
}

/// Never 0, which stands for never.
fn seconds(now: Timestamp) -> u32 {
    u32::try_from(now.0 / 1_000).unwrap_or(u32::MAX).max(1)
}

/// A clock that was stepped back makes nothing old.
const fn is_recent(at: u32, now: u32) -> bool {
    at != 0 && (now.saturating_sub(at) as u64) * 1_000 < WINDOW.0
}

#[cfg(test)]
mod tests;
