//! Checker of invariant 8: every waiting visitor is counted once, whatever node receives its
//! requests.
//!
//! A visitor waits from the first time that it brings its ticket back until it is admitted, or
//! until its next request is overdue. Each response states when that request is due.

use std::collections::{BTreeMap, VecDeque};

use anteroom_room::id::VisitorId;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Checkers;
use crate::outcome::Invariant;

/// Time after a change within which counts may be wrong.
const SETTLED_AFTER: DurationMs = DurationMs::from_secs(10);
/// Age of the root's count: a period of each level, and a trip.
const LAG: DurationMs = DurationMs::from_secs(3);
/// Time until the root knows the visitors that a node counts: a period of each level.
const REPORTED_AFTER: DurationMs = DurationMs(1_500);
/// Divisor of the share by which a count may differ from the truth: a twentieth.
const SHARE: u32 = 20;
/// Number by which a small count may differ from the truth besides.
const FEW: u32 = 2;
/// Most waiting visitors that are compared every second: a comparison looks at each of them.
const COMPARED_MAX: usize = 4_096;

/// Waiting visitors as the responses to them say.
#[derive(Debug, Default)]
pub(super) struct Counts {
    waiting: BTreeMap<VisitorId, Waits>,
    /// Times and nodes of recent responses that the root may not know.
    unreported: VecDeque<(Timestamp, u32)>,
    /// Most visitors at once since the last second.
    peak: usize,
    /// Ends of counts that several copies of a ticket may have caused or ended.
    doubtful: BTreeMap<Timestamp, u32>,
    /// Fewest and most waiting visitors of recent seconds.
    recent: VecDeque<(Timestamp, Truth)>,
    settled_at: Timestamp,
    /// Time until a process or a data center that starts is known in all records.
    safe_after: DurationMs,
    /// Sum of the incarnations of all ledgers; a record that is lost begins another one.
    incarnations: Option<u64>,
}

/// Waiting visitor.
#[derive(Clone, Copy, Debug)]
struct Waits {
    /// Time of the first response that queued it.
    since: Timestamp,
    /// Time by which its next request is due.
    due_at: Timestamp,
    /// Time by which it is overdue, by any of its responses.
    overdue_at: Timestamp,
    /// Data center of its newest response.
    data_center: u32,
}

/// Range of the number of waiting visitors at a moment.
#[derive(Clone, Copy, Debug)]
struct Truth {
    fewest: u32,
    most: u32,
    doubtful: u32,
}

impl Counts {
    pub(super) fn new(safe_after: DurationMs) -> Self {
        Self {
            safe_after,
            ..Self::default()
        }
    }
}

/// Returns the time after a response by which a visitor who was to refresh after `interval` is
/// overdue: a quarter late, a second and a half, and the grid of counts, which gets coarser. An
/// interval counts as one second at least.
pub(super) fn overdue_after(interval: DurationMs) -> DurationMs {
    let interval = interval.0.max(1_000);
    let late = interval + interval / 4 + 1_000;
    let grid = match late {
        ..=4_000 => 500,
        4_001..=8_000 => 1_000,
        _ => 2_000,
    };
    DurationMs(late + 500 + grid)
}

/// Response that queued a visitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitResponse {
    pub(crate) visitor: VisitorId,
    /// Time after which the visitor is to refresh.
    pub(crate) interval: DurationMs,
    /// Whether a copy of the ticket was sent.
    pub(crate) is_copy: bool,
    /// Node that responded, and its data center.
    pub(crate) node: u32,
    pub(crate) data_center: u32,
}

impl Checkers {
    /// Records a response that queued a visitor who had brought its ticket back.
    pub(crate) fn handle_wait(&mut self, response: &WaitResponse, now: Timestamp) {
        let is_root_far = self.is_root_far;
        let counts = &mut self.counts;
        let overdue_at = now + overdue_after(response.interval);
        let known = counts.waiting.get(&response.visitor);
        let overdue_at = known.map_or(overdue_at, |known| known.overdue_at.max(overdue_at));
        let elsewhere =
            known.filter(|known| is_root_far && known.data_center != response.data_center);
        if let Some(known) = elsewhere {
            // A far root has reports of the two data centers that are a second or two apart. It
            // counts the visitor twice, or not at all, when its count passes from one to the other.
            *counts.doubtful.entry(known.overdue_at).or_insert(0) += 1;
        }
        let waits = Waits {
            since: known.map_or(now, |known| known.since),
            due_at: now + response.interval,
            overdue_at,
            data_center: response.data_center,
        };
        counts.waiting.insert(response.visitor, waits);
        counts.peak = counts.peak.max(counts.waiting.len());
        counts.unreported.push_back((now, response.node));
        if response.is_copy {
            *counts.doubtful.entry(overdue_at).or_insert(0) += 1;
        }
    }

    /// Records that a node was killed. Nobody else knows the visitors that it counted since its
    /// last report.
    pub(crate) fn handle_killed(&mut self, node: u32, now: Timestamp) {
        let counts = &mut self.counts;
        let lost = counts.unreported.iter().filter(|(_, by)| *by == node);
        let lost = u32::try_from(lost.count()).unwrap_or(u32::MAX);
        let until = now + overdue_after(DurationMs::from_secs(60));
        *counts.doubtful.entry(until).or_insert(0) += lost;
    }

    /// Records an admission of a waiting visitor.
    pub(crate) fn handle_wait_over(&mut self, visitor: VisitorId, is_copy: bool, now: Timestamp) {
        let counts = &mut self.counts;
        let known = counts.waiting.remove(&visitor);
        if is_copy || known.is_none() {
            // Where it was admitted before, its count may end twice.
            let longest = now + overdue_after(DurationMs::from_secs(60));
            let until = known.map_or(longest, |known| known.overdue_at);
            *counts.doubtful.entry(until).or_insert(0) += 1;
        }
    }

    /// Records a response to a visitor who is expected late, and does not count until then.
    pub(crate) fn handle_pause(&mut self, visitor: VisitorId) {
        self.counts.waiting.remove(&visitor);
    }

    /// Records that a visitor left the queue. It need not be counted any more. A node that does not
    /// know of it counts the visitor until it is overdue.
    pub(crate) fn handle_left_queue(&mut self, visitor: VisitorId, now: Timestamp) {
        if let Some(waits) = self.counts.waiting.get_mut(&visitor) {
            waits.due_at = waits.due_at.min(now);
        }
    }

    /// Returns the number of visitors who have waited since this time, and whose next request is
    /// still due.
    pub(super) fn waiting_since(&self, since: Timestamp, now: Timestamp) -> usize {
        let waiting = self.counts.waiting.values();
        let known = waiting.filter(|waits| waits.since <= since && waits.due_at > now);
        known.count()
    }

    /// Records a change whose messages arrive until `until`.
    pub(crate) fn note_counts_change(&mut self, until: Timestamp) {
        let settled_at = until + SETTLED_AFTER + self.slack() + self.counts.safe_after;
        self.counts.settled_at = self.counts.settled_at.max(settled_at);
    }

    /// Records that the counts of visitors run out at other times than their tickets say.
    pub(crate) fn note_visitors_counted_by_guess(&mut self, now: Timestamp) {
        self.note_counts_change(now + overdue_after(DurationMs::from_secs(60)));
    }

    /// Compares the root's count with the waiting visitors once a second. `counted_at`: time of
    /// the root's newest request. `incarnations`: sum over all ledgers.
    pub(crate) fn check_count(
        &mut self,
        (counted, counted_at): (u32, Timestamp),
        incarnations: u64,
        now: Timestamp,
    ) {
        if self.counts.incarnations.replace(incarnations) != Some(incarnations) {
            self.note_counts_change(now);
        }
        let slack = self.slack();
        let lag = LAG + slack;
        let counts = &mut self.counts;
        counts.waiting.retain(|_, waits| waits.overdue_at > now);
        counts.doubtful = counts.doubtful.split_off(&now);
        let unreported = |(at, _): &(Timestamp, u32)| *at + REPORTED_AFTER + slack < now;
        while counts
            .unreported
            .pop_front_if(|entry| unreported(entry))
            .is_some()
        {}
        if counts.waiting.len() > COMPARED_MAX {
            counts.recent.clear();
            return;
        }
        let due = counts.waiting.values().filter(|waits| waits.due_at > now);
        let truth = Truth {
            fewest: u32::try_from(due.count()).unwrap_or(u32::MAX),
            most: u32::try_from(counts.peak.max(counts.waiting.len())).unwrap_or(u32::MAX),
            doubtful: counts.doubtful.values().sum(),
        };
        counts.peak = 0;
        counts.recent.push_back((now, truth));
        while counts.recent.front().is_some_and(|(at, _)| *at + lag < now) {
            counts.recent.pop_front();
        }
        let recent = counts.recent.iter().map(|(_, truth)| truth);
        let fewest = recent.clone().map(|truth| truth.fewest).min().unwrap_or(0);
        let most = recent.clone().map(|truth| truth.most).max().unwrap_or(0);
        let doubtful = recent.map(|truth| truth.doubtful).max().unwrap_or(0);
        let is_within = counted + fewest / SHARE + FEW + doubtful >= fewest
            && counted <= most + most / SHARE + FEW + doubtful;
        // A wrong clock counts a visitor who changes the node too early or too late.
        // While no node asks, nobody learns the count.
        let is_known = counted_at + LAG + self.slack() >= now;
        let is_settled = now >= self.counts.settled_at && is_known;
        if is_within || !is_settled || self.tolerance > DurationMs::ZERO {
            return;
        }
        self.report(Invariant::Count, now, || {
            format!("{counted} visitors are counted as waiting, and {fewest} to {most} wait")
        });
    }
}
