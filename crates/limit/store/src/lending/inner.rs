//! What calls, requests and the watch over epochs share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::circuit::{Circuit, Pauses};
use crate::lent::{LeaseRecords, Shelf, Token};
use crate::{CallKey, KeyMaker};
use anteroom_limit::lending::epoch::{self, Epoch, EpochId};
use anteroom_limit::time::TimestampUs;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::lending::clients::Clients;
use crate::lending::clock::Clock;
use crate::lending::draws::Draws;
use crate::lending::error::AskError;
use crate::lending::permits::Permits;
use crate::lending::settings::Settings;
use crate::lending::stats::{Counters, LeaseStats};

/// What there is once for all clients.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn LeaseRecords>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) counters: Counters,
    pub(crate) draws: Draws,
    /// This process, in the names of its requests.
    pub(crate) incarnation: u64,
    /// For the requests on their way.
    pub(crate) permits: Permits,
    /// Where requests run.
    pub(crate) runtime: Handle,
    keys: KeyMaker,
    shelves: Box<[Mutex<ShelfState>]>,
    /// Whether all shelves are looked at, and not only those of clients that have called.
    expects_calls: AtomicBool,
}

/// What is known of a shelf.
#[derive(Debug)]
struct ShelfState {
    circuit: Circuit,
    /// Why it failed last.
    why: Option<AskError>,
    /// The latest epoch that was seen.
    witnessed: Option<EpochId>,
    /// The one that was in force when its record was read last.
    in_force: Option<InForce>,
}

impl Default for ShelfState {
    fn default() -> Self {
        Self {
            circuit: Circuit::new(Pauses::LENDING),
            why: None,
            witnessed: None,
            in_force: None,
        }
    }
}

/// An epoch, and the write that made its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InForce {
    pub(crate) epoch: Epoch,
    pub(crate) token: Token,
}

impl Inner {
    pub(crate) fn new(
        store: Arc<dyn LeaseRecords>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        draws: Draws,
        runtime: Handle,
    ) -> Self {
        let shelves = (0..store.shelves().max(1)).map(|_| Mutex::default());
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&draws.number().to_le_bytes());
        secret[8..].copy_from_slice(&draws.number().to_le_bytes());
        Self {
            store,
            clock,
            settings,
            clients: Clients::new(&settings),
            counters: Counters::default(),
            incarnation: draws.number().max(1),
            draws,
            permits: Permits::new(settings.requests_max),
            runtime,
            keys: KeyMaker::new(secret),
            shelves: shelves.collect(),
            expects_calls: AtomicBool::new(false),
        }
    }

    /// A client of a limit, as it is known here.
    pub(crate) fn key(&self, limit: &str, key: CallKey) -> CallKey {
        self.keys.key([limit.as_bytes(), &key.0.to_le_bytes()[..]])
    }

    /// Where a client's record lies.
    pub(crate) fn shelf(&self, key: CallKey) -> Shelf {
        Shelf::of(key, u32::try_from(self.shelves.len()).unwrap_or(1))
    }

    /// Why nobody is asked at present; `None` if somebody may be.
    pub(crate) fn away(&self, shelf: Shelf, now: TimestampUs) -> Option<AskError> {
        let state = self.state(shelf).lock();
        let why = || state.why.clone().unwrap_or(AskError::Away);
        state.circuit.is_open(now).then(why)
    }

    /// Whether a shelf has not answered since it was given up.
    pub(crate) fn is_lost(&self, shelf: Shelf) -> bool {
        self.state(shelf).lock().circuit.is_lost()
    }

    /// Takes note that a request is sent.
    pub(crate) fn handle_request(&self, shelf: Shelf, now: TimestampUs) {
        self.state(shelf).lock().circuit.handle_request(now);
    }

    /// Takes note of how a request ended.
    pub(crate) fn handle_outcome(&self, shelf: Shelf, now: TimestampUs, failed: Option<&AskError>) {
        let mut state = self.state(shelf).lock();
        let Some(error) = failed else {
            if state.circuit.is_lost() {
                tracing::info!(store = self.store.place(), "calls are lent again");
            }
            state.circuit.handle_answer();
            return;
        };
        if !error.is_of_the_store() {
            return;
        }
        state.why = Some(error.clone());
        if state.circuit.handle_failure(now, self.draws.number()) {
            tracing::warn!(store = self.store.place(), %error, "no calls are lent");
        }
    }

    /// The latest epoch that was seen on a shelf.
    pub(crate) fn witnessed(&self, shelf: Shelf) -> Option<EpochId> {
        self.state(shelf).lock().witnessed
    }

    /// Takes note of an epoch that is in force.
    pub(crate) fn witness(&self, shelf: Shelf, id: EpochId) {
        let mut state = self.state(shelf).lock();
        state.witnessed = Some(epoch::later(state.witnessed, id));
    }

    /// Takes note of an epoch that is in force, and of the write that made its record.
    pub(crate) fn handle_in_force(&self, shelf: Shelf, in_force: InForce) {
        self.witness(shelf, in_force.epoch.id);
        self.state(shelf).lock().in_force = Some(in_force);
    }

    /// The epoch by which may be lent without looking which one it is; `None` if another one has
    /// been seen since.
    pub(crate) fn in_force(&self, shelf: Shelf) -> Option<InForce> {
        let state = self.state(shelf).lock();
        let is_latest = |in_force: &InForce| state.witnessed == Some(in_force.epoch.id);
        state.in_force.filter(is_latest)
    }

    /// From now on all shelves are watched: a store that was found empty lends nothing for a while,
    /// which is better over when the first call comes.
    pub(crate) fn expect_calls(&self) {
        self.expects_calls.store(true, Ordering::Relaxed);
    }

    /// Shelves whose epoch is to be seen again and again.
    pub(crate) fn watched_shelves(&self) -> Vec<Shelf> {
        let shelves = (0..).zip(&self.shelves);
        let all = self.expects_calls.load(Ordering::Relaxed);
        // Those that were given up, too: callers may have been told not to ask any more.
        let seen = shelves.filter(|(_, state)| {
            let state = state.lock();
            all || state.witnessed.is_some() || state.circuit.is_lost()
        });
        seen.map(|(number, _)| Shelf(number)).collect()
    }

    pub(crate) fn stats(&self) -> LeaseStats {
        let now = self.clock.now();
        let (mut clients, mut held) = (0, 0);
        for shard in self.clients.each() {
            let (here, calls) = shard.fill(now);
            clients += here as u64;
            held += calls;
        }
        self.counters.stats(clients, held)
    }

    fn state(&self, Shelf(shelf): Shelf) -> &Mutex<ShelfState> {
        &self.shelves[shelf as usize % self.shelves.len()]
    }
}
