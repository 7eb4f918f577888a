//! Writers that swap one value, each if nobody was quicker: how much of it is for nothing? Where
//! they try again at once, and where they wait before that, as those of `store = "memcached"` do.

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
use crate::lab::stores::Manner;
use crate::lab::traffic::{BEGIN, Call, Traffic};

/// How many writers come at one moment.
const WRITERS: [u32; 9] = [1, 2, 4, 6, 8, 12, 16, 24, 32];
/// The one that the text speaks of.
pub(crate) const SIXTEEN: u32 = 16;
/// So often, far enough apart that all is over in between.
const TIMES: u32 = 200;
const APART: DurationUs = DurationUs::from_secs(1);

/// What came out for so many writers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    pub(crate) writers: u32,
    /// Who try again at once.
    pub(crate) plain: Waste,
    /// Who wait before that.
    pub(crate) patient: Waste,
}

/// What was for nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Waste {
    /// Writes for a hundred calls.
    pub(crate) writes_percent: u64,
    /// Writes that came to nothing, of a hundred writes.
    pub(crate) lost_percent: u64,
    /// Calls that were given up, of a hundred calls.
    pub(crate) given_up_percent: u64,
}

pub(crate) struct Contention {
    pub(crate) rows: Vec<Row>,
    pub(crate) chart: Chart,
}

impl Contention {
    /// The row of sixteen writers.
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

/// A bucket that is never empty: what is refused is refused for want of an answer.
fn row(writers: u32) -> Row {
    let bucket = TokenBucket::new(a_minute(1_000_000), 1_000_000, 1_000_000);
    let policy = Policy::TokenBucket(bucket.expect("it is full at first"));
    let moments = (0..TIMES).flat_map(|time| (0..writers).map(move |_| time));
    let calls = moments.map(|time| Call {
        at: BEGIN + APART.times(u64::from(time)),
        client: 0,
    });
    let traffic = Traffic::new(String::new(), calls.collect());
    let plan = Plan {
        // Each of them at a node of its own: those of one node would wait for each other.
        routing: Routing::Turn,
        ..plan(policy, StoreKind::Memcached, writers)
    };
    let percent = |part: u64, of: u64| part * 100 / of.max(1);
    let of = |manner| {
        let stats = run_optimistic(&plan, manner, &traffic).stats;
        Waste {
            writes_percent: percent(stats.writes, stats.calls),
            lost_percent: percent(stats.writes_lost, stats.writes),
            given_up_percent: percent(stats.undecided, stats.calls),
        }
    };
    Row {
        writers,
        plain: of(Manner::Plain),
        patient: of(Manner::Patient),
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
        .map(|row| row.plain.writes_percent)
        .max()
        .unwrap_or(0);
    LineChart {
        caption: Caption {
            file_name: "writers-of-one-value.svg".to_owned(),
            title: "Writes for one call, against writers at one moment".to_owned(),
            description: "With one writer a call takes one write. Each writer that comes at the \
                          same \
                          moment adds writes that come to nothing, because somebody else was \
                          quicker, and \
                          fewer where writers wait before they try again. A counter that is added \
                          to takes \
                          one write always."
                .to_owned(),
        },
        across: Axis::between(0, 32, 4, ""),
        across_is: "writers that come at one moment".to_owned(),
        up: Axis::count(as_f64(most) / 100.0),
        up_is: "writes for a call".to_owned(),
        lines: vec![
            line("swap if unchanged, again at once", LINES[1], &|row| {
                row.plain.writes_percent
            }),
            line("the same, with pauses", LINES[2], &|row| {
                row.patient.writes_percent
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
    fn one_writer_loses_nothing_and_each_that_is_added_loses_more() {
        let rows = rehearse().rows;
        for alone in [rows[0].plain, rows[0].patient] {
            assert_eq!((alone.writes_percent, alone.lost_percent), (100, 0));
        }
        assert!(
            rows.is_sorted_by_key(|row| row.plain.lost_percent),
            "{rows:?}"
        );
        let sixteen = rehearse().sixteen();
        let (plain, patient) = (sixteen.plain, sixteen.patient);
        assert!(
            plain.writes_percent > 200 && plain.lost_percent > 50,
            "{sixteen:?}"
        );
        assert!(
            patient.writes_percent < plain.writes_percent && patient.given_up_percent < 10,
            "{sixteen:?}"
        );
    }
}
