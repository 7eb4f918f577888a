//! Writers that swap one value if it is unchanged, and the share of writes that fail. It compares
//! writers that try again at once with writers that pause first, like those of `store =
//! "memcached"`.

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::{Caption, Chart};
use anteroom_limit::policy::Policy;
use anteroom_limit::time::DurationUs;
use anteroom_limit::token_bucket::TokenBucket;

use super::{a_minute, plan};
use crate::lab::charts::LINES;
use crate::lab::routing::Routing;
use crate::lab::run::{Plan, StoreKind, run_optimistic};
use crate::lab::stores::RetryPolicy;
use crate::lab::traffic::{BEGIN, Request, Traffic};

/// Numbers of writers at one moment.
const WRITERS: [u32; 9] = [1, 2, 4, 6, 8, 12, 16, 24, 32];
/// Number of writers in the text.
pub(crate) const SIXTEEN: u32 = 16;
/// Repetitions, far enough apart that all writes are over in between.
const TIMES: u32 = 200;
const APART: DurationUs = DurationUs::from_secs(1);

/// Results for a number of writers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    pub(crate) writers: u32,
    /// Writers that try again at once.
    pub(crate) immediate: Waste,
    /// Writers that pause first.
    pub(crate) backoff: Waste,
}

/// Wasted writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Waste {
    /// Writes for a hundred requests.
    pub(crate) writes_percent: u64,
    /// Failed writes of a hundred writes.
    pub(crate) lost_percent: u64,
    /// Requests given up of a hundred requests.
    pub(crate) given_up_percent: u64,
}

pub(crate) struct Contention {
    pub(crate) rows: Vec<Row>,
    pub(crate) chart: Chart,
}

impl Contention {
    /// Returns the row of sixteen writers.
    pub(crate) fn sixteen(&self) -> Row {
        let row = self.rows.iter().find(|row| row.writers == SIXTEEN);
        *row.expect("sixteen are among those that are tried")
    }
}

pub(crate) fn rehearse() -> Contention {
    let rows: Vec<Row> = WRITERS.into_iter().map(row).collect();
    let chart = draw(&rows);
    Contention { rows, chart }
}

/// Runs a bucket that is never empty, so that every rejected request had no decision in time.
fn row(writers: u32) -> Row {
    let bucket = TokenBucket::new(a_minute(1_000_000), 1_000_000, 1_000_000);
    let policy = Policy::TokenBucket(bucket.expect("it is full at first"));
    let moments = (0..TIMES).flat_map(|time| (0..writers).map(move |_| time));
    let requests = moments.map(|time| Request {
        at: BEGIN + APART.times(u64::from(time)),
        client: 0,
    });
    let traffic = Traffic::new(String::new(), requests.collect());
    let plan = Plan {
        // Each request is at its own node, because those of one node would wait for each other.
        routing: Routing::Turn,
        ..plan(policy, StoreKind::Memcached, writers)
    };
    let percent = |part: u64, of: u64| part * 100 / of.max(1);
    let of = |retry| {
        let stats = run_optimistic(&plan, retry, &traffic).stats;
        Waste {
            writes_percent: percent(stats.writes, stats.requests),
            lost_percent: percent(stats.writes_lost, stats.writes),
            given_up_percent: percent(stats.undecided, stats.requests),
        }
    };
    Row {
        writers,
        immediate: of(RetryPolicy::Immediate),
        backoff: of(RetryPolicy::Backoff),
    }
}

fn draw(rows: &[Row]) -> Chart {
    let line = |name: &str, look, value: &dyn Fn(&Row) -> u64| Line {
        name: name.to_owned(),
        look,
        points: rows
            .iter()
            .map(|row| (f64::from(row.writers), as_f64(value(row)) / 100.0))
            .collect(),
    };
    let most = rows
        .iter()
        .map(|row| row.immediate.writes_percent)
        .max()
        .unwrap_or(0);
    LineChart {
        caption: Caption {
            file_name: "writers-of-one-value.svg".to_owned(),
            title: "Writes per request, against writers at one moment".to_owned(),
            description: "With one writer a request takes one write. Each further writer at the \
                          same moment adds writes that fail because another one was faster. Where \
                          writers wait before they try again, fewer writes fail. Adding to a \
                          counter always takes one write."
                .to_owned(),
        },
        across: Axis::between(0, 32, 4, ""),
        across_is: "writers that come at one moment".to_owned(),
        up: Axis::count(as_f64(most) / 100.0),
        up_is: "writes per request".to_owned(),
        lines: vec![
            line("swap if unchanged, again at once", LINES[1], &|row| {
                row.immediate.writes_percent
            }),
            line("the same, with pauses", LINES[2], &|row| {
                row.backoff.writes_percent
            }),
            line("add to a counter", LINES[0], &|_| 100),
        ],
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_fails_never_and_each_further_one_more_often() {
        let rows = rehearse().rows;
        for alone in [rows[0].immediate, rows[0].backoff] {
            assert_eq!((alone.writes_percent, alone.lost_percent), (100, 0));
        }
        assert!(
            rows.is_sorted_by_key(|row| row.immediate.lost_percent),
            "{rows:?}"
        );
        let sixteen = rehearse().sixteen();
        let (immediate, backoff) = (sixteen.immediate, sixteen.backoff);
        assert!(
            immediate.writes_percent > 200 && immediate.lost_percent > 50,
            "{sixteen:?}"
        );
        assert!(
            backoff.writes_percent < immediate.writes_percent && backoff.given_up_percent < 10,
            "{sixteen:?}"
        );
    }
}
