//! Statistics of requests, as metrics export them.
//!
//! Each limit has the five counters of the reference service, under the same names. Names contain
//! values from requests where the file asks for it, so their number is unbounded; beyond a
//! fixed number, all other limits share one name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::AppliedLimit;
use anteroom_limit::cost::Cost;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::local::Fill;
use parking_lot::RwLock;

use crate::decision::MatchedLimit;

/// Most limits with counters of their own. Each is five lines of metrics; scrapes of more are slow.
const NAMES_MAX: usize = 1_000;
/// Longest name with counters of its own, in bytes. Values in names come from clients and are kept
/// for ever; those of routes and methods are short.
const NAME_BYTES_MAX: usize = 256;
/// Most hits of one request that are counted. No limit is above it, and a request can send twice as
/// many digits.
const HITS_MAX: u64 = u32::MAX as u64;
/// Name shared by all other limits. No domain begins with a bracket by chance.
pub const OTHERS: &str = "(others)";
/// Fraction of a limit from which on it counts as nearly used up: the reference's default.
const NEAR: (u64, u64) = (8, 10);

/// Counters of one limit.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "the names are those of the reference service")]
pub enum Hits {
    Total,
    Within,
    Near,
    Over,
    Shadow,
}

impl Hits {
    /// All counters.
    pub const ALL: [Self; 5] = [
        Self::Total,
        Self::Within,
        Self::Near,
        Self::Over,
        Self::Shadow,
    ];

    /// Returns the counter's name in the reference service.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total_hits",
            Self::Within => "within_limit",
            Self::Near => "near_limit",
            Self::Over => "over_limit",
            Self::Shadow => "shadow_mode",
        }
    }
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ResponseOutcome {
    /// The request is admitted.
    Ok,
    /// The request is over a limit.
    OverLimit,
    /// The request is over a limit, but the service is in shadow mode.
    Shadow,
    /// The request is invalid.
    Invalid,
    /// The store is unavailable, and the request is admitted.
    StoreUnavailableOpen,
    /// The store is unavailable, and the request fails.
    StoreUnavailableClosed,
}

impl ResponseOutcome {
    /// All variants.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::OverLimit,
        Self::Shadow,
        Self::Invalid,
        Self::StoreUnavailableOpen,
        Self::StoreUnavailableClosed,
    ];

    /// Returns the label in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OverLimit => "over_limit",
            Self::Shadow => "shadow",
            Self::Invalid => "invalid",
            Self::StoreUnavailableOpen => "store_unavailable_open",
            Self::StoreUnavailableClosed => "store_unavailable_closed",
        }
    }
}

/// Counters of one limit.
type LimitCounters = [AtomicU64; 5];

/// Statistics of the quota service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QuotaStats {
    /// Open streams.
    pub streams: u64,
    /// Limits that are shared.
    pub limits: u64,
    /// Buckets that share them, over all streams.
    pub buckets: u64,
    /// Requests that were assigned; their cost was taken before.
    pub assigned: u64,
    /// Requests that Envoys reported as allowed.
    pub allowed: u64,
    /// Requests that Envoys reported as denied.
    pub denied: u64,
    /// Buckets that Envoys had to abandon.
    pub abandoned: u64,
    /// Times that a bucket matched a limit that cannot be assigned.
    pub unfit: u64,
    /// Streams and buckets that were rejected: too many, too long, or invalid.
    pub refused: u64,
}

/// Counters behind [`QuotaStats`].
#[derive(Debug, Default)]
pub(crate) struct QuotaCounters {
    pub(crate) streams: AtomicU64,
    pub(crate) buckets: AtomicU64,
    pub(crate) members: AtomicU64,
    pub(crate) assigned: AtomicU64,
    pub(crate) allowed: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) abandoned: AtomicU64,
    pub(crate) unfit: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl QuotaCounters {
    pub(crate) fn read(&self) -> QuotaStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        QuotaStats {
            streams: read(&self.streams),
            limits: read(&self.buckets),
            buckets: read(&self.members),
            assigned: read(&self.assigned),
            allowed: read(&self.allowed),
            denied: read(&self.denied),
            abandoned: read(&self.abandoned),
            unfit: read(&self.unfit),
            refused: read(&self.refused),
        }
    }
}

impl QuotaStats {
    /// Returns requests by kind, each with a fixed name, for metrics.
    #[must_use]
    pub const fn requests(&self) -> [(&'static str, u64); 3] {
        [
            ("assigned", self.assigned),
            ("allowed", self.allowed),
            ("denied", self.denied),
        ]
    }

    /// Returns other events, each with a fixed name, for metrics.
    #[must_use]
    pub const fn events(&self) -> [(&'static str, u64); 3] {
        [
            ("abandoned", self.abandoned),
            ("unfit", self.unfit),
            ("rejected", self.refused),
        ]
    }
}

/// Counters of the service.
#[derive(Debug, Default)]
pub(crate) struct EventCounters {
    limits: RwLock<HashMap<Box<str>, Arc<LimitCounters>>>,
    outcomes: [AtomicU64; 6],
    domains_unknown: AtomicU64,
    loads: AtomicU64,
    failed_loads: AtomicU64,
    pub(crate) quota: QuotaCounters,
}

/// Snapshot of all statistics.
#[derive(Clone, Debug, Default)]
pub struct ServiceStats {
    /// Counters of each limit, by its name in the reference service.
    pub limits: BTreeMap<String, [(&'static str, u64); 5]>,
    /// Requests by outcome.
    pub answers: Vec<(&'static str, u64)>,
    /// Requests for domains that are in no file.
    pub domains_unknown: u64,
    /// Times that files were loaded.
    pub loads: u64,
    /// Times that files had mistakes.
    pub failed_loads: u64,
    /// Fill level of the table, if counts are local.
    pub fill: Option<Fill>,
    /// Statistics of the quota service.
    pub quota: QuotaStats,
}

impl EventCounters {
    pub(crate) fn count(&self, outcome: ResponseOutcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn domain_unknown(&self) {
        self.domains_unknown.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn load(&self, is_good: bool) {
        let loads = if is_good {
            &self.loads
        } else {
            &self.failed_loads
        };
        loads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the hits of a request, from the verdicts of the limits that it matched.
    pub(crate) fn hits(&self, met: &[MatchedLimit<'_>], verdicts: &[Verdict]) {
        let verdicts = met.iter().zip(verdicts);
        // A refund is no hit.
        let verdicts = verdicts.filter(|(met, _)| !matches!(met.cost, Cost::Refund(_)));
        // Known names first, under one read lock; new names follow.
        let known = self.limits.read();
        let unknown = verdicts.filter(|(met, verdict)| {
            let found = known.get(tracked_name(&met.limit.metric));
            found.is_none_or(|stats| {
                count_verdict(stats, met.limit, verdict);
                false
            })
        });
        let unknown: Vec<_> = unknown.collect();
        drop(known);
        for (met, verdict) in unknown {
            count_verdict(&self.counters_of(&met.limit.metric), met.limit, verdict);
        }
    }

    fn counters_of(&self, name: &str) -> Arc<LimitCounters> {
        let name = tracked_name(name);
        let mut limits = self.limits.write();
        let has_room = limits.len() < NAMES_MAX || limits.contains_key(name);
        let name = if has_room { name } else { OTHERS };
        Arc::clone(limits.entry(name.into()).or_default())
    }

    pub(crate) fn read(&self, fill: Option<Fill>) -> ServiceStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let of_limit = |stats: &LimitCounters| {
            Hits::ALL.map(|hits| (hits.name(), read(&stats[hits as usize])))
        };
        let limits = self.limits.read();
        let limits = limits
            .iter()
            .map(|(name, stats)| (name.to_string(), of_limit(stats)));
        let outcomes = ResponseOutcome::ALL.iter();
        ServiceStats {
            limits: limits.collect(),
            answers: outcomes
                .map(|outcome| (outcome.name(), read(&self.outcomes[*outcome as usize])))
                .collect(),
            domains_unknown: read(&self.domains_unknown),
            loads: read(&self.loads),
            failed_loads: read(&self.failed_loads),
            fill,
            quota: self.quota.read(),
        }
    }
}

/// Returns the name under which a limit is counted.
fn tracked_name(name: &str) -> &str {
    if name.len() > NAME_BYTES_MAX {
        OTHERS
    } else {
        name
    }
}

/// Counts one verdict of a limit.
fn count_verdict(stats: &LimitCounters, limit: &AppliedLimit<'_>, verdict: &Verdict) {
    let hits = limit.hits.min(HITS_MAX);
    let add = |which: Hits, hits: u64| add(&stats[which as usize], hits);
    add(Hits::Total, hits);
    if verdict.is_allowed() {
        add(Hits::Within, hits);
        let most = u64::from(limit.requests_per_unit);
        let used = most.saturating_sub(verdict.remaining.into());
        let near = most * NEAR.0 / NEAR.1;
        add(Hits::Near, used.saturating_sub(near).min(hits));
    } else {
        // A rejected request takes nothing, so all its hits are over the limit.
        add(Hits::Over, hits);
        if limit.is_shadow {
            add(Hits::Shadow, hits);
        }
    }
}

/// Adds without wrapping: a counter must never fall.
fn add(count: &AtomicU64, hits: u64) {
    if hits == 0 {
        return;
    }
    let more = |counted: u64| Some(counted.saturating_add(hits));
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_not_kept() {
        let counters = EventCounters::default();
        for length in [NAME_BYTES_MAX, NAME_BYTES_MAX + 1, 1 << 18] {
            add(&counters.counters_of(&"n".repeat(length))[0], 1);
        }
        let stats = counters.read(None);
        assert_eq!(stats.limits.len(), 2);
        assert_eq!(stats.limits[OTHERS][0], ("total_hits", 2));
    }

    #[test]
    fn a_counter_never_falls() {
        let count = AtomicU64::new(u64::MAX - 1);
        add(&count, 1);
        add(&count, 5);
        assert_eq!(count.into_inner(), u64::MAX);
    }

    #[test]
    fn beyond_a_number_of_names_all_others_share_one() {
        let counters = EventCounters::default();
        for at in 0..NAMES_MAX + 50 {
            let hits = counters.counters_of(&format!("d.k_{at}"));
            hits[Hits::Total as usize].fetch_add(1, Ordering::Relaxed);
        }
        let stats = counters.read(None);
        assert_eq!(stats.limits.len(), NAMES_MAX + 1);
        assert_eq!(stats.limits[OTHERS][0], ("total_hits", 50));
        assert_eq!(stats.limits["d.k_7"][0], ("total_hits", 1));
    }

    #[test]
    fn indices_of_counters_match_their_enums() {
        for (at, hits) in Hits::ALL.iter().enumerate() {
            assert_eq!(*hits as usize, at);
        }
        for (at, outcome) in ResponseOutcome::ALL.iter().enumerate() {
            assert_eq!(*outcome as usize, at);
        }
    }
}
