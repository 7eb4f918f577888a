//! Counters in a store that can only add: several nodes add, read when they come to it, and take
//! back what they rejected. No window has more than its bound.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::policy::Policy;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use proptest::prelude::*;

use crate::limits::model::Model;
use crate::limits::moves::{Jump, Move, Place, moves, policies};

/// All that the store can do.
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

    fn read(&self, counters: &Counters, call: AddThenRead) -> Vec<u32> {
        let count = |index| self.counters.get(&index).copied().unwrap_or(0);
        counters.to_read(call).map(count).collect()
    }
}

/// How far a node has come with a call.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Idle,
    /// It looked at the clock.
    Dated(TimestampUs, u32),
    Added(TimestampUs, u32),
    Rejected(TimestampUs, u32),
}

const NODES: usize = 3;

struct World {
    counters: Counters,
    store: Store,
    nodes: [Stage; NODES],
    model: Model,
}

impl World {
    /// The next thing that a node does.
    fn go_on(&mut self, node: usize, now: TimestampUs, cost: u32) {
        self.nodes[node] = match self.nodes[node] {
            Stage::Idle => Stage::Dated(now, cost),
            Stage::Dated(at, cost) => {
                self.store.add(self.counters.index_at(at), cost);
                Stage::Added(at, cost)
            }
            Stage::Added(at, cost) => {
                let call = AddThenRead {
                    added_at: at,
                    read_at: now,
                };
                let read = self.store.read(&self.counters, call);
                let verdict = self.counters.judge(call, Cost::take(cost), &read);
                if verdict.is_admitted() {
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
    let jumps = moves().prop_map(|todo| match todo {
        Move::Jump(jump) => Turn::TimePasses(jump),
        _ => Turn::TimePasses(Jump::Stay),
    });
    let cost = prop_oneof![3 => Just(1u32), 2 => 2u32..5, 1 => 5u32..12];
    prop_oneof![1 => jumps, 4 => (0..NODES, cost).prop_map(|(node, cost)| Turn::Node(node, cost))]
}

fn counted() -> impl Strategy<Value = (Policy, Counters)> {
    let counters = |policy: Policy| policy.counters().map(|counters| (policy, counters));
    policies().prop_filter_map("counters are enough for it", counters)
}

/// Adds, reads and judges at once, and takes back what is rejected.
fn call_at_once(store: &mut Store, counters: &Counters, now: TimestampUs, cost: Cost) -> Verdict {
    let call = AddThenRead {
        added_at: now,
        read_at: now,
    };
    let index = counters.index_at(now);
    if let Cost::Take(taken) = cost {
        store.add(index, taken.get());
    }
    let verdict = counters.judge(call, cost, &store.read(counters, call));
    if let Cost::Take(taken) = cost
        && !verdict.is_admitted()
    {
        store.subtract(index, taken.get());
    }
    verdict
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_window_has_more_however_late_nodes_read(
        (policy, counters) in counted(),
        turns in prop::collection::vec(turns(), 1..120),
    ) {
        let mut place = Place::new(policy, 1_700_000_000_000_000);
        let mut world = World {
            counters,
            store: Store::default(),
            nodes: [Stage::Idle; NODES],
            model: Model::default(),
        };
        for turn in turns {
            match turn {
                Turn::TimePasses(jump) => place.jump(jump),
                Turn::Node(node, cost) => world.go_on(node, place.now, cost),
            }
        }
        let fullest = world.model.fullest(policy.rate().window());
        let most = policy.most_in_any_window(12);
        prop_assert!(fullest <= most, "{} in a window, not {}: {:?}", fullest, most, world.model);
    }

    #[test]
    fn counters_in_a_store_say_the_same_as_those_of_one_node(
        (policy, counters) in counted(),
        todo in prop::collection::vec(moves(), 1..60),
    ) {
        let mut place = Place::new(policy, 1_700_000_000_000_000);
        let mut store = Store::default();
        for todo in todo {
            match todo {
                Move::Step(Cost::Refund(_)) | Move::Flood | Move::Forget => {}
                Move::Jump(jump) => place.jump(jump),
                Move::Step(cost) => {
                    let told = call_at_once(&mut store, &counters, place.now, cost);
                    prop_assert_eq!(place.step(cost), told);
                }
            }
        }
    }

    #[test]
    fn a_counter_that_matters_no_more_is_never_read(
        (_, counters) in counted(),
        now in 0u64..1 << 60,
    ) {
        let now = TimestampUs(now);
        let call = AddThenRead { added_at: now, read_at: now };
        let read: Vec<_> = counters.to_read(call).collect();
        prop_assert_eq!(read[0], counters.index_at(now));
        for index in read {
            let starts_at = TimestampUs(index.0 * counters.width().0);
            prop_assert!(now.since(starts_at) < counters.matters_for());
        }
    }
}
