//! Ledgers of all shared limits, and the queue of those that are due.
//!
//! Requests to the store take time, and only so many are in flight at once. Limits that are due
//! wait in order. One that is due again goes to the end, so that none is handled twice while
//! another one waits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anteroom_limit::policy::Policy;
use anteroom_limit::quota::book::{MemberId, QuotaLedger};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::ClientKey;
use tokio::sync::mpsc;
use tonic::Status;

use crate::quota::STREAMS_MAX;
use crate::quota::assignments::{Assignments, BucketUpdate};
use crate::quota::bucket::{BUCKETS_MAX, Counted};
use crate::wire::quota::BucketId;

/// Most ledgers, including those of limits that are no longer shared and still have a debt: as many
/// as all streams may share. Debts beyond that are dropped.
pub(crate) const LEDGERS_MAX: usize = STREAMS_MAX * BUCKETS_MAX;

/// Address of a member.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) id: Arc<BucketId>,
    pub(crate) outbox: mpsc::Sender<Result<BucketUpdate, Status>>,
}

/// Limit that is shared.
pub(crate) struct Bucket {
    pub(crate) ledger: QuotaLedger,
    pub(crate) policy: Policy,
    pub(crate) routes: HashMap<MemberId, Route>,
    state: QueueState,
}

/// Position of a limit in the queue of due ones.
#[derive(Clone, Copy, Debug)]
enum QueueState {
    /// Waiting: no request is due, and none is in flight.
    Idle,
    /// Due, and behind those with lower numbers.
    Queued(u64),
    /// A request to the store is in flight.
    InFlight,
}

/// Ledgers of all shared limits.
#[derive(Default)]
pub(crate) struct QuotaLedgers {
    buckets: HashMap<ClientKey, Bucket>,
    /// Limits that are due, by their numbers.
    waiting: BTreeMap<u64, ClientKey>,
    number: u64,
}

impl Bucket {
    pub(crate) fn send(&self, member: MemberId, assignment: Assignments) {
        if let Some(Route { id, outbox }) = self.routes.get(&member) {
            let id = Arc::clone(id);
            // An Envoy that reads too slowly gets no update; what was taken for it is lost.
            let _ = outbox.try_send(Ok(BucketUpdate::new(id, assignment)));
        }
    }

    /// Takes note that a request to the store has finished.
    pub(crate) const fn set_idle(&mut self) {
        self.state = QueueState::Idle;
    }

    /// Takes note that an acquisition follows the peek at once.
    pub(crate) const fn keep_in_flight(&mut self) {
        self.state = QueueState::InFlight;
    }

    fn is_unused(&self) -> bool {
        self.routes.is_empty() && self.ledger.is_empty()
    }
}

impl QuotaLedgers {
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether there are too many ledgers to keep one for a debt alone.
    pub(crate) fn is_full(&self) -> bool {
        self.len() > LEDGERS_MAX
    }

    pub(crate) fn get(&self, key: &ClientKey) -> Option<&Bucket> {
        self.buckets.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &ClientKey) -> Option<&mut Bucket> {
        self.buckets.get_mut(key)
    }

    /// Returns the bucket of a limit, with its present policy.
    pub(crate) fn bucket(&mut self, counted: &Counted) -> &mut Bucket {
        let Counted { key, policy, .. } = *counted;
        let bucket = self.buckets.entry(key).or_insert_with(|| Bucket {
            ledger: QuotaLedger::default(),
            policy,
            routes: HashMap::new(),
            state: QueueState::Idle,
        });
        bucket.policy = policy;
        bucket
    }

    /// Returns the bucket of a limit for a debt alone, if there is room for it.
    pub(crate) fn bucket_for_debt(&mut self, counted: &Counted) -> Option<&mut Bucket> {
        let has_room = self.len() < LEDGERS_MAX || self.buckets.contains_key(&counted.key);
        has_room.then(|| self.bucket(counted))
    }

    /// Drops the debt of a limit that is no longer shared.
    pub(crate) fn drop_debt(&mut self, key: ClientKey) {
        let bucket = self.buckets.get_mut(&key);
        if let Some(bucket) = bucket.filter(|bucket| bucket.routes.is_empty()) {
            bucket.ledger = QuotaLedger::default();
        }
    }

    /// Enqueues a limit if it is due; removes it if it is no longer shared and owes nothing.
    pub(crate) fn enqueue_if_due(&mut self, key: ClientKey, now: TimestampUs) {
        let Some(bucket) = self.buckets.get_mut(&key) else {
            return;
        };
        match bucket.state {
            QueueState::InFlight => {}
            state if bucket.is_unused() => {
                if let QueueState::Queued(number) = state {
                    self.waiting.remove(&number);
                }
                self.buckets.remove(&key);
            }
            QueueState::Idle if bucket.ledger.is_due(now) => {
                bucket.state = QueueState::Queued(self.number);
                self.waiting.insert(self.number, key);
                self.number += 1;
            }
            QueueState::Idle | QueueState::Queued(_) => {}
        }
    }

    /// Enqueues all limits that have become due.
    pub(crate) fn enqueue_all_due(&mut self, now: TimestampUs) {
        let all: Vec<ClientKey> = self.buckets.keys().copied().collect();
        for key in all {
            self.enqueue_if_due(key, now);
        }
    }

    /// Returns the first limit in the queue that is still due, and marks it as in flight.
    pub(crate) fn next(&mut self, now: TimestampUs) -> Option<(ClientKey, Policy)> {
        while let Some((_, key)) = self.waiting.pop_first() {
            let Some(bucket) = self.buckets.get_mut(&key) else {
                continue;
            };
            if bucket.ledger.is_due(now) {
                bucket.state = QueueState::InFlight;
                return Some((key, bucket.policy));
            }
            bucket.state = QueueState::Idle;
        }
        None
    }
}
