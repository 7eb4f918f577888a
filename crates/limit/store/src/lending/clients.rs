//! Which clients are known here, in bounded memory?
//!
//! A client that holds nothing and knows nothing may be forgotten; so may any other, for a lease is
//! prepaid, but what is left of it is lost then. So nobody is forgotten for a newcomer's sake:
//! where there is no place left newcomers are *guests*, who are forgotten as soon as their call is
//! decided. There are as few guests as there may be requests on their way to the store. A flood of
//! keys takes nothing from those who are known here, which is to whom something was lent within
//! some five seconds: a part of those requests is kept for them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::CallKey;
use anteroom_limit::lending::holding::Holding;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::{DurationUs, TimestampUs};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::lending::error::AskError;
use crate::lending::settings::Settings;

/// So many parts have locks of their own, so that threads seldom wait for each other.
pub(crate) const SHARDS: usize = 64;

/// Where no place is left, all clients of a part are looked at so often at most.
const SWEEP_AGAIN_AFTER: DurationUs = DurationUs(100_000);

/// Who does not say how old the calls are that it gives back has taken them within this: as long as
/// any store may be asked about a call.
const REFUNDED_WITHIN: DurationUs = DurationUs::from_secs(5);

/// What is known of a client of one limit.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) holding: Holding,
    pub(crate) lending: Arc<LeasedLimit>,
    /// Tells one that was forgotten, and has come again, from itself.
    pub(crate) birth: u64,
    /// Whether a request is on its way.
    pub(crate) is_asking: bool,
    /// Whether something was ever lent to it, while it was known.
    pub(crate) was_lent: bool,
    /// When calls were last taken.
    pub(crate) taken_at: TimestampUs,
    /// When calls were last taken of leases that have ended since.
    pub(crate) taken_of_ended_at: TimestampUs,
    /// Why its last request came to nothing, if it did.
    pub(crate) why: Option<AskError>,
    /// There is one while somebody waits for an answer.
    bell: Option<Arc<Notify>>,
    is_guest: bool,
    seen_at: TimestampUs,
}

impl Client {
    /// Takes note that calls are taken now.
    pub(crate) fn handle_take(&mut self, now: TimestampUs) {
        if !self.holding.can_undo(now, self.taken_at) {
            self.taken_of_ended_at = self.taken_at;
        }
        self.taken_at = now;
    }

    /// Since when all calls were taken that a refund can be for; `None` if some were of leases that
    /// have ended, and would be given back to others.
    pub(crate) fn refunds_since(&self, now: TimestampUs) -> Option<TimestampUs> {
        let is_over = now.since(self.taken_of_ended_at) >= REFUNDED_WITHIN;
        is_over.then_some(self.taken_at)
    }

    /// Why it is not asked for at present.
    pub(crate) fn why(&self) -> AskError {
        self.why.clone().unwrap_or(AskError::Away)
    }

    /// Rings when the next answer has come, or none will.
    pub(crate) fn wait(&mut self) -> OwnedNotified {
        let bell = self.bell.get_or_insert_with(Arc::default);
        Arc::clone(bell).notified_owned()
    }

    /// Tells all who wait that an answer has come, or none will.
    pub(crate) fn ring(&mut self) {
        if let Some(bell) = self.bell.take() {
            bell.notify_waiters();
        }
    }
}

/// Clients that share a lock.
#[derive(Debug)]
pub(crate) struct Shard {
    clients: HashMap<CallKey, Client>,
    guests: usize,
    keys_max: usize,
    guests_max: usize,
    lease_part: u64,
    /// Most clients of a part have the same limit.
    newest: Option<Arc<LeasedLimit>>,
    /// Rises with every birth and every request; begins and steps so that no two parts have the
    /// same.
    number: u64,
    swept_at: TimestampUs,
}

/// All parts.
#[derive(Debug)]
pub(crate) struct Clients {
    shards: Box<[Mutex<Shard>]>,
}

/// Parts that are locked together.
pub(crate) struct Locked<'s> {
    /// By their number, each once.
    shards: Vec<(usize, MutexGuard<'s, Shard>)>,
}

impl Clients {
    pub(crate) fn new(settings: &Settings) -> Self {
        let shard = |number: u64| {
            Mutex::new(Shard {
                clients: HashMap::new(),
                guests: 0,
                keys_max: (settings.keys_max / SHARDS).max(1),
                // Chance spreads them unevenly.
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

    /// Locks the parts of all these clients, in an order that is the same for all who lock.
    pub(crate) fn lock(&self, keys: &[CallKey]) -> Locked<'_> {
        let mut numbers: Vec<usize> = keys.iter().map(|key| shard_of(*key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lock = |number: usize| (number, self.shards[number].lock());
        Locked {
            shards: numbers.into_iter().map(lock).collect(),
        }
    }

    /// Locks the part of one client.
    pub(crate) fn shard(&self, key: CallKey) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(key)].lock()
    }

    /// All parts, one after the other.
    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(Mutex::lock)
    }
}

impl Locked<'_> {
    /// The part of a client.
    pub(crate) fn of(&mut self, key: CallKey) -> &mut Shard {
        let number = shard_of(key);
        let found = self.shards.iter_mut().find(|(locked, _)| *locked == number);
        &mut found.expect("the parts of all keys of a call are locked").1
    }

    /// A client that was made sure of before.
    pub(crate) fn client(&mut self, key: CallKey) -> &mut Client {
        let client = self.of(key).clients.get_mut(&key);
        client.expect("nobody is forgotten while a call is decided")
    }
}

impl Shard {
    /// Makes sure that a client is known, with this limit.
    pub(crate) fn make_sure(
        &mut self,
        key: CallKey,
        policy: &Policy,
        now: TimestampUs,
    ) -> Result<(), AskError> {
        let known = self.clients.get_mut(&key);
        if let Some(client) = known {
            client.seen_at = now;
            if client.lending.promised() == policy {
                return Ok(());
            }
            client.holding.handle_new_limit();
        }
        let lending = self.lending(policy)?;
        if let Some(client) = self.clients.get_mut(&key) {
            client.lending = lending;
            return Ok(());
        }
        let is_guest = !self.has_place(now);
        if is_guest && self.guests >= self.guests_max {
            return Err(AskError::Crowded);
        }
        self.guests += usize::from(is_guest);
        let client = Client {
            holding: Holding::new(),
            lending,
            birth: self.next_number(),
            is_asking: false,
            was_lent: false,
            taken_at: TimestampUs(0),
            taken_of_ended_at: TimestampUs(0),
            why: None,
            bell: None,
            is_guest,
            seen_at: now,
        };
        self.clients.insert(key, client);
        Ok(())
    }

    /// A client, if it is known.
    pub(crate) fn find(&mut self, key: CallKey) -> Option<&mut Client> {
        self.clients.get_mut(&key)
    }

    /// A number that nobody else gets.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.number = self.number.wrapping_add(SHARDS as u64);
        self.number
    }

    /// Forgets a guest of whom nothing more is expected.
    pub(crate) fn let_go(&mut self, key: CallKey) {
        let client = self.clients.get(&key);
        if client.is_some_and(|client| client.is_guest && !client.is_asking) {
            self.clients.remove(&key);
            self.guests -= 1;
        }
    }

    /// Forgets those that hold nothing and know nothing, and guests whom nobody waits for any more.
    pub(crate) fn sweep(&mut self, now: TimestampUs) {
        self.swept_at = now;
        let mut guests = 0;
        self.clients.retain(|_, client| {
            let is_gone = client.is_guest || client.holding.is_idle(now);
            let stays = client.is_asking || client.seen_at == now || !is_gone;
            guests += usize::from(stays && client.is_guest);
            stays
        });
        self.guests = guests;
        if self.clients.capacity() / 4 > self.clients.len() {
            self.clients.shrink_to(self.clients.len() * 2);
        }
    }

    /// How many clients there are, and how many calls they hold.
    pub(crate) fn fill(&self, now: TimestampUs) -> (usize, u64) {
        let held = self.clients.values();
        let held = held.map(|client| u64::from(client.holding.held(now)));
        (self.clients.len(), held.sum())
    }

    fn has_place(&mut self, now: TimestampUs) -> bool {
        let is_full = |shard: &Self| shard.clients.len() - shard.guests >= shard.keys_max;
        if is_full(self) && now.since(self.swept_at) >= SWEEP_AGAIN_AFTER {
            self.sweep(now);
        }
        !is_full(self)
    }

    fn lending(&mut self, policy: &Policy) -> Result<Arc<LeasedLimit>, AskError> {
        if let Some(newest) = &self.newest
            && newest.promised() == policy
        {
            return Ok(Arc::clone(newest));
        }
        let lending = LeasedLimit::with_part(*policy, self.lease_part);
        let lending = Arc::new(lending.map_err(AskError::CannotBeLent)?);
        self.newest = Some(Arc::clone(&lending));
        Ok(lending)
    }
}

fn shard_of(key: CallKey) -> usize {
    usize::from(key.0.to_le_bytes()[0]) % SHARDS
}
