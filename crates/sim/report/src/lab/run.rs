//! Run of one algorithm, over one way of sharing counts, on one traffic.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::leases::widened::NotLeasableError;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::DurationUs;

use crate::lab::oracle;
use crate::lab::outcome::Outcome;
use crate::lab::routing::{Routing, route};
use crate::lab::stores::scheduler::{self, Scheduler, Store};
use crate::lab::stores::{
    Events, Gossip, Kafka, Leases, Local, Memcached, MemcachedCounters, OneStore, RetryPolicy,
};
use crate::lab::traffic::Traffic;

/// Most nodes of a run. More would be slow, and show nothing else.
pub const NODES_MAX: u32 = 1_000;

/// Default report interval of nodes, as in the gateway.
pub const INTERVAL: DurationUs = DurationUs(100_000);

/// Way in which nodes share counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreKind {
    /// Each node counts its own requests.
    Local,
    /// One store decides about every request.
    Valkey,
    /// Nodes lease requests ahead of demand.
    Leases,
    /// One store that can add to counters, and otherwise swaps a value that is unchanged since it
    /// was read.
    Memcached,
    /// Every node reports its allowed requests to all others.
    Gossip,
    /// Every node reports its allowed requests to an aggregator, and every node reads the totals.
    Kafka,
}

impl StoreKind {
    /// All kinds; first those with a bound.
    pub const ALL: [Self; 6] = [
        Self::Local,
        Self::Valkey,
        Self::Leases,
        Self::Memcached,
        Self::Gossip,
        Self::Kafka,
    ];

    /// Returns its word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Valkey => "valkey",
            Self::Leases => "leases",
            Self::Memcached => "memcached",
            Self::Gossip => "gossip",
            Self::Kafka => "kafka",
        }
    }

    /// Returns the kind with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// Returns the largest number of messages in a row until a request in time is decided: none
    /// where a node decides alone, and one to a store. Leases take four: the first grant may be for
    /// few requests, and a second one follows.
    #[must_use]
    pub const fn ways(self) -> u64 {
        match self {
            Self::Local | Self::Gossip | Self::Kafka => 0,
            Self::Valkey | Self::Memcached => 1,
            Self::Leases => 4,
        }
    }

    /// Returns the most requests of one client that any window allows, if its requests reach so
    /// many nodes.
    #[must_use]
    pub fn most_in_any_window(self, policy: &Policy, nodes: u32) -> u64 {
        let most = policy.window_cost_max(1);
        match self {
            // Reports of other nodes add to a node's own count, and never let it allow more.
            Self::Local | Self::Gossip | Self::Kafka => most.saturating_mul(u64::from(nodes)),
            Self::Valkey | Self::Leases | Self::Memcached => most,
        }
    }

    /// Checks that it can keep this algorithm.
    ///
    /// # Errors
    ///
    /// Returns [`UnfitError`], with the reason.
    pub fn check(self, policy: &Policy) -> Result<(), UnfitError> {
        match self {
            Self::Local | Self::Valkey | Self::Memcached => Ok(()),
            Self::Leases => Leases::leased_limit(policy)
                .map(drop)
                .map_err(UnfitError::LeasedLimit),
            Self::Gossip | Self::Kafka if policy.counters().is_some() => Ok(()),
            Self::Gossip | Self::Kafka => Err(UnfitError::NoCounts),
        }
    }
}

/// Reason why a store cannot keep an algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitError {
    /// Nodes report counts, and the algorithm has none.
    #[error("it shares counts of requests, and only windows have them")]
    NoCounts,
    /// The limit cannot be leased.
    #[error(transparent)]
    LeasedLimit(NotLeasableError),
}

/// Algorithm, nodes and network of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Algorithm with its limit.
    pub policy: Policy,
    /// Way in which nodes share counts.
    pub store: StoreKind,
    /// Largest number of nodes, from 1 to [`NODES_MAX`]. Nodes that are added later know all
    /// earlier reports.
    pub nodes: u32,
    /// Routing of requests to them.
    pub routing: Routing,
    /// Longest delay of a message; the shortest is half of it.
    pub delay: DurationUs,
    /// Interval of reports. With zero, nodes report each request at once.
    pub interval: DurationUs,
    /// Events that the aggregator counts per second.
    pub events_per_second: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Runs all requests and checks the decisions.
///
/// # Errors
///
/// Returns [`UnfitError`] if the store cannot keep the algorithm.
pub fn run(plan: &Plan, traffic: &Traffic) -> Result<Outcome, UnfitError> {
    plan.store.check(&plan.policy)?;
    Ok(match plan.store {
        StoreKind::Local => run_on(Local::new(plan), plan, traffic),
        StoreKind::Valkey => run_on(OneStore::new(plan), plan, traffic),
        StoreKind::Leases => {
            let leased_limit =
                Leases::leased_limit(&plan.policy).map_err(UnfitError::LeasedLimit)?;
            run_on(Leases::new(plan, leased_limit), plan, traffic)
        }
        StoreKind::Memcached => match plan.policy.counters() {
            Some(counters) => run_on(MemcachedCounters::new(counters), plan, traffic),
            None => run_on(Memcached::new(plan, RetryPolicy::Backoff), plan, traffic),
        },
        StoreKind::Gossip => {
            let counters = plan.policy.counters().ok_or(UnfitError::NoCounts)?;
            run_on(Gossip::new(plan, counters), plan, traffic)
        }
        StoreKind::Kafka => {
            let counters = plan.policy.counters().ok_or(UnfitError::NoCounts)?;
            run_on(Kafka::new(plan, counters), plan, traffic)
        }
    })
}

/// Runs the optimistic way of `memcached` for any algorithm, also for those that could be counters.
pub(crate) fn run_optimistic(plan: &Plan, retry: RetryPolicy, traffic: &Traffic) -> Outcome {
    run_on(Memcached::new(plan, retry), plan, traffic)
}

/// Runs the article's queue of events, where nodes do not count even their own requests.
///
/// # Errors
///
/// Returns [`UnfitError`] if the algorithm has no counts.
pub(crate) fn run_events(plan: &Plan, traffic: &Traffic) -> Result<Outcome, UnfitError> {
    let raised = crate::lab::algorithm::raised(&plan.policy).ok_or(UnfitError::NoCounts)?;
    Ok(run_on(Events::new(plan, raised), plan, traffic))
}

fn run_on<S: Store>(mut store: S, plan: &Plan, traffic: &Traffic) -> Outcome {
    let nodes = route(&plan.routing, plan.nodes, plan.seed, &traffic.requests);
    let mut scheduler = Scheduler::new(plan.seed, plan.delay);
    scheduler::serve(&mut store, &mut scheduler, &traffic.requests, &nodes);
    let (mut decisions, costs) = scheduler.close();
    let mut stats = oracle::count_decisions(plan.policy.rate(), &mut decisions);
    stats.messages = costs.messages;
    stats.stranded = store.stranded();
    stats.lag = costs.lag;
    stats.writes = costs.writes;
    stats.writes_lost = costs.writes_lost;
    Outcome { stats, decisions }
}
