//! One algorithm, over one way of sharing counts, on one traffic: what comes out?

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::lending::widened::NotLeasableError;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::DurationUs;

use crate::lab::outcome::Outcome;
use crate::lab::referee;
use crate::lab::routing::{Routing, route};
use crate::lab::stores::desk::{self, Desk, Store};
use crate::lab::stores::{
    Events, Gossip, Kafka, Leases, Local, Manner, Memcached, MemcachedCounters, OneStore,
};
use crate::lab::traffic::Traffic;

/// Most nodes. More would be slow, and shows nothing else.
pub const NODES_MAX: u32 = 1_000;

/// For how long nodes gather news, if nobody says otherwise: as long as those of the gateway do.
pub const INTERVAL: DurationUs = DurationUs(100_000);

/// How nodes share what they know of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreKind {
    /// Not at all: each counts by itself.
    Local,
    /// One place decides about every call.
    Valkey,
    /// Calls are lent to nodes ahead of demand.
    Leases,
    /// One place that can add to counters, and otherwise swap what nobody has changed meanwhile.
    Memcached,
    /// Every node tells all others what it let through.
    Gossip,
    /// Every node tells somebody who sums up what it let through; every node hears the sums.
    Kafka,
}

impl StoreKind {
    /// All of them; first those that promise a bound.
    pub const ALL: [Self; 6] = [
        Self::Local,
        Self::Valkey,
        Self::Leases,
        Self::Memcached,
        Self::Gossip,
        Self::Kafka,
    ];

    /// Its word.
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

    /// The one with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// How many messages one after the other it takes at most until a call is decided, as far as
    /// calls in time are concerned: none where a node knows by itself, the question to a store, and
    /// where a client's calls are lent a first answer that is for few of them, and a second one.
    #[must_use]
    pub const fn ways(self) -> u64 {
        match self {
            Self::Local | Self::Gossip | Self::Kafka => 0,
            Self::Valkey | Self::Memcached => 1,
            Self::Leases => 4,
        }
    }

    /// How much of one client is admitted in any window at most, if its calls go to so many nodes.
    #[must_use]
    pub fn most_in_any_window(self, policy: &Policy, nodes: u32) -> u64 {
        let most = policy.most_in_any_window(1);
        match self {
            // What others tell comes on top of what a node counts itself, and never lets it admit
            // more.
            Self::Local | Self::Gossip | Self::Kafka => most.saturating_mul(u64::from(nodes)),
            Self::Valkey | Self::Leases | Self::Memcached => most,
        }
    }

    /// Whether it can keep this algorithm.
    ///
    /// # Errors
    ///
    /// [`UnfitError`], with the reason.
    pub fn check(self, policy: &Policy) -> Result<(), UnfitError> {
        match self {
            Self::Local | Self::Valkey | Self::Memcached => Ok(()),
            Self::Leases => Leases::lending(policy)
                .map(drop)
                .map_err(UnfitError::LeasedLimit),
            Self::Gossip | Self::Kafka if policy.counters().is_some() => Ok(()),
            Self::Gossip | Self::Kafka => Err(UnfitError::NoCounts),
        }
    }
}

/// Why a store cannot keep an algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitError {
    /// Nodes tell each other counts, and that is not what the algorithm keeps.
    #[error("it shares counts of calls, which only windows are made of")]
    NoCounts,
    /// It cannot be lent.
    #[error(transparent)]
    LeasedLimit(NotLeasableError),
}

/// What surrounds an algorithm.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// The algorithm, with its limit.
    pub policy: Policy,
    /// How nodes share.
    pub store: StoreKind,
    /// How many there are at most, from 1 to [`NODES_MAX`]. Those that come later know
    /// by then what the others were told before.
    pub nodes: u32,
    /// To which of them calls go.
    pub routing: Routing,
    /// A message takes between half as long and this long.
    pub delay: DurationUs,
    /// For how long nodes gather what they tell each other. Zero: they tell each call at once.
    pub interval: DurationUs,
    /// So many events a second are counted, where counting is somebody's work.
    pub events_per_second: u32,
    /// Another throw of the dice.
    pub seed: u64,
}

/// Runs all calls and judges the decisions.
///
/// # Errors
///
/// [`UnfitError`] if the store cannot keep the algorithm.
pub fn run(plan: &Plan, traffic: &Traffic) -> Result<Outcome, UnfitError> {
    plan.store.check(&plan.policy)?;
    Ok(match plan.store {
        StoreKind::Local => run_on(Local::new(plan), plan, traffic),
        StoreKind::Valkey => run_on(OneStore::new(plan), plan, traffic),
        StoreKind::Leases => {
            let lending = Leases::lending(&plan.policy).map_err(UnfitError::LeasedLimit)?;
            run_on(Leases::new(plan, lending), plan, traffic)
        }
        StoreKind::Memcached => match plan.policy.counters() {
            Some(counters) => run_on(MemcachedCounters::new(counters), plan, traffic),
            None => run_on(Memcached::new(plan, Manner::Patient), plan, traffic),
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

/// The optimistic way of `memcached` for any algorithm, also for those that could be counters.
pub(crate) fn run_optimistic(plan: &Plan, manner: Manner, traffic: &Traffic) -> Outcome {
    run_on(Memcached::new(plan, manner), plan, traffic)
}

/// The article's queue of events, where nodes do not even count their own calls.
///
/// # Errors
///
/// [`UnfitError`] if the algorithm does not keep counts.
pub(crate) fn run_events(plan: &Plan, traffic: &Traffic) -> Result<Outcome, UnfitError> {
    let raised = crate::lab::algorithm::raised(&plan.policy).ok_or(UnfitError::NoCounts)?;
    Ok(run_on(Events::new(plan, raised), plan, traffic))
}

fn run_on<S: Store>(mut store: S, plan: &Plan, traffic: &Traffic) -> Outcome {
    let nodes = route(&plan.routing, plan.nodes, plan.seed, &traffic.calls);
    let mut desk = Desk::new(plan.seed, plan.delay);
    desk::serve(&mut store, &mut desk, &traffic.calls, &nodes);
    let (mut decisions, costs) = desk.close();
    let mut stats = referee::judge(plan.policy.rate(), &mut decisions);
    stats.messages = costs.messages;
    stats.stranded = store.stranded();
    stats.lag = costs.lag;
    stats.writes = costs.writes;
    stats.writes_lost = costs.writes_lost;
    Outcome { stats, decisions }
}
