//! Arrival times of new visitors: independent arrivals at a rate that is linear between points.

use anteroom_room::time::{DurationMs, Timestamp};

use crate::rng::{Draw, Purpose, SimRng, whole};
use crate::scenario::model::{Arrivals, RatePoint};

/// Stream of new visitors, in order of time.
#[derive(Debug)]
pub(crate) struct Stream {
    rng: SimRng,
    /// Index of the only data center that they come to.
    pub(crate) data_center: Option<usize>,
    points: Vec<RatePoint>,
    /// Index of the current piece, which lies between this point and the next one.
    piece: usize,
    /// Time since the start in ms, with fractions: a rate may be thousands per millisecond.
    at: f64,
}

impl Stream {
    pub(crate) fn new(arrivals: &Arrivals, seed: u64, number: u32) -> Self {
        Self {
            rng: SimRng::new(seed, Purpose::Arrivals(number)),
            data_center: arrivals.data_center,
            points: arrivals.points.clone(),
            piece: 0,
            at: arrivals.points.first().map_or(0.0, |p| p.at.0 as f64),
        }
    }

    /// Returns the time of the next arrival, if there is one.
    ///
    /// Thins candidates: they come at the piece's highest rate, and each is kept with the
    /// probability of its moment's rate over the highest.
    pub(crate) fn next(&mut self, starts_at: Timestamp) -> Option<Timestamp> {
        loop {
            let from = *self.points.get(self.piece)?;
            let to = *self.points.get(self.piece + 1)?;
            let (start, end) = (from.at.0 as f64, to.at.0 as f64);
            let highest = from.per_second.max(to.per_second) / 1_000.0;
            let gap = if highest > 0.0 {
                self.rng.exponential(1.0 / highest)
            } else {
                f64::INFINITY
            };
            if self.at + gap >= end {
                self.piece += 1;
                self.at = self.at.max(end);
                continue;
            }
            self.at += gap;
            let slope = (to.per_second - from.per_second) / (end - start);
            let rate = (from.per_second + slope * (self.at - start)) / 1_000.0;
            if from.per_second.total_cmp(&to.per_second).is_eq() || self.rng.chance(rate / highest)
            {
                return Some(starts_at + DurationMs(whole(self.at)));
            }
        }
    }

    /// Returns the random numbers that a new visitor's behaviour is drawn from.
    pub(crate) fn rng(&mut self) -> &mut SimRng {
        &mut self.rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(points: &[(u64, f64)], range: std::ops::Range<u64>) -> usize {
        let points = points.iter().map(|&(secs, per_second)| RatePoint {
            at: DurationMs::from_secs(secs),
            per_second,
        });
        let arrivals = Arrivals {
            data_center: None,
            points: points.collect(),
        };
        let mut stream = Stream::new(&arrivals, 1, 0);
        let all = std::iter::from_fn(|| stream.next(Timestamp(0)));
        all.filter(|at| range.contains(&(at.0 / 1_000))).count()
    }

    #[test]
    fn a_constant_rate_brings_its_number_of_visitors() {
        let found = count(&[(0, 100.0), (100, 100.0)], 0..100);
        assert!((9_700..10_300).contains(&found), "{found}");
    }

    #[test]
    fn a_ramp_brings_a_quarter_in_its_first_half() {
        let points = [(0, 0.0), (100, 200.0)];
        let (first, second) = (count(&points, 0..50), count(&points, 50..100));
        assert!((2_350..2_650).contains(&first), "{first}");
        assert!((7_250..7_750).contains(&second), "{second}");
    }

    #[test]
    fn a_step_is_two_points_and_no_visitor_comes_beyond_the_points() {
        let points = [(10, 0.0), (20, 0.0), (20, 50.0), (30, 50.0)];
        assert_eq!(count(&points, 0..20), 0);
        let during = count(&points, 20..30);
        assert!((430..570).contains(&during), "{during}");
        assert_eq!(count(&points, 30..1_000), 0);
        assert_eq!(count(&[(5, 1.0)], 0..1_000), 0);
    }
}
