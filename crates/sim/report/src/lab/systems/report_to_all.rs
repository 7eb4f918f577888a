//! Servers that report every request to each other, and the number of their messages.

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::number::grouped;
use crate::chart::{Caption, Chart};
use anteroom_limit::time::DurationUs;

use super::{SEED, a_minute, plan, strict};
use crate::lab::charts::LINES;
use crate::lab::run::{Plan, StoreKind, run};
use crate::lab::traffic::{Demand, random};

/// Numbers of nodes to run.
const NODES: [u32; 7] = [1, 2, 4, 8, 16, 24, 32];
/// Requests a minute of each client; one client comes with each node.
pub(crate) const REQUESTS: u32 = 1_200;
/// Limit above the requests of each client: nodes report every request.
pub(crate) const LIMIT_REQUESTS: u32 = 2_000;
/// Length of a run, which is some ten thousand requests: enough for whole numbers a second.
const SECONDS: u64 = 30;
/// Compared stores, in the order of [`Row::messages`].
const STORES: [StoreKind; 3] = [StoreKind::Gossip, StoreKind::Valkey, StoreKind::Leases];

/// Messages a second with so many nodes, in the order of [`STORES`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    pub(crate) nodes: u32,
    pub(crate) requests: u64,
    pub(crate) messages: [u64; 3],
}

pub(crate) struct Chatty {
    pub(crate) rows: Vec<Row>,
    pub(crate) chart: Chart,
}

pub(crate) fn rehearse() -> Chatty {
    let rows: Vec<Row> = NODES.into_iter().map(row).collect();
    let chart = draw(&rows);
    Chatty { rows, chart }
}

fn row(nodes: u32) -> Row {
    let demand = Demand {
        rate: a_minute(REQUESTS),
        length: DurationUs::from_secs(SECONDS),
        clients: nodes,
        seed: SEED,
    };
    let traffic = random(&demand).expect("some ten thousand requests");
    let messages = STORES.map(|store| {
        let plan = Plan {
            // Each request is reported at once, as in the article.
            interval: DurationUs::ZERO,
            ..plan(strict(LIMIT_REQUESTS), store, nodes)
        };
        let outcome = run(&plan, &traffic).expect("all three can keep it");
        outcome.stats.messages / SECONDS
    });
    Row {
        nodes,
        requests: traffic.requests.len() as u64 / SECONDS,
        messages,
    }
}

fn draw(rows: &[Row]) -> Chart {
    let most = rows.iter().flat_map(|row| row.messages).max().unwrap_or(0);
    let looks = [LINES[1], LINES[0], LINES[2]];
    let names = ["each reports to all", "one store", "leases"];
    let lines = looks.into_iter().zip(names).enumerate();
    let lines = lines.map(|(at, (look, name))| Line {
        name: name.to_owned(),
        look,
        points: rows
            .iter()
            .map(|row| (f64::from(row.nodes), as_f64(row.messages[at])))
            .collect(),
    });
    let last = NODES[NODES.len() - 1];
    LineChart {
        caption: Caption {
            file_name: "chatty-servers.svg".to_owned(),
            title: "Messages a second, against the number of nodes".to_owned(),
            description: format!(
                "Each line of the scale is ten times the one below. Where each node reports to all \
                others, messages grow with the square of the nodes. One node sends none, and \
                {last} nodes send {most} a second. With one store they grow with the requests. \
                With leases they are fewer, and come near that.",
                most = grouped(most),
            ),
        },
        across: Axis::between(0, last, 4, ""),
        across_is: format!("nodes; each adds {} requests a second", REQUESTS / 60),
        up: Axis::tenfold(as_f64(most)),
        up_is: "messages a second".to_owned(),
        lines: lines.collect(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_to_all_grow_with_the_square_and_one_store_linearly() {
        for Row {
            nodes,
            requests,
            messages: [gossip, valkey, _],
        } in rehearse().rows
        {
            // Whole requests a second: rounded down.
            let (nodes, off) = (u64::from(nodes), u64::from(nodes) + 2);
            assert!(
                gossip.abs_diff(requests * (nodes - 1)) <= off,
                "{nodes} {gossip}"
            );
            assert!(valkey.abs_diff(requests * 2) <= 2, "{nodes} {valkey}");
            assert!(
                requests.abs_diff(nodes * 20) <= nodes * 2,
                "{nodes} {requests}"
            );
        }
    }
}
