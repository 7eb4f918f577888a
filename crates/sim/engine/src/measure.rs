//! Statistics for the table and samples for the charts, from the visitors' side.
//!
//! The checkers decide whether invariants held.

mod announcements;
mod cohorts;
mod fill;
mod passed_over;

use anteroom_room::queue_position::QueuePosition;
use anteroom_room::time::{DurationMs, Timestamp};
use hdrhistogram::Histogram;

use crate::checkers::Checkers;
use crate::outcome::{DataCenterOutcome, DataCenterSample, RunStatistics, Sample};
use crate::scenario::model::Scenario;
pub(crate) use announcements::Announcement;
use announcements::Announcements;
use cohorts::Cohorts;
use fill::Fill;
use passed_over::LatestEntries;

/// Longest wait that the histograms tell apart: a week.
const LONGEST_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// Counts and histograms of a run.
#[derive(Debug)]
pub(crate) struct Measure {
    starts_at: Timestamp,
    sample_every: DurationMs,
    next_sample_at: Timestamp,
    stats: RunStatistics,
    queued_although_free: u64,
    queued_although_free_and_first: u64,
    waits: Histogram<u64>,
    inversions: Histogram<u64>,
    latest_entries: LatestEntries,
    passed_over: Histogram<u64>,
    latencies: Histogram<u64>,
    announcements: Announcements,
    cohorts: Cohorts,
    fill: Fill,
    counts: Vec<Counts>,
    since_sample: SinceSample,
    samples: Vec<Sample>,
    data_centers: Vec<DataCenterOutcome>,
    pub(crate) local_requests: u64,
    pub(crate) global_requests: u64,
}

/// Counts of one data center.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: u32,
    admitted: u32,
    waiting: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct SinceSample {
    waited: u32,
    wait_ms: u64,
}

/// Visitor who is admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) data_center: u32,
    pub(crate) arrived_at: Timestamp,
    /// Whether it was queued before.
    pub(crate) has_waited: bool,
    /// Whether it sends its ticket back.
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
            stats: RunStatistics::default(),
            queued_although_free: 0,
            queued_although_free_and_first: 0,
            waits: histogram(),
            inversions: histogram(),
            latest_entries: LatestEntries::default(),
            passed_over: histogram(),
            latencies: histogram(),
            announcements: Announcements::default(),
            cohorts: Cohorts::new(scenario.starts_at),
            fill: Fill::default(),
            counts: vec![Counts::default(); count],
            since_sample: SinceSample::default(),
            samples: Vec::new(),
            data_centers: named.collect(),
            local_requests: 0,
            global_requests: 0,
        }
    }

    pub(crate) fn handle_arrival(&mut self, data_center: u32) {
        self.stats.visitors += 1;
        self.counts[data_center as usize].arrived += 1;
    }

    /// Records the first response to a new visitor.
    pub(crate) fn handle_first_response(&mut self, latency: DurationMs) {
        self.latencies.saturating_record(latency.0);
    }

    /// Records a new visitor who is queued. With `pacing`, the admissions of a minute come free one
    /// by one while visitors wait.
    pub(crate) fn handle_queued_newcomer(
        &mut self,
        checkers: &mut Checkers,
        pacing: bool,
        now: Timestamp,
    ) {
        self.stats.queued += 1;
        let inside = checkers.seats.inside(now);
        let minute = now.minute();
        let admitted = checkers.rate.admitted_in(minute);
        let (seats, rate) = (checkers.seats.limit(), checkers.rate.limit());
        let is_paced = pacing && self.waiting() > 0;
        let elapsed = now.since(minute.starts_at()).0;
        let given = if is_paced {
            u64::from(rate) * elapsed / 60_000
        } else {
            u64::from(rate)
        };
        let has_room = checkers.rate.has_room_now(now);
        if inside < seats && u64::from(admitted) < given && has_room {
            self.queued_although_free += 1;
            if self.cohorts.oldest().is_none() {
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

    /// Records that a visitor enters the queue.
    pub(crate) fn handle_queued(
        &mut self,
        data_center: u32,
        arrived_at: Timestamp,
        is_followed: bool,
    ) {
        self.counts[data_center as usize].waiting += 1;
        if is_followed {
            self.cohorts.add(arrived_at);
        }
    }

    /// Records that a visitor leaves the queue.
    pub(crate) fn handle_dequeued(
        &mut self,
        data_center: u32,
        arrived_at: Timestamp,
        is_followed: bool,
    ) {
        self.counts[data_center as usize].waiting -= 1;
        if is_followed {
            self.cohorts.remove(arrived_at);
        }
    }

    /// Records a response to a waiting visitor who sends its ticket back.
    pub(crate) fn handle_position(&mut self, position: &QueuePosition) {
        self.announcements.note_response(position);
    }

    /// Records the admission of a visitor with these announcements.
    pub(crate) fn handle_waited(&mut self, announced: &[Announcement], now: Timestamp) {
        self.announcements.note_admission(announced, now);
    }

    pub(crate) fn handle_abandoned(&mut self) {
        self.stats.abandoned += 1;
    }

    /// Records an admission, after [`handle_dequeued`](Self::handle_dequeued) for a visitor who
    /// waited.
    pub(crate) fn handle_entry(&mut self, entry: Entry, now: Timestamp) {
        self.stats.admitted += 1;
        self.counts[entry.data_center as usize].admitted += 1;
        let overtaken = self.cohorts.oldest().filter(|_| entry.keeps_cookies);
        let inversion = overtaken.map_or(DurationMs::ZERO, |oldest| entry.arrived_at.since(oldest));
        self.inversions.saturating_record(inversion.0);
        if entry.keeps_cookies {
            let passed_over = self.latest_entries.passed_over(entry.arrived_at, now);
            self.passed_over.saturating_record(passed_over.0);
            self.latest_entries.add(entry.arrived_at, now);
        }
        if entry.has_waited {
            let wait = now.since(entry.arrived_at);
            self.waits.saturating_record(wait.0);
            self.since_sample.waited += 1;
            self.since_sample.wait_ms += wait.0;
        }
    }

    /// Returns the number of waiting visitors.
    pub(crate) fn waiting(&self) -> u32 {
        self.counts.iter().map(|counts| counts.waiting).sum()
    }

    /// Whether no visitor who arrived in an earlier second waits.
    pub(crate) fn is_first(&self, arrived_at: Timestamp) -> bool {
        let oldest = self.cohorts.oldest();
        oldest.is_none_or(|oldest| arrived_at < oldest + DurationMs::from_secs(1))
    }

    /// Returns the number of waiting visitors who send their tickets back.
    pub(crate) fn asking(&self) -> u32 {
        self.cohorts.len()
    }

    /// Records the state of the room once a second. No visitor can get the `unusable` seats.
    pub(crate) fn handle_second(&mut self, checkers: &mut Checkers, unusable: u32, now: Timestamp) {
        let inside = checkers.seats.inside(now);
        let usable = checkers.seats.limit().saturating_sub(unusable).max(1);
        let seats = (f64::from(inside) / f64::from(usable)).min(1.0);
        // At the end of a minute its admissions are complete.
        let minute = (now - DurationMs(1)).minute();
        let admitted = checkers.rate.admitted_in(minute);
        let admissions = f64::from(admitted) / f64::from(checkers.rate.limit());
        let is_waited_for = self.waiting() > 0;
        self.fill.note_second(is_waited_for, seats, admissions, now);
        if now >= self.next_sample_at {
            self.next_sample_at = self.next_sample_at + self.sample_every;
            self.sample(checkers, (inside, admitted), now);
        }
    }

    fn sample(&mut self, checkers: &Checkers, (inside, admitted): (u32, u32), now: Timestamp) {
        let at_ms = now.since(self.starts_at).0;
        let waited = std::mem::take(&mut self.since_sample);
        self.samples.push(Sample {
            at_ms,
            inside,
            seats_limit: checkers.seats.limit(),
            waiting: self.waiting(),
            admitted_this_minute: admitted,
            rate_limit: checkers.rate.limit(),
            arrived: self.counts.iter().map(|counts| counts.arrived).sum(),
            admitted: self.counts.iter().map(|counts| counts.admitted).sum(),
            wait_ms: waited.wait_ms / u64::from(waited.waited.max(1)),
        });
        for (counts, outcome) in self.counts.iter_mut().zip(&mut self.data_centers) {
            outcome.samples.push(DataCenterSample {
                admitted: std::mem::take(&mut counts.admitted),
                arrived: std::mem::take(&mut counts.arrived),
                waiting: counts.waiting,
            });
        }
    }

    /// Returns all results at the end of a run.
    pub(crate) fn finish(
        self,
        checkers: &Checkers,
        (nodes, length, events): (u32, DurationMs, u64),
    ) -> (RunStatistics, Vec<Sample>, Vec<DataCenterOutcome>) {
        let mut stats = self.stats;
        (stats.inside_max, stats.above_seats) = checkers.seats.highest();
        (stats.admitted_in_a_minute_max, stats.above_rate) = checkers.rate.highest();
        stats.admitted_in_a_second_max = checkers.rate.most_in_a_second();
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
        stats.announced_waits = self.announcements.shares();
        stats.order_inversion_ms_p50 = of(&self.inversions, 0.5);
        stats.order_inversion_ms_p99 = of(&self.inversions, 0.99);
        stats.order_inversion_ms_max = of(&self.inversions, 1.0);
        stats.passed_over_ms_p99 = of(&self.passed_over, 0.99);
        stats.passed_over_ms_max = of(&self.passed_over, 1.0);
        stats.added_latency_ms_p50 = of(&self.latencies, 0.5).unwrap_or(0);
        stats.added_latency_ms_p99 = of(&self.latencies, 0.99).unwrap_or(0);
        let secs = length.0.max(1) as f64 / 1_000.0;
        stats.local_requests_per_node_and_second =
            self.local_requests as f64 / f64::from(nodes.max(1)) / secs;
        stats.global_requests_per_data_center_and_second =
            self.global_requests as f64 / self.data_centers.len().max(1) as f64 / secs;
        stats.queued_with_ticket = checkers.queued_with_ticket();
        stats.events = events;
        (stats, self.samples, self.data_centers)
    }
}
