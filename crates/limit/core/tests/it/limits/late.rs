//! Counters in a store that can only add: several nodes add, read late, and subtract what they
//! rejected. No window exceeds its bound.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::policy::Policy;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use proptest::prelude::*;

use crate::limits::model::Model;
use crate::limits::moves::{Client, Jump, Move, moves, policies};

/// Store with the operations that the counters need.
#[derive(Default)]
struct Store {
    counters: BTreeMap<CounterIndex, u32>,
}

impl Store {
    fn add(&mut self, index: CounterIndex, cost: u32) {
        *self.counters.entry(index).or_default() += cost;
    }

    fn subtract(&mut self, index: CounterIndex, cost: u32) {
        let counter = self.counters.entry(index).or_default();
        *counter = counter.saturating_sub(cost);
    }

    fn read(&self, counters: &Counters, times: AddThenRead) -> Vec<u32> {
        let count = |index| self.counters.get(&index).copied().unwrap_or(0);
        counters.to_read(times).map(count).collect()
    }
}

/// Progress of a node with a request.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Idle,
    /// Clock read, nothing added yet.
    Dated(TimestampUs, u32),
    Added(TimestampUs, u32),
    Rejected(TimestampUs, u32),
}

const NODES: usize = 3;

struct Simulation {
    counters: Counters,
    store: Store,
    nodes: [Stage; NODES],
    model: Model,
}

impl Simulation {
    /// Runs the next step of a node.
    fn advance(&mut self, node: usize, now: TimestampUs, cost: u32) {
        self.nodes[node] = match self.nodes[node] {
            Stage::Idle => Stage::Dated(now, cost),
            Stage::Dated(at, cost) => {
                self.store.add(self.counters.index_at(at), cost);
                Stage::Added(at, cost)
            }
            Stage::Added(at, cost) => {
                let times = AddThenRead {
                    added_at: at,
                    read_at: now,
                };
                let read = self.store.read(&self.counters, times);
                let verdict = self.counters.decide(times, Cost::take(cost), &read);
                if verdict.is_allowed() {
                    self.model.admit(at, cost);
                    Stage::Idle
                } else {
                    Stage::Rejected(at, cost)
                }
            }
            Stage::Rejected(at, cost) => {
                self.store.subtract(self.counters.index_at(at), cost);
                Stage::Idle
            }
        };
    }
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    TimePasses(Jump),
    Node(usize, u32),
}

fn turns() -> impl Strategy<Value = Turn> {
    let jumps = moves().prop_map(|next| match next {
        Move::Jump(jump) => Turn::TimePasses(jump),
        _ => Turn::TimePasses(Jump::Stay),
    });
    let cost = prop_oneof![3 => Just(1u32), 2 => 2u32..5, 1 => 5u32..12];
    prop_oneof![1 => jumps, 4 => (0..NODES, cost).prop_map(|(node, cost)| Turn::Node(node, cost))]
}

fn counted() -> impl Strategy<Value = (Policy, Counters)> {
    let counters = |policy: Policy| policy.counters().map(|counters| (policy, counters));
    policies().prop_filter_map("counters suffice", counters)
}

/// Adds, reads and decides at once, and subtracts what is rejected.
fn request_at_once(
    store: &mut Store,
    counters: &Counters,
    now: TimestampUs,
    cost: Cost,
) -> Verdict {
    let times = AddThenRead {
        added_at: now,
        read_at: now,
    };
    let index = counters.index_at(now);
    if let Cost::Take(taken) = cost {
        store.add(index, taken.get());
    }
    let verdict = counters.decide(times, cost, &store.read(counters, times));
    if let Cost::Take(taken) = cost
        && !verdict.is_allowed()
    {
        store.subtract(index, taken.get());
    }
    verdict
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_window_exceeds_its_bound_however_late_nodes_read(
        (policy, counters) in counted(),
        turns in prop::collection::vec(turns(), 1..120),
    ) {
        let mut client = Client::new(policy, 1_700_000_000_000_000);
        let mut simulation = Simulation {
            counters,
            store: Store::default(),
            nodes: [Stage::Idle; NODES],
            model: Model::default(),
        };
        for turn in turns {
            match turn {
                Turn::TimePasses(jump) => client.jump(jump),
                Turn::Node(node, cost) => simulation.advance(node, client.now, cost),
            }
        }
        let fullest = simulation.model.fullest(policy.rate().window());
        let most = policy.window_cost_max(12);
        let model = &simulation.model;
        prop_assert!(fullest <= most, "{} in a window, limit {}: {:?}", fullest, most, model);
    }

    #[test]
    fn counters_in_a_store_decide_like_those_of_one_node(
        (policy, counters) in counted(),
        next in prop::collection::vec(moves(), 1..60),
    ) {
        let mut client = Client::new(policy, 1_700_000_000_000_000);
        let mut store = Store::default();
        for next in next {
            match next {
                Move::Step(Cost::Refund(_)) | Move::Flood | Move::Forget => {}
                Move::Jump(jump) => client.jump(jump),
                Move::Step(cost) => {
                    let verdict = request_at_once(&mut store, &counters, client.now, cost);
                    prop_assert_eq!(client.step(cost), verdict);
                }
            }
        }
    }

    #[test]
    fn an_expired_counter_is_never_read(
        (_, counters) in counted(),
        now in 0u64..1 << 60,
    ) {
        let now = TimestampUs(now);
        let times = AddThenRead { added_at: now, read_at: now };
        let read: Vec<_> = counters.to_read(times).collect();
        prop_assert_eq!(read[0], counters.index_at(now));
        for index in read {
            let starts_at = TimestampUs(index.0 * counters.width().0);
            prop_assert!(now.since(starts_at) < counters.valid_for());
        }
    }
}
