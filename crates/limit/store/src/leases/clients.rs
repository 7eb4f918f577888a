//! Clients known to this node, in bounded memory.
//!
//! A client without a lease and without a recent reply may be forgotten at once. Any other may be,
//! since leases are prepaid, but the rest of its lease is lost then. So no client is forgotten to
//! make room for a new one. When the table is full, new clients are *guests*, which are forgotten
//! as soon as their request is decided. There are no more guests than requests may be in flight.
//!
//! A flood of keys takes nothing from clients that had a lease within about the last five seconds:
//! part of the requests in flight is reserved for them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ClientKey;
use anteroom_limit::leases::holding::Holding;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::{DurationUs, TimestampUs};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::leases::error::LeaseError;
use crate::leases::settings::Settings;

/// Number of shards, each with a lock of its own, so that threads seldom contend.
pub(crate) const SHARDS: usize = 64;

/// Shortest time between two sweeps of a full shard.
const SWEEP_AGAIN_AFTER: DurationUs = DurationUs(100_000);

/// Age that a refund without an age is assumed to have at most. No store takes longer to decide a
/// request.
const REFUNDED_WITHIN: DurationUs = DurationUs::from_secs(5);

/// State of one client of one limit.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) holding: Holding,
    pub(crate) leased_limit: Arc<LeasedLimit>,
    /// Number that tells a forgotten client that came back from its earlier self.
    pub(crate) incarnation: u64,
    /// Whether a lease request is in flight.
    pub(crate) is_in_flight: bool,
    /// Whether it was granted a lease since it became known.
    pub(crate) had_grant: bool,
    /// Time of the latest acquisition.
    pub(crate) taken_at: TimestampUs,
    /// Time of the latest acquisition from a lease that has ended since.
    pub(crate) taken_of_ended_at: TimestampUs,
    /// Error of its last lease request, if that failed.
    pub(crate) last_error: Option<LeaseError>,
    /// Callers that wait for a reply, if there are any.
    waiters: Option<Arc<Notify>>,
    is_guest: bool,
    seen_at: TimestampUs,
}

impl Client {
    /// Takes note of an acquisition.
    pub(crate) fn handle_take(&mut self, now: TimestampUs) {
        if !self.holding.can_undo(now, self.taken_at) {
            self.taken_of_ended_at = self.taken_at;
        }
        self.taken_at = now;
    }

    /// Returns the time since which all refundable acquisitions were made. `None` if some were from
    /// leases that have ended: their refund would go to other clients.
    pub(crate) fn refunds_since(&self, now: TimestampUs) -> Option<TimestampUs> {
        let is_over = now.since(self.taken_of_ended_at) >= REFUNDED_WITHIN;
        is_over.then_some(self.taken_at)
    }

    /// Returns the reason for which the store is not asked now.
    pub(crate) fn error(&self) -> LeaseError {
        self.last_error.clone().unwrap_or(LeaseError::Unavailable)
    }

    /// Returns a future that resolves when the next reply comes, or fails.
    pub(crate) fn wakeup(&mut self) -> OwnedNotified {
        let waiters = self.waiters.get_or_insert_with(Arc::default);
        Arc::clone(waiters).notified_owned()
    }

    /// Wakes all callers that wait.
    pub(crate) fn wake_waiters(&mut self) {
        if let Some(waiters) = self.waiters.take() {
            waiters.notify_waiters();
        }
    }
}

/// Clients that share a lock.
#[derive(Debug)]
pub(crate) struct Shard {
    clients: HashMap<ClientKey, Client>,
    guests: usize,
    keys_max: usize,
    guests_max: usize,
    lease_part: u64,
    /// Cache of the latest limit: most clients of a shard have the same.
    newest: Option<Arc<LeasedLimit>>,
    /// Source of numbers for incarnations and requests. Its start and its steps differ between
    /// shards, so that no number comes twice.
    number: u64,
    swept_at: TimestampUs,
}

/// Table of clients, in shards.
#[derive(Debug)]
pub(crate) struct Clients {
    shards: Box<[Mutex<Shard>]>,
}

/// Shards that are locked together.
pub(crate) struct Locked<'s> {
    /// Locked shards by number, each once.
    shards: Vec<(usize, MutexGuard<'s, Shard>)>,
}

impl Clients {
    pub(crate) fn new(settings: &Settings) -> Self {
        let shard = |number: u64| {
            Mutex::new(Shard {
                clients: HashMap::new(),
                guests: 0,
                keys_max: (settings.keys_max / SHARDS).max(1),
                // // Clients are spread unevenly by chance.
                guests_max: settings.requests_max / SHARDS * 2 + 8,
                lease_part: settings.lease_part,
                newest: None,
                number,
                swept_at: TimestampUs(0),
            })
        };
        Self {
            shards: (0..SHARDS as u64).map(shard).collect(),
        }
    }

    /// Locks the shards of all these clients, in an order that all callers share.
    pub(crate) fn lock(&self, keys: &[ClientKey]) -> Locked<'_> {
        let mut numbers: Vec<usize> = keys.iter().map(|key| shard_of(*key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lock = |number: usize| (number, self.shards[number].lock());
        Locked {
            shards: numbers.into_iter().map(lock).collect(),
        }
    }

    /// Locks the shard of one client.
    pub(crate) fn shard(&self, key: ClientKey) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(key)].lock()
    }

    /// Locks all shards, one after the other.
    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(Mutex::lock)
    }
}

impl Locked<'_> {
    /// Returns the shard of a client.
    pub(crate) fn shard(&mut self, key: ClientKey) -> &mut Shard {
        let number = shard_of(key);
        let found = self.shards.iter_mut().find(|(locked, _)| *locked == number);
        &mut found.expect("the shards of all keys are locked").1
    }

    /// Returns a client that [`Shard::ensure`] was called for.
    pub(crate) fn client(&mut self, key: ClientKey) -> &mut Client {
        let client = self.shard(key).clients.get_mut(&key);
        client.expect("no client is forgotten while a request is decided")
    }
}

impl Shard {
    /// Makes sure that a client is known, with this limit.
    pub(crate) fn ensure(
        &mut self,
        key: ClientKey,
        policy: &Policy,
        now: TimestampUs,
    ) -> Result<(), LeaseError> {
        let known = self.clients.get_mut(&key);
        if let Some(client) = known {
            client.seen_at = now;
            if client.leased_limit.promised() == policy {
                return Ok(());
            }
            client.holding.handle_new_limit();
        }
        let leased_limit = self.leased_limit(policy)?;
        if let Some(client) = self.clients.get_mut(&key) {
            client.leased_limit = leased_limit;
            return Ok(());
        }
        let is_guest = !self.has_room(now);
        if is_guest && self.guests >= self.guests_max {
            return Err(LeaseError::NoRoom);
        }
        self.guests += usize::from(is_guest);
        let client = Client {
            holding: Holding::new(),
            leased_limit,
            incarnation: self.next_number(),
            is_in_flight: false,
            had_grant: false,
            taken_at: TimestampUs(0),
            taken_of_ended_at: TimestampUs(0),
            last_error: None,
            waiters: None,
            is_guest,
            seen_at: now,
        };
        self.clients.insert(key, client);
        Ok(())
    }

    /// Returns a client, if it is known.
    pub(crate) fn find(&mut self, key: ClientKey) -> Option<&mut Client> {
        self.clients.get_mut(&key)
    }

    /// Returns a number that is used once.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.number = self.number.wrapping_add(SHARDS as u64);
        self.number
    }

    /// Forgets a guest that waits for no reply.
    pub(crate) fn remove_guest(&mut self, key: ClientKey) {
        let client = self.clients.get(&key);
        if client.is_some_and(|client| client.is_guest && !client.is_in_flight) {
            self.clients.remove(&key);
            self.guests -= 1;
        }
    }

    /// Forgets idle clients, and guests that wait for no reply.
    pub(crate) fn sweep(&mut self, now: TimestampUs) {
        self.swept_at = now;
        let mut guests = 0;
        self.clients.retain(|_, client| {
            let is_forgettable = client.is_guest || client.holding.is_idle(now);
            let is_kept = client.is_in_flight || client.seen_at == now || !is_forgettable;
            guests += usize::from(is_kept && client.is_guest);
            is_kept
        });
        self.guests = guests;
        if self.clients.capacity() / 4 > self.clients.len() {
            self.clients.shrink_to(self.clients.len() * 2);
        }
    }

    /// Returns the number of clients, and the sum of their lease balances.
    pub(crate) fn fill(&self, now: TimestampUs) -> (usize, u64) {
        let balances = self.clients.values();
        let balances = balances.map(|client| u64::from(client.holding.balance(now)));
        (self.clients.len(), balances.sum())
    }

    fn has_room(&mut self, now: TimestampUs) -> bool {
        let is_full = |shard: &Self| shard.clients.len() - shard.guests >= shard.keys_max;
        if is_full(self) && now.since(self.swept_at) >= SWEEP_AGAIN_AFTER {
            self.sweep(now);
        }
        !is_full(self)
    }

    fn leased_limit(&mut self, policy: &Policy) -> Result<Arc<LeasedLimit>, LeaseError> {
        if let Some(newest) = &self.newest
            && newest.promised() == policy
        {
            return Ok(Arc::clone(newest));
        }
        let leased_limit = LeasedLimit::with_part(*policy, self.lease_part);
        let leased_limit = Arc::new(leased_limit.map_err(LeaseError::NotLeasable)?);
        self.newest = Some(Arc::clone(&leased_limit));
        Ok(leased_limit)
    }
}

fn shard_of(key: ClientKey) -> usize {
    usize::from(key.0.to_le_bytes()[0]) % SHARDS
}
