//! When does the next newcomer come? Independent arrivals at a rate that is linear between points.

use anteroom_room::time::{DurationMs, Timestamp};

use crate::rng::{Dice, Draw, Purpose, whole};
use crate::scenario::model::{Arrivals, RatePoint};

/// One stream of newcomers, in order of time.
#[derive(Debug)]
pub(crate) struct Stream {
    rng: Dice,
    /// Index of the only data center that they come to.
    pub(crate) data_center: Option<usize>,
    points: Vec<RatePoint>,
    /// The piece between this point and the next one.
    piece: usize,
    /// Ms since the start, with fractions: a rate may be thousands in a millisecond.
    at: f64,
}

impl Stream {
    pub(crate) fn new(arrivals: &Arrivals, seed: u64, number: u32) -> Self {
        Self {
            rng: Dice::new(seed, Purpose::Arrivals(number)),
            data_center: arrivals.data_center,
            points: arrivals.points.clone(),
            piece: 0,
            at: arrivals.points.first().map_or(0.0, |p| p.at.0 as f64),
        }
    }

    /// When the next one comes, if anybody does.
    ///
    /// By thinning: candidates come at the piece's highest rate, and each is real with the
    /// probability that its moment's rate has of the highest.
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

    /// The stream of chances from which a newcomer's nature is drawn.
    pub(crate) fn rng(&mut self) -> &mut Dice {
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
    fn a_constant_rate_brings_as_many_as_it_says() {
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
    fn a_step_is_two_points_at_one_time_and_nobody_comes_outside() {
        let points = [(10, 0.0), (20, 0.0), (20, 50.0), (30, 50.0)];
        assert_eq!(count(&points, 0..20), 0);
        let during = count(&points, 20..30);
        assert!((430..570).contains(&during), "{during}");
        assert_eq!(count(&points, 30..1_000), 0);
        assert_eq!(count(&[(5, 1.0)], 0..1_000), 0);
    }
}
