//! Coverage of the seeds: the faults and the edges of events that they meet, and the pairs of them
//! that are active at the same time.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::model::{FaultKind, FaultPlan, LinkRef, Scenario, StoreRef};
use anteroom_room::time::DurationMs;

/// Time for which a fault without a length still has messages under way.
const AFTERMATH: DurationMs = DurationMs::from_secs(5);

/// Number of seeds that met each fault.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Seeds in which a kind of fault happened before the end of the run.
    pub seeds: BTreeMap<&'static str, u64>,
    /// Seeds in which two kinds were active at the same time.
    pub at_once: BTreeMap<(&'static str, &'static str), u64>,
}

impl Coverage {
    /// Counts the faults and the edges of events in the first `elapsed` of a scenario.
    pub fn note(&mut self, scenario: &Scenario, elapsed: DurationMs) {
        let faults = scenario.faults.iter().map(|fault| Met {
            name: name_of(&fault.kind),
            at: fault.at,
            over_at: over_at(fault),
        });
        let met = faults.chain(edges(scenario));
        let met: Vec<Met> = met.filter(|one| one.at < elapsed).collect();
        let names: BTreeSet<_> = met.iter().map(|one| one.name).collect();
        for name in names {
            *self.seeds.entry(name).or_insert(0) += 1;
        }
        let mut pairs = BTreeSet::new();
        for (index, one) in met.iter().enumerate() {
            for other in &met[index + 1..] {
                if one.at <= other.over_at && other.at <= one.over_at {
                    let (one, other) = (one.name, other.name);
                    pairs.insert((one.min(other), one.max(other)));
                }
            }
        }
        for pair in pairs {
            *self.at_once.entry(pair).or_insert(0) += 1;
        }
    }
}

/// Fault or edge of an event, with its times since the start of the run.
struct Met {
    name: &'static str,
    at: DurationMs,
    over_at: DurationMs,
}

/// Names of the edges of an event.
pub const EDGES: [&str; 3] = ["event's prequeue", "event's start", "event's end"];

/// Returns the edges of events as they are planned.
fn edges(scenario: &Scenario) -> impl Iterator<Item = Met> {
    let events = scenario.rooms[0].events.iter();
    events.flat_map(|event| {
        let times = event.times;
        let prequeue_at = (times.prequeue_at < times.starts_at).then_some(times.prequeue_at);
        let all = [prequeue_at, Some(times.starts_at), times.ends_at];
        EDGES.into_iter().zip(all).filter_map(|(name, at)| {
            let at = at?.since(scenario.starts_at);
            let over_at = at;
            Some(Met { name, at, over_at })
        })
    })
}

/// Returns a name for every kind of fault.
#[must_use]
pub const fn name_of(fault: &FaultKind) -> &'static str {
    match fault {
        FaultKind::Crash { .. } => "crash",
        FaultKind::Restart { .. } => "restart",
        FaultKind::Pause { .. } => "pause",
        FaultKind::Cut {
            replies_only: true, ..
        } => "answers lost",
        FaultKind::Cut {
            link: LinkRef::NodeToStore(_),
            ..
        } => "node cut off",
        FaultKind::Cut {
            link: LinkRef::ToGlobal(_),
            ..
        } => "data center cut off",
        FaultKind::BadNetwork { .. } => "bad network",
        FaultKind::StoreDown { .. } => "store down",
        FaultKind::StoreWiped {
            store: StoreRef::Local(_),
        } => "local store wiped",
        FaultKind::StoreWiped {
            store: StoreRef::Global,
        } => "global store wiped",
        FaultKind::StoreLosesWrites { .. } => "store loses writes",
        FaultKind::StoreClockSteps { .. } => "store's clock steps",
        FaultKind::NodeClockIsOff { .. } => "node's clock is off",
        FaultKind::NodeWallClockSteps { .. } => "node's wall clock steps",
        FaultKind::Event { .. } => "event changes",
        FaultKind::Limits { .. } => "limits change",
        FaultKind::Pacing { .. } => "pacing changes",
        FaultKind::NewUsersWindow { .. } => "window changes",
        FaultKind::SessionDuration { .. } => "session_duration changes",
    }
}

/// Number of names of faults and edges.
pub const NAMES: usize = 19 + EDGES.len();

/// Returns the end of a fault, from the start of the run.
fn over_at(fault: &FaultPlan) -> DurationMs {
    let lasts = match fault.kind {
        FaultKind::Crash { after, .. } | FaultKind::Restart { after, .. } => after,
        FaultKind::Pause { lasts, .. }
        | FaultKind::Cut { lasts, .. }
        | FaultKind::BadNetwork { lasts, .. }
        | FaultKind::StoreDown { lasts, .. } => lasts,
        FaultKind::StoreWiped { .. }
        | FaultKind::StoreLosesWrites { .. }
        | FaultKind::StoreClockSteps { .. } => AFTERMATH,
        // Until the end.
        FaultKind::NodeClockIsOff { .. } | FaultKind::NodeWallClockSteps { .. } => {
            return DurationMs(u64::MAX);
        }
        FaultKind::Event { within, .. }
        | FaultKind::Limits { within, .. }
        | FaultKind::Pacing { within, .. }
        | FaultKind::NewUsersWindow { within, .. }
        | FaultKind::SessionDuration { within, .. } => within,
    };
    fault.at + lasts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn faults_are_active_together_where_their_times_overlap() {
        let down = |at, lasts| FaultPlan {
            at: DurationMs(at),
            kind: FaultKind::StoreDown {
                store: StoreRef::Global,
                lasts: DurationMs(lasts),
            },
        };
        let pacing = |at| FaultPlan {
            at: DurationMs(at),
            kind: FaultKind::Pacing {
                pacing: true,
                within: DurationMs(10),
            },
        };
        let mut scenario = seeds::scenario(0);
        scenario.faults = vec![down(100, 50), pacing(140), pacing(900)];
        let mut coverage = Coverage::default();
        coverage.note(&scenario, DurationMs(800));
        assert_eq!(coverage.seeds["store down"], 1);
        assert_eq!(coverage.at_once[&("pacing changes", "store down")], 1);
        // Two of a kind, one of them after the end of the run.
        assert!(
            !coverage
                .at_once
                .contains_key(&("pacing changes", "pacing changes"))
        );
    }
}
