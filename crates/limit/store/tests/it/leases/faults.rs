//! Several nodes and a distant store with faults of all kinds, and a checker that sees every
//! request in real time.
//!
//! Time is virtual, so a run of a minute takes milliseconds. Requests, messages and faults follow
//! from the seed; the pauses of nodes after a conflict do not.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::leases::checker::Checker;
use crate::leases::link::{Network, StoreLink};
use crate::leases::node::node_with;
use crate::leases::store::{BACK_MAX, BEGIN, Memory, Rng};

const WINDOW_SECS: u64 = 20;
const NODES: usize = 4;
/// Promise of a store that comes back with its data.
const LONGEST_LOSS: DurationUs = DurationUs::from_secs(2);
/// Tasks per node that send one request after the other.
const CALLERS: u64 = 3;

pub(crate) fn policies(requests: u32, burst: u32) -> [Policy; 7] {
    policies_of(WINDOW_SECS, requests, burst)
}

fn policies_of(window_secs: u64, requests: u32, burst: u32) -> [Policy; 7] {
    let rate = Rate::new(requests, DurationUs::from_secs(window_secs)).unwrap();
    [
        Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
        Policy::SubWindows(SubWindows::strict(rate, 4).unwrap()),
        Policy::TokenBucket(TokenBucket::new(rate, burst, burst).unwrap()),
        Policy::Gcra(Gcra::new(rate, burst).unwrap()),
        Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(SubWindows::new(rate, 4).unwrap()),
    ]
}

/// Kinds of faults to inject.
#[derive(Clone, Copy)]
enum Faults {
    OfNodes,
    /// Faults of nodes, and losses of the store. After a loss everything counts as spent for a
    /// while.
    All,
}

/// One store and several nodes.
struct Cluster {
    memory: Memory,
    policy: Policy,
    rng: Arc<Rng>,
    checker: Arc<Mutex<Checker>>,
    nodes: Vec<Node>,
    tasks: JoinSet<()>,
}

struct Node {
    link: StoreLink,
    /// Running process of the node; a crash replaces it.
    counts: Arc<Mutex<Arc<LeasedCounts>>>,
    ppm: i64,
}

impl Node {
    fn crash(&self) {
        let counts = node_with(&self.link, settings(), self.ppm);
        *self.counts.lock() = Arc::new(counts);
    }
}

impl Cluster {
    fn new(seed: u64, policy: Policy, network: Network, cost_max: u32) -> Self {
        let rng = Arc::new(Rng::new(seed));
        let memory = Memory::in_virtual_time();
        let nodes = (0..NODES).map(|_| {
            let link = StoreLink::new(&memory, network, rng.number());
            let ppm = i64::try_from(rng.below(1_000)).unwrap() - 500;
            let counts = Arc::new(node_with(&link, settings(), ppm));
            Node {
                counts: Arc::new(Mutex::new(counts)),
                link,
                ppm,
            }
        });
        Self {
            nodes: nodes.collect(),
            checker: Arc::new(Mutex::new(Checker::new(policy, cost_max))),
            memory,
            policy,
            rng,
            tasks: JoinSet::new(),
        }
    }

    /// Starts the callers of all nodes, with about `requests` per window in total.
    fn start_callers(&mut self, requests: u64, cost_max: u64) {
        let each = NODES as u64 * CALLERS;
        let interval_us = self.policy.rate().window().0 * each / requests;
        for node in &self.nodes {
            for _ in 0..CALLERS {
                let caller = Caller {
                    counts: Arc::clone(&node.counts),
                    memory: self.memory.clone(),
                    checker: Arc::clone(&self.checker),
                    policy: self.policy,
                    rng: Rng::new(self.rng.number()),
                    interval_us,
                    cost_max,
                };
                self.tasks.spawn(caller.run());
            }
        }
    }

    async fn run(&mut self, span: Duration) {
        let ends = Instant::now() + span;
        while Instant::now() < ends {
            let span = Duration::from_millis(100).min(ends - Instant::now());
            sleep(span).await; // tidy: paused time
            if let Some(ended) = self.tasks.try_join_next() {
                ended.expect("the checker finds no fault");
                panic!("a caller has ended");
            }
        }
    }

    /// Injects a fault. The first node never loses its connection for longer than an empty store
    /// waits.
    fn break_something(&self, faults: Faults) {
        let one = usize::try_from(self.rng.within(1, NODES as u64 - 1)).unwrap();
        let node = &self.nodes[one];
        let kinds = match faults {
            Faults::OfNodes => 5,
            Faults::All => 9,
        };
        match self.rng.below(kinds) {
            0 => node.crash(),
            1 => node.link.change(|network| network.is_cut = true),
            2 => node.link.change(|network| network.is_down = true),
            3 | 4 => self.heal(),
            5 => self.memory.wipe(),
            6 => self.memory.flush(),
            7 => self.memory.roll_back(self.rng.within(1_000, BACK_MAX)),
            _ => {
                self.checker.lock().is_clock_right = false;
                self.memory.step_back(self.rng.below(20_000_000));
            }
        }
    }

    /// Injects a fault of a node, or a store that comes back without its last writes, as far as it
    /// promised. Nodes die with it, before or after, old ones and new ones.
    async fn come_back(&mut self) {
        let one = usize::try_from(self.rng.below(NODES as u64)).unwrap();
        let lost = self.rng.below(LONGEST_LOSS.0);
        let kind = self.rng.below(16);
        if kind > 13 {
            // The store keeps that the old process left, and forgets that the new one joined.
            let old = Arc::clone(&self.nodes[one].counts.lock());
            old.finish(false).await;
            self.run(Duration::from_millis(2_500)).await;
            self.nodes[one].crash();
            self.run(Duration::from_micros(lost * 3 / 4)).await;
        }
        let node = &self.nodes[one];
        match kind {
            0 => node.crash(),
            1 => node.link.change(|network| network.is_cut = true),
            2..=3 => self.heal(),
            4..=9 => self.memory.roll_back(lost),
            10 | 11 => {
                node.crash();
                self.memory.roll_back(lost);
            }
            14 | 15 => {
                node.crash();
                self.memory.roll_back(lost);
            }
            12 => {
                self.memory.roll_back(lost);
                node.crash();
            }
            _ => {
                for node in &self.nodes {
                    node.crash();
                }
                self.memory.roll_back(lost);
            }
        }
    }

    fn heal(&self) {
        for node in &self.nodes {
            node.link.change(|network| {
                network.is_cut = false;
                network.is_down = false;
            });
        }
    }

    /// Returns the number of leases granted in one step, after checking that store and node agreed.
    fn steps(&self) -> u64 {
        let stats = self.nodes.iter().map(|node| node.counts.lock().stats());
        let steps = stats.map(|stats| {
            assert_eq!(stats.disagreements, 0);
            stats.steps
        });
        steps.sum()
    }

    /// Returns what nodes restored that have not crashed since.
    fn restored(&self) -> u64 {
        let stats = self.nodes.iter().map(|node| node.counts.lock().stats());
        stats.map(|stats| stats.restored).sum()
    }

    fn total(&self) -> u64 {
        self.checker.lock().total
    }
}

/// Seeds of comebacks; each runs all policies.
const COMEBACK_SEEDS: u64 = 48;

fn settings() -> Settings {
    Settings::default()
}

/// Client that sends requests until the end.
struct Caller {
    counts: Arc<Mutex<Arc<LeasedCounts>>>,
    memory: Memory,
    checker: Arc<Mutex<Checker>>,
    policy: Policy,
    rng: Rng,
    /// Mean time between requests, in microseconds.
    interval_us: u64,
    cost_max: u64,
}

impl Caller {
    async fn run(self) {
        loop {
            let span = self
                .rng
                .within(self.interval_us / 2, self.interval_us * 3 / 2);
            sleep(Duration::from_micros(span)).await; // tidy: paused time
            let most = if self.rng.below(4) == 0 {
                self.cost_max
            } else {
                1
            };
            let cost = u32::try_from(self.rng.within(1, most)).unwrap();
            let counts = Arc::clone(&self.counts.lock());
            let key = ClientKey(1);
            // The second limit rejects now and then, which must cost the first nothing.
            let few = policies(1_000, 1_000)[0];
            let one = SharedAcquire {
                limit: "api",
                policy: &self.policy,
                key,
                cost: Cost::take(cost),
            };
            let other = SharedAcquire {
                limit: "other",
                policy: &few,
                key,
                cost: Cost::take(1 + 1_000 * u32::from(self.rng.below(8) == 0)),
            };
            let outcome = match self.rng.below(3) {
                0 => counts.acquire(&[one, other]).await,
                _ => counts.acquire(&[one]).await,
            };
            if outcome.is_ok_and(|verdicts| verdicts.iter().all(|one| one.is_allowed())) {
                self.checker.lock().spend(self.memory.real(), cost);
            }
        }
    }
}

/// Returns how many requests a limit admits to one client that sends all the time.
fn alone(policy: &Policy, span: u64) -> u64 {
    let (mut state, mut now, mut admitted) = (State::default(), BEGIN, 0);
    let begin = BEGIN + 3 * WINDOW_SECS * 1_000_000;
    while now < begin + span {
        while policy
            .step(&mut state, TimestampUs(now), Cost::ONE)
            .is_allowed()
        {
            admitted += u64::from(now >= begin);
        }
        now += 10_000;
    }
    admitted
}

fn near() -> Network {
    Network {
        delay: (Duration::from_millis(2), Duration::from_millis(1)),
        ..Network::default()
    }
}

fn lossy(rng: &Rng) -> Network {
    Network {
        lost: rng.below(40),
        late: rng.below(20),
        ..far()
    }
}

fn far() -> Network {
    Network {
        delay: (Duration::from_millis(70), Duration::from_millis(1)),
        ..Network::default()
    }
}

#[tokio::test(start_paused = true)]
async fn no_window_exceeds_its_limit_whatever_breaks() {
    let (mut total, mut steps) = (0, 0);
    for seed in 0..21 {
        for (at, policy) in (0..).zip(policies(60, 40)) {
            let rng = Rng::new(seed * 7 + at + 1_000);
            let network = Network {
                lost: rng.below(60),
                late: rng.below(20),
                ..far()
            };
            let mut cluster = Cluster::new(seed * 7 + at, policy, network, 4);
            // One store of three grants in two round trips.
            if rng.below(3) == 0 {
                cluster.memory.disable_steps();
            }
            cluster.start_callers(rng.within(80, 300), 4);
            let faults = if seed % 3 == 0 {
                Faults::All
            } else {
                Faults::OfNodes
            };
            for _ in 0..20 {
                cluster.run(Duration::from_millis(rng.below(12_000))).await;
                cluster.break_something(faults);
            }
            total += cluster.total();
            steps += cluster.steps();
        }
    }
    println!("{total} requests admitted, {steps} steps at nodes that ran to the end");
    assert!(total > 10_000, "{total}: too few for a test");
    assert!(steps > 1_000, "{steps}: too few for a test");
}

/// A comeback that loses grants exceeds a limit only if clients use up the rest soon. So there are
/// few faults, and then all clients send much more than the limit.
#[tokio::test(start_paused = true)]
async fn no_window_exceeds_its_limit_when_a_store_comes_back_with_its_data() {
    let (mut total, mut restored) = (0, 0);
    for seed in 0..COMEBACK_SEEDS {
        for (at, policy) in (0..).zip(policies_of(90, 200, 150)) {
            let rng = Rng::new(seed * 7 + at + 5_000);
            // Half of the runs lose little to latency, so that each lost grant shows.
            let (network, cost_max) = match seed % 2 {
                0 => (near(), 1),
                _ => (lossy(&rng), 4),
            };
            let mut cluster = Cluster::new(seed * 7 + at + 9_000, policy, network, 4);
            cluster.memory.promise(LONGEST_LOSS);
            if rng.below(3) == 0 {
                cluster.memory.disable_steps();
            }
            cluster.start_callers(rng.within(200, 6_000), cost_max);
            // Before, nothing is granted.
            cluster.run(Duration::from_millis(5_000)).await;
            for _ in 0..rng.within(1, 3) {
                let most = if rng.below(2) == 0 { 2_500 } else { 15_000 };
                cluster.run(Duration::from_millis(rng.below(most))).await;
                cluster.come_back().await;
            }
            cluster.run(Duration::from_secs(40)).await;
            total += cluster.total();
            restored += cluster.restored();
        }
    }
    println!("{total} requests admitted, {restored} restored");
    assert!(total > 10_000, "{total}: too few for a test");
    assert!(restored > 500, "{restored}: too few for a test");
}

#[tokio::test(start_paused = true)]
async fn after_faults_nearly_the_whole_widened_limit_is_admitted_again() {
    for (seed, policy) in (0..).zip(policies(200, 100)) {
        let mut cluster = Cluster::new(seed, policy, far(), 1);
        cluster.start_callers(500, 1);
        for _ in 0..10 {
            cluster.run(Duration::from_millis(1_500)).await;
            cluster.break_something(Faults::All);
        }
        cluster.heal();
        // Nodes may have to wait for a clock that was set back, up to twice the reach of the limit.
        cluster.run(Duration::from_secs(WINDOW_SECS * 6)).await;
        let before = cluster.total();
        let span = Duration::from_secs(WINDOW_SECS * 10);
        cluster.run(span).await;
        let admitted = cluster.total() - before;
        let widened = *LeasedLimit::new(policy).unwrap().widened();
        let allowed = alone(&widened, span.as_micros().try_into().unwrap());
        println!("{policy:?}: {admitted} of {allowed}");
        assert!(
            admitted * 10 >= allowed * 8,
            "{policy:?}: {admitted} of {allowed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn below_the_limit_no_request_is_rejected_or_fails() {
    for policy in policies(4_000, 2_000) {
        let memory = Memory::in_virtual_time();
        let link = StoreLink::new(&memory, far(), 3);
        let node = crate::leases::node::node(&link);
        node.assume_empty().await.unwrap();
        for _ in 0..3_000 {
            let verdict = crate::leases::node::acquire(&node, &policy, 1, Cost::ONE).await;
            assert!(verdict.unwrap().is_allowed(), "{policy:?}");
            sleep(Duration::from_millis(10)).await; // tidy: paused time
        }
        let stats = node.stats();
        assert!(stats.decided_here > stats.waited * 4, "{stats:?}");
    }
}
