//! A run: events in the order of their time, until the length of the scenario is over.
//!
//! The file holds the whole and its clockwork; what happens at an event is in `visiting`,
//! `answering`, `syncing`, `numbers` and `faults`.

mod answering;
mod event;
mod faults;
mod judging;
mod numbers;
pub(crate) mod slab;
mod syncing;
mod visiting;

use anteroom_room::rules::{AllocationKind, QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::crowd::Crowd;
use crate::deployment::Deployment;
use crate::deployment::node::Request;
use crate::judge::Checkers;
use crate::judge::recovery::Sample;
use crate::measure::Measure;
use crate::outcome::Outcome;
use crate::queue::Wheel;
use crate::recording::Recording;
use crate::rng::Draw;
use crate::scenario::model::{FaultKind, Scenario};
use crate::trace::{Digest, Trace};
use event::Event;
use slab::Slab;
use syncing::Message;

/// Nodes and stores run so long before anybody comes: a deployment does not start with a sale.
const WARM_UP: DurationMs = DurationMs::from_secs(5);

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Virtual time that is over.
    pub done: DurationMs,
    /// Of so much.
    pub length: DurationMs,
    /// Events so far.
    pub events: u64,
}

/// Rehearses one room of a scenario under one allocation.
///
/// `progress` is called once for every virtual second.
///
/// # Panics
///
/// If the scenario has no such room.
pub fn run(
    scenario: &Scenario,
    room: usize,
    allocation: AllocationKind,
    progress: &mut dyn FnMut(Progress),
) -> Outcome {
    let mut simulation = Simulation::new(scenario, room, allocation);
    let mut done = DurationMs::ZERO;
    while done < scenario.length {
        done = (done + DurationMs::from_secs(1)).min(scenario.length);
        simulation.run_until(done);
        progress(Progress {
            done,
            length: scenario.length,
            events: simulation.events(),
        });
    }
    simulation.finish()
}

/// One room of a scenario, somewhere in its run.
#[derive(Debug)]
pub struct Simulation {
    scenario: Scenario,
    room: usize,
    rules: Rules,
    now: Timestamp,
    queue: Wheel<Event>,
    crowd: Crowd,
    deployment: Deployment,
    judge: Checkers,
    measure: Measure,
    /// Requests that wait for an answer from above.
    parked: Slab<Request>,
    messages: Slab<Message>,
    events: u64,
    digest: Digest,
    trace: Option<Trace>,
}

impl Simulation {
    /// A room as it stands before the first event.
    ///
    /// # Panics
    ///
    /// If the scenario has no such room.
    #[must_use]
    pub fn new(scenario: &Scenario, room: usize, allocation: AllocationKind) -> Self {
        let plan = &scenario.rooms[room];
        let rules = Rules {
            allocation,
            ..plan.rules
        };
        let mut simulation = Self {
            room,
            rules,
            now: scenario.starts_at - WARM_UP,
            queue: Wheel::new((scenario.starts_at - WARM_UP).0),
            crowd: Crowd::new(plan, &scenario.data_centers, scenario.seed),
            deployment: Deployment::new(scenario, rules, scenario.starts_at - WARM_UP),
            judge: Checkers::new(scenario, allocation, rules.limits),
            measure: Measure::new(scenario),
            parked: Slab::default(),
            messages: Slab::default(),
            events: 0,
            digest: Digest::default(),
            trace: None,
            scenario: scenario.clone(),
        };
        simulation.plan_beginning();
        simulation
    }

    /// Keeps a trace of the newest `lines`.
    #[must_use]
    pub fn with_trace(mut self, lines: usize) -> Self {
        self.trace = Some(Trace::new(lines));
        self
    }

    /// The trace, if one is kept.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Keeps what its ledgers are asked and what they answer: for before the first event.
    #[must_use]
    pub(crate) fn with_recording(mut self) -> Self {
        self.deployment.stores.record();
        self
    }

    /// What was kept, by ledger.
    pub(crate) fn into_recordings(self) -> Vec<Recording> {
        self.deployment.stores.into_recordings()
    }

    /// What was found to be wrong so far.
    #[must_use]
    pub fn judge(&self) -> &Checkers {
        &self.judge
    }

    /// A fingerprint of every decision so far: the same for the same scenario and code.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Events so far, requests that a page loads beside itself included.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Whether somebody was let in after the end of the last fault. What it leaves behind may go
    /// on for longer.
    #[must_use]
    pub fn has_recovered(&self) -> bool {
        let faults = self.scenario.faults.iter();
        let last = faults.map(|fault| fault.at + fault.kind.lasts()).max();
        let last = self.scenario.starts_at + last.unwrap_or(DurationMs::ZERO);
        self.judge.newest_admission() > Some(last)
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> DurationMs {
        self.now.since(self.scenario.starts_at)
    }

    /// Lets the next event happen. Returns whether there was one within the scenario's length.
    pub fn step(&mut self) -> bool {
        let until = self.scenario.starts_at + self.scenario.length;
        self.step_until(until)
    }

    /// Lets everything happen until this long after the start.
    pub fn run_until(&mut self, elapsed: DurationMs) {
        let until = self.scenario.starts_at + elapsed;
        while self.step_until(until) {}
        self.now = self.now.max(until);
    }

    /// Ends the run where it stands, and tells what it was like.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let calm_and_over = self.glance();
        self.judge
            .check_counts(calm_and_over.of(&self.deployment), self.now);
        let length = self.elapsed();
        let scale = (self.deployment.node_count(), length, self.events);
        let (stats, samples, data_centers) = self.measure.finish(&self.judge, scale);
        let plan = &self.scenario.rooms[self.room];
        Outcome {
            room: plan.name.clone(),
            allocation: self.rules.allocation,
            settings: Vec::new(),
            limits: plan.rules.limits,
            starts_at: self.scenario.starts_at,
            length,
            stats,
            samples,
            data_centers,
            violations: self.judge.violations().to_vec(),
        }
    }

    fn plan_beginning(&mut self) {
        for stream in 0..self.crowd.streams.len() {
            self.plan_arrival(stream);
        }
        for node in 0..self.deployment.node_count() {
            // Not all in the same millisecond.
            let after = self
                .deployment
                .lives()
                .between(DurationMs::ZERO, DurationMs(250));
            let at = self.now + after;
            self.deployment.nodes[node as usize].looked_at = Some(at);
            self.plan(at, Event::LoopDue { node, at });
        }
        for (fault, index) in self.scenario.faults.iter().zip(0u32..) {
            // A clock that is wrong from the start on is wrong before anybody comes: it does not
            // stand still until the right time has caught up with it.
            let is_wrong_clock = matches!(fault.kind, FaultKind::NodeClockIsOff { .. });
            let at = if fault.at == DurationMs::ZERO && is_wrong_clock {
                self.now
            } else {
                self.scenario.starts_at + fault.at
            };
            self.queue.push(at.0, Event::Fault { index });
        }
        let first = self.scenario.starts_at + DurationMs::from_secs(1);
        self.plan(first, Event::Second);
    }

    fn plan(&mut self, at: Timestamp, event: Event) {
        self.queue.push(at.0, event);
    }

    fn step_until(&mut self, until: Timestamp) -> bool {
        let Some((at, event)) = self.queue.pop(until.0) else {
            return false;
        };
        self.now = Timestamp(at);
        self.events += 1;
        self.handle(event);
        true
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrives { stream } => self.handle_arrival(stream),
            Event::Asks { visitor } => self.handle_ask(visitor),
            Event::Reaches { visitor } => self.handle_reach(visitor),
            Event::CopySent { copy } => self.handle_copy(copy),
            Event::PatienceEnds { request } => self.handle_patience_end(request),
            Event::LoopDue { node, at } => self.handle_loop_due(node, at),
            Event::Message { message } => self.handle_message(message),
            Event::AtCounter { request } => self.handle_request_at_counter(request),
            Event::NumberBack { request } => self.handle_number_back(request),
            Event::Fault { index } => self.handle_fault(index),
            Event::Stops { node, incarnation } => self.handle_stop(node, incarnation),
            Event::Starts { node } => self.handle_start(node),
            Event::NewRules { node, fault } => self.handle_new_rules(node, fault),
            Event::Second => self.handle_second(),
        }
    }

    fn handle_second(&mut self) {
        self.measure.handle_second(&mut self.judge, self.now);
        let glance = self.glance();
        self.judge
            .check_progress(glance.of(&self.deployment), self.now);
        self.plan(self.now + DurationMs::from_secs(1), Event::Second);
    }

    fn glance(&self) -> Looking {
        let behaviour = &self.crowd.behaviour;
        let mut doubles =
            behaviour.changes_data_center + behaviour.changes_node + behaviour.replays;
        if !self.scenario.is_one_node() {
            // Where others may let a copy of the ticket pass, a seat outlives a logout.
            doubles += behaviour.log_out;
        }
        if self.rules.queueing_method == QueueingMethod::Passthrough {
            // Those who go in outside of the limits are counted by ledgers, and by no checker.
            doubles += 1.0;
        }
        let opens_at = self.rules.opens_at.unwrap_or(Timestamp::ZERO);
        Looking {
            asking: self.measure.asking(),
            is_open: !self.rules.queue_all && self.now >= opens_at,
            is_simple: doubles <= 0.0,
            // An interval, the tolerance of clocks, and two periods of each level.
            given_back_within: self.rules.seat_grid() + DurationMs::from_secs(8),
        }
    }

    fn note(&mut self, line: impl FnOnce(&Deployment) -> String) {
        if let Some(trace) = &mut self.trace {
            let at = self.now.since(self.scenario.starts_at);
            trace.note(at, &line(&self.deployment));
        }
    }
}

/// A glance without the ledger.
#[derive(Clone, Copy, Debug)]
struct Looking {
    asking: u32,
    is_open: bool,
    is_simple: bool,
    given_back_within: DurationMs,
}

impl Looking {
    fn of(self, deployment: &Deployment) -> Sample<'_> {
        Sample {
            root: deployment.stores.root(),
            kept_for_movers: deployment.stores.kept_for_movers(),
            asking: self.asking,
            is_open: self.is_open,
            is_simple: self.is_simple,
            given_back_within: self.given_back_within,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
