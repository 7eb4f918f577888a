//! Thousands of short runs in which everything goes wrong.

use anteroom_limit::lending::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::lending::draw::Draw;
use crate::lending::plan::{KINDS, Kind, Network, crowd, lending, policy};
use crate::lending::planted::Bug;
use crate::lending::world::{BEGIN, Fault, World};

/// Which faults a run has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wanted {
    /// What the seed says.
    Anything,
    Crashes,
    /// Stores that come back without their last writes.
    Losses,
    /// Stores that come back with nothing.
    Wipes,
    /// Limits that change.
    Changes,
    FixedWindows,
}

const EACH: [Wanted; 8] = [
    Wanted::Anything,
    Wanted::Crashes,
    Wanted::Losses,
    Wanted::Wipes,
    Wanted::Changes,
    Wanted::Changes,
    Wanted::Changes,
    Wanted::FixedWindows,
];

/// One run. The error says what broke.
pub(crate) fn run(seed: u64, wanted: Wanted, bug: Option<Bug>) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    let wanted = match wanted {
        Wanted::Anything if bug.is_none() => draw.pick(&EACH),
        wanted => wanted,
    };
    let kind = match wanted {
        Wanted::FixedWindows => Kind::Fixed,
        _ => draw.pick(&KINDS),
    };
    let window = DurationUs(draw.pick(&[1_000_000, 3_000_000, 3_000_000, 10_000_000]));
    let promised = lending(&mut draw, kind, window);
    let delays = [2_000, 30_000, 140_000];
    let network = Network {
        delay_max: if wanted == Wanted::Crashes {
            140_000
        } else {
            draw.pick(&delays)
        },
        lost: if wanted == Wanted::Wipes {
            10
        } else {
            draw.pick(&[0, 20, 200])
        },
        doubled: if wanted == Wanted::Crashes {
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
    };
    let known = Some(known).filter(|_| !draw.one_in(4));
    let nodes = 1 + draw.index(4);
    let length = window.0 * 6 + 8_000_000;
    let mut world = World::new(Draw::new(seed + (1 << 40)), known, network, bug);
    world.set_costs(draw.pick(&[1, 3]));
    for _ in 0..nodes {
        let crowd = crowd(&mut draw, window);
        let mut lent_by = promised;
        if bug == Some(Bug::NotWidened) {
            lent_by = not_widened(&promised, kind, window).unwrap_or(promised);
        }
        world.add_node(promised, lent_by, crowd);
    }
    let faults = Faults {
        wanted,
        kind,
        window,
        nodes,
        length,
    };
    faults.plan(&mut draw, &mut world, &promised);
    let ran = world.run(length);
    ran.map_err(|broken| format!("seed {seed}, {wanted:?}, {promised:?}: {broken}"))
}

/// A limit whose widened form is what was promised.
fn not_widened(promised: &LeasedLimit, kind: Kind, window: DurationUs) -> Option<LeasedLimit> {
    let calls = promised.promised().rate().calls();
    let shorter = DurationUs(window.0 - promised.ttl().0);
    let is_window = !matches!(kind, Kind::Fixed | Kind::Bucket | Kind::Gcra);
    if !is_window || shorter.0 < 1_000_000 {
        return None;
    }
    LeasedLimit::with_ttl(policy(kind, calls, shorter, 1), promised.ttl()).ok()
}

struct Faults {
    wanted: Wanted,
    kind: Kind,
    window: DurationUs,
    nodes: usize,
    length: u64,
}

impl Faults {
    fn plan(&self, draw: &mut Draw, world: &mut World, promised: &LeasedLimit) {
        for _ in 0..draw.below(4) {
            let fault = self.of_nodes(draw);
            world.plan(draw.below(self.length), fault);
        }
        match self.wanted {
            Wanted::Crashes => {
                for _ in 0..draw.within(4, 40) {
                    let node = draw.index(self.nodes);
                    let until = draw.pick(&[1_500_000, self.length]);
                    world.plan(draw.below(until), Fault::Crash(node));
                }
            }
            Wanted::Losses => {
                for _ in 0..draw.within(1, 6) {
                    // Also while a write is on its way.
                    let span = draw.pick(&[300_000, self.window.0 * 2]);
                    let back = draw.below(span);
                    world.plan(draw.within(back, self.length), Fault::RollBack(back));
                }
            }
            Wanted::Wipes => {
                // Somebody must have seen the store before.
                let at = draw.within(5_000_000, self.length);
                world.plan(at, Fault::Wipe);
            }
            Wanted::Changes => self.changes(draw, world, promised),
            Wanted::Anything if self.kind != Kind::Fixed => {
                let span = draw.below(self.window.0);
                match draw.below(4) {
                    0 => world.plan(draw.below(self.length), Fault::StepBack(3 * span)),
                    1 => world.plan(draw.below(self.length), Fault::StepForward(span)),
                    _ => {}
                }
            }
            Wanted::Anything | Wanted::FixedWindows => {}
        }
    }

    /// What happens to nodes. Where a store is wiped, the first one stays: it remembers.
    fn of_nodes(&self, draw: &mut Draw) -> Fault {
        let node = draw.index(self.nodes);
        let span = draw.below(6_000_000);
        let is_witness = node == 0 && self.wanted == Wanted::Wipes;
        match draw.below(2) {
            _ if is_witness => Fault::Cut(0, 0),
            0 => Fault::Crash(node),
            _ => Fault::Cut(node, span),
        }
    }

    fn changes(&self, draw: &mut Draw, world: &mut World, promised: &LeasedLimit) {
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
            limits.push(lending(draw, kind, self.window));
        }
        for _ in 0..draw.within(1, 10) {
            let node = draw.index(self.nodes);
            let limit = draw.pick(&limits);
            world.plan(draw.below(self.length), Fault::Change(node, limit));
        }
    }
}

/// As many as take a second or two. `LENDING_SEEDS=100000` searches further.
const SEEDS: u64 = 6_000;

#[test]
fn no_window_has_more_than_was_promised_whatever_goes_wrong() {
    let wanted = std::env::var("LENDING_SEEDS").ok();
    let seeds = wanted.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        if let Err(broken) = run(seed, Wanted::Anything, None) {
            panic!("{broken}");
        }
    }
}
