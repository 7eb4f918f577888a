//! The books of all limits that somebody shares, and whose turn it is to be looked at.
//!
//! Looks and charges take time, and only so many are on their way at once. Limits that are due wait
//! in the order in which they came to be due, and one that is due again stands at the end: however
//! many there are, none waits for one twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anteroom_limit::policy::Policy;
use anteroom_limit::quota::book::{MemberId, QuotaLedger};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::CallKey;
use tokio::sync::mpsc;
use tonic::Status;

use crate::quota::STREAMS_MAX;
use crate::quota::bucket::Counted;
use crate::quota::stream::BUCKETS_MAX;
use crate::quota::told::{Assignments, Line};
use crate::wire::quota::BucketId;

/// Books, with those of limits that nobody shares any more and that are to be charged for what went
/// through: as many as all streams may share. What is owed of others is forgiven.
pub(crate) const BOOKS_MAX: usize = STREAMS_MAX * BUCKETS_MAX;

/// How a member is told something.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) id: Arc<BucketId>,
    pub(crate) outbox: mpsc::Sender<Result<Line, Status>>,
}

/// A limit that somebody shares.
pub(crate) struct Bucket {
    pub(crate) book: QuotaLedger,
    pub(crate) policy: Policy,
    pub(crate) routes: HashMap<MemberId, Route>,
    turn: Turn,
}

/// Whether it is to be looked at.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Not before it is due.
    Rests,
    /// After those with lower numbers.
    Waits(u64),
    /// A look or a charge is on its way.
    Calls,
}

/// All of them.
#[derive(Default)]
pub(crate) struct QuotaLedgers {
    buckets: HashMap<CallKey, Bucket>,
    /// Those that are due, by their numbers.
    waiting: BTreeMap<u64, CallKey>,
    number: u64,
}

impl Bucket {
    pub(crate) fn say(&self, member: MemberId, told: Assignments) {
        if let Some(Route { id, outbox }) = self.routes.get(&member) {
            let id = Arc::clone(id);
            // Whoever reads so slowly is told nothing; what was charged for it is lost.
            let _ = outbox.try_send(Ok(Line::new(id, told)));
        }
    }

    /// A look or a charge has come back.
    pub(crate) const fn rest(&mut self) {
        self.turn = Turn::Rests;
    }

    /// After its look comes its charge, without waiting again.
    pub(crate) const fn go_on(&mut self) {
        self.turn = Turn::Calls;
    }

    fn is_over(&self) -> bool {
        self.routes.is_empty() && self.book.is_empty()
    }
}

impl QuotaLedgers {
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether there are more than are kept for what is owed alone.
    pub(crate) fn is_crowded(&self) -> bool {
        self.len() > BOOKS_MAX
    }

    pub(crate) fn get(&self, key: &CallKey) -> Option<&Bucket> {
        self.buckets.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &CallKey) -> Option<&mut Bucket> {
        self.buckets.get_mut(key)
    }

    /// That of a limit as it is now.
    pub(crate) fn bucket(&mut self, counted: &Counted) -> &mut Bucket {
        let Counted { key, policy, .. } = *counted;
        let bucket = self.buckets.entry(key).or_insert_with(|| Bucket {
            book: QuotaLedger::default(),
            policy,
            routes: HashMap::new(),
            turn: Turn::Rests,
        });
        bucket.policy = policy;
        bucket
    }

    /// The same for what is owed alone, if there is place for it.
    pub(crate) fn debtor(&mut self, counted: &Counted) -> Option<&mut Bucket> {
        let has_place = self.len() < BOOKS_MAX || self.buckets.contains_key(&counted.key);
        has_place.then(|| self.bucket(counted))
    }

    /// If nobody shares a limit any more, what is owed of it is forgiven.
    pub(crate) fn forgive(&mut self, key: CallKey) {
        let bucket = self.buckets.get_mut(&key);
        if let Some(bucket) = bucket.filter(|bucket| bucket.routes.is_empty()) {
            bucket.book = QuotaLedger::default();
        }
    }

    /// Lines a limit up if it is due; forgets it if nobody shares it.
    pub(crate) fn line_up(&mut self, key: CallKey, now: TimestampUs) {
        let Some(bucket) = self.buckets.get_mut(&key) else {
            return;
        };
        match bucket.turn {
            Turn::Calls => {}
            turn if bucket.is_over() => {
                if let Turn::Waits(number) = turn {
                    self.waiting.remove(&number);
                }
                self.buckets.remove(&key);
            }
            Turn::Rests if bucket.book.is_due(now) => {
                bucket.turn = Turn::Waits(self.number);
                self.waiting.insert(self.number, key);
                self.number += 1;
            }
            Turn::Rests | Turn::Waits(_) => {}
        }
    }

    /// Those that are due because time has passed.
    pub(crate) fn line_all_up(&mut self, now: TimestampUs) {
        let all: Vec<CallKey> = self.buckets.keys().copied().collect();
        for key in all {
            self.line_up(key, now);
        }
    }

    /// The first of those that wait and are still due: it is looked at.
    pub(crate) fn next(&mut self, now: TimestampUs) -> Option<(CallKey, Policy)> {
        while let Some((_, key)) = self.waiting.pop_first() {
            let Some(bucket) = self.buckets.get_mut(&key) else {
                continue;
            };
            if bucket.book.is_due(now) {
                bucket.turn = Turn::Calls;
                return Some((key, bucket.policy));
            }
            bucket.turn = Turn::Rests;
        }
        None
    }
}
