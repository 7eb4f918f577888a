//! Checker of how long a ledger stays closed after its store came back as another server, and how
//! long it was.
//!
//! The bound follows from what else happens meanwhile. It is known for three kinds of comeback;
//! others, in the middle of other faults, are left to the checker of recovery.

use anteroom_room::ledger::LEASE_TTL;
use anteroom_room::store::Durability;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use crate::outcome::Invariant;
use crate::scenario::model::{FaultKind, FaultPlan, Scenario, StoreRef};

/// Time before and after a comeback in which another fault makes its bound unknown.
const APART: DurationMs = DurationMs::from_secs(45);
/// Longest time until all nodes have synced twice: an idle one syncs every three seconds, and one
/// whose store is away every half second.
const TWO_SYNCS: DurationMs = DurationMs(6_000);
/// Longest time until a data center without visitors syncs with the root.
const IDLE_UPSTREAM: DurationMs = DurationMs(10_000);

/// Kind of a comeback, which decides how long the ledger may stay closed.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ComebackKind {
    /// All nodes live.
    AllAlive,
    /// Nodes died with the store, which keeps all writes, or a data center had lost its record.
    KilledAndKept,
    /// Nodes died with the store, or a data center had lost its record. The store may lack its
    /// newest writes.
    Killed,
    /// Other faults happened at about the same time.
    Mixed,
}

/// Role of the store that came back.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ComebackPlace {
    /// Only store of a deployment.
    Only,
    /// Store of a data center, below a root.
    DataCenter,
    /// Store of the root, above data centers.
    Root,
}

/// Time from the return of a store until its ledger granted again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reopening {
    /// Kind of the comeback.
    pub kind: ComebackKind,
    /// Role of the store.
    pub place: ComebackPlace,
    /// Time from the return on.
    pub took: DurationMs,
}

/// Comeback whose ledger is not open yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comeback {
    store: StoreRef,
    back_at: Timestamp,
    kind: ComebackKind,
    place: ComebackPlace,
    /// Longest time that the ledger may stay closed; `None` if that is not known.
    within: Option<DurationMs>,
}

impl Simulation {
    /// Records that the store of a fault has become another server.
    pub(super) fn note_comeback(&mut self, fault: u32, store: StoreRef, was_open: bool) {
        self.comebacks.retain(|earlier| earlier.store != store);
        if self.scenario.durability == Durability::Unknown {
            return;
        }
        let has_two_levels = self.deployment.stores.has_two_levels();
        let place = match store {
            _ if !has_two_levels => ComebackPlace::Only,
            StoreRef::Local(_) => ComebackPlace::DataCenter,
            StoreRef::Global => ComebackPlace::Root,
        };
        let lasts = away(&self.scenario, &self.scenario.faults[fault as usize]);
        // An earlier reserve goes on.
        let kind = if was_open {
            kind_of(&self.scenario, fault as usize)
        } else {
            ComebackKind::Mixed
        };
        // A record that a data center lost before never reports, as if that data center had died.
        let waits_for_lost =
            place == ComebackPlace::Root && self.deployment.stores.root_names_lost_record();
        let kind = match kind {
            ComebackKind::AllAlive if waits_for_lost => killed(&self.scenario),
            kind => kind,
        };
        let within = self.closed_within(kind, place);
        let comeback = Comeback {
            store,
            back_at: self.now + lasts,
            kind,
            place,
            within: within.map(|within| within + self.checkers.slack()),
        };
        self.comebacks.push(comeback);
    }

    /// Returns the longest time that a ledger may stay closed.
    fn closed_within(&self, kind: ComebackKind, place: ComebackPlace) -> Option<DurationMs> {
        let syncs = match place {
            ComebackPlace::Only | ComebackPlace::DataCenter => TWO_SYNCS,
            ComebackPlace::Root => TWO_SYNCS + IDLE_UPSTREAM,
        };
        // Nodes that died come back, and take a while to be safe.
        let restart = DurationMs(5_000) + self.scenario.safe_after();
        match (kind, place) {
            (ComebackKind::AllAlive, _) => Some(syncs),
            (ComebackKind::KilledAndKept, _)
            | (ComebackKind::Killed, ComebackPlace::DataCenter) => {
                Some(LEASE_TTL + syncs + restart)
            }
            _ => None,
        }
    }

    /// Records ledgers that grant again, after a write to a store.
    pub(super) fn note_reopened(&mut self) {
        let now = self.now;
        let stores = &mut self.deployment.stores;
        let reopenings = &mut self.reopenings;
        self.comebacks.retain(|comeback| {
            let is_open = now >= comeback.back_at && stores.at(comeback.store).is_open();
            if is_open {
                reopenings.push(Reopening {
                    kind: comeback.kind,
                    place: comeback.place,
                    took: now.since(comeback.back_at),
                });
            }
            !is_open
        });
    }

    /// Checks once a second that no ledger stays closed for longer than it may.
    pub(super) fn check_reopened(&mut self) {
        let now = self.now;
        let checkers = &mut self.checkers;
        self.comebacks.retain(|comeback| {
            let late = comeback
                .within
                .filter(|within| now > comeback.back_at + *within);
            if let Some(within) = late {
                let (kind, place) = (comeback.kind, comeback.place);
                checkers.report(Invariant::Reopening, now, || {
                    format!("{place:?}, {kind:?}: still closed {within} after its store came back")
                });
            }
            late.is_none()
        });
    }
}

/// Returns the kind of a comeback, from the faults at about the same time.
fn kind_of(scenario: &Scenario, index: usize) -> ComebackKind {
    let comeback = &scenario.faults[index];
    let lasts = away(scenario, comeback);
    let near = scenario.faults.iter().enumerate().filter(|(other, fault)| {
        let is_over = fault.at + fault.kind.lasts() + APART < comeback.at;
        *other != index && !is_over && fault.at < comeback.at + lasts + APART
    });
    let mut kind = ComebackKind::AllAlive;
    for (_, fault) in near {
        match fault.kind {
            FaultKind::StoreClockSteps { .. } => {}
            FaultKind::StoreDown { .. } if is_same_store(fault, comeback) => {}
            FaultKind::Crash { .. } if fault.at == comeback.at => {
                kind = killed(scenario);
            }
            _ => return ComebackKind::Mixed,
        }
    }
    kind
}

/// Returns the kind of a comeback after which a child does not report.
fn killed(scenario: &Scenario) -> ComebackKind {
    match scenario.durability {
        Durability::KeepsAll => ComebackKind::KilledAndKept,
        Durability::LosesAtMost(_) | Durability::Unknown => ComebackKind::Killed,
    }
}

/// Returns how long the store of a comeback is away.
fn away(scenario: &Scenario, comeback: &FaultPlan) -> DurationMs {
    let own = scenario.faults.iter();
    let own = own.filter(|fault| {
        matches!(fault.kind, FaultKind::StoreDown { .. }) && is_same_store(fault, comeback)
    });
    own.map(|fault| fault.kind.lasts())
        .max()
        .unwrap_or_default()
}

/// Whether both faults happen to one store at one time.
fn is_same_store(one: &FaultPlan, other: &FaultPlan) -> bool {
    let store = |fault: &FaultPlan| match fault.kind {
        FaultKind::StoreDown { store, .. } | FaultKind::StoreLosesWrites { store, .. } => {
            Some(store)
        }
        _ => None,
    };
    one.at == other.at && store(one) == store(other)
}
