//! Thousands of short runs with all kinds of faults.

use anteroom_limit::leases::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::leases::draw::Draw;
use crate::leases::mutations::Mutation;
use crate::leases::plan::{KINDS, Kind, Network, leased_limit, policy, traffic};
use crate::leases::simulation::{BEGIN, Fault, Simulation};

/// Faults of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FaultKind {
    /// Drawn from the seed.
    Anything,
    Crashes,
    /// Stores that come back without their last writes.
    Losses,
    /// Stores that come back empty.
    Wipes,
    /// Limits that change.
    Changes,
    FixedWindows,
}

const EACH: [FaultKind; 8] = [
    FaultKind::Anything,
    FaultKind::Crashes,
    FaultKind::Losses,
    FaultKind::Wipes,
    FaultKind::Changes,
    FaultKind::Changes,
    FaultKind::Changes,
    FaultKind::FixedWindows,
];

/// Runs one simulation. The error names the broken promise.
pub(crate) fn run(
    seed: u64,
    fault_kind: FaultKind,
    mutation: Option<Mutation>,
) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    let fault_kind = match fault_kind {
        FaultKind::Anything if mutation.is_none() => draw.pick(&EACH),
        fault_kind => fault_kind,
    };
    let kind = match fault_kind {
        FaultKind::FixedWindows => Kind::Fixed,
        _ => draw.pick(&KINDS),
    };
    let window = DurationUs(draw.pick(&[1_000_000, 3_000_000, 3_000_000, 10_000_000]));
    let promised = leased_limit(&mut draw, kind, window);
    let delays = [2_000, 30_000, 140_000];
    let network = Network {
        delay_max: if fault_kind == FaultKind::Crashes {
            140_000
        } else {
            draw.pick(&delays)
        },
        lost: if fault_kind == FaultKind::Wipes {
            10
        } else {
            draw.pick(&[0, 20, 200])
        },
        doubled: if fault_kind == FaultKind::Crashes {
            500
        } else {
            draw.pick(&[0, 100, 300])
        },
    };
    let known = Epoch {
        id: EpochId {
            number: 1,
            random: 1,
        },
        identity: StoreIdentity(1),
        began_at: TimestampUs(BEGIN),
        before: Before::Nothing,
        longest_loss: None,
    };
    let known = Some(known).filter(|_| !draw.one_in(4));
    let nodes = 1 + draw.index(4);
    let length = window.0 * 6 + 8_000_000;
    let mut simulation = Simulation::new(Draw::new(seed + (1 << 40)), known, network, mutation);
    simulation.set_costs(draw.pick(&[1, 3]));
    for _ in 0..nodes {
        let traffic = traffic(&mut draw, window);
        let mut granted_by = promised;
        if mutation == Some(Mutation::NotWidened) {
            granted_by = not_widened(&promised, kind, window).unwrap_or(promised);
        }
        simulation.add_node(promised, granted_by, traffic);
    }
    let faults = Faults {
        fault_kind,
        kind,
        window,
        nodes,
        length,
    };
    faults.plan(&mut draw, &mut simulation, &promised);
    let outcome = simulation.run(length);
    outcome.map_err(|error| format!("seed {seed}, {fault_kind:?}, {promised:?}: {error}"))
}

/// Returns a limit whose widened form is the promised one.
fn not_widened(promised: &LeasedLimit, kind: Kind, window: DurationUs) -> Option<LeasedLimit> {
    let calls = promised.promised().rate().requests();
    let shorter = DurationUs(window.0 - promised.ttl().0);
    let is_window = !matches!(kind, Kind::Fixed | Kind::Bucket | Kind::Gcra);
    if !is_window || shorter.0 < 1_000_000 {
        return None;
    }
    LeasedLimit::with_ttl(policy(kind, calls, shorter, 1), promised.ttl()).ok()
}

struct Faults {
    fault_kind: FaultKind,
    kind: Kind,
    window: DurationUs,
    nodes: usize,
    length: u64,
}

impl Faults {
    fn plan(&self, draw: &mut Draw, simulation: &mut Simulation, promised: &LeasedLimit) {
        for _ in 0..draw.below(4) {
            let fault = self.node_fault(draw);
            simulation.plan(draw.below(self.length), fault);
        }
        match self.fault_kind {
            FaultKind::Crashes => {
                for _ in 0..draw.within(4, 40) {
                    let node = draw.index(self.nodes);
                    let until = draw.pick(&[1_500_000, self.length]);
                    simulation.plan(draw.below(until), Fault::Crash(node));
                }
            }
            FaultKind::Losses => {
                for _ in 0..draw.within(1, 6) {
                    // Roll back some while a write is on its way.
                    let span = draw.pick(&[300_000, self.window.0 * 2]);
                    let back = draw.below(span);
                    simulation.plan(draw.within(back, self.length), Fault::RollBack(back));
                }
            }
            FaultKind::Wipes => {
                // A node must have seen the store before.
                let at = draw.within(5_000_000, self.length);
                simulation.plan(at, Fault::Wipe);
            }
            FaultKind::Changes => self.changes(draw, simulation, promised),
            FaultKind::Anything if self.kind != Kind::Fixed => {
                let span = draw.below(self.window.0);
                match draw.below(4) {
                    0 => simulation.plan(draw.below(self.length), Fault::StepBack(3 * span)),
                    1 => simulation.plan(draw.below(self.length), Fault::StepForward(span)),
                    _ => {}
                }
            }
            FaultKind::Anything | FaultKind::FixedWindows => {}
        }
    }

    /// Draws a fault of a node. If the store is wiped, the first node stays up, as it knows the
    /// epoch.
    fn node_fault(&self, draw: &mut Draw) -> Fault {
        let node = draw.index(self.nodes);
        let span = draw.below(6_000_000);
        let is_witness = node == 0 && self.fault_kind == FaultKind::Wipes;
        match draw.below(2) {
            _ if is_witness => Fault::Cut(0, 0),
            0 => Fault::Crash(node),
            _ => Fault::Cut(node, span),
        }
    }

    fn changes(&self, draw: &mut Draw, simulation: &mut Simulation, promised: &LeasedLimit) {
        let kinds = match self.kind {
            Kind::Fixed => vec![Kind::Fixed],
            _ => KINDS
                .into_iter()
                .filter(|kind| *kind != Kind::Fixed)
                .collect(),
        };
        let mut limits = vec![*promised];
        for _ in 0..2 {
            let kind = if draw.one_in(3) {
                draw.pick(&kinds)
            } else {
                self.kind
            };
            limits.push(leased_limit(draw, kind, self.window));
        }
        for _ in 0..draw.within(1, 10) {
            let node = draw.index(self.nodes);
            let limit = draw.pick(&limits);
            simulation.plan(draw.below(self.length), Fault::Change(node, limit));
        }
    }
}

/// Seeds that take a second or two. `LENDING_SEEDS=100000` searches further.
const SEEDS: u64 = 6_000;

#[test]
fn no_window_exceeds_the_promise_under_any_fault() {
    let seeds = std::env::var("LENDING_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        if let Err(error) = run(seed, FaultKind::Anything, None) {
            panic!("{error}");
        }
    }
}
