//! Requests as events that a job counts, as in the article: the lag of the counts when more events
//! come than it can count. It compares them with one store, and with `store = "kafka"`.

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::{Caption, Chart};
use anteroom_limit::time::DurationUs;

use super::{MINUTE, SEED, a_minute, plan, strict};
use crate::lab::charts::{DASHED_LIMIT, LINES};
use crate::lab::run::{Plan, StoreKind, run, run_events};
use crate::lab::traffic::{Demand, random};

/// Article's limit, requests per minute.
pub(crate) const LIMIT_REQUESTS: u32 = 100;
/// Requests per minute of each client: three times its limit.
pub(crate) const REQUESTS: u32 = 300;
/// Events per second that the job can count: those of twenty clients.
pub(crate) const EVENTS_PER_SECOND: u32 = 100;
/// Numbers of clients to run.
const CLIENTS: [u32; 10] = [4, 8, 12, 16, 18, 20, 22, 24, 28, 32];
/// Largest load, in percent of what the job can count.
const LOAD_MOST: u32 = 160;
/// Number of nodes that read the counts. The lag depends on the job, and hardly on them.
pub(crate) const NODES: u32 = 6;
/// Length of a run: by its end, uncounted events have piled up for minutes.
pub(crate) const MINUTES: u64 = 5;
/// One-way delay: across a data center, twice, and a moment in a buffer.
pub(crate) const DELAY: DurationUs = DurationUs(20_000);

/// Results for a number of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    /// Events in percent of what the job can count.
    pub(crate) load: u32,
    /// Largest lag of the counts.
    pub(crate) lag: DurationUs,
    /// Most requests of one client in a minute.
    pub(crate) highest: u64,
    /// Most requests of one client with one store instead.
    pub(crate) highest_shared: u64,
    /// Most requests of one client with nodes that count their own requests at once, and report
    /// only allowed ones.
    pub(crate) highest_kafka: u64,
    /// Wrongly allowed requests of a hundred allowed ones.
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
        rate: a_minute(REQUESTS),
        length: MINUTE.times(MINUTES),
        clients,
        seed: SEED,
    };
    let traffic = random(&demand).expect("some ten thousand requests");
    let plan_of = |store| Plan {
        delay: DELAY,
        events_per_second: EVENTS_PER_SECOND,
        ..plan(strict(LIMIT_REQUESTS), store, NODES)
    };
    let of = |store| {
        run(&plan_of(store), &traffic)
            .expect("both can keep it")
            .stats
    };
    let (kafka, shared) = (of(StoreKind::Kafka), of(StoreKind::Valkey));
    let queue = run_events(&plan_of(StoreKind::Kafka), &traffic);
    let queue = queue.expect("it keeps counts").stats;
    Row {
        load: clients * REQUESTS * 100 / 60 / EVENTS_PER_SECOND,
        lag: queue.lag,
        highest: queue.highest,
        highest_shared: shared.highest,
        highest_kafka: kafka.highest,
        wrong_percent: queue.wrongly_allowed * 100 / queue.admitted.max(1),
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
    let limit = u64::from(LIMIT_REQUESTS);
    LineChart {
        caption: Caption {
            file_name: "events-under-load.svg".to_owned(),
            title: "Most requests of one client in a minute, against load".to_owned(),
            description: format!(
                "While fewer events come than the job can count, the most is just above the limit \
                of {limit}. When more come, counts get later and later, and up to {most} requests \
                pass. With one store it is never above the limit."
            ),
        },
        across: Axis::between(0, LOAD_MOST, 20, " %"),
        across_is: "events, in percent of those that the job can count".to_owned(),
        up: Axis::count(as_f64(most)),
        up_is: "requests in the fullest minute".to_owned(),
        // The line of one store is on the limit, which is dashed, so that both are visible.
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
