//! What goes wrong in a small world, and when.

use crate::scenario::model::{Behaviour, FaultKind, FaultPlan, LinkPlace, NodePlace, StorePlace};
use anteroom_room::rules::{Limits, Rules};
use anteroom_room::time::Span;

use super::shape::{Pace, Shape, limits, new_session};
use crate::dice::{Dice, Draw};

pub(super) fn faults(
    dice: &mut Dice,
    shape: Shape,
    rules: Rules,
    behaviour: &mut Behaviour,
) -> Vec<FaultPlan> {
    let kinds: Vec<u32> = (0..3).map(|_| dice.below(KINDS)).collect();
    let mut faults = Vec::new();
    if dice.chance(0.3) {
        clocks(dice, shape, rules.session_duration, &mut faults);
    }
    let mut at = Span::from_secs(3);
    if dice.chance(0.3) {
        themed(dice, shape, rules, (&mut faults, behaviour));
        keep_a_witness(&mut faults);
        return faults;
    }
    let apart = match shape.pace {
        Pace::Short => Span(12_000),
        Pace::Long => Span(60_000),
    };
    let count = if dice.chance(0.2) { 0 } else { dice.below(8) };
    for _ in 0..count {
        at = at + dice.between(Span(100), apart);
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
    (faults, behaviour): (&mut Vec<FaultPlan>, &mut Behaviour),
) {
    let node = NodePlace {
        data_center: below(dice, shape.data_centers),
        node: below(dice, shape.nodes),
    };
    let long = dice.between(Span::from_secs(12), Span::from_secs(40));
    let within = Span::ZERO;
    let at = dice.between(Span::from_secs(3), Span::from_secs(10));
    let soon = at + dice.between(Span::ZERO, Span::from_secs(6));
    let later = soon + dice.between(Span(500), Span::from_secs(8));
    let session = new_session(dice, rules);
    let mut plan = |at, kind| faults.push(FaultPlan { at, kind });
    match dice.below(8) {
        // A node that is alone while its rules change.
        0 => {
            let link = LinkPlace::NodeToStore(node);
            plan(at, cut(link, long));
            let session = Span(rules.session_duration.0 + 15_000);
            plan(soon, FaultKind::SessionDuration { session, within });
            plan(later, FaultKind::Crash { node, after: long });
        }
        // A data center that is alone for longer than its lease.
        1 if shape.has_world => {
            let link = LinkPlace::ToWorld(node.data_center);
            let lasts = shape.world_lease + rules.longest_seat() + long;
            plan(Span::from_secs(2), cut(link, lasts));
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
        // Nodes that start one after the other, with longer seats in their files than their data
        // center was lent, which is cut off.
        3 if shape.has_world => {
            let link = LinkPlace::ToWorld(node.data_center);
            let lasts = shape.world_lease + rules.longest_seat() + long;
            plan(at, cut(link, lasts));
            plan(at, FaultKind::SessionDuration { session, within });
            restart_all(dice, (node.data_center, shape.nodes), soon, &mut plan);
            (behaviour.pages, behaviour.log_out) = (60.0, 0.0);
        }
        // A node that is cut off, or starts while it is, for longer than anybody is inside; and
        // sessions that are ended elsewhere meanwhile.
        4 | 5 => {
            missed_logouts(dice, (node, rules), (at, long), &mut plan);
            (behaviour.log_out, behaviour.replays, behaviour.changes_node) = (0.7, 0.9, 0.8);
            behaviour.pages = behaviour.pages.min(4.0);
        }
        // A session that is lowered and raised again, by somebody who loses an answer in between.
        6 if dice.chance(0.5) => {
            let has_world = shape.has_world;
            lowered_and_raised(dice, (node, has_world, rules), (at, long), &mut plan);
            (behaviour.pages, behaviour.log_out) = (60.0, 0.0);
        }
        // A longer or a shorter session for visitors who keep coming.
        6 => {
            plan(later, FaultKind::SessionDuration { session, within });
            behaviour.pages = 200.0;
        }
        // A node that comes and goes, while its store's clock is stepped back.
        _ => comes_and_goes(dice, node, [at, soon, later], &mut plan),
    }
}

/// A node crashes three times, and its store's clock is stepped back in between.
fn comes_and_goes(
    dice: &mut Dice,
    node: NodePlace,
    [at, soon, later]: [Span; 3],
    plan: &mut impl FnMut(Span, FaultKind),
) {
    for at in [at, soon + Span(2_000), later + Span(4_000)] {
        let after = dice.between(Span(200), Span(1_500));
        plan(at, FaultKind::Crash { node, after });
    }
    let by_ms = -i64::from(dice.below(10 * 3_600_000));
    let store = StorePlace::Local(node.data_center);
    let stepped = FaultKind::StoreClockSteps { store, by_ms };
    plan(soon + Span(2_500), stepped);
}

/// A session is lowered, and raised again while a node or a data center is cut off that may have
/// lost the answer in between.
fn lowered_and_raised(
    dice: &mut Dice,
    (node, has_world, rules): (NodePlace, bool, Rules),
    (at, long): (Span, Span),
    plan: &mut impl FnMut(Span, FaultKind),
) {
    let within = Span::ZERO;
    let session = Span(rules.session_duration.0 / 8).max(Span::from_secs(1));
    plan(at, FaultKind::SessionDuration { session, within });
    let link = if has_world && dice.chance(0.5) {
        LinkPlace::ToWorld(node.data_center)
    } else {
        LinkPlace::NodeToStore(node)
    };
    let lasts = rules.longest_seat() + long;
    let cut_at = if dice.chance(0.5) {
        // It tells of the lowered session and hears nothing; soon nobody hears of it either.
        let lost_at = at.less(Span(u64::from(dice.below(500))));
        plan(lost_at, answers_lost(link, Span(4_000)));
        let cut_at = at + dice.between(Span(500), Span(3_000));
        plan(cut_at, cut(link, lasts));
        cut_at
    } else {
        // Late enough for everybody to have told the root of it.
        let cut_at = at + dice.between(Span(500), Span(5_000));
        plan(cut_at, cut(link, lasts));
        cut_at
    };
    let session = rules.session_duration;
    let raised_at = cut_at + dice.between(Span(200), Span(5_000));
    plan(raised_at, FaultKind::SessionDuration { session, within });
}

/// A node misses what happens to sessions meanwhile: it is cut off, or starts while it is.
fn missed_logouts(
    dice: &mut Dice,
    (node, rules): (NodePlace, Rules),
    (at, long): (Span, Span),
    plan: &mut impl FnMut(Span, FaultKind),
) {
    let within = Span::ZERO;
    let link = LinkPlace::NodeToStore(node);
    let lasts = rules.longest_seat() + rules.longest_seat() + long;
    let cut = cut(link, lasts);
    let after = dice.between(Span(200), Span(1_500));
    // Only in a full room a seat that is freed too early is one too many.
    let limits = Limits {
        new_users_per_minute: 400,
        ..rules.limits
    };
    plan(Span::ZERO, FaultKind::Limits { limits, within });
    match dice.below(3) {
        0 => plan(at, cut),
        1 => {
            plan(at, FaultKind::Restart { node, after });
            plan(at + Span(u64::from(dice.below(1_500))), cut);
        }
        _ => {
            // Late enough for sessions to have ended before it.
            let at = at + Span::from_secs(15);
            plan(at, cut);
            plan(
                at + Span(u64::from(dice.below(3_000))),
                FaultKind::Crash { node, after },
            );
        }
    }
}

/// All nodes of a data center are replaced in good order, one after the other.
fn restart_all(
    dice: &mut Dice,
    (data_center, nodes): (usize, usize),
    from: Span,
    plan: &mut impl FnMut(Span, FaultKind),
) {
    let mut at = from;
    for node in 0..nodes {
        let after = dice.between(Span(300), Span(1_500));
        let node = NodePlace { data_center, node };
        plan(at, FaultKind::Restart { node, after });
        at = at + after + dice.between(Span(200), Span(2_000));
    }
}

/// Clocks from the start on: most within what is tolerated, some beyond. The checkers tolerate the
/// largest error, so it stays below the shortest seat: otherwise they would see nobody inside.
fn clocks(dice: &mut Dice, shape: Shape, session: Span, faults: &mut Vec<FaultPlan>) {
    let beyond = u32::try_from(session.0)
        .unwrap_or(u32::MAX)
        .clamp(500, 3_000);
    let most = if dice.chance(0.2) { beyond } else { 500 };
    for data_center in 0..shape.data_centers {
        for node in 0..shape.nodes {
            let by_ms = i64::from(dice.below(2 * most + 1)) - i64::from(most);
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

const fn cut(link: LinkPlace, lasts: Span) -> FaultKind {
    FaultKind::Cut {
        link,
        answers_only: false,
        lasts,
    }
}

const fn answers_lost(link: LinkPlace, lasts: Span) -> FaultKind {
    FaultKind::Cut {
        link,
        answers_only: true,
        lasts,
    }
}

/// How many kinds [`fault`] knows.
const KINDS: u32 = 17;

fn fault(dice: &mut Dice, kind: u32, shape: Shape, rules: Rules) -> Option<FaultKind> {
    let lasts = match shape.pace {
        Pace::Short => dice.between(Span(200), Span(25_000)),
        Pace::Long => dice.between(Span(200), Span(300_000)),
    };
    // Files differ for a moment, or for minutes.
    let within = if dice.chance(0.2) {
        dice.between(Span::ZERO, Span(180_000))
    } else {
        dice.between(Span::ZERO, Span(3_000))
    };
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
        3 => cut(LinkPlace::NodeToStore(node), lasts),
        4 if shape.has_world => cut(LinkPlace::ToWorld(data_center), lasts),
        5 | 6 => FaultKind::BadNetwork {
            lost: dice.unit() * 0.4,
            doubled: dice.unit() * 0.5,
            delayed: delay(dice),
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
            by_ms: if dice.chance(0.3) {
                i64::from(dice.below(20 * 3_600_000)) - 10 * 3_600_000
            } else {
                i64::from(dice.below(40_000)) - 20_000
            },
        },
        11 => FaultKind::Limits {
            limits: limits(dice),
            within,
        },
        12 if rules.session_renewal => FaultKind::SessionDuration {
            session: new_session(dice, rules),
            within,
        },
        13 => FaultKind::Pacing {
            pacing: dice.chance(0.5),
            within,
        },
        14 => cut(LinkPlace::NodeToStore(node), lasts + rules.longest_seat()),
        15 => answers_lost(LinkPlace::NodeToStore(node), lasts),
        16 if shape.has_world => answers_lost(LinkPlace::ToWorld(data_center), lasts),
        _ => return None,
    })
}

/// Rounds overlap: most messages come after their round was given up, some much later.
fn delay(dice: &mut Dice) -> Span {
    match dice.below(10) {
        0..7 => dice.between(Span::ZERO, Span(3_000)),
        7 | 8 => dice.between(Span(3_000), Span(30_000)),
        _ => dice.between(Span(30_000), Span(120_000)),
    }
}

fn below(dice: &mut Dice, bound: usize) -> usize {
    let bound = u32::try_from(bound).unwrap_or(u32::MAX);
    dice.below(bound) as usize
}
