//! What is counted about requests, for whoever draws it.
//!
//! For each limit the five figures of the reference service, by its names. Names hold values where
//! the file asks for it, and those are as many as clients will: beyond a number of names, all
//! others share one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::AppliedLimit;
use anteroom_limit::cost::Cost;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::local::Fill;
use parking_lot::RwLock;

use crate::judge::MatchedLimit;
use crate::quota::QuotaTally;

/// Most limits that are told apart. Each is five lines of metrics; a scrape of more is slow.
const NAMES_MAX: usize = 1_000;
/// Longest name that is told apart. Values in names are the client's, and are kept for ever; those
/// of routes and methods are short.
const NAME_BYTES_MAX: usize = 256;
/// Most hits of one request that are counted: no limit is above it, and a request may say twice as
/// many digits.
const HITS_MAX: u64 = u32::MAX as u64;
/// What all others are called. No domain begins with a bracket by chance.
pub const OTHERS: &str = "(others)";
/// From which part of a limit on it counts as nearly used up: the reference's default.
const NEAR: (u64, u64) = (8, 10);

/// What is counted of one limit.
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
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Total,
        Self::Within,
        Self::Near,
        Self::Over,
        Self::Shadow,
    ];

    /// As the reference service calls it.
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

/// What became of a request.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ResponseOutcome {
    /// It goes through.
    Ok,
    /// It is over a limit.
    OverLimit,
    /// It would be, if the service rejected anybody.
    Shadow,
    /// It asked for what nobody can answer.
    Invalid,
    /// The store did not answer, and it goes through.
    StoreAwayOpen,
    /// The store did not answer, and nobody knows.
    StoreAwayClosed,
}

impl ResponseOutcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::OverLimit,
        Self::Shadow,
        Self::Invalid,
        Self::StoreAwayOpen,
        Self::StoreAwayClosed,
    ];

    /// In a metric.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OverLimit => "over_limit",
            Self::Shadow => "shadow",
            Self::Invalid => "invalid",
            Self::StoreAwayOpen => "store_unavailable_open",
            Self::StoreAwayClosed => "store_unavailable_closed",
        }
    }
}

/// The figures of one limit.
type OfLimit = [AtomicU64; 5];

/// What is counted of the quota service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QuotaStats {
    /// Streams that are open.
    pub streams: u64,
    /// Limits that somebody shares.
    pub limits: u64,
    /// Buckets that share them, of all streams.
    pub buckets: u64,
    /// Calls that were assigned, each charged before.
    pub assigned: u64,
    /// Requests that Envoys say they let through.
    pub allowed: u64,
    /// Requests that Envoys say they refused.
    pub denied: u64,
    /// Buckets that Envoys were told to forget.
    pub abandoned: u64,
    /// How often a bucket met a limit out of which nothing can be assigned.
    pub unfit: u64,
    /// Streams and buckets that were refused: too many, too long, or wrong.
    pub refused: u64,
}

impl QuotaStats {
    /// Calls by what was said of them, each by a fixed word; for metrics.
    #[must_use]
    pub const fn calls(&self) -> [(&'static str, u64); 3] {
        [
            ("assigned", self.assigned),
            ("allowed", self.allowed),
            ("denied", self.denied),
        ]
    }

    /// What happened besides, each by a fixed word; for metrics.
    #[must_use]
    pub const fn events(&self) -> [(&'static str, u64); 3] {
        [
            ("abandoned", self.abandoned),
            ("unfit", self.unfit),
            ("refused", self.refused),
        ]
    }
}

/// Counts.
#[derive(Debug, Default)]
pub(crate) struct EventCounters {
    limits: RwLock<HashMap<Box<str>, Arc<OfLimit>>>,
    answers: [AtomicU64; 6],
    domains_unknown: AtomicU64,
    loads: AtomicU64,
    failed_loads: AtomicU64,
    pub(crate) quota: QuotaTally,
}

/// All figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct ServiceStats {
    /// Of each limit, by the name that the reference service gives it.
    pub limits: BTreeMap<String, [(&'static str, u64); 5]>,
    /// Requests by what became of them.
    pub answers: Vec<(&'static str, u64)>,
    /// Requests for domains that no file has.
    pub domains_unknown: u64,
    /// How often files were read and hold since.
    pub loads: u64,
    /// How often files held mistakes.
    pub failed_loads: u64,
    /// How full the memory is, if it is counted here.
    pub fill: Option<Fill>,
    /// Of the quota service.
    pub quota: QuotaStats,
}

impl EventCounters {
    pub(crate) fn answer(&self, answer: ResponseOutcome) {
        self.answers[answer as usize].fetch_add(1, Ordering::Relaxed);
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

    /// Notes what limits said, each of which has met a request.
    pub(crate) fn hits(&self, met: &[MatchedLimit<'_>], verdicts: &[Verdict]) {
        let said = met.iter().zip(verdicts);
        // What is given back is no hit.
        let said = said.filter(|(met, _)| !matches!(met.cost, Cost::Refund(_)));
        // Under one lock; those that nobody has met before come afterwards.
        let known = self.limits.read();
        let unknown = said.filter(|(met, verdict)| {
            let found = known.get(told_apart(&met.limit.metric));
            found.is_none_or(|stats| {
                note(stats, met.limit, verdict);
                false
            })
        });
        let unknown: Vec<_> = unknown.collect();
        drop(known);
        for (met, verdict) in unknown {
            note(&self.of(&met.limit.metric), met.limit, verdict);
        }
    }

    fn of(&self, name: &str) -> Arc<OfLimit> {
        let name = told_apart(name);
        let mut limits = self.limits.write();
        let has_place = limits.len() < NAMES_MAX || limits.contains_key(name);
        let name = if has_place { name } else { OTHERS };
        Arc::clone(limits.entry(name.into()).or_default())
    }

    pub(crate) fn read(&self, fill: Option<Fill>) -> ServiceStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let of_limit =
            |stats: &OfLimit| Hits::ALL.map(|hits| (hits.name(), read(&stats[hits as usize])));
        let limits = self.limits.read();
        let limits = limits
            .iter()
            .map(|(name, stats)| (name.to_string(), of_limit(stats)));
        let answers = ResponseOutcome::ALL.iter();
        ServiceStats {
            limits: limits.collect(),
            answers: answers
                .map(|answer| (answer.name(), read(&self.answers[*answer as usize])))
                .collect(),
            domains_unknown: read(&self.domains_unknown),
            loads: read(&self.loads),
            failed_loads: read(&self.failed_loads),
            fill,
            quota: self.quota.read(),
        }
    }
}

/// The name by which a limit is counted.
fn told_apart(name: &str) -> &str {
    if name.len() > NAME_BYTES_MAX {
        OTHERS
    } else {
        name
    }
}

/// Notes what a limit said.
fn note(stats: &OfLimit, limit: &AppliedLimit<'_>, verdict: &Verdict) {
    let hits = limit.hits.min(HITS_MAX);
    let add = |which: Hits, hits: u64| add(&stats[which as usize], hits);
    add(Hits::Total, hits);
    if verdict.is_admitted() {
        add(Hits::Within, hits);
        let most = u64::from(limit.requests_per_unit);
        let used = most.saturating_sub(verdict.remaining.into());
        let near = most * NEAR.0 / NEAR.1;
        add(Hits::Near, used.saturating_sub(near).min(hits));
    } else {
        // None of them was charged, so all of them are.
        add(Hits::Over, hits);
        if limit.is_shadow {
            add(Hits::Shadow, hits);
        }
    }
}

/// Stays at the end instead of beginning again: what only rises may not fall.
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
            add(&counters.of(&"n".repeat(length))[0], 1);
        }
        let stats = counters.read(None);
        assert_eq!(stats.limits.len(), 2);
        assert_eq!(stats.limits[OTHERS][0], ("total_hits", 2));
    }

    #[test]
    fn what_is_counted_never_falls() {
        let count = AtomicU64::new(u64::MAX - 1);
        add(&count, 1);
        add(&count, 5);
        assert_eq!(count.into_inner(), u64::MAX);
    }

    #[test]
    fn beyond_a_number_of_names_all_others_share_one() {
        let counters = EventCounters::default();
        for at in 0..NAMES_MAX + 50 {
            counters.of(&format!("d.k_{at}"))[Hits::Total as usize].fetch_add(1, Ordering::Relaxed);
        }
        let stats = counters.read(None);
        assert_eq!(stats.limits.len(), NAMES_MAX + 1);
        assert_eq!(stats.limits[OTHERS][0], ("total_hits", 50));
        assert_eq!(stats.limits["d.k_7"][0], ("total_hits", 1));
    }

    #[test]
    fn stats_stand_in_the_order_of_their_kinds() {
        for (at, hits) in Hits::ALL.iter().enumerate() {
            assert_eq!(*hits as usize, at);
        }
        for (at, answer) in ResponseOutcome::ALL.iter().enumerate() {
            assert_eq!(*answer as usize, at);
        }
    }
}
