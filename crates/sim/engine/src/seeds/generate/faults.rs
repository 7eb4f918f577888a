//! Faults of a seed, with their times.

use crate::scenario::model::{Behaviour, FaultKind, FaultPlan, LinkRef, NodeRef, StoreRef};
use anteroom_room::rules::{Limits, Rules};
use anteroom_room::time::DurationMs;

use super::shape::{Pace, Shape, limits, new_session};
use crate::rng::{Draw, SimRng};

pub(super) fn faults(
    rng: &mut SimRng,
    shape: Shape,
    rules: Rules,
    behaviour: &mut Behaviour,
) -> Vec<FaultPlan> {
    let kinds: Vec<u32> = (0..3).map(|_| rng.below(KINDS)).collect();
    let mut faults = Vec::new();
    if rng.chance(0.3) {
        clocks(rng, shape, rules.session_duration, &mut faults);
    }
    let mut at = DurationMs::from_secs(3);
    if rng.chance(0.3) {
        themed(rng, shape, rules, (&mut faults, behaviour));
        keep_a_witness(&mut faults);
        return faults;
    }
    let apart = match shape.pace {
        Pace::Short => DurationMs(12_000),
        Pace::Long => DurationMs(60_000),
    };
    let count = if rng.chance(0.2) { 0 } else { rng.below(8) };
    for _ in 0..count {
        at = at + rng.between(DurationMs(100), apart);
        let kind = kinds[rng.below(3) as usize];
        if let Some(kind) = fault(rng, kind, shape, rules) {
            faults.push(FaultPlan { at, kind });
        }
        if rng.chance(0.3) {
            // Two at once, or nearly.
            let kind = rng.below(KINDS);
            let kind = fault(rng, kind, shape, rules);
            let after = at + rng.between(DurationMs::ZERO, DurationMs(400));
            faults.extend(kind.map(|kind| FaultPlan { at: after, kind }));
        }
    }
    keep_a_witness(&mut faults);
    faults
}

/// Adds faults that matter only together.
fn themed(
    rng: &mut SimRng,
    shape: Shape,
    rules: Rules,
    (faults, behaviour): (&mut Vec<FaultPlan>, &mut Behaviour),
) {
    let node = NodeRef {
        data_center: below(rng, shape.data_centers),
        node: below(rng, shape.nodes),
    };
    let long = rng.between(DurationMs::from_secs(12), DurationMs::from_secs(40));
    let within = DurationMs::ZERO;
    let at = rng.between(DurationMs::from_secs(3), DurationMs::from_secs(10));
    let soon = at + rng.between(DurationMs::ZERO, DurationMs::from_secs(6));
    let later = soon + rng.between(DurationMs(500), DurationMs::from_secs(8));
    let session = new_session(rng, rules);
    let mut plan = |at, kind| faults.push(FaultPlan { at, kind });
    match rng.below(8) {
        // A node without its store while its rules change.
        0 => {
            let link = LinkRef::NodeToStore(node);
            plan(at, cut(link, long));
            let session = DurationMs(rules.session_duration.0 + 15_000);
            plan(soon, FaultKind::SessionDuration { session, within });
            plan(later, FaultKind::Crash { node, after: long });
        }
        // A data center that is cut off for longer than its lease.
        1 if shape.has_global_store => {
            let link = LinkRef::ToGlobal(node.data_center);
            let lasts = shape.global_lease + rules.longest_seat() + long;
            plan(DurationMs::from_secs(2), cut(link, lasts));
        }
        // Lower limits while messages are late.
        2 => {
            let (lost, doubled) = (0.1, 0.4);
            let delayed = DurationMs(3_000);
            let bad = FaultKind::BadNetwork {
                lost,
                doubled,
                delayed,
                lasts: long,
            };
            plan(at, bad);
            for at in [soon, later] {
                let limits = limits(rng);
                plan(at, FaultKind::Limits { limits, within });
            }
        }
        // Nodes that restart one after the other in a data center that is cut off. Their files have
        // longer seats than the data center has leased.
        3 if shape.has_global_store => {
            let link = LinkRef::ToGlobal(node.data_center);
            let lasts = shape.global_lease + rules.longest_seat() + long;
            plan(at, cut(link, lasts));
            plan(at, FaultKind::SessionDuration { session, within });
            restart_all(rng, (node.data_center, shape.nodes), soon, &mut plan);
            (behaviour.pages, behaviour.log_out) = (60.0, 0.0);
        }
        // A node that is cut off for longer than any session, or starts while it is. Other nodes
        // end sessions meanwhile.
        4 | 5 => {
            missed_logouts(rng, (node, rules), (at, long), &mut plan);
            (behaviour.log_out, behaviour.replays, behaviour.changes_node) = (0.7, 0.9, 0.8);
            behaviour.pages = behaviour.pages.min(4.0);
        }
        // A shorter session that grows again, and a lost reply in between.
        6 if rng.chance(0.5) => {
            let has_global_store = shape.has_global_store;
            lowered_and_raised(rng, (node, has_global_store, rules), (at, long), &mut plan);
            (behaviour.pages, behaviour.log_out) = (60.0, 0.0);
        }
        // A longer or a shorter session for visitors who keep coming.
        6 => {
            plan(later, FaultKind::SessionDuration { session, within });
            behaviour.pages = 200.0;
        }
        // A node that restarts while its store's clock is stepped back.
        _ => crashes_repeatedly(rng, node, [at, soon, later], &mut plan),
    }
}

/// Adds three crashes of a node, and steps its store's clock back in between.
fn crashes_repeatedly(
    rng: &mut SimRng,
    node: NodeRef,
    [at, soon, later]: [DurationMs; 3],
    plan: &mut impl FnMut(DurationMs, FaultKind),
) {
    for at in [at, soon + DurationMs(2_000), later + DurationMs(4_000)] {
        let after = rng.between(DurationMs(200), DurationMs(1_500));
        plan(at, FaultKind::Crash { node, after });
    }
    let by_ms = -i64::from(rng.below(10 * 3_600_000));
    let store = StoreRef::Local(node.data_center);
    let stepped = FaultKind::StoreClockSteps { store, by_ms };
    plan(soon + DurationMs(2_500), stepped);
}

/// Shortens the session and lengthens it again. In between a node or a data center is cut off and
/// may have lost the reply.
fn lowered_and_raised(
    rng: &mut SimRng,
    (node, has_global_store, rules): (NodeRef, bool, Rules),
    (at, long): (DurationMs, DurationMs),
    plan: &mut impl FnMut(DurationMs, FaultKind),
) {
    let within = DurationMs::ZERO;
    let session = DurationMs(rules.session_duration.0 / 8).max(DurationMs::from_secs(1));
    plan(at, FaultKind::SessionDuration { session, within });
    let link = if has_global_store && rng.chance(0.5) {
        LinkRef::ToGlobal(node.data_center)
    } else {
        LinkRef::NodeToStore(node)
    };
    let lasts = rules.longest_seat() + long;
    let cut_at = if rng.chance(0.5) {
        // It reports the shorter session and gets no reply; soon its reports are lost too.
        let lost_at = at.less(DurationMs(u64::from(rng.below(500))));
        plan(lost_at, answers_lost(link, DurationMs(4_000)));
        let cut_at = at + rng.between(DurationMs(500), DurationMs(3_000));
        plan(cut_at, cut(link, lasts));
        cut_at
    } else {
        // Late enough for all nodes to have reported it to the root.
        let cut_at = at + rng.between(DurationMs(500), DurationMs(5_000));
        plan(cut_at, cut(link, lasts));
        cut_at
    };
    let session = rules.session_duration;
    let raised_at = cut_at + rng.between(DurationMs(200), DurationMs(5_000));
    plan(raised_at, FaultKind::SessionDuration { session, within });
}

/// Makes a node miss logouts: it is cut off, or starts while it is.
fn missed_logouts(
    rng: &mut SimRng,
    (node, rules): (NodeRef, Rules),
    (at, long): (DurationMs, DurationMs),
    plan: &mut impl FnMut(DurationMs, FaultKind),
) {
    let within = DurationMs::ZERO;
    let link = LinkRef::NodeToStore(node);
    let lasts = rules.longest_seat() + rules.longest_seat() + long;
    let cut = cut(link, lasts);
    let after = rng.between(DurationMs(200), DurationMs(1_500));
    // Only in a full room does a seat that is freed too early exceed the limit.
    let limits = Limits {
        new_users_per_minute: 400,
        ..rules.limits
    };
    plan(DurationMs::ZERO, FaultKind::Limits { limits, within });
    match rng.below(3) {
        0 => plan(at, cut),
        1 => {
            plan(at, FaultKind::Restart { node, after });
            plan(at + DurationMs(u64::from(rng.below(1_500))), cut);
        }
        _ => {
            // Late enough for sessions to end before it.
            let at = at + DurationMs::from_secs(15);
            plan(at, cut);
            plan(
                at + DurationMs(u64::from(rng.below(3_000))),
                FaultKind::Crash { node, after },
            );
        }
    }
}

/// Restarts all nodes of a data center, one after the other.
fn restart_all(
    rng: &mut SimRng,
    (data_center, nodes): (usize, usize),
    from: DurationMs,
    plan: &mut impl FnMut(DurationMs, FaultKind),
) {
    let mut at = from;
    for node in 0..nodes {
        let after = rng.between(DurationMs(300), DurationMs(1_500));
        let node = NodeRef { data_center, node };
        plan(at, FaultKind::Restart { node, after });
        at = at + after + rng.between(DurationMs(200), DurationMs(2_000));
    }
}

/// Sets clocks from the start on: most within the tolerance, some beyond. The checkers tolerate the
/// largest error, so it is below the shortest seat. Otherwise they would see no active visitor.
fn clocks(rng: &mut SimRng, shape: Shape, session: DurationMs, faults: &mut Vec<FaultPlan>) {
    let beyond = u32::try_from(session.0)
        .unwrap_or(u32::MAX)
        .clamp(500, 3_000);
    let most = if rng.chance(0.2) { beyond } else { 500 };
    for data_center in 0..shape.data_centers {
        for node in 0..shape.nodes {
            let by_ms = i64::from(rng.below(2 * most + 1)) - i64::from(most);
            // Within the slew rate of clocks; a tenth of a second in a run of four minutes.
            let drifts_ppm = i32::try_from(rng.below(900)).unwrap_or(0) - 450;
            let node = NodeRef { data_center, node };
            faults.push(FaultPlan {
                at: DurationMs::ZERO,
                kind: FaultKind::NodeClockIsOff {
                    node,
                    by_ms,
                    drifts_ppm,
                },
            });
        }
    }
}

/// Keeps one data center running while the global store is lost. If all nodes that know the root's
/// ledger are lost with it, the deployment is a new one. The loss then looks like a first start,
/// and old tickets are void.
pub(super) fn keep_a_witness(faults: &mut Vec<FaultPlan>) {
    let loses_global_store = |fault: &FaultPlan| {
        let (FaultKind::StoreWiped { store } | FaultKind::StoreLosesWrites { store, .. }) =
            fault.kind
        else {
            return false;
        };
        store == StoreRef::Global
    };
    if !faults.iter().any(loses_global_store) {
        return;
    }
    faults.retain(|fault| match fault.kind {
        FaultKind::Crash { node, .. } | FaultKind::Restart { node, .. } => {
            node.data_center != 0 || node.node != 0
        }
        FaultKind::Pause { node, .. } => node.data_center != 0 || node.node != 0,
        FaultKind::Cut { link, .. } => match link {
            LinkRef::NodeToStore(node) => node.data_center != 0 || node.node != 0,
            LinkRef::ToGlobal(data_center) => data_center != 0,
        },
        FaultKind::StoreWiped { store } | FaultKind::StoreLosesWrites { store, .. } => {
            store != StoreRef::Local(0)
        }
        FaultKind::StoreDown { store, .. } => store != StoreRef::Local(0),
        _ => true,
    });
}

const fn cut(link: LinkRef, lasts: DurationMs) -> FaultKind {
    FaultKind::Cut {
        link,
        replies_only: false,
        lasts,
    }
}

const fn answers_lost(link: LinkRef, lasts: DurationMs) -> FaultKind {
    FaultKind::Cut {
        link,
        replies_only: true,
        lasts,
    }
}

/// Number of kinds that [`fault`] knows.
const KINDS: u32 = 17;

fn fault(rng: &mut SimRng, kind: u32, shape: Shape, rules: Rules) -> Option<FaultKind> {
    let lasts = match shape.pace {
        Pace::Short => rng.between(DurationMs(200), DurationMs(25_000)),
        Pace::Long => rng.between(DurationMs(200), DurationMs(300_000)),
    };
    // Files differ for a moment, or for minutes.
    let within = if rng.chance(0.2) {
        rng.between(DurationMs::ZERO, DurationMs(180_000))
    } else {
        rng.between(DurationMs::ZERO, DurationMs(3_000))
    };
    let node = NodeRef {
        data_center: below(rng, shape.data_centers),
        node: below(rng, shape.nodes),
    };
    let data_center = below(rng, shape.data_centers);
    let store = if !shape.has_global_store || rng.chance(0.3) {
        StoreRef::Global
    } else {
        StoreRef::Local(data_center)
    };
    Some(match kind {
        0 => FaultKind::Crash { node, after: lasts },
        1 => FaultKind::Restart { node, after: lasts },
        2 => FaultKind::Pause { node, lasts },
        3 => cut(LinkRef::NodeToStore(node), lasts),
        4 if shape.has_global_store => cut(LinkRef::ToGlobal(data_center), lasts),
        5 | 6 => FaultKind::BadNetwork {
            lost: rng.unit() * 0.4,
            doubled: rng.unit() * 0.5,
            delayed: delay(rng),
            lasts,
        },
        7 => FaultKind::StoreDown { store, lasts },
        8 => FaultKind::StoreWiped { store },
        9 => FaultKind::StoreLosesWrites {
            store,
            last: rng.between(DurationMs(100), DurationMs(8_000)),
        },
        10 => FaultKind::StoreClockSteps {
            store,
            by_ms: if rng.chance(0.3) {
                i64::from(rng.below(20 * 3_600_000)) - 10 * 3_600_000
            } else {
                i64::from(rng.below(40_000)) - 20_000
            },
        },
        11 => FaultKind::Limits {
            limits: limits(rng),
            within,
        },
        12 if rules.session_renewal => FaultKind::SessionDuration {
            session: new_session(rng, rules),
            within,
        },
        13 => FaultKind::Pacing {
            pacing: rng.chance(0.5),
            within,
        },
        14 => cut(LinkRef::NodeToStore(node), lasts + rules.longest_seat()),
        15 => answers_lost(LinkRef::NodeToStore(node), lasts),
        16 if shape.has_global_store => answers_lost(LinkRef::ToGlobal(data_center), lasts),
        _ => return None,
    })
}

/// Returns a delay so long that syncs overlap: most messages arrive after their sync was given up,
/// some much later.
fn delay(rng: &mut SimRng) -> DurationMs {
    match rng.below(10) {
        0..7 => rng.between(DurationMs::ZERO, DurationMs(3_000)),
        7 | 8 => rng.between(DurationMs(3_000), DurationMs(30_000)),
        _ => rng.between(DurationMs(30_000), DurationMs(120_000)),
    }
}

fn below(rng: &mut SimRng, bound: usize) -> usize {
    let bound = u32::try_from(bound).unwrap_or(u32::MAX);
    rng.below(bound) as usize
}
