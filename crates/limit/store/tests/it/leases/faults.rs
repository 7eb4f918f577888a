//! Several nodes, a store that is far away and loses what can be lost, and a judge who sees every
//! call in real time.
//!
//! Time is virtual, so a run of a minute takes milliseconds. Calls, messages and faults follow from
//! the seed; how long nodes pause that met at a record does not.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::lending::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::leases::judge::Judge;
use crate::leases::node::node_with;
use crate::leases::store::{BACK_MAX, BEGIN, Draw, Memory};
use crate::leases::way::{Network, Way};

const WINDOW_SECS: u64 = 20;
const NODES: usize = 4;
/// Tasks that call at each node, one call after the other.
const CALLERS: u64 = 3;

pub(crate) fn policies(calls: u32, burst: u32) -> [Policy; 7] {
    let rate = Rate::new(calls, DurationUs::from_secs(WINDOW_SECS)).unwrap();
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

/// What breaks.
#[derive(Clone, Copy)]
enum Faults {
    OfNodes,
    /// The store forgets, too. After that all counts as spent for a while.
    All,
}

/// A world of one store and some nodes.
struct World {
    memory: Memory,
    policy: Policy,
    draw: Arc<Draw>,
    judge: Arc<Mutex<Judge>>,
    nodes: Vec<Node>,
    tasks: JoinSet<()>,
}

struct Node {
    way: Way,
    /// What runs at present; another one after a crash.
    counts: Arc<Mutex<Arc<LeasedCounts>>>,
    ppm: i64,
}

impl World {
    fn new(seed: u64, policy: Policy, network: Network, cost_max: u32) -> Self {
        let draw = Arc::new(Draw::new(seed));
        let memory = Memory::in_virtual_time();
        let nodes = (0..NODES).map(|_| {
            let way = Way::new(&memory, network, draw.number());
            let ppm = i64::try_from(draw.below(1_000)).unwrap() - 500;
            let counts = Arc::new(node_with(&way, settings(), ppm));
            Node {
                counts: Arc::new(Mutex::new(counts)),
                way,
                ppm,
            }
        });
        Self {
            nodes: nodes.collect(),
            judge: Arc::new(Mutex::new(Judge::new(policy, cost_max))),
            memory,
            policy,
            draw,
            tasks: JoinSet::new(),
        }
    }

    /// Calls at each node, about so many in a window at all of them together.
    fn begin_to_call(&mut self, calls: u64, cost_max: u64) {
        let each = NODES as u64 * CALLERS;
        let apart = WINDOW_SECS * 1_000_000 * each / calls;
        for node in &self.nodes {
            for _ in 0..CALLERS {
                let caller = Caller {
                    counts: Arc::clone(&node.counts),
                    memory: self.memory.clone(),
                    judge: Arc::clone(&self.judge),
                    policy: self.policy,
                    draw: Draw::new(self.draw.number()),
                    apart,
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
                ended.expect("the judge has nothing to say");
                panic!("a caller has ended");
            }
        }
    }

    /// Something goes wrong. The first node never loses touch for longer than a store that was
    /// found empty waits.
    fn break_something(&self, faults: Faults) {
        let one = usize::try_from(self.draw.within(1, NODES as u64 - 1)).unwrap();
        let node = &self.nodes[one];
        let kinds = match faults {
            Faults::OfNodes => 5,
            Faults::All => 9,
        };
        match self.draw.below(kinds) {
            0 => {
                let counts = node_with(&node.way, settings(), node.ppm);
                *node.counts.lock() = Arc::new(counts);
            }
            1 => node.way.change(|network| network.is_cut = true),
            2 => node.way.change(|network| network.is_down = true),
            3 | 4 => self.heal(),
            5 => self.memory.wipe(),
            6 => self.memory.flush(),
            7 => self.memory.roll_back(self.draw.within(1_000, BACK_MAX)),
            _ => {
                self.judge.lock().is_clock_right = false;
                self.memory.step_back(self.draw.below(20_000_000));
            }
        }
    }

    fn heal(&self) {
        for node in &self.nodes {
            node.way.change(|network| {
                network.is_cut = false;
                network.is_down = false;
            });
        }
    }

    /// What was answered in one step, as it would have been in two round trips.
    fn steps(&self) -> u64 {
        let stats = self.nodes.iter().map(|node| node.counts.lock().stats());
        let steps = stats.map(|stats| {
            assert_eq!(stats.disagreements, 0);
            stats.steps
        });
        steps.sum()
    }

    fn total(&self) -> u64 {
        self.judge.lock().total
    }
}

fn settings() -> Settings {
    Settings::default()
}

/// Calls again and again.
struct Caller {
    counts: Arc<Mutex<Arc<LeasedCounts>>>,
    memory: Memory,
    judge: Arc<Mutex<Judge>>,
    policy: Policy,
    draw: Draw,
    /// Microseconds.
    apart: u64,
    cost_max: u64,
}

impl Caller {
    async fn run(self) {
        loop {
            let span = self.draw.within(self.apart / 2, self.apart * 3 / 2);
            sleep(Duration::from_micros(span)).await; // tidy: paused time
            let most = if self.draw.below(4) == 0 {
                self.cost_max
            } else {
                1
            };
            let cost = u32::try_from(self.draw.within(1, most)).unwrap();
            let counts = Arc::clone(&self.counts.lock());
            let key = CallKey(1);
            // The second limit rejects now and then, and the first must not be charged for it.
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
                cost: Cost::take(1 + 1_000 * u32::from(self.draw.below(8) == 0)),
            };
            let charged = match self.draw.below(3) {
                0 => counts.charge(&[one, other]).await,
                _ => counts.charge(&[one]).await,
            };
            if charged.is_ok_and(|verdicts| verdicts.iter().all(|one| one.is_admitted())) {
                self.judge.lock().spend(self.memory.real(), cost);
            }
        }
    }
}

/// What a limit admits of one client in so long who calls all the time.
fn alone(policy: &Policy, span: u64) -> u64 {
    let (mut state, mut now, mut admitted) = (State::default(), BEGIN, 0);
    let begin = BEGIN + 3 * WINDOW_SECS * 1_000_000;
    while now < begin + span {
        while policy
            .step(&mut state, TimestampUs(now), Cost::ONE)
            .is_admitted()
        {
            admitted += u64::from(now >= begin);
        }
        now += 10_000;
    }
    admitted
}

fn far() -> Network {
    Network {
        delay: (Duration::from_millis(70), Duration::from_millis(1)),
        ..Network::default()
    }
}

#[tokio::test(start_paused = true)]
async fn no_window_has_more_calls_than_were_promised_whatever_breaks() {
    let (mut total, mut steps) = (0, 0);
    for seed in 0..21 {
        for (at, policy) in (0..).zip(policies(60, 40)) {
            let draw = Draw::new(seed * 7 + at + 1_000);
            let network = Network {
                lost: draw.below(60),
                late: draw.below(20),
                ..far()
            };
            let mut world = World::new(seed * 7 + at, policy, network, 4);
            // One store of three lends in two round trips.
            if draw.below(3) == 0 {
                world.memory.refuse_steps();
            }
            world.begin_to_call(draw.within(80, 300), 4);
            let faults = if seed % 3 == 0 {
                Faults::All
            } else {
                Faults::OfNodes
            };
            for _ in 0..20 {
                world.run(Duration::from_millis(draw.below(12_000))).await;
                world.break_something(faults);
            }
            total += world.total();
            steps += world.steps();
        }
    }
    println!("{total} calls admitted, {steps} steps at nodes that lived to the end");
    assert!(total > 10_000, "{total}: nothing is shown by these");
    assert!(steps > 1_000, "{steps}: nothing is shown by these");
}

#[tokio::test(start_paused = true)]
async fn after_faults_nearly_all_that_the_widened_limit_allows_is_admitted_again() {
    for (seed, policy) in (0..).zip(policies(200, 100)) {
        let mut world = World::new(seed, policy, far(), 1);
        world.begin_to_call(500, 1);
        for _ in 0..10 {
            world.run(Duration::from_millis(1_500)).await;
            world.break_something(Faults::All);
        }
        world.heal();
        // A clock that was set back may have to be waited for, up to twice as long as the limit
        // reaches.
        world.run(Duration::from_secs(WINDOW_SECS * 6)).await;
        let before = world.total();
        let span = Duration::from_secs(WINDOW_SECS * 10);
        world.run(span).await;
        let admitted = world.total() - before;
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
async fn below_the_limit_nobody_is_rejected_or_told_of_an_outage() {
    for policy in policies(4_000, 2_000) {
        let memory = Memory::in_virtual_time();
        let way = Way::new(&memory, far(), 3);
        let node = crate::leases::node::node(&way);
        node.assume_empty().await.unwrap();
        for _ in 0..3_000 {
            let verdict = crate::leases::node::call(&node, &policy, 1, Cost::ONE).await;
            assert!(verdict.unwrap().is_admitted(), "{policy:?}");
            sleep(Duration::from_millis(10)).await; // tidy: paused time
        }
        let stats = node.stats();
        assert!(stats.decided_here > stats.asked * 4, "{stats:?}");
    }
}
