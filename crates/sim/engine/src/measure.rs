//! How good was it? Figures for the table and samples for the charts, from the visitors' side.
//!
//! Whether promises were kept is the judge's business.

mod fill;
mod line;

use anteroom_room::time::{DurationMs, Timestamp};
use hdrhistogram::Histogram;

use crate::judge::Checkers;
use crate::outcome::{DataCenterOutcome, DataCenterSample, Figures, Sample};
use crate::scenario::model::Scenario;
use fill::Fill;
use line::Line;

/// The longest wait that is told apart from longer ones: a week.
const LONGEST_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// Everything that is counted while a run goes on.
#[derive(Debug)]
pub(crate) struct Measure {
    starts_at: Timestamp,
    sample_every: DurationMs,
    next_sample_at: Timestamp,
    stats: Figures,
    queued_although_free: u64,
    queued_although_free_and_first: u64,
    waits: Histogram<u64>,
    inversions: Histogram<u64>,
    latencies: Histogram<u64>,
    line: Line,
    fill: Fill,
    people: Vec<People>,
    since_sample: SinceSample,
    samples: Vec<Sample>,
    data_centers: Vec<DataCenterOutcome>,
    pub(crate) local_calls: u64,
    pub(crate) global_calls: u64,
}

/// Counts of one data center.
#[derive(Clone, Copy, Debug, Default)]
struct People {
    arrived: u32,
    admitted: u32,
    waiting: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct SinceSample {
    waited: u32,
    wait_ms: u64,
}

/// Somebody who is let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) data_center: u32,
    pub(crate) arrived_at: Timestamp,
    /// It had been told to wait.
    pub(crate) has_waited: bool,
    /// It brings its ticket back.
    pub(crate) keeps_cookies: bool,
}

impl Measure {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let histogram = || Histogram::new_with_max(LONGEST_MS, 3).expect("bounds in range");
        let count = scenario.data_centers.len();
        let named = scenario.data_centers.iter().map(|plan| DataCenterOutcome {
            name: plan.name.clone(),
            samples: Vec::new(),
        });
        Self {
            starts_at: scenario.starts_at,
            sample_every: scenario.sample_every,
            next_sample_at: scenario.starts_at + scenario.sample_every,
            stats: Figures::default(),
            queued_although_free: 0,
            queued_although_free_and_first: 0,
            waits: histogram(),
            inversions: histogram(),
            latencies: histogram(),
            line: Line::new(scenario.starts_at),
            fill: Fill::default(),
            people: vec![People::default(); count],
            since_sample: SinceSample::default(),
            samples: Vec::new(),
            data_centers: named.collect(),
            local_calls: 0,
            global_calls: 0,
        }
    }

    pub(crate) fn handle_arrival(&mut self, data_center: u32) {
        self.stats.visitors += 1;
        self.people[data_center as usize].arrived += 1;
    }

    /// A newcomer got its first answer.
    pub(crate) fn handle_first_answer(&mut self, latency: DurationMs) {
        self.latencies.saturating_record(latency.0);
    }

    /// A newcomer was told to wait. With `pacing`, a minute's admissions come free one by one while
    /// somebody waits.
    pub(crate) fn handle_queued_newcomer(
        &mut self,
        judge: &mut Checkers,
        pacing: bool,
        now: Timestamp,
    ) {
        self.stats.queued += 1;
        let inside = judge.seats.inside(now);
        let minute = now.minute();
        let admitted = judge.rate.admitted_in(minute);
        let (seats, rate) = (judge.seats.limit(), judge.rate.limit());
        let is_paced = pacing && self.waiting() > 0;
        let elapsed = now.since(minute.starts_at()).0;
        let given = if is_paced {
            u64::from(rate) * elapsed / 60_000
        } else {
            u64::from(rate)
        };
        if inside < seats && u64::from(admitted) < given {
            self.queued_although_free += 1;
            if self.line.oldest().is_none() {
                self.queued_although_free_and_first += 1;
            }
        }
        self.fill.note_queue(now);
        self.stats
            .utilization_at_first_queue
            .get_or_insert_with(|| {
                let of_seats = f64::from(inside) / f64::from(seats);
                of_seats.max(f64::from(admitted) / f64::from(rate))
            });
    }

    /// Somebody is in line from now on.
    pub(crate) fn handle_join(
        &mut self,
        data_center: u32,
        arrived_at: Timestamp,
        is_followed: bool,
    ) {
        self.people[data_center as usize].waiting += 1;
        if is_followed {
            self.line.join(arrived_at);
        }
    }

    /// Somebody is not in line any more.
    pub(crate) fn handle_part(
        &mut self,
        data_center: u32,
        arrived_at: Timestamp,
        is_followed: bool,
    ) {
        self.people[data_center as usize].waiting -= 1;
        if is_followed {
            self.line.part(arrived_at);
        }
    }

    pub(crate) fn handle_abandoned(&mut self) {
        self.stats.abandoned += 1;
    }

    /// Somebody is let in, who has left the line.
    pub(crate) fn handle_entry(&mut self, entry: Entry, now: Timestamp) {
        self.stats.admitted += 1;
        self.people[entry.data_center as usize].admitted += 1;
        let overtaken = self.line.oldest().filter(|_| entry.keeps_cookies);
        let inversion = overtaken.map_or(DurationMs::ZERO, |oldest| entry.arrived_at.since(oldest));
        self.inversions.saturating_record(inversion.0);
        if entry.has_waited {
            let wait = now.since(entry.arrived_at);
            self.waits.saturating_record(wait.0);
            self.since_sample.waited += 1;
            self.since_sample.wait_ms += wait.0;
        }
    }

    /// How many are in line.
    pub(crate) fn waiting(&self) -> u32 {
        self.people.iter().map(|people| people.waiting).sum()
    }

    /// How many in line bring their tickets back.
    pub(crate) fn asking(&self) -> u32 {
        self.line.len()
    }

    /// Takes note of how things stand, once a second.
    pub(crate) fn handle_second(&mut self, judge: &mut Checkers, now: Timestamp) {
        let inside = judge.seats.inside(now);
        let seats = f64::from(inside) / f64::from(judge.seats.limit());
        // A minute is told at its end.
        let minute = (now - DurationMs(1)).minute();
        let admitted = judge.rate.admitted_in(minute);
        let admissions = f64::from(admitted) / f64::from(judge.rate.limit());
        let is_waited_for = self.waiting() > 0;
        self.fill.note_second(is_waited_for, seats, admissions, now);
        if now >= self.next_sample_at {
            self.next_sample_at = self.next_sample_at + self.sample_every;
            self.sample(judge, (inside, admitted), now);
        }
    }

    fn sample(&mut self, judge: &Checkers, (inside, admitted): (u32, u32), now: Timestamp) {
        let at_ms = now.since(self.starts_at).0;
        let waited = std::mem::take(&mut self.since_sample);
        self.samples.push(Sample {
            at_ms,
            inside,
            seats_limit: judge.seats.limit(),
            waiting: self.waiting(),
            admitted_this_minute: admitted,
            rate_limit: judge.rate.limit(),
            arrived: self.people.iter().map(|people| people.arrived).sum(),
            admitted: self.people.iter().map(|people| people.admitted).sum(),
            wait_ms: waited.wait_ms / u64::from(waited.waited.max(1)),
        });
        for (people, outcome) in self.people.iter_mut().zip(&mut self.data_centers) {
            outcome.samples.push(DataCenterSample {
                admitted: std::mem::take(&mut people.admitted),
                arrived: std::mem::take(&mut people.arrived),
                waiting: people.waiting,
            });
        }
    }

    /// The figures, when all is over.
    pub(crate) fn finish(
        self,
        judge: &Checkers,
        (nodes, length, events): (u32, DurationMs, u64),
    ) -> (Figures, Vec<Sample>, Vec<DataCenterOutcome>) {
        let mut stats = self.stats;
        (stats.inside_max, stats.above_seats) = judge.seats.highest();
        (stats.admitted_in_a_minute_max, stats.above_rate) = judge.rate.highest();
        let share = |count: u64| count as f64 / stats.visitors.max(1) as f64;
        stats.queued_although_free = share(self.queued_although_free);
        stats.queued_although_free_and_first = share(self.queued_although_free_and_first);
        stats.fill_while_overloaded = self.fill.mean();
        let of = |histogram: &Histogram<u64>, quantile| {
            (!histogram.is_empty()).then(|| histogram.value_at_quantile(quantile))
        };
        stats.wait_ms_p50 = of(&self.waits, 0.5);
        stats.wait_ms_p90 = of(&self.waits, 0.9);
        stats.wait_ms_p99 = of(&self.waits, 0.99);
        stats.wait_ms_max = of(&self.waits, 1.0);
        stats.order_inversion_ms_p50 = of(&self.inversions, 0.5);
        stats.order_inversion_ms_p99 = of(&self.inversions, 0.99);
        stats.order_inversion_ms_max = of(&self.inversions, 1.0);
        stats.added_latency_ms_p50 = of(&self.latencies, 0.5).unwrap_or(0);
        stats.added_latency_ms_p99 = of(&self.latencies, 0.99).unwrap_or(0);
        let secs = length.0.max(1) as f64 / 1_000.0;
        stats.local_calls_per_node_and_second =
            self.local_calls as f64 / f64::from(nodes.max(1)) / secs;
        stats.global_calls_per_data_center_and_second =
            self.global_calls as f64 / self.data_centers.len().max(1) as f64 / secs;
        stats.thrown_out = judge.thrown_out();
        stats.events = events;
        (stats, self.samples, self.data_centers)
    }
}
