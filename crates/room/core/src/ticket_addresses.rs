//! Networks from which each ticket was used lately: a bounded table of one node's requests.
//!
//! It forgets a network after [`WINDOW`]. Where a set is full it forgets the ticket that was used
//! longest ago. So a count is never too high, and may be too low. The caller decides about the
//! request.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::id::VisitorId;
use crate::time::{DurationMs, Timestamp};

/// Time for which a network counts after its last request.
///
/// Longer than a visitor who shares a ticket pauses, and so short that a phone on a journey does
/// not collect the networks of an hour.
pub const WINDOW: DurationMs = DurationMs::from_secs(600);

/// Most networks that are remembered of a ticket. A ticket with more is shared; each ticket takes
/// 216 bytes.
pub const NETWORKS_MAX: usize = 16;

/// Tickets in one set of the table; the one used longest ago makes room for another. With eight, a
/// table that is half full forgets hardly any.
const WAYS: usize = 8;

/// Network that stands for one client: an IPv4 address, or the /64 of an IPv6 address, within which
/// a phone changes its address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network(u64);

impl Network {
    /// Returns the network of an address; an IPv4 address mapped into IPv6 counts as IPv4.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            // Like a /64 within 0000::/8, which no host has.
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        })
    }
}

/// Result of a request for the count of its ticket's networks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// The network is within the maximum.
    Within,
    /// The network is above the maximum, for the first time within [`WINDOW`].
    FirstAbove,
    /// The network is above the maximum, and so was an earlier one within [`WINDOW`].
    Above,
}

/// Table of the networks of the tickets that were used last.
///
/// # Invariants
///
/// - It never keeps more tickets than the maximum of [`Self::new`], rounded up to whole sets.
/// - A network that was seen within [`WINDOW`] keeps counting as within the maximum. Others count
///   as above until it has not been seen for [`WINDOW`].
#[derive(Debug)]
pub struct TicketAddresses {
    /// Sets, made when a ticket first needs one: an empty room takes no memory.
    sets: Vec<Option<Box<[Entry; WAYS]>>>,
    evicted_total: u64,
}

/// Networks of one ticket. Times are in seconds, and 0 is never.
#[derive(Clone, Copy, Debug)]
struct Entry {
    visitor: VisitorId,
    used_at: u32,
    reported_at: u32,
    networks: [u64; NETWORKS_MAX],
    seen_at: [u32; NETWORKS_MAX],
}

impl TicketAddresses {
    /// Makes a table for `tickets_max` tickets.
    #[must_use]
    pub fn new(tickets_max: usize) -> Self {
        let mut sets = Vec::new();
        sets.resize_with(tickets_max.div_ceil(WAYS).max(1), || None);
        Self {
            sets,
            evicted_total: 0,
        }
    }

    /// Records a request with the ticket of `visitor`, which may be used from `max` networks (1 to
    /// [`NETWORKS_MAX`]) within [`WINDOW`].
    pub fn see(
        &mut self,
        visitor: VisitorId,
        network: Network,
        max: usize,
        now: Timestamp,
    ) -> Seen {
        let now = seconds(now);
        let set_index = set_index(visitor, self.sets.len());
        let set = self.sets[set_index].get_or_insert_with(|| Box::new([Entry::EMPTY; WAYS]));
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

    /// Returns how many tickets were forgotten although they had been used within [`WINDOW`].
    #[must_use]
    pub const fn evicted_total(&self) -> u64 {
        self.evicted_total
    }
}

impl Entry {
    const EMPTY: Self = Self {
        visitor: VisitorId([0; 16]),
        used_at: 0,
        reported_at: 0,
        networks: [0; NETWORKS_MAX],
        seen_at: [0; NETWORKS_MAX],
    };

    fn see(&mut self, network: Network, max: usize, now: u32) -> Seen {
        self.used_at = now;
        let networks = self.networks[..max].iter();
        let mut known = networks.zip(&self.seen_at);
        let is_known = |(known, at): (&u64, &u32)| *known == network.0 && is_recent(*at, now);
        let slot = known.position(is_known);
        let slot = slot.or_else(|| {
            let mut times = self.seen_at[..max].iter();
            times.position(|at| !is_recent(*at, now))
        });
        if let Some(slot) = slot {
            self.networks[slot] = network.0;
            self.seen_at[slot] = now;
            return Seen::Within;
        }
        if is_recent(self.reported_at, now) {
            return Seen::Above;
        }
        self.reported_at = now;
        Seen::FirstAbove
    }
}

/// Returns the index of the entry that is free or was used longest ago.
fn oldest(set: &[Entry; WAYS]) -> usize {
    let oldest = set
        .iter()
        .enumerate()
        .min_by_key(|(_, entry)| entry.used_at);
    oldest.map_or(0, |(at, _)| at)
}

/// Returns the index of a visitor's set. Visitor ids are our own random numbers: any bits will do.
fn set_index(visitor: VisitorId, sets: usize) -> usize {
    let [.., a, b, c, d] = visitor.0;
    u32::from_le_bytes([a, b, c, d]) as usize % sets
}

/// Returns the time in seconds; never 0, which stands for never.
fn seconds(now: Timestamp) -> u32 {
    u32::try_from(now.0 / 1_000).unwrap_or(u32::MAX).max(1)
}

/// Whether `at` lies within [`WINDOW`]. A clock that was stepped back makes nothing old.
const fn is_recent(at: u32, now: u32) -> bool {
    at != 0 && (now.saturating_sub(at) as u64) * 1_000 < WINDOW.0
}

#[cfg(test)]
mod tests;
