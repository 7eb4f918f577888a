//! Sessions that stick to nodes, while nodes are added: whoever moves begins anew.

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::number::grouped;
use crate::chart::{Caption, Chart};
use anteroom_config::time_text::rfc3339_secs;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_room::time::Timestamp;

use super::{MINUTE, SEED, a_minute, plan, strict};
use crate::lab::charts::{LIMIT, LINES};
use crate::lab::estimate;
use crate::lab::outcome::{Decision, Figures, Outcome};
use crate::lab::routing::{Grown, Routing};
use crate::lab::run::{Plan, StoreKind, run};
use crate::lab::traffic::{BEGIN, Demand, Traffic, random};

/// The article's limit, a minute.
pub(crate) const LIMIT_CALLS: u32 = 100;
/// So many that chance gives each node about as many of them.
pub(crate) const CLIENTS: u32 = 100;
/// Twice the limit: a rush is when limits are for something.
pub(crate) const CALLS: u32 = 200;
/// How many nodes there are, and from how many seconds on: when all clients have
/// just used up what they may, the worst moment that there is.
pub(crate) const NODES: [(u64, u32); 3] = [(0, 2), (276, 4), (398, 8)];
/// Until two windows after the last nodes were added.
const MINUTES: u64 = 9;

/// What came out.
pub(crate) struct Sticky {
    /// Each node by itself.
    pub(crate) local: Figures,
    /// One store for all.
    pub(crate) shared: Figures,
    /// The most that was admitted of all clients together in a minute, while nodes were added.
    pub(crate) highest_sum: u64,
    pub(crate) chart: Chart,
}

pub(crate) fn rehearse() -> Sticky {
    let demand = Demand {
        rate: a_minute(CALLS),
        length: MINUTE.times(MINUTES),
        clients: CLIENTS,
        seed: SEED,
    };
    let traffic = random(&demand).expect("some hundred thousand calls");
    let grown = NODES.map(|(secs, nodes)| Grown {
        at: BEGIN + DurationUs::from_secs(secs),
        nodes,
    });
    let of = |store| {
        let plan = Plan {
            routing: Routing::Sticky(grown.to_vec()),
            ..plan(strict(LIMIT_CALLS), store, NODES[0].1)
        };
        run(&plan, &traffic).expect("both can keep it")
    };
    let (local, shared) = (of(StoreKind::Local), of(StoreKind::Valkey));
    let sums = [sum(&local, &traffic), sum(&shared, &traffic)];
    let highest_sum = sums[0].iter().map(|(_, count)| *count).max().unwrap_or(0);
    Sticky {
        local: local.stats,
        shared: shared.stats,
        highest_sum,
        chart: draw(sums, highest_sum),
    }
}

/// How many calls of all clients together were admitted in the last minute.
fn sum(outcome: &Outcome, traffic: &Traffic) -> Vec<(TimestampUs, u64)> {
    let all: Vec<Decision> = outcome
        .decisions
        .iter()
        .map(|one| Decision { client: 0, ..*one })
        .collect();
    estimate::admitted(a_minute(LIMIT_CALLS), &all, 0, traffic.span)
}

fn draw([local, shared]: [Vec<(TimestampUs, u64)>; 2], highest: u64) -> Chart {
    let ms = |at: TimestampUs| as_f64(at.since(BEGIN).0 / 1_000);
    let line = |name: &str, look, points: Vec<(TimestampUs, u64)>| Line {
        name: name.to_owned(),
        look,
        points: points
            .into_iter()
            .map(|(at, count)| (ms(at), as_f64(count)))
            .collect(),
    };
    let limit = as_f64(u64::from(LIMIT_CALLS * CLIENTS));
    let length = MINUTE.times(MINUTES);
    let end = ms(BEGIN + length);
    LineChart {
        caption: Caption {
            file_name: "sticky-sessions.svg".to_owned(),
            title: "Calls admitted in the last minute, while nodes are added".to_owned(),
            description: format!(
                "With one store the count is never above the limits of all clients, {all}. Where \
                 each node \
                 counts by itself it rises above that for a minute each time that nodes are \
                 added, to \
                 {most} at most.",
                all = grouped(u64::from(LIMIT_CALLS * CLIENTS)),
                most = grouped(highest),
            ),
        },
        across: Axis::time(Timestamp(BEGIN.0 / 1_000), length.0 / 1_000),
        across_is: growth(),
        up: Axis::count(as_f64(highest) * 1.05),
        up_is: "calls of all clients".to_owned(),
        lines: vec![
            line("each node by itself", LINES[1], local),
            line("one store", LINES[0], shared),
            Line {
                name: "limits of all clients".to_owned(),
                look: LIMIT,
                points: vec![(0.0, limit), (end, limit)],
            },
        ],
    }
    .draw()
}

/// When nodes were added, as the axis has the time.
fn growth() -> String {
    let [(_, first), (second_at, second), (third_at, third)] = NODES;
    let clock = |secs: u64| {
        let text = rfc3339_secs(Timestamp(BEGIN.0 / 1_000 + secs * 1_000));
        text.get(11..19).unwrap_or_default().to_owned()
    };
    format!(
        "time of day (UTC); from {first} to {second} nodes at {}, to {third} at {}",
        clock(second_at),
        clock(third_at)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_says_when_nodes_were_added() {
        assert_eq!(
            growth(),
            "time of day (UTC); from 2 to 4 nodes at 07:04:36, to 8 at 07:06:38"
        );
    }

    #[test]
    fn calls_move_only_to_new_nodes_that_count_by_themselves() {
        let sticky = rehearse();
        assert_eq!(sticky.shared.wrongly_admitted, 0);
        assert_eq!(sticky.shared.highest, u64::from(LIMIT_CALLS));
        assert!(sticky.local.highest >= 190, "{:?}", sticky.local);
        assert!(sticky.local.wrongly_admitted > 5_000, "{:?}", sticky.local);
        let demand = Demand {
            rate: a_minute(CALLS),
            length: DurationUs::from_secs(NODES[1].0),
            clients: CLIENTS,
            seed: SEED,
        };
        let before = random(&demand).unwrap();
        let calm = Plan {
            routing: Routing::Sticky(Vec::new()),
            ..plan(strict(LIMIT_CALLS), StoreKind::Local, NODES[0].1)
        };
        let calm = run(&calm, &before).unwrap().stats;
        assert_eq!(
            calm.wrongly_admitted, 0,
            "as long as there are as many nodes"
        );
    }
}
