//! Sticky sessions while nodes are added: a client that moves starts with an empty count.

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
use crate::lab::outcome::{Decision, LimitStatistics, Outcome};
use crate::lab::routing::{Grown, Routing};
use crate::lab::run::{Plan, StoreKind, run};
use crate::lab::traffic::{BEGIN, Demand, Traffic, random};

/// Article's limit, requests per minute.
pub(crate) const LIMIT_REQUESTS: u32 = 100;
/// Number of clients: enough for a nearly equal share at each node.
pub(crate) const CLIENTS: u32 = 100;
/// Requests per minute of each client: twice the limit, because limits matter in a rush.
pub(crate) const REQUESTS: u32 = 200;
/// Numbers of nodes and the second from which each applies. Nodes are added when all clients have
/// just used up their limits, which is the worst moment.
pub(crate) const NODES: [(u64, u32); 3] = [(0, 2), (276, 4), (398, 8)];
/// Length of a run: two windows more after the last nodes were added.
const MINUTES: u64 = 9;

/// Results of the runs.
pub(crate) struct Sticky {
    /// Each node counts alone.
    pub(crate) local: LimitStatistics,
    /// One store for all.
    pub(crate) shared: LimitStatistics,
    /// Most allowed requests of all clients together in a minute, while nodes were added.
    pub(crate) highest_sum: u64,
    pub(crate) chart: Chart,
}

pub(crate) fn rehearse() -> Sticky {
    let demand = Demand {
        rate: a_minute(REQUESTS),
        length: MINUTE.times(MINUTES),
        clients: CLIENTS,
        seed: SEED,
    };
    let traffic = random(&demand).expect("few enough requests");
    let grown = NODES.map(|(secs, nodes)| Grown {
        at: BEGIN + DurationUs::from_secs(secs),
        nodes,
    });
    let of = |store| {
        let plan = Plan {
            routing: Routing::Sticky(grown.to_vec()),
            ..plan(strict(LIMIT_REQUESTS), store, NODES[0].1)
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

/// Returns how many requests of all clients together were allowed in the last minute.
fn sum(outcome: &Outcome, traffic: &Traffic) -> Vec<(TimestampUs, u64)> {
    let all: Vec<Decision> = outcome
        .decisions
        .iter()
        .map(|one| Decision { client: 0, ..*one })
        .collect();
    estimate::admitted(a_minute(LIMIT_REQUESTS), &all, 0, traffic.span)
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
    let limit = as_f64(u64::from(LIMIT_REQUESTS * CLIENTS));
    let length = MINUTE.times(MINUTES);
    let end = ms(BEGIN + length);
    LineChart {
        caption: Caption {
            file_name: "sticky-sessions.svg".to_owned(),
            title: "Requests allowed in the last minute, while nodes are added".to_owned(),
            description: format!(
                "With one store the count is never above the limits of all clients, {all}. Where \
                each node counts alone, it rises above them for a minute each time that nodes are \
                added. It reaches {most}.",
                all = grouped(u64::from(LIMIT_REQUESTS * CLIENTS)),
                most = grouped(highest),
            ),
        },
        across: Axis::time(Timestamp(BEGIN.0 / 1_000), length.0 / 1_000),
        across_is: growth(),
        up: Axis::count(as_f64(highest) * 1.05),
        up_is: "requests of all clients".to_owned(),
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

/// Returns the label of the axis, with the times at which nodes were added.
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
    fn the_axis_label_has_the_times_of_added_nodes() {
        assert_eq!(
            growth(),
            "time of day (UTC); from 2 to 4 nodes at 07:04:36, to 8 at 07:06:38"
        );
    }

    #[test]
    fn calls_move_only_to_new_nodes_that_count_by_themselves() {
        let sticky = rehearse();
        assert_eq!(sticky.shared.wrongly_allowed, 0);
        assert_eq!(sticky.shared.highest, u64::from(LIMIT_REQUESTS));
        assert!(sticky.local.highest >= 190, "{:?}", sticky.local);
        assert!(sticky.local.wrongly_allowed > 5_000, "{:?}", sticky.local);
        let demand = Demand {
            rate: a_minute(REQUESTS),
            length: DurationUs::from_secs(NODES[1].0),
            clients: CLIENTS,
            seed: SEED,
        };
        let before = random(&demand).unwrap();
        let calm = Plan {
            routing: Routing::Sticky(Vec::new()),
            ..plan(strict(LIMIT_REQUESTS), StoreKind::Local, NODES[0].1)
        };
        let calm = run(&calm, &before).unwrap().stats;
        assert_eq!(
            calm.wrongly_allowed, 0,
            "as long as there are as many nodes"
        );
    }
}
