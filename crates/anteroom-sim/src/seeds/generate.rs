//! A small world for a seed: few seats, short sessions, many faults. Each seed leaves some kinds of
//! behaviour and of faults out, so that those it has meet often.

use anteroom_core::rules::{Limits, Rules, SeatNeedsCookie};
use anteroom_core::time::{Millis, Span};

use crate::dice::{Dice, Draw, Purpose};
use anteroom_scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, FaultKind, FaultPlan, LinkPlace, NodePlace,
    RatePoint, RoomPlan, Scenario, StorePlace,
};

/// The worlds begin half a minute before a full one, so that minutes change early.
const STARTS_AT: Millis = Millis(1_694_432_730_000);
/// Long enough for leases and seats to end; most worlds run out of steps before.
const LENGTH: Span = Span::from_secs(240);

/// The small world of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed, Purpose::World);
    let data_centers = data_centers(&mut dice);
    let mut rules = rules(&mut dice);
    let world_lease = dice.between(Span::from_secs(4), Span::from_secs(20));
    let shape = Shape {
        world_lease,
        data_centers: data_centers.len(),
        nodes: data_centers[0].nodes as usize,
        has_world: data_centers.len() > 1 || data_centers[0].to_world.to > Span::ZERO,
    };
    let rate = f64::from(rules.limits.total_active_users) / rules.session_duration.0 as f64 * 1e3;
    let per_second = (rate * f64::from(1 + dice.below(9))).clamp(0.4, 5.0);
    let arrivals = Arrivals {
        data_center: None,
        points: vec![
            RatePoint {
                at: Span::ZERO,
                per_second,
            },
            RatePoint {
                at: LENGTH,
                per_second,
            },
        ],
    };
    let behaviour = behaviour(&mut dice, rules.session_duration);
    let faults = faults(&mut dice, shape, rules);
    let (behaviour, faults) = match dice.below(100) {
        0..6 => (jam(&mut dice, behaviour), Vec::new()),
        6..14 => {
            rules.session_duration = dice.between(Span::from_secs(12), Span::from_secs(20));
            rules.session_renewal = true;
            (travellers(&mut dice, behaviour), Vec::new())
        }
        _ => (behaviour, faults),
    };
    Scenario {
        name: format!("seed {seed}"),
        about: String::new(),
        seed,
        starts_at: STARTS_AT,
        length: LENGTH,
        sample_every: Span::from_secs(60),
        world_lease,
        compare: Vec::new(),
        rooms: vec![RoomPlan {
            name: "room".to_owned(),
            rules,
            arrivals: vec![arrivals],
            behaviour,
        }],
        data_centers,
        faults,
    }
}

/// How many of what there is.
#[derive(Clone, Copy)]
struct Shape {
    world_lease: Span,
    data_centers: usize,
    nodes: usize,
    has_world: bool,
}

fn data_centers(dice: &mut Dice) -> Vec<DataCenterPlan> {
    let count = 1 + dice.below(3);
    let nodes = 1 + dice.below(if count == 1 { 4 } else { 2 });
    let is_alone = count == 1 && dice.chance(0.7);
    let fast = Delay {
        from: Span(0),
        to: Span(4),
    };
    let far = Delay {
        from: Span(10),
        to: Span(90),
    };
    let near = Delay {
        from: Span::ZERO,
        to: Span::ZERO,
    };
    (0..count)
        .map(|index| DataCenterPlan {
            name: format!("dc{index}"),
            nodes,
            share: 1.0,
            to_store: fast,
            to_world: if is_alone { near } else { far },
        })
        .collect()
}

fn rules(dice: &mut Dice) -> Rules {
    Rules {
        limits: limits(dice),
        session_duration: session(dice),
        session_renewal: !dice.chance(0.1),
        pacing: dice.chance(0.5),
        seat_needs_cookie: if dice.chance(0.5) {
            SeatNeedsCookie::Never
        } else {
            SeatNeedsCookie::NearLimit
        },
        ask_again: Some(Span::from_secs(1)),
        ..Rules::default()
    }
}

fn limits(dice: &mut Dice) -> Limits {
    Limits {
        total_active_users: 1 + dice.below(12),
        new_users_per_minute: 1 + dice.below(60),
    }
}

fn session(dice: &mut Dice) -> Span {
    Span::from_secs(u64::from(1 + dice.below(20)))
}

/// A figure in some worlds, nothing in the others.
fn sometimes(dice: &mut Dice, in_share: f64, most: f64) -> f64 {
    if dice.chance(in_share) {
        dice.unit() * most
    } else {
        0.0
    }
}

fn behaviour(dice: &mut Dice, session: Span) -> Behaviour {
    let keeps_coming = dice.chance(0.5);
    let parallel_requests = if dice.chance(0.4) { dice.below(5) } else { 0 };
    Behaviour {
        pages: 1.0 + dice.unit() * if keeps_coming { 60.0 } else { 5.0 },
        think_time: dice.between(Span(200), Span(300 + session.0 / 3)),
        parallel_requests,
        second_tab: sometimes(dice, 0.3, 0.6),
        patience: dice.chance(0.3).then_some(Span::from_secs(20)),
        no_shows: sometimes(dice, 0.3, 0.5),
        changes_node: sometimes(dice, 0.5, 1.0),
        changes_data_center: sometimes(dice, 0.4, 0.7),
        without_cookies: sometimes(dice, 0.2, 0.4),
        log_out: sometimes(dice, 0.3, 0.8),
        replays: sometimes(dice, 0.4, 0.8),
    }
}

/// A crowd of clients without cookies, among a few who keep theirs.
fn jam(dice: &mut Dice, behaviour: Behaviour) -> Behaviour {
    Behaviour {
        without_cookies: 0.5 + dice.unit() * 0.45,
        changes_node: 0.0,
        changes_data_center: 0.0,
        replays: 0.0,
        ..behaviour
    }
}

/// Visitors who keep coming, and seldom change the data center: whoever has changed it stays for a
/// while.
fn travellers(dice: &mut Dice, behaviour: Behaviour) -> Behaviour {
    Behaviour {
        pages: 40.0,
        think_time: dice.between(Span(400), Span(1_500)),
        changes_data_center: 0.02 + dice.unit() * 0.08,
        without_cookies: 0.0,
        log_out: 0.0,
        ..behaviour
    }
}

fn faults(dice: &mut Dice, shape: Shape, rules: Rules) -> Vec<FaultPlan> {
    let kinds: Vec<u32> = (0..3).map(|_| dice.below(KINDS)).collect();
    let mut faults = Vec::new();
    if dice.chance(0.3) {
        clocks(dice, shape, &mut faults);
    }
    let mut at = Span::from_secs(3);
    if dice.chance(0.25) {
        return themed(dice, shape, rules, faults);
    }
    let count = if dice.chance(0.2) { 0 } else { dice.below(8) };
    for _ in 0..count {
        at = at + dice.between(Span(100), Span(12_000));
        let kind = kinds[dice.below(3) as usize];
        if let Some(kind) = fault(dice, kind, shape, rules) {
            faults.push(FaultPlan { at, kind });
        }
        if dice.chance(0.3) {
            // Two at once, or nearly.
            let kind = dice.below(KINDS);
            let kind = fault(dice, kind, shape, rules);
            let after = at + dice.between(Span::ZERO, Span(400));
            faults.extend(kind.map(|kind| FaultPlan { at: after, kind }));
        }
    }
    keep_a_witness(&mut faults);
    faults
}

/// Faults that only together are worth looking at.
fn themed(
    dice: &mut Dice,
    shape: Shape,
    rules: Rules,
    mut faults: Vec<FaultPlan>,
) -> Vec<FaultPlan> {
    let node = NodePlace {
        data_center: below(dice, shape.data_centers),
        node: below(dice, shape.nodes),
    };
    let long = dice.between(Span::from_secs(12), Span::from_secs(40));
    let within = Span::ZERO;
    let at = dice.between(Span::from_secs(3), Span::from_secs(10));
    let soon = at + dice.between(Span::ZERO, Span::from_secs(6));
    let later = soon + dice.between(Span(500), Span::from_secs(8));
    let mut plan = |at, kind| faults.push(FaultPlan { at, kind });
    match dice.below(4) {
        // A node that is alone while its rules change.
        0 => {
            let link = LinkPlace::NodeToStore(node);
            plan(at, FaultKind::Cut { link, lasts: long });
            let session = Span(rules.session_duration.0 + 15_000);
            plan(soon, FaultKind::SessionDuration { session, within });
            plan(later, FaultKind::Crash { node, after: long });
        }
        // A data center that is alone for longer than its lease.
        1 if shape.has_world => {
            let link = LinkPlace::ToWorld(node.data_center);
            let lasts = shape.world_lease + rules.longest_seat() + long;
            plan(Span::from_secs(2), FaultKind::Cut { link, lasts });
        }
        // Limits that fall while messages are late.
        2 => {
            let (lost, doubled) = (0.1, 0.4);
            let delayed = Span(3_000);
            let bad = FaultKind::BadNetwork {
                lost,
                doubled,
                delayed,
                lasts: long,
            };
            plan(at, bad);
            for at in [soon, later] {
                let limits = limits(dice);
                plan(at, FaultKind::Limits { limits, within });
            }
        }
        // A node that comes and goes.
        _ => {
            for at in [at, soon + Span(2_000), later + Span(4_000)] {
                let after = dice.between(Span(200), Span(1_500));
                plan(at, FaultKind::Crash { node, after });
            }
        }
    }
    faults
}

/// Clocks within what is tolerated, from the start on.
fn clocks(dice: &mut Dice, shape: Shape, faults: &mut Vec<FaultPlan>) {
    for data_center in 0..shape.data_centers {
        for node in 0..shape.nodes {
            let by_ms = i64::from(dice.below(600)) - 300;
            // As far as clocks are slewed; a tenth of a second in a world of four minutes.
            let drifts_ppm = i32::try_from(dice.below(900)).unwrap_or(0) - 450;
            let node = NodePlace { data_center, node };
            faults.push(FaultPlan {
                at: Span::ZERO,
                kind: FaultKind::NodeClockIsOff {
                    node,
                    by_ms,
                    drifts_ppm,
                },
            });
        }
    }
}

/// If everybody who has known the world's ledger is lost together with it, nobody can tell the
/// loss from a first start: then the deployment is a new one, and no old ticket is worth anything.
/// So while the world's store is lost the first data center is spared.
fn keep_a_witness(faults: &mut Vec<FaultPlan>) {
    let loses_world = |fault: &FaultPlan| {
        let (FaultKind::StoreWiped { store } | FaultKind::StoreLosesWrites { store, .. }) =
            fault.kind
        else {
            return false;
        };
        store == StorePlace::World
    };
    if !faults.iter().any(loses_world) {
        return;
    }
    faults.retain(|fault| match fault.kind {
        FaultKind::Crash { node, .. } | FaultKind::Restart { node, .. } => {
            node.data_center != 0 || node.node != 0
        }
        FaultKind::Pause { node, .. } => node.data_center != 0 || node.node != 0,
        FaultKind::Cut { link, .. } => match link {
            LinkPlace::NodeToStore(node) => node.data_center != 0 || node.node != 0,
            LinkPlace::ToWorld(data_center) => data_center != 0,
        },
        FaultKind::StoreWiped { store } | FaultKind::StoreLosesWrites { store, .. } => {
            store != StorePlace::Local(0)
        }
        FaultKind::StoreDown { store, .. } => store != StorePlace::Local(0),
        _ => true,
    });
}

/// How many kinds [`fault`] knows.
const KINDS: u32 = 13;

fn fault(dice: &mut Dice, kind: u32, shape: Shape, rules: Rules) -> Option<FaultKind> {
    let lasts = dice.between(Span(200), Span(25_000));
    let within = dice.between(Span::ZERO, Span(3_000));
    let node = NodePlace {
        data_center: below(dice, shape.data_centers),
        node: below(dice, shape.nodes),
    };
    let data_center = below(dice, shape.data_centers);
    let store = if !shape.has_world || dice.chance(0.3) {
        StorePlace::World
    } else {
        StorePlace::Local(data_center)
    };
    Some(match kind {
        0 => FaultKind::Crash { node, after: lasts },
        1 => FaultKind::Restart { node, after: lasts },
        2 => FaultKind::Pause { node, lasts },
        3 => FaultKind::Cut {
            link: LinkPlace::NodeToStore(node),
            lasts,
        },
        4 if shape.has_world => FaultKind::Cut {
            link: LinkPlace::ToWorld(data_center),
            lasts,
        },
        5 | 6 => FaultKind::BadNetwork {
            lost: dice.unit() * 0.4,
            doubled: dice.unit() * 0.5,
            delayed: dice.between(Span::ZERO, Span(3_000)),
            lasts,
        },
        7 => FaultKind::StoreDown { store, lasts },
        8 => FaultKind::StoreWiped { store },
        9 => FaultKind::StoreLosesWrites {
            store,
            last: dice.between(Span(100), Span(8_000)),
        },
        10 => FaultKind::StoreClockSteps {
            store,
            by_ms: i64::from(dice.below(40_000)) - 20_000,
        },
        11 => FaultKind::Limits {
            limits: limits(dice),
            within,
        },
        12 if rules.session_renewal => FaultKind::SessionDuration {
            session: session(dice),
            within,
        },
        _ => return None,
    })
}

fn below(dice: &mut Dice, bound: usize) -> usize {
    let bound = u32::try_from(bound).unwrap_or(u32::MAX);
    dice.below(bound) as usize
}
