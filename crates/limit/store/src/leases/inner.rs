//! State shared by client requests, lease requests and the epoch watcher.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::circuit::{Circuit, Pauses};
use crate::lease_store::{LeaseRecords, Partition, Token};
use crate::{ClientKey, KeyMaker};
use anteroom_limit::leases::epoch::{self, Epoch, EpochId};
use anteroom_limit::time::TimestampUs;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::leases::clients::Clients;
use crate::leases::clock::Clock;
use crate::leases::error::LeaseError;
use crate::leases::members::Part;
use crate::leases::permits::Permits;
use crate::leases::random::Draws;
use crate::leases::settings::Settings;
use crate::leases::stats::{Counters, LeaseStats};

/// State that all clients share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn LeaseRecords>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) counters: Counters,
    pub(crate) draws: Draws,
    /// Identifies this process in its request ids, and as a member.
    pub(crate) incarnation: u64,
    /// Permits for lease requests in flight.
    pub(crate) permits: Permits,
    /// Runtime of lease requests.
    pub(crate) runtime: Handle,
    keys: KeyMaker,
    partitions: Box<[Mutex<PartitionState>]>,
    /// Whether all partitions are watched, or only those of clients seen so far.
    expects_requests: AtomicBool,
}

/// State of a partition.
#[derive(Debug)]
pub(crate) struct PartitionState {
    pub(crate) part: Part,
    circuit: Circuit,
    /// Latest error.
    last_error: Option<LeaseError>,
    /// Latest epoch seen.
    witnessed: Option<EpochId>,
    /// Epoch in force when its record was last read.
    in_force: Option<InForce>,
}

impl PartitionState {
    fn new(node: u64) -> Self {
        Self {
            part: Part::new(node),
            circuit: Circuit::new(Pauses::LEASES),
            last_error: None,
            witnessed: None,
            in_force: None,
        }
    }
}

/// Epoch, and the write that made its record.
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
        let incarnation = draws.number().max(1);
        let partition = |_| Mutex::new(PartitionState::new(incarnation));
        let partitions = (0..store.partitions().max(1)).map(partition);
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&draws.number().to_le_bytes());
        secret[8..].copy_from_slice(&draws.number().to_le_bytes());
        Self {
            store,
            clock,
            settings,
            clients: Clients::new(&settings),
            counters: Counters::default(),
            incarnation,
            draws,
            permits: Permits::new(settings.requests_max),
            runtime,
            keys: KeyMaker::new(secret),
            partitions: partitions.collect(),
            expects_requests: AtomicBool::new(false),
        }
    }

    /// Returns the key of a client of a limit in this process.
    pub(crate) fn key(&self, limit: &str, key: ClientKey) -> ClientKey {
        self.keys.key([limit.as_bytes(), &key.0.to_le_bytes()[..]])
    }

    /// Returns the partition of a client's record.
    pub(crate) fn partition(&self, key: ClientKey) -> Partition {
        Partition::of(key, u32::try_from(self.partitions.len()).unwrap_or(1))
    }

    /// Returns an error while the store must not be asked.
    pub(crate) fn unavailable(&self, partition: Partition, now: TimestampUs) -> Option<LeaseError> {
        let state = self.state(partition).lock();
        let error = || state.last_error.clone().unwrap_or(LeaseError::Unavailable);
        state.circuit.is_open(now).then(error)
    }

    /// Whether a partition has not replied since its circuit opened.
    pub(crate) fn is_lost(&self, partition: Partition) -> bool {
        self.state(partition).lock().circuit.is_lost()
    }

    /// Takes note that a request is sent.
    pub(crate) fn handle_request(&self, partition: Partition, now: TimestampUs) {
        self.state(partition).lock().circuit.handle_request(now);
    }

    /// Takes note of how a request ended.
    pub(crate) fn handle_outcome(
        &self,
        partition: Partition,
        now: TimestampUs,
        failed: Option<&LeaseError>,
    ) {
        let mut state = self.state(partition).lock();
        let Some(error) = failed else {
            if state.circuit.is_lost() {
                tracing::info!(store = self.store.store_name(), "store available again");
            }
            state.circuit.handle_reply();
            return;
        };
        if !error.is_outage() {
            return;
        }
        state.last_error = Some(error.clone());
        if state.circuit.handle_failure(now, self.draws.number()) {
            tracing::warn!(
                store = self.store.store_name(),
                %error,
                "store unavailable, no leases granted"
            );
        }
    }

    /// Returns the latest epoch seen on a partition.
    pub(crate) fn witnessed(&self, partition: Partition) -> Option<EpochId> {
        self.state(partition).lock().witnessed
    }

    /// Takes note of an epoch that is in force.
    pub(crate) fn witness(&self, partition: Partition, id: EpochId) {
        let mut state = self.state(partition).lock();
        state.witnessed = Some(epoch::later(state.witnessed, id));
    }

    /// Takes note of an epoch that is in force, and of the write that made its record.
    pub(crate) fn handle_in_force(&self, partition: Partition, in_force: InForce) {
        self.witness(partition, in_force.epoch.id);
        self.state(partition).lock().in_force = Some(in_force);
    }

    /// Returns the epoch to grant in without reading it again; `None` if another one was seen
    /// since.
    pub(crate) fn in_force(&self, partition: Partition) -> Option<InForce> {
        let state = self.state(partition).lock();
        let is_latest = |in_force: &InForce| state.witnessed == Some(in_force.epoch.id);
        state.in_force.filter(is_latest)
    }

    /// Whether this node waits until its stores cannot forget it any more, or until a new store
    /// opens. It is granted nothing meanwhile.
    pub(crate) fn is_joining(&self) -> bool {
        let now = self.clock.now();
        self.partitions.iter().any(|state| {
            let state = state.lock();
            let epoch = state.in_force.map(|in_force| in_force.epoch);
            let longest_loss = epoch.and_then(|epoch| epoch.longest_loss);
            let membership = &state.part.membership;
            now < state.part.opens_at
                || longest_loss.is_some_and(|longest_loss| membership.is_joining(longest_loss, now))
        })
    }

    /// Watches all partitions from now on. A store that is empty grants nothing for a while, and
    /// that time should be over before the first request.
    pub(crate) fn expect_calls(&self) {
        self.expects_requests.store(true, Ordering::Relaxed);
    }

    /// Returns the partitions whose epoch must be read regularly.
    pub(crate) fn watched_partitions(&self) -> Vec<Partition> {
        let partitions = (0..).zip(&self.partitions);
        let all = self.expects_requests.load(Ordering::Relaxed);
        // Includes partitions with an open circuit: callers may send nothing because of it.
        let seen = partitions.filter(|(_, state)| {
            let state = state.lock();
            all || state.witnessed.is_some() || state.circuit.is_lost()
        });
        seen.map(|(number, _)| Partition(number)).collect()
    }

    pub(crate) fn stats(&self) -> LeaseStats {
        let now = self.clock.now();
        let (mut clients, mut held) = (0, 0);
        for shard in self.clients.each() {
            let (count, balance) = shard.fill(now);
            clients += count as u64;
            held += balance;
        }
        self.counters.stats(clients, held)
    }

    pub(crate) fn state(&self, Partition(partition): Partition) -> &Mutex<PartitionState> {
        &self.partitions[partition as usize % self.partitions.len()]
    }
}
