//! Servers that tell each other every call: how many messages is that?

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::number::grouped;
use crate::chart::{Caption, Chart};
use anteroom_limit::time::DurationUs;

use super::{SEED, a_minute, plan, strict};
use crate::lab::charts::LINES;
use crate::lab::run::{Plan, StoreKind, run};
use crate::lab::traffic::{Demand, random};

/// How many nodes are tried.
const NODES: [u32; 7] = [1, 2, 4, 8, 16, 24, 32];
/// A node is added for each client that comes, who calls so often in a minute.
pub(crate) const CALLS: u32 = 1_200;
/// Below the limit of each client: every call is one to tell of.
pub(crate) const LIMIT_CALLS: u32 = 2_000;
/// For so long, which is some ten thousand calls: enough for whole figures a second.
const SECONDS: u64 = 30;
/// Compared, in the order of [`Row::messages`].
const STORES: [StoreKind; 3] = [StoreKind::Gossip, StoreKind::Valkey, StoreKind::Leases];

/// Messages a second with so many nodes, in the order of [`STORES`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    pub(crate) nodes: u32,
    pub(crate) calls: u64,
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
        rate: a_minute(CALLS),
        length: DurationUs::from_secs(SECONDS),
        clients: nodes,
        seed: SEED,
    };
    let traffic = random(&demand).expect("some ten thousand calls");
    let messages = STORES.map(|store| {
        let plan = Plan {
            // Each call is told at once, as the article has it.
            interval: DurationUs::ZERO,
            ..plan(strict(LIMIT_CALLS), store, nodes)
        };
        let outcome = run(&plan, &traffic).expect("all three can keep it");
        outcome.stats.messages / SECONDS
    });
    Row {
        nodes,
        calls: traffic.calls.len() as u64 / SECONDS,
        messages,
    }
}

fn draw(rows: &[Row]) -> Chart {
    let most = rows.iter().flat_map(|row| row.messages).max().unwrap_or(0);
    let looks = [LINES[1], LINES[0], LINES[2]];
    let names = ["each tells all others", "one store", "leases"];
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
                "Each line of the scale is ten times the one below. Where each node tells all \
                 others, messages \
                 rise with the square of the nodes, from none with one node to {most} a second \
                 with {last}. With \
                 one store they rise with the calls; with leases they are fewer, and come near \
                 that.",
                most = grouped(most),
            ),
        },
        across: Axis::between(0, last, 4, ""),
        across_is: format!("nodes; each brings {} calls a second with it", CALLS / 60),
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
    fn telling_all_grows_with_the_square_and_asking_one_linearly() {
        for Row {
            nodes,
            calls,
            messages: [gossip, valkey, _],
        } in rehearse().rows
        {
            // Whole calls a second: rounded down.
            let (nodes, off) = (u64::from(nodes), u64::from(nodes) + 2);
            assert!(
                gossip.abs_diff(calls * (nodes - 1)) <= off,
                "{nodes} {gossip}"
            );
            assert!(valkey.abs_diff(calls * 2) <= 2, "{nodes} {valkey}");
            assert!(calls.abs_diff(nodes * 20) <= nodes * 2, "{nodes} {calls}");
        }
    }
}
