//! Points of the charts: fewer than there are samples, with every peak kept.

use crate::chart::axis::as_f64;
use anteroom_room::time::Timestamp;
use anteroom_sim::outcome::{DataCenterOutcome, Outcome, Sample};

/// Most points of a line: twice as many as a phone has pixels for.
const POINTS_MAX: usize = 600;
/// Columns of shaded rows.
pub(super) const COLUMNS: usize = 90;
/// Data centers with their own row; the others share one.
const DATA_CENTERS_MAX: usize = 12;

/// Returns a value of all samples.
pub(super) fn line(outcome: &Outcome, value: fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    let point = |sample: &Sample| (as_f64(sample.at_ms), as_f64(value(sample)));
    thinned(outcome.samples.iter().map(point).collect())
}

/// Returns the mean wait of admitted visitors. Moments at which visitors waited and none was
/// admitted have no point, because that is not a wait of 0.
pub(super) fn wait(outcome: &Outcome) -> Vec<(f64, f64)> {
    let has_value = |sample: &&Sample| sample.wait_ms > 0 || sample.waiting == 0;
    let point = |sample: &Sample| (as_f64(sample.at_ms), as_f64(sample.wait_ms));
    let samples = outcome.samples.iter().filter(has_value);
    thinned(samples.map(point).collect())
}

/// Returns the most admissions that were counted in each calendar minute, as steps.
pub(super) fn admissions(outcome: &Outcome) -> Vec<(f64, f64)> {
    let mut minutes: Vec<(u64, u32)> = Vec::new();
    for sample in &outcome.samples {
        let at = outcome.starts_at.0.saturating_add(sample.at_ms);
        // A sample on the edge belongs to the minute that ends there.
        let minute = Timestamp(at.saturating_sub(1)).minute().0;
        match minutes.last_mut() {
            Some((last, most)) if *last == minute => *most = sample.admitted_this_minute.max(*most),
            _ => minutes.push((minute, sample.admitted_this_minute)),
        }
    }
    let length = outcome.length.0;
    let since_start = |minute: u64| {
        let at = minute.saturating_mul(60_000);
        as_f64(at.saturating_sub(outcome.starts_at.0).min(length))
    };
    let steps = minutes.iter().flat_map(|&(minute, most)| {
        let value = f64::from(most);
        [
            (since_start(minute), value),
            (since_start(minute.saturating_add(1)), value),
        ]
    });
    thinned(steps.collect())
}

/// Returns the least and the greatest of every few points, in their order.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let few = points.len().div_ceil(POINTS_MAX / 2);
    let mut kept = Vec::with_capacity(POINTS_MAX + 2);
    for chunk in points.chunks(few) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let least = chunk.iter().min_by(by_height);
        let greatest = chunk.iter().max_by(by_height);
        let (Some(&least), Some(&greatest)) = (least, greatest) else {
            continue;
        };
        if least.0 <= greatest.0 {
            kept.extend([least, greatest]);
        } else {
            kept.extend([greatest, least]);
        }
    }
    // The last moment is the one that readers look at first.
    kept.extend(points.last());
    kept
}

/// Row of the charts by data center: one of the largest, or all the others.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Name of the row.
    pub(super) name: String,
    /// Indices of its data centers.
    members: Vec<usize>,
}

/// Returns rows for the charts by data center, the busiest first. They depend on arrivals, so they
/// are equal for all outcomes of the same arrivals.
pub(super) fn rows(outcome: &Outcome) -> Vec<Row> {
    let mut order: Vec<(u64, usize)> = outcome
        .data_centers
        .iter()
        .enumerate()
        .map(|(at, data_center)| (came(data_center), at))
        .collect();
    order.sort_by_key(|&(came, at)| (std::cmp::Reverse(came), at));
    let alone = if order.len() > DATA_CENTERS_MAX {
        DATA_CENTERS_MAX - 1
    } else {
        order.len()
    };
    let (large, small) = order.split_at(alone);
    let mut rows: Vec<Row> = large
        .iter()
        .map(|&(_, at)| Row {
            name: outcome.data_centers[at].name.clone(),
            members: vec![at],
        })
        .collect();
    if !small.is_empty() {
        rows.push(Row {
            name: format!("{} others", small.len()),
            members: small.iter().map(|&(_, at)| at).collect(),
        });
    }
    rows
}

fn came(data_center: &DataCenterOutcome) -> u64 {
    let arrived = data_center.samples.iter().map(|sample| sample.arrived);
    arrived.map(u64::from).sum()
}

impl Row {
    /// Returns the visitors who came here.
    pub(super) fn came(&self, outcome: &Outcome) -> u64 {
        self.of(outcome).map(came).sum()
    }

    /// Returns the visitors who were admitted here.
    pub(super) fn admitted(&self, outcome: &Outcome) -> u64 {
        let samples = self
            .of(outcome)
            .flat_map(|data_center| &data_center.samples);
        samples.map(|sample| u64::from(sample.admitted)).sum()
    }

    /// Returns the most waiting visitors here in each of [`COLUMNS`] parts of the run.
    pub(super) fn waiting(&self, outcome: &Outcome) -> Vec<u32> {
        let count = outcome.samples.len();
        let columns = COLUMNS.min(count.max(1));
        let mut most = vec![0; columns];
        for at in 0..count {
            let waiting = self.of(outcome).fold(0u32, |sum, data_center| {
                let sample = data_center.samples.get(at);
                sum.saturating_add(sample.map_or(0, |sample| sample.waiting))
            });
            let column = &mut most[at * columns / count];
            *column = waiting.max(*column);
        }
        most
    }

    fn of<'a>(&'a self, outcome: &'a Outcome) -> impl Iterator<Item = &'a DataCenterOutcome> {
        let members = self.members.iter();
        members.filter_map(|&at| outcome.data_centers.get(at))
    }
}
