//! Calls as events that somebody counts, as the article has it: how late are the counts when more
//! come than can be counted? Beside it one store, and what `store = "kafka"` makes of the same
//! calls.

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::{Caption, Chart};
use anteroom_limit::time::DurationUs;

use super::{MINUTE, SEED, a_minute, plan, strict};
use crate::lab::charts::{DASHED_LIMIT, LINES};
use crate::lab::run::{Plan, StoreKind, run, run_events};
use crate::lab::traffic::{Demand, random};

/// The article's limit, a minute.
pub(crate) const LIMIT_CALLS: u32 = 100;
/// Each client calls three times as often as it may.
pub(crate) const CALLS: u32 = 300;
/// So many events a second can be counted: those of twenty clients.
pub(crate) const EVENTS_PER_SECOND: u32 = 100;
/// How many clients come.
const CLIENTS: [u32; 10] = [4, 8, 12, 16, 18, 20, 22, 24, 28, 32];
/// What comes at most then, in percent of what can be counted.
const LOAD_MOST: u32 = 160;
/// How many read the counts. How late these are depends on whoever counts, and hardly on them.
pub(crate) const NODES: u32 = 6;
/// For so long: what cannot be counted in time has piled up for minutes by then.
pub(crate) const MINUTES: u64 = 5;
/// Across a data center, twice, and a moment in a buffer.
pub(crate) const DELAY: DurationUs = DurationUs(20_000);

/// What came out for so many clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    /// Events of what can be counted, in percent.
    pub(crate) load: u32,
    /// How late counts were at most.
    pub(crate) lag: DurationUs,
    /// The most of one client in a minute.
    pub(crate) highest: u64,
    /// With one store instead.
    pub(crate) highest_shared: u64,
    /// With nodes that count their own calls at once, and tell only what they admit.
    pub(crate) highest_told: u64,
    /// How many of a hundred calls that were admitted should not have been.
    pub(crate) wrong_percent: u64,
}

pub(crate) struct Queue {
    pub(crate) rows: Vec<Row>,
    pub(crate) chart: Chart,
}

pub(crate) fn rehearse() -> Queue {
    let rows: Vec<Row> = CLIENTS.into_iter().map(row).collect();
    let chart = draw(&rows);
    Queue { rows, chart }
}

fn row(clients: u32) -> Row {
    let demand = Demand {
        rate: a_minute(CALLS),
        length: MINUTE.times(MINUTES),
        clients,
        seed: SEED,
    };
    let traffic = random(&demand).expect("some ten thousand calls");
    let plan_of = |store| Plan {
        delay: DELAY,
        events_per_second: EVENTS_PER_SECOND,
        ..plan(strict(LIMIT_CALLS), store, NODES)
    };
    let of = |store| {
        run(&plan_of(store), &traffic)
            .expect("both can keep it")
            .stats
    };
    let (told, shared) = (of(StoreKind::Kafka), of(StoreKind::Valkey));
    let queue = run_events(&plan_of(StoreKind::Kafka), &traffic);
    let queue = queue.expect("it keeps counts").stats;
    Row {
        load: clients * CALLS * 100 / 60 / EVENTS_PER_SECOND,
        lag: queue.lag,
        highest: queue.highest,
        highest_shared: shared.highest,
        highest_told: told.highest,
        wrong_percent: queue.wrongly_admitted * 100 / queue.admitted.max(1),
    }
}

fn draw(rows: &[Row]) -> Chart {
    let most = rows.iter().map(|row| row.highest).max().unwrap_or(0);
    let line = |name: &str, look, value: &dyn Fn(&Row) -> u64| Line {
        name: name.to_owned(),
        look,
        points: rows
            .iter()
            .map(|row| (f64::from(row.load), as_f64(value(row))))
            .collect(),
    };
    let limit = u64::from(LIMIT_CALLS);
    LineChart {
        caption: Caption {
            file_name: "events-under-load.svg".to_owned(),
            title: "Most calls of one client in a minute, against load".to_owned(),
            description: format!(
                "While fewer events come than can be counted, the most is just above the limit of \
                 {limit}. \
                 When more come, counts are later and later, and up to {most} calls pass. With one \
                 store it is never above the limit."
            ),
        },
        across: Axis::between(0, LOAD_MOST, 20, " %"),
        across_is: "events, of those that can be counted".to_owned(),
        up: Axis::count(as_f64(most)),
        up_is: "calls in the fullest minute".to_owned(),
        // One store lies on the limit, which is dashed above it, so that both are seen.
        lines: vec![
            line("counts from a queue of events", LINES[1], &|row| {
                row.highest
            }),
            line("one store", LINES[2], &|row| row.highest_shared),
            Line {
                name: "limit".to_owned(),
                look: DASHED_LIMIT,
                points: [0, LOAD_MOST]
                    .map(|load| (f64::from(load), as_f64(limit)))
                    .into(),
            },
        ],
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_in_time_until_more_events_come_than_can_be_counted() {
        let rows = rehearse().rows;
        for row in &rows {
            assert!(row.highest_shared <= 100, "{row:?}");
            let second = DurationUs::from_secs(1);
            assert_eq!(row.load > 100, row.lag > second.times(5), "{row:?}");
            if row.load < 95 {
                assert!(row.lag < second && row.highest < 110, "{row:?}");
            }
        }
        let last = rows[rows.len() - 1];
        assert!(last.highest > 200 && last.load == LOAD_MOST, "{last:?}");
    }
}
