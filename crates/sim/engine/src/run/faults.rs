//! Faults, and changes by the operator.

use anteroom_room::ledger::LEASE_TTL;
use anteroom_room::rules::Rules;
use anteroom_room::store::Durability;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Simulation;
use super::event::Event;
use crate::deployment::network::Bad;
use crate::deployment::node::NodeState;
use crate::scenario::model::{FaultKind, LinkRef, NodeRef, StoreRef};

/// Longest time for which a draining node serves requests.
const DRAIN_MAX: DurationMs = DurationMs::from_secs(2);
/// Interval at which a draining process is checked.
const DRAIN_POLL: DurationMs = DurationMs(100);
/// Time after a fault within which its last messages arrive, and rejected visitors send their next
/// requests.
pub(super) const MARGIN: DurationMs = DurationMs::from_secs(5);

impl Simulation {
    pub(super) fn handle_fault(&mut self, index: u32) {
        let Some(fault) = self.scenario.faults.get(index as usize).cloned() else {
            return;
        };
        self.note(|_| format!("fault: {:?}", fault.kind));
        self.note_trouble(fault.kind);
        self.note_counts_change(fault.kind);
        let comeback = match fault.kind {
            FaultKind::StoreLosesWrites { store, .. } => {
                Some((store, self.deployment.stores.at(store).is_open()))
            }
            _ => None,
        };
        match fault.kind {
            FaultKind::Crash { node, after } => self.crash(node, after),
            FaultKind::Restart { node, after } => self.restart(node, after),
            FaultKind::Pause { node, lasts } => {
                let until = self.now + lasts;
                if let Some(node) = self.deployment.node_at(node) {
                    let node = &mut self.deployment.nodes[node as usize];
                    node.paused_until = node.paused_until.max(until);
                }
            }
            FaultKind::Cut {
                link,
                replies_only,
                lasts,
            } => self.cut(link, replies_only, self.now + lasts),
            FaultKind::BadNetwork {
                lost,
                doubled,
                delayed,
                lasts,
            } => {
                let bad = Bad {
                    lost,
                    doubled,
                    delayed,
                };
                self.deployment.network.make_bad(bad, self.now + lasts);
            }
            FaultKind::StoreDown { .. }
            | FaultKind::StoreWiped { .. }
            | FaultKind::StoreLosesWrites { .. }
            | FaultKind::StoreClockSteps { .. } => self.trouble_store(fault.kind),
            FaultKind::NodeClockIsOff { .. } | FaultKind::NodeWallClockSteps { .. } => {
                self.trouble_clock(fault.kind);
            }
            FaultKind::Event { event, .. } if event.room != self.room => {}
            FaultKind::Event { within, .. }
            | FaultKind::Limits { within, .. }
            | FaultKind::Pacing { within, .. }
            | FaultKind::NewUsersWindow { within, .. }
            | FaultKind::SessionDuration { within, .. } => {
                self.spread_rules(index, within);
            }
        }
        // The record that came back says who has to report.
        if let Some((store, was_open)) = comeback {
            self.note_comeback(index, store, was_open);
        }
    }

    /// Records the time until which a fault may have effects: its end, then the leases, then the
    /// longest seat.
    fn note_trouble(&mut self, kind: FaultKind) {
        let lasts = match kind {
            // The reserve lasts to the end of a minute at least, by a clock that may be wrong.
            FaultKind::StoreWiped { .. } | FaultKind::StoreLosesWrites { .. } => {
                DurationMs::from_secs(90)
            }
            // The checkers tolerate a wrong clock all the time.
            FaultKind::NodeClockIsOff { .. } | FaultKind::NodeWallClockSteps { .. } => return,
            FaultKind::Event { event, .. } if event.room != self.room => return,
            // New rules end no session early, so active visitors notice no fault.
            FaultKind::Event { within, .. }
            | FaultKind::Limits { within, .. }
            | FaultKind::Pacing { within, .. }
            | FaultKind::NewUsersWindow { within, .. }
            | FaultKind::SessionDuration { within, .. } => {
                let mut effects = within + self.deployment.stores.longest_lease() + MARGIN;
                if !self.checkers.is_calm(self.now) {
                    // A reserve or a phantom seat lasts as long as the longest seat known.
                    effects = effects + self.longest_seat(self.now) + LEASE_TTL;
                }
                self.checkers.handle_fault(self.now + effects, true);
                return;
            }
            _ => kind.lasts(),
        };
        // A store that came back waits for reports as long as for a lease, and then reserves.
        let lease = self.deployment.stores.longest_lease();
        let waits = match self.scenario.durability {
            Durability::Unknown => DurationMs::ZERO,
            _ => lease,
        };
        let leases = waits + lease + LEASE_TTL;
        let safe_after = self.scenario.safe_after();
        // Ledgers notice the fault by then at the latest.
        let noticed_at = self.now + lasts + leases + safe_after + MARGIN;
        self.checkers.handle_disturbance(noticed_at);
        if keeps_from_hearing(kind) {
            self.checkers.handle_silence(noticed_at);
        }
        let is_far_away = match kind {
            FaultKind::Cut { link, .. } => matches!(link, LinkRef::ToGlobal(_)),
            FaultKind::StoreDown { store, .. } => store == StoreRef::Global,
            _ => false,
        };
        let is_far_away = is_far_away && self.deployment.stores.has_two_levels();
        self.checkers
            .handle_fault(noticed_at + self.longest_seat(self.now), is_far_away);
        // A reserve that begins when the fault is over lasts for the longer seats of rules that
        // changed meanwhile. That excuses no seat that is lost.
        self.checkers
            .handle_fault(noticed_at + self.longest_seat(noticed_at), true);
    }

    /// Records until when a fault changes where waiting visitors are counted. A node that is killed
    /// is two changes: this one, and its start.
    fn note_counts_change(&mut self, kind: FaultKind) {
        let lasts = match kind {
            FaultKind::Crash { .. } => DurationMs::ZERO,
            FaultKind::Restart { .. } => DRAIN_MAX,
            // A ledger whose lease ended meanwhile reports nothing before those of its nodes ended.
            kind => kind.lasts() + LEASE_TTL,
        };
        self.checkers.note_counts_change(self.now + lasts);
    }

    /// Returns the longest seat of all rules until this time. A change of the session after the
    /// ledgers noticed a fault does not excuse its effects.
    pub(super) fn longest_seat(&self, until: Timestamp) -> DurationMs {
        let elapsed = until.since(self.scenario.starts_at);
        let earlier = self.scenario.faults.iter();
        let earlier = earlier.filter(|fault| fault.at <= elapsed);
        let changed = earlier.filter_map(|fault| match fault.kind {
            FaultKind::SessionDuration { session, .. } => Some(Rules {
                session_duration: session,
                ..self.rules
            }),
            _ => None,
        });
        let events = self.scenario.rooms[self.room].events.iter();
        let of_events = events.filter_map(|event| {
            Some(Rules {
                session_duration: event.values.session_duration?,
                ..self.rules
            })
        });
        let all = changed.chain(of_events).chain(std::iter::once(self.rules));
        all.map(|rules| rules.longest_seat())
            .max()
            .unwrap_or_default()
    }

    fn crash(&mut self, place: NodeRef, after: DurationMs) {
        let Some(index) = self.deployment.node_at(place) else {
            return;
        };
        self.deployment.nodes[index as usize].stop();
        self.checkers.handle_killed(index, self.now);
        self.plan(self.now + after, Event::Starts { node: index });
    }

    fn restart(&mut self, place: NodeRef, after: DurationMs) {
        let Some(index) = self.deployment.node_at(place) else {
            return;
        };
        let node = &mut self.deployment.nodes[index as usize];
        if !node.is_alive() {
            return;
        }
        let data_center = node.data_center;
        if self
            .deployment
            .stores
            .has_standing_clock(data_center, self.now)
        {
            // Its visitors pass to other data centers at times that its ledger knows to a second.
            self.checkers.note_visitors_counted_by_guess(self.now);
        }
        let node = &mut self.deployment.nodes[index as usize];
        node.state = NodeState::Draining;
        node.sync_loop.stop();
        let incarnation = node.incarnation;
        self.drive(index);
        let drained_after = DurationMs(after.0 / 2).min(DRAIN_MAX);
        self.plan(
            self.now + drained_after,
            Event::Stops {
                node: index,
                incarnation,
            },
        );
        self.plan(self.now + after, Event::Starts { node: index });
    }

    /// Stops a draining node once it has served its last visitor and sent its last sync.
    pub(super) fn handle_stop(&mut self, index: u32, incarnation: u32) {
        let node = &mut self.deployment.nodes[index as usize];
        if !node.is_alive() || node.incarnation != incarnation {
            return;
        }
        if node.sync_loop.is_finished() {
            node.stop();
        } else {
            self.plan(
                self.now + DRAIN_POLL,
                Event::Stops {
                    node: index,
                    incarnation,
                },
            );
        }
    }

    pub(super) fn handle_start(&mut self, index: u32) {
        let node = &self.deployment.nodes[index as usize];
        let data_center = node.data_center;
        match node.state {
            NodeState::Running => return,
            NodeState::Draining => {
                self.plan(self.now + DRAIN_POLL, Event::Starts { node: index });
                return;
            }
            NodeState::Stopped => {}
        }
        // A ledger that no node has used for a while keeps the counts of the killed ones, and if
        // its lease ended it reports nothing, until theirs have ended by the time that this brings.
        let mut nodes = self.deployment.nodes.iter();
        let is_used = nodes.any(|node| node.data_center == data_center && node.is_alive());
        let counts_from = if is_used {
            self.now
        } else {
            self.now + LEASE_TTL
        };
        let identity = self.deployment.new_incarnation(data_center);
        self.deployment.nodes[index as usize].start(identity, self.now);
        self.start_schedule(index);
        self.note(|deployment| format!("{} starts", deployment.name_of(index)));
        self.checkers.note_counts_change(counts_from);
        self.drive(index);
    }

    fn cut(&mut self, link: LinkRef, replies_only: bool, until: Timestamp) {
        match link {
            LinkRef::NodeToStore(place) => {
                if let Some(node) = self.deployment.node_at(place) {
                    let node = &mut self.deployment.nodes[node as usize];
                    node.cuts.cut(replies_only, until);
                }
            }
            LinkRef::ToGlobal(data_center) => {
                let network = &mut self.deployment.network;
                network.cut_global(data_center, replies_only, until);
            }
        }
    }

    fn trouble_clock(&mut self, kind: FaultKind) {
        let (FaultKind::NodeClockIsOff { node, .. } | FaultKind::NodeWallClockSteps { node, .. }) =
            kind
        else {
            return;
        };
        let Some(index) = self.deployment.node_at(node) else {
            return;
        };
        let node = &mut self.deployment.nodes[index as usize];
        match kind {
            FaultKind::NodeClockIsOff {
                by_ms, drifts_ppm, ..
            } => node.clock.set_error(by_ms, drifts_ppm, self.now),
            FaultKind::NodeWallClockSteps { by_ms, .. } => node.step_wall(by_ms, self.now),
            _ => {}
        }
    }

    fn trouble_store(&mut self, kind: FaultKind) {
        let now = self.now;
        let stores = &mut self.deployment.stores;
        match kind {
            FaultKind::StoreDown { store, lasts } => stores.at(store).take_down(now + lasts),
            FaultKind::StoreWiped { store } => stores.at(store).wipe(self.now),
            FaultKind::StoreLosesWrites { store, last } => stores.at(store).lose_writes(last, now),
            FaultKind::StoreClockSteps { store, by_ms } => stores.at(store).step_clock(by_ms),
            _ => {}
        }
    }

    /// Plans new rules for the nodes, one after the other.
    fn spread_rules(&mut self, fault: u32, within: DurationMs) {
        let count = u64::from(self.deployment.node_count());
        for node in 0..self.deployment.node_count() {
            let after = DurationMs(within.0 * u64::from(node) / count.saturating_sub(1).max(1));
            self.plan(self.now + after, Event::NewRules { node, fault });
        }
    }

    pub(super) fn handle_new_rules(&mut self, index: u32, number: u32) {
        let Some(fault) = self.scenario.faults.get(number as usize) else {
            return;
        };
        let node = &mut self.deployment.nodes[index as usize];
        if node.paused_until > self.now {
            let at = node.paused_until;
            self.plan(
                at,
                Event::NewRules {
                    node: index,
                    fault: number,
                },
            );
            return;
        }
        let rules = match &mut node.schedule {
            Some(schedule) => &mut schedule.file.rules,
            None => &mut node.rules,
        };
        match fault.kind {
            FaultKind::Event { event, change, .. } => {
                let schedule = node.schedule.as_deref_mut();
                let events = schedule.map(|schedule| &mut schedule.file.events);
                if let Some(event) = events.and_then(|events| events.get_mut(event.event)) {
                    change.apply(event);
                }
            }
            FaultKind::Limits { limits, .. } => rules.limits = limits,
            FaultKind::Pacing { pacing, .. } => rules.pacing = pacing,
            FaultKind::NewUsersWindow { window, .. } => rules.new_users_window = window,
            FaultKind::SessionDuration { session, .. } => rules.session_duration = session,
            _ => return,
        }
        if node.schedule.is_some() {
            if node.is_alive() {
                self.evaluate(index);
            }
            return;
        }
        let node_now = node.clock.read(self.now);
        node.room.handle_rules(node.rules, node_now);
        node.renew_view();
        let is_alive = node.is_alive();
        let highest = self.deployment.highest_limits();
        let is_sliding = self.deployment.all_windows_slide();
        self.checkers.handle_limits(highest, is_sliding, self.now);
        if is_alive {
            self.hurry(index);
        }
    }
}

/// Whether a node may not hear of visitors who wait at other nodes while this lasts. After a loss
/// of counts it does hear, because all who wait send their next requests within a minute.
const fn keeps_from_hearing(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::Cut { .. }
            | FaultKind::BadNetwork { .. }
            | FaultKind::StoreDown { .. }
            | FaultKind::Pause { .. }
    )
}
