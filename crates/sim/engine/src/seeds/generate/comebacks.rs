//! Promises of a seed's stores about their writes, and stores that come back as other servers.
//!
//! Draws come from a stream of their own, so that everything else of a seed stays as it was.

use anteroom_room::store::Durability;
use anteroom_room::time::DurationMs;

use super::faults::keep_a_witness;
use super::shape::Shape;
use crate::rng::{Draw, Purpose, SimRng};
use crate::scenario::model::{FaultKind, FaultPlan, NodeRef, StoreRef};

/// Returns the promise of the stores. Adds comebacks that keep it to the faults.
pub(super) fn durability(seed: u64, shape: Shape, faults: &mut Vec<FaultPlan>) -> Durability {
    let mut rng = SimRng::new(seed, Purpose::Comebacks);
    if rng.chance(0.4) {
        return Durability::Unknown;
    }
    let most = if rng.chance(0.2) {
        DurationMs::ZERO
    } else {
        rng.between(DurationMs(200), DurationMs(4_000))
    };
    if rng.chance(0.4) {
        comebacks(&mut rng, shape, most, faults);
        let is_wiped = |fault: &FaultPlan| {
            matches!(
                fault.kind,
                FaultKind::StoreWiped {
                    store: StoreRef::Global
                }
            )
        };
        if faults.iter().any(is_wiped) {
            keep_a_witness(faults);
        }
    }
    let losses = faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::StoreLosesWrites { last, .. } => Some(last),
        _ => None,
    });
    match losses.fold(most, DurationMs::max) {
        DurationMs::ZERO => Durability::KeepsAll,
        // The past states of a record are a sixteenth of that apart.
        longest => Durability::LosesAtMost(longest + DurationMs(longest.0 / 16 + 10)),
    }
}

/// Adds one or two comebacks: a store is away for a while, lacks its newest writes, and some
/// nodes die with it. The next store often follows before the first has recovered.
fn comebacks(rng: &mut SimRng, shape: Shape, most: DurationMs, faults: &mut Vec<FaultPlan>) {
    let mut at = rng.between(DurationMs::from_secs(3), DurationMs::from_secs(20));
    for _ in 0..=rng.below(2) {
        let data_center = rng.below(u32::try_from(shape.data_centers).unwrap_or(1)) as usize;
        let store = if !shape.has_global_store || rng.chance(0.5) {
            StoreRef::Global
        } else {
            StoreRef::Local(data_center)
        };
        let lasts = rng.between(DurationMs(100), DurationMs(14_000));
        let last = if rng.chance(0.8) {
            rng.between(DurationMs::ZERO, most)
        } else {
            DurationMs::ZERO
        };
        // It loses the writes before it goes away.
        let lost = FaultKind::StoreLosesWrites { store, last };
        let away = FaultKind::StoreDown { store, lasts };
        faults.extend([lost, away].map(|kind| FaultPlan { at, kind }));
        if rng.chance(0.4) {
            // Messages from before the loss arrive after it.
            let bad = FaultKind::BadNetwork {
                lost: 0.06,
                doubled: 0.1,
                delayed: rng.between(DurationMs::from_secs(1), DurationMs::from_secs(12)),
                lasts: lasts + DurationMs::from_secs(10),
            };
            let at = at.less(DurationMs::from_secs(2));
            faults.push(FaultPlan { at, kind: bad });
        }
        if last >= DurationMs(800) && rng.chance(0.4) {
            let node = NodeRef {
                data_center,
                node: rng.below(u32::try_from(shape.nodes).unwrap_or(1)) as usize,
            };
            joins_within(node, last, at, faults);
        }
        let dying = [0.0, 0.3, 1.0][rng.below(3) as usize];
        for node in 0..shape.nodes * shape.data_centers {
            let node = NodeRef {
                data_center: node / shape.nodes,
                node: node % shape.nodes,
            };
            let is_near = store == StoreRef::Global || store == StoreRef::Local(node.data_center);
            if is_near && rng.chance(dying) {
                let after = rng.between(DurationMs(500), DurationMs(5_000));
                let kind = FaultKind::Crash { node, after };
                faults.push(FaultPlan { at, kind });
            }
        }
        at = at + rng.between(DurationMs(500), DurationMs::from_secs(20));
    }
    faults.sort_by_key(|fault| fault.at);
}

/// Makes a node start just after the last write that is kept, and die with the store. The store
/// forgets that it was there.
fn joins_within(node: NodeRef, last: DurationMs, at: DurationMs, faults: &mut Vec<FaultPlan>) {
    const STARTS_AFTER: DurationMs = DurationMs(300);
    let starts_at = at.less(last.less(DurationMs(last.0 / 8)));
    let crashes = [
        (starts_at.less(STARTS_AFTER), STARTS_AFTER),
        (at, DurationMs::from_secs(30)),
    ];
    let crashes = crashes.map(|(at, after)| FaultPlan {
        at,
        kind: FaultKind::Crash { node, after },
    });
    faults.extend(crashes);
}
