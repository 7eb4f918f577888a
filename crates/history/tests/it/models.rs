//! Merging, percentiles and folding, held against lists of all values.

use anteroom_history::{
    Level, NodeFigures, Query, ROW_BYTES_MAX, RoomFigures, Row, Sample, points,
};
use anteroom_room::histogram::{BUCKETS, Histogram};
use anteroom_room::rules::Limits;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use proptest::prelude::*;

/// First minute of a day.
const DAY: u64 = 1_440 * 20_000;

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for value in values {
        histogram.note(DurationMs(*value));
    }
    histogram
}

fn lengths() -> impl Strategy<Value = Vec<u64>> {
    // Of all magnitudes, up to two days.
    let length = (0_u32..28).prop_flat_map(|bits| 0..=(1_u64 << bits).min(172_800_000));
    prop::collection::vec(length, 0..60)
}

fn figures() -> impl Strategy<Value = NodeFigures> {
    let counts = prop::array::uniform8(0_u64..1_000);
    let left = prop::array::uniform3(-50_i64..200);
    let statuses = prop::array::uniform6(0_u64..100_000);
    let histograms = prop::array::uniform4(lengths());
    (counts, left, statuses, histograms).prop_map(|(counts, left, statuses, histograms)| {
        let mut figures = NodeFigures {
            arrivals: counts[0],
            admitted: counts[1],
            admitted_outside_limits: counts[2],
            rejected: counts[3],
            revoked: counts[4],
            ..NodeFigures::default()
        };
        figures.announced.right = counts[5];
        figures.announced.early = counts[6];
        figures.announced.late = counts[7];
        figures.announced.left_before = left[0];
        figures.announced.left_after = left[1];
        figures.announced.left_unannounced = left[2];
        let [waits, inside, inversions, latency] = histograms.map(|values| histogram(&values));
        figures.waits = waits;
        figures.inside = inside;
        figures.inversions = inversions;
        figures.origin.latency = latency;
        figures.origin.statuses = statuses;
        figures
    })
}

fn sample() -> impl Strategy<Value = Sample> {
    let values = prop::array::uniform4(1_u32..100_000);
    (0_u64..900_000, values).prop_map(|(at, values)| Sample {
        at: Timestamp(DAY * 60_000 + at),
        active: values[0],
        waiting: values[1],
        limits: Limits {
            total_active_users: values[2],
            new_users_per_minute: values[3],
        },
    })
}

fn joined(samples: &[Sample]) -> RoomFigures {
    let mut all = RoomFigures::default();
    for sample in samples {
        all.join(&RoomFigures::of(*sample));
    }
    all
}

fn row(minute: u64, node: u64, figures: NodeFigures, samples: &[Sample]) -> Row {
    Row {
        begins: Minute(DAY + minute),
        minutes: 1,
        node,
        figures,
        room: joined(samples),
    }
}

proptest! {
    #[test]
    fn percentiles_are_right_to_a_tenth(mut values in lengths(), per_mille in 0_u32..=1_000) {
        let found = histogram(&values).percentile(per_mille);
        values.sort_unstable();
        let rank = (values.len() * per_mille as usize).div_ceil(1_000).max(1);
        match values.get(rank - 1) {
            None => prop_assert_eq!(found, None),
            Some(value) => {
                let found = found.unwrap().0;
                prop_assert!(found.abs_diff(*value) * 10 <= *value, "{} of {}", found, value);
            }
        }
    }

    #[test]
    fn figures_of_nodes_merge_in_any_order(all in prop::collection::vec(figures(), 1..5)) {
        let sum = |order: &mut dyn Iterator<Item = &NodeFigures>| {
            let mut sum = NodeFigures::default();
            order.for_each(|figures| sum.add(figures));
            sum
        };
        let forwards = sum(&mut all.iter());
        prop_assert_eq!(sum(&mut all.iter().rev()), forwards);
        // Grouped otherwise: the first with the sum of all others.
        let others = sum(&mut all[1..].iter());
        prop_assert_eq!(sum(&mut [all[0], others].iter()), forwards);
        let admitted: u64 = all.iter().map(|figures| figures.admitted).sum();
        prop_assert_eq!(forwards.admitted, admitted);
    }

    #[test]
    fn figures_of_the_room_join_in_any_order(
        samples in prop::collection::vec(sample(), 1..8),
        at in 0_usize..8,
    ) {
        let forwards = joined(&samples);
        let backwards: Vec<_> = samples.iter().rev().copied().collect();
        prop_assert_eq!(joined(&backwards), forwards);
        let (one, other) = samples.split_at(at.min(samples.len()));
        let mut grouped = joined(one);
        grouped.join(&joined(other));
        prop_assert_eq!(grouped, forwards);
        let active = samples.iter().map(|sample| sample.active);
        let newest = samples.iter().map(|sample| sample.at).max().unwrap();
        let last = samples.iter().filter(|sample| sample.at == newest);
        prop_assert_eq!(forwards.active, Level {
            min: active.clone().min().unwrap(),
            max: active.max().unwrap(),
            last: last.map(|sample| sample.active).max().unwrap(),
        });
    }

    #[test]
    fn a_row_comes_back_from_its_bytes(
        figures in figures(),
        samples in prop::collection::vec(sample(), 0..4),
    ) {
        let row = row(0, 1, figures, &samples);
        let bytes = row.encode();
        prop_assert!(bytes.len() <= ROW_BYTES_MAX, "{} bytes", bytes.len());
        let (found, room) = Row::decode(&bytes).unwrap();
        prop_assert_eq!(room, row.room);
        prop_assert_eq!(found.announced, figures.announced);
        // 240 values in four histograms always fit.
        prop_assert_eq!(found, figures);
    }

    #[test]
    fn the_largest_histograms_fit_and_no_count_is_lost(
        counts in prop::collection::vec(0_i64..i64::MAX / 200, 4 * BUCKETS),
    ) {
        let mut row = row(0, 1, NodeFigures::default(), &[]);
        row.figures.arrivals = u64::MAX;
        row.figures.origin.statuses = [u64::MAX; 6];
        let figures = &mut row.figures;
        let histograms = [
            &mut figures.waits,
            &mut figures.inside,
            &mut figures.inversions,
            &mut figures.origin.latency,
        ];
        for (histogram, counts) in histograms.into_iter().zip(counts.chunks(BUCKETS)) {
            for (bucket, count) in counts.iter().enumerate() {
                histogram.change(bucket, *count);
            }
        }
        let bytes = row.encode();
        prop_assert!(bytes.len() <= ROW_BYTES_MAX, "{} bytes", bytes.len());
        let (found, _) = Row::decode(&bytes).unwrap();
        prop_assert_eq!(found.origin.statuses, row.figures.origin.statuses);
        prop_assert_eq!(found.arrivals, u64::MAX);
    }

    #[test]
    fn minutes_fold_to_what_a_quarter_counts(
        all in prop::collection::vec((0_u64..15, 1_u64..4, figures(), sample()), 1..12),
    ) {
        let minutes: Vec<Row> = all.iter()
            .map(|(minute, node, figures, sample)| row(*minute, *node, *figures, &[*sample]))
            .collect();
        let mut quarters: Vec<Row> = Vec::new();
        for minute in &minutes {
            match quarters.iter_mut().find(|row| row.node == minute.node) {
                Some(row) => row.join(minute),
                None => quarters.push(Row { begins: Minute(DAY), minutes: 15, ..*minute }),
            }
        }
        let query = |step| Query::new(Minute(DAY), Minute(DAY + 15), Some(step), Minute(DAY));
        // Points of 14 minutes are the longest of single minutes.
        let found = points(&minutes, &query(14).unwrap());
        let mut folded = found[0].clone();
        for point in &found[1..] {
            folded.figures.add(&point.figures);
            folded.room.join(&point.room);
        }
        let quarter = points(&quarters, &query(15).unwrap());
        prop_assert_eq!(quarter.len(), 1);
        prop_assert_eq!(&quarter[0].figures, &folded.figures);
        prop_assert_eq!(&quarter[0].room, &folded.room);
    }
}
