//! Run of a scenario: events in the order of their time, until the length of the scenario is over.
//!
//! This file has the event loop. `visiting`, `replies`, `syncing`, `numbers` and `faults` handle
//! the events. `checking` hands every response to the checkers.

mod checking;
mod event;
mod faults;
mod numbers;
mod reopening;
mod replies;
mod schedule;
pub(crate) mod slab;
mod syncing;
mod visiting;

use anteroom_room::rules::{AllocationKind, QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::checkers::Checkers;
use crate::checkers::recovery::Observation;
use crate::deployment::Deployment;
use crate::deployment::node::Request;
use crate::event_queue::Wheel;
use crate::measure::Measure;
use crate::outcome::{EventMark, Outcome};
use crate::recording::Recording;
use crate::rng::Draw;
use crate::scenario::model::{FaultKind, Scenario};
use crate::trace::{Digest, Trace};
use crate::visitors::Population;
use event::Event;
use reopening::Comeback;
pub use reopening::{ComebackKind, ComebackPlace, Reopening};
use schedule::RecordMessage;
use slab::Slab;
use syncing::Message;

/// Time for which nodes and stores run before the first visitor: a deployment does not start with a
/// sale.
const WARM_UP: DurationMs = DurationMs::from_secs(5);

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Virtual time that has passed.
    pub done: DurationMs,
    /// Length of the run.
    pub length: DurationMs,
    /// Number of events until now.
    pub events: u64,
}

/// Simulates one room of a scenario under one allocation.
///
/// Calls `progress` once for every virtual second.
///
/// # Panics
///
/// Panics if the scenario has no such room.
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

/// Simulation of one room of a scenario.
#[derive(Debug)]
pub struct Simulation {
    scenario: Scenario,
    room: usize,
    rules: Rules,
    now: Timestamp,
    queue: Wheel<Event>,
    population: Population,
    deployment: Deployment,
    checkers: Checkers,
    measure: Measure,
    /// Requests that wait for a reply of the node's parent.
    parked: Slab<Request>,
    messages: Slab<Message>,
    /// Messages about the record with the phases of events.
    records: Slab<RecordMessage>,
    event_marks: Vec<EventMark>,
    events: u64,
    digest: Digest,
    trace: Option<Trace>,
    /// Comebacks of stores whose ledgers are not open yet.
    comebacks: Vec<Comeback>,
    reopenings: Vec<Reopening>,
}

impl Simulation {
    /// Creates a room in its state before the first event.
    ///
    /// # Panics
    ///
    /// Panics if the scenario has no such room.
    #[must_use]
    pub fn new(scenario: &Scenario, room: usize, allocation: AllocationKind) -> Self {
        let plan = &scenario.rooms[room];
        let rules = Rules {
            allocation,
            ..plan.rules
        };
        let begins_at = scenario.starts_at - WARM_UP - scenario.safe_after();
        let mut simulation = Self {
            room,
            rules,
            now: begins_at,
            queue: Wheel::new(begins_at.0),
            population: Population::new(plan, &scenario.data_centers, scenario.seed),
            deployment: Deployment::new(scenario, plan, rules, begins_at),
            checkers: Checkers::new(scenario, &rules),
            measure: Measure::new(scenario),
            parked: Slab::default(),
            messages: Slab::default(),
            records: Slab::default(),
            event_marks: Vec::new(),
            events: 0,
            digest: Digest::default(),
            trace: None,
            comebacks: Vec::new(),
            reopenings: Vec::new(),
            scenario: scenario.clone(),
        };
        simulation.plan_start();
        simulation
    }

    /// Keeps a trace of the newest `lines`.
    #[must_use]
    pub fn with_trace(mut self, lines: usize) -> Self {
        self.trace = Some(Trace::new(lines));
        self
    }

    /// Returns how long ledgers were closed after their stores came back.
    #[must_use]
    pub fn reopenings(&self) -> &[Reopening] {
        &self.reopenings
    }

    /// Returns the trace, if one is kept.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Records the requests to its ledgers and their replies; called before the first event.
    #[must_use]
    pub(crate) fn with_recording(mut self) -> Self {
        self.deployment.stores.record();
        self
    }

    /// Returns the recordings by ledger.
    pub(crate) fn into_recordings(self) -> Vec<Recording> {
        self.deployment.stores.into_recordings()
    }

    /// Returns the checkers with the violations until now.
    #[must_use]
    pub fn checkers(&self) -> &Checkers {
        &self.checkers
    }

    /// Returns a fingerprint of every decision until now: equal for the same scenario and code.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Returns the number of events until now, requests for subresources included.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Whether a visitor was admitted after the end of the last fault. Effects of the fault may
    /// last longer.
    #[must_use]
    pub fn has_recovered(&self) -> bool {
        let faults = self.scenario.faults.iter();
        let last = faults.map(|fault| fault.at + fault.kind.lasts()).max();
        let last = self.scenario.starts_at + last.unwrap_or(DurationMs::ZERO);
        self.checkers.newest_admission() > Some(last)
    }

    /// Returns the virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> DurationMs {
        self.now.since(self.scenario.starts_at)
    }

    /// Handles the next event. Returns whether there was one within the scenario's length.
    pub fn step(&mut self) -> bool {
        let until = self.scenario.starts_at + self.scenario.length;
        self.step_until(until)
    }

    /// Handles all events until this long after the start.
    pub fn run_until(&mut self, elapsed: DurationMs) {
        let until = self.scenario.starts_at + elapsed;
        while self.step_until(until) {}
        self.now = self.now.max(until);
    }

    /// Ends the run at the present time and returns its results.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let end_state = self.observe();
        self.checkers
            .check_counts(end_state.of(&self.deployment), self.now);
        let length = self.elapsed();
        let scale = (self.deployment.node_count(), length, self.events);
        let (stats, samples, data_centers) = self.measure.finish(&self.checkers, scale);
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
            events: self.event_marks,
            violations: self.checkers.violations().to_vec(),
        }
    }

    fn plan_start(&mut self) {
        for stream in 0..self.population.streams.len() {
            self.plan_arrival(stream);
        }
        for node in 0..self.deployment.node_count() {
            // Spreads the first polls over several milliseconds.
            let after = self
                .deployment
                .start_rng()
                .between(DurationMs::ZERO, DurationMs(250));
            let at = self.now + after;
            self.deployment.nodes[node as usize].looked_at = Some(at);
            self.plan(at, Event::LoopDue { node, at });
            self.start_schedule(node);
        }
        for (fault, index) in self.scenario.faults.iter().zip(0u32..) {
            // A clock that is wrong from the start is set before the first visitor. Otherwise it
            // would stand still until the true time has caught up.
            let is_wrong_clock = matches!(
                fault.kind,
                FaultKind::NodeClockIsOff { .. } | FaultKind::NodeWallClockSteps { .. }
            );
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
            Event::SendsRequest { visitor } => self.handle_next_request(visitor),
            Event::ReachesNode { visitor } => self.handle_arrived_request(visitor),
            Event::CopySent { copy } => self.handle_copy(copy),
            Event::WaitEnds { request } => self.handle_wait_end(request),
            Event::LoopDue { node, at } => self.handle_loop_due(node, at),
            Event::Message { message } => self.handle_message(message),
            Event::AtCounter { request } => self.handle_request_at_counter(request),
            Event::NumberBack { request } => self.handle_number_back(request),
            Event::Fault { index } => self.handle_fault(index),
            Event::Stops { node, incarnation } => self.handle_stop(node, incarnation),
            Event::Starts { node } => self.handle_start(node),
            Event::NewRules { node, fault } => self.handle_new_rules(node, fault),
            Event::LooksAtSchedule { node, incarnation } => self.handle_look(node, incarnation),
            Event::Record { record } => self.handle_record(record),
            Event::Second => self.handle_second(),
        }
    }

    fn handle_second(&mut self) {
        let unusable = self.deployment.unusable_seats(self.now);
        self.measure
            .handle_second(&mut self.checkers, unusable, self.now);
        let observation = self.observe();
        self.checkers
            .check_progress(observation.of(&self.deployment), self.now);
        let stores = &self.deployment.stores;
        let counted = stores.root().waiting_total();
        let counted_at = stores.root().clock_at();
        let incarnations = stores.incarnations();
        if stores.are_on_probation() {
            self.checkers.note_counts_change(self.now);
        }
        self.checkers
            .check_count((counted, counted_at), incarnations, self.now);
        self.check_reopened();
        self.plan(self.now + DurationMs::from_secs(1), Event::Second);
    }

    fn observe(&self) -> ObservationBase {
        let behaviour = &self.population.behaviour;
        let mut doubles =
            behaviour.changes_data_center + behaviour.changes_node + behaviour.replays;
        if !self.scenario.is_one_node() {
            // At another node a copy of the ticket may still pass, so a seat outlives a logout.
            doubles += behaviour.log_out;
        }
        if self.is_ever_outside_limits() {
            // Ledgers count admissions outside the limits, and checkers do not.
            doubles += 1.0;
        }
        ObservationBase {
            asking: self.measure.asking(),
            is_open: self.is_open(),
            is_simple: doubles <= 0.0,
            // An interval, the tolerance of clocks, and two periods of each level.
            given_back_within: self.longest_seat_grid() + DurationMs::from_secs(8),
        }
    }

    /// Whether rules of the room or of an event let everybody pass.
    fn is_ever_outside_limits(&self) -> bool {
        let plan = &self.scenario.rooms[self.room];
        let of_events = plan.events.iter();
        let of_events = of_events.filter_map(|event| event.values.queueing_method);
        let mut all = of_events.chain([self.rules.queueing_method]);
        all.any(|method| method == QueueingMethod::Passthrough)
    }

    /// Whether all nodes admit visitors at present, as far as their rules go.
    fn is_open(&self) -> bool {
        let opens_at = self.rules.opens_at.unwrap_or(Timestamp::ZERO);
        let mut scheduled = self
            .deployment
            .nodes
            .iter()
            .filter(|node| node.schedule.is_some());
        !self.rules.queue_all
            && self.now >= opens_at
            && scheduled.all(|node| {
                let method = node.rules.queueing_method;
                let opens_at = node.rules.opening_ahead(self.now);
                opens_at.is_none() && method != QueueingMethod::Reject
            })
    }

    fn longest_seat_grid(&self) -> DurationMs {
        let nodes = self
            .deployment
            .nodes
            .iter()
            .filter(|node| node.schedule.is_some());
        let grids = nodes.map(|node| node.rules.seat_grid());
        grids.fold(self.rules.seat_grid(), DurationMs::max)
    }

    fn note(&mut self, line: impl FnOnce(&Deployment) -> String) {
        if let Some(trace) = &mut self.trace {
            let at = self.now.since(self.scenario.starts_at);
            trace.note(at, &line(&self.deployment));
        }
    }
}

/// Observation without the ledger.
#[derive(Clone, Copy, Debug)]
struct ObservationBase {
    asking: u32,
    is_open: bool,
    is_simple: bool,
    given_back_within: DurationMs,
}

impl ObservationBase {
    fn of(self, deployment: &Deployment) -> Observation<'_> {
        Observation {
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
