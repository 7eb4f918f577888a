//! One pass over a log, event by event, that knows at each moment who waits and who is active.

use std::collections::BTreeSet;
use std::time::Duration;

use anteroom_room::rules::Limits;
use anteroom_testkit::load::{NewcomerLog, RequestOutcome, Visit};

use super::{Ahead, Findings};

/// Length of a rank: a ticket holds the second in which its visitor came.
const ONE_RANK: Duration = Duration::from_secs(1);

/// State of a visitor, as it knows itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Before the first request.
    Away,
    /// Request on its way, or without a response that a visitor understands.
    Asks,
    Waits,
    Active,
    /// After the end of the seat.
    Gone,
}

/// Change of a state, or of a clock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    Minute,
    Second,
    Sends(usize),
    /// A visitor gets the response to its request of this number.
    Hears(usize, usize),
    SeatEnds(usize),
}

/// Newcomer that was queued.
#[derive(Clone, Copy, Debug)]
struct QueuedVisit {
    /// Number of the event after which its request was on its way.
    sent: usize,
    /// Number of the event in which it got the response.
    heard: usize,
    /// Whether that was before the first seat ended.
    is_from_rest: bool,
}

/// Pass over a log.
pub(super) struct Sweep<'a> {
    log: &'a NewcomerLog,
    limits: Limits,
    until: Duration,
    /// Rank of each visitor by arrival.
    ranks: Vec<usize>,
    /// Visitor of each rank.
    visitors: Vec<usize>,
    states: Vec<State>,
    asking: u64,
    active: u64,
    waiting: Waiting,
    admitted_in_second: u64,
    admitted_in_minute: u64,
    has_seat_ended: bool,
    /// Number of the event after which the first request of each visitor was on its way.
    sent: Vec<usize>,
    queued: Vec<QueuedVisit>,
    /// Numbers of events, up to each event, after which a newcomer may have had to wait,
    /// because others waited or nothing was free.
    not_first: Vec<u32>,
    /// Numbers of events, up to each event, after which nothing was free for one of all visitors.
    not_free: Vec<u32>,
    filled: f64,
    findings: Findings,
}

/// Waiting visitors by rank.
struct Waiting {
    ranks: BTreeSet<usize>,
    /// Binary indexed tree of their number.
    tree: Vec<u64>,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(log: &'a NewcomerLog, limits: Limits, until: Duration) -> Self {
        let count = log.visits.len();
        let mut visitors: Vec<usize> = (0..count).collect();
        visitors.sort_by_key(|visitor| log.visits[*visitor].arrived_at());
        let mut ranks = vec![0; count];
        for (rank, visitor) in visitors.iter().enumerate() {
            ranks[*visitor] = rank;
        }
        Self {
            log,
            limits,
            until,
            ranks,
            visitors,
            states: vec![State::Away; count],
            asking: 0,
            active: 0,
            waiting: Waiting::new(count),
            admitted_in_second: 0,
            admitted_in_minute: 0,
            has_seat_ended: false,
            sent: vec![0; count],
            queued: Vec::new(),
            not_first: Vec::new(),
            not_free: Vec::new(),
            filled: 0.0,
            findings: Findings::default(),
        }
    }

    pub(super) fn run(mut self) -> Findings {
        let mut before = Duration::ZERO;
        for (number, (at, event)) in events(self.log).into_iter().enumerate() {
            self.fill(before, at);
            before = at;
            match event {
                Event::Second => self.admitted_in_second = 0,
                Event::Minute => self.admitted_in_minute = 0,
                Event::Sends(visitor) => {
                    if self.states[visitor] == State::Away {
                        self.sent[visitor] = number;
                        self.enter(visitor, State::Asks);
                    }
                }
                Event::Hears(visitor, exchange) => self.hear(visitor, exchange, number),
                Event::SeatEnds(visitor) => {
                    self.has_seat_ended = true;
                    self.enter(visitor, State::Gone);
                }
            }
            self.note();
        }
        self.finish()
    }

    /// Adds the time between two events to the fill.
    fn fill(&mut self, from: Duration, to: Duration) {
        let lasted = to.min(self.until).saturating_sub(from);
        let wanted = self.active + self.asking + self.waiting.count();
        if wanted >= u64::from(self.limits.total_active_users) {
            self.findings.overloaded_for += lasted;
            self.filled += lasted.as_secs_f64() * self.utilization();
        }
    }

    fn utilization(&self) -> f64 {
        self.active as f64 / f64::from(self.limits.total_active_users)
    }

    fn hear(&mut self, visitor: usize, exchange: usize, number: usize) {
        let Some((_, outcome)) = self.visit(visitor).exchanges[exchange].response else {
            return;
        };
        match outcome {
            RequestOutcome::Failed => self.findings.failed += 1,
            RequestOutcome::Admitted => {
                self.enter(visitor, State::Active);
                self.admitted_in_second += 1;
                self.admitted_in_minute += 1;
                self.note_inversion(visitor, exchange == 0);
            }
            RequestOutcome::Queued(notice) => {
                if exchange == 0 {
                    self.queued.push(QueuedVisit {
                        sent: self.sent[visitor],
                        heard: number,
                        is_from_rest: !self.has_seat_ended,
                    });
                    let utilization = self.utilization();
                    let first = &mut self.findings.utilization_at_first_queue;
                    first.get_or_insert(utilization);
                }
                self.enter(visitor, State::Waits);
                if let Some(shown) = notice.people_ahead {
                    let truth = self.waiting.before(self.ranks[visitor]);
                    self.findings.ahead.push(Ahead { shown, truth });
                }
            }
        }
    }

    fn note_inversion(&mut self, visitor: usize, is_first_request: bool) {
        let Some(first) = self.waiting.first() else {
            return;
        };
        let came_first = self.visit(self.visitors[first]).arrived_at();
        let came = self.visit(visitor).arrived_at();
        let is_overtaking = is_first_request && came_first + ONE_RANK < came;
        self.findings.overtaking += u64::from(is_overtaking);
        self.findings
            .inversion
            .note(came.saturating_sub(came_first));
    }

    fn visit(&self, visitor: usize) -> &'a Visit {
        &self.log.visits[visitor]
    }

    fn enter(&mut self, visitor: usize, state: State) {
        let before = std::mem::replace(&mut self.states[visitor], state);
        let rank = self.ranks[visitor];
        match before {
            State::Asks => self.asking -= 1,
            State::Active => self.active -= 1,
            State::Waits => self.waiting.remove(rank),
            State::Away | State::Gone => {}
        }
        match state {
            State::Asks => self.asking += 1,
            State::Active => self.active += 1,
            State::Waits => self.waiting.insert(rank),
            State::Away | State::Gone => {}
        }
    }

    /// Notes whether a newcomer may have to wait after this event. Its own request counts.
    fn note(&mut self) {
        let waiting = self.waiting.count();
        let newcomers = self.asking + waiting;
        let minute = u64::from(self.limits.new_users_per_minute);
        let second = u64::from(self.limits.admissions_per_second());
        let is_free = self.active + newcomers <= u64::from(self.limits.total_active_users)
            && self.admitted_in_minute + newcomers <= minute
            && self.admitted_in_second + newcomers <= second;
        let add = |counts: &mut Vec<u32>, is_so: bool| {
            let so_far = counts.last().copied().unwrap_or_default();
            counts.push(so_far + u32::from(is_so));
        };
        add(&mut self.not_free, !is_free);
        add(&mut self.not_first, !is_free || waiting > 0);
    }

    fn finish(mut self) -> Findings {
        // The state after the request was sent counts, and that before the response does.
        let never = |counts: &[u32], visit: &QueuedVisit| {
            let before = visit.sent.checked_sub(1).map_or(0, |event| counts[event]);
            counts[visit.heard - 1] == before
        };
        for visit in &self.queued {
            let is_first = never(&self.not_first, visit);
            let findings = &mut self.findings;
            findings.queued += 1;
            findings.first_though_free += u64::from(is_first);
            findings.first_though_free_from_rest += u64::from(is_first && visit.is_from_rest);
            findings.though_free_for_all += u64::from(never(&self.not_free, visit));
        }
        let lasted = self.findings.overloaded_for.as_secs_f64();
        self.findings.fill_while_overloaded = (lasted > 0.0).then(|| self.filled / lasted);
        self.findings
    }
}

/// Returns all events of a log, in order.
fn events(log: &NewcomerLog) -> Vec<(Duration, Event)> {
    let mut events = Vec::new();
    for (visitor, visit) in log.visits.iter().enumerate() {
        for (number, exchange) in visit.exchanges.iter().enumerate() {
            events.push((exchange.sent_at, Event::Sends(visitor)));
            if let Some((at, _)) = exchange.response {
                events.push((at, Event::Hears(visitor, number)));
            }
        }
        if let (Some(admitted_at), Some(ends_at)) = (visit.admitted_at(), visit.seat_ends_at)
            && ends_at <= log.ended_at
        {
            events.push((ends_at.max(admitted_at), Event::SeatEnds(visitor)));
        }
    }
    for (length_ms, event) in [(1_000, Event::Second), (60_000, Event::Minute)] {
        let first = length_ms - log.began_at.0 % length_ms;
        let length = Duration::from_millis(length_ms);
        let mut at = Duration::from_millis(first);
        while at <= log.ended_at {
            events.push((at, event));
            at += length;
        }
    }
    events.sort_unstable();
    events
}

impl Waiting {
    fn new(count: usize) -> Self {
        Self {
            ranks: BTreeSet::new(),
            tree: vec![0; count + 1],
        }
    }

    fn count(&self) -> u64 {
        self.ranks.len() as u64
    }

    fn first(&self) -> Option<usize> {
        self.ranks.first().copied()
    }

    fn insert(&mut self, rank: usize) {
        if self.ranks.insert(rank) {
            self.update(rank, |count| count + 1);
        }
    }

    fn remove(&mut self, rank: usize) {
        if self.ranks.remove(&rank) {
            self.update(rank, |count| count - 1);
        }
    }

    fn update(&mut self, rank: usize, change: impl Fn(u64) -> u64) {
        let mut node = rank + 1;
        while node < self.tree.len() {
            self.tree[node] = change(self.tree[node]);
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the number of waiting visitors of earlier ranks.
    fn before(&self, rank: usize) -> u64 {
        let mut count = 0;
        let mut node = rank;
        while node > 0 {
            count += self.tree[node];
            node &= node - 1;
        }
        count
    }
}
