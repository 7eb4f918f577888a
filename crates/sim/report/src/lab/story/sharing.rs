//! Many nodes: each way of sharing counts in its worst case.

use crate::chart::number::{duration, grouped, length};
use anteroom_limit::swapping::TRIES;
use anteroom_limit::time::DurationUs;

use super::Page;
use crate::lab::run::{INTERVAL, Plan, StoreKind, run, run_events};
use crate::lab::systems::{self, NEAR, contention, plan, queue, report_to_all, sticky, strict};
use crate::lab::traffic::Traffic;

pub(super) fn push(page: &mut Page) {
    page.push(format_args!(
        "## Many nodes\n\
         \n\
         One node can count as above. Several nodes have to know of each other's requests. The \
         runs below use strict sub-windows of {width}, which never exceed the limit in one place. \
         So any excess is due to the way of sharing. Only the runs that swap a state use a token \
         bucket, which is never empty there.\n\
         \n\
         **The load balancer** is in front of all nodes and sees every request, so it could count. \
         The article finds that it works well, and that it lacks two features that they needed. \
         These are limits that change at run time, and limits by the content of a token. Note that \
         HAProxy's stick tables send each other their values and overwrite them. They do not add \
         them, so several load balancers are several counts.\n\
         \n",
        width = length(60_000 / u64::from(systems::STRICT_PARTS)),
    ));
    push_sticky(page);
    push_chatty(page);
    push_queue(page);
    push_contention(page);
    push_one_place(page);
}

fn push_sticky(page: &mut Page) {
    let sticky = sticky::rehearse();
    let [(_, first), (second_at, second), (third_at, third)] = sticky::NODES;
    page.push(format_args!(
        "### Sticky sessions\n\
         \n\
         If a client always reaches the same node, that node can count alone (`store = \
         \"local\"`), and nodes share nothing. This holds until an operator adds a node, which \
         happens on the busiest days of the year. Then either all clients stay where they are, and \
         the new nodes have nothing to do. Or some move to nodes that do not know their earlier \
         requests. So the limit fails exactly when it is needed.\n\
         \n\
         {clients} clients send {requests} requests a minute where {limit} are allowed. There are \
         {first} nodes, {second} after {second_at} s, and {third} after {third_at} s. No more \
         clients move than necessary. The two moments are the worst ones: all clients have just \
         used up their limits.\n\
         \n",
        clients = sticky::CLIENTS,
        requests = sticky::REQUESTS,
        limit = sticky::LIMIT_REQUESTS,
    ));
    let (local, shared) = (sticky.local, sticky.shared);
    let sum = sticky.highest_sum;
    page.show(sticky.chart);
    page.push(format_args!(
        "In the next minute the nodes allow up to {sum} requests of all clients, where {all} are \
         allowed. A client that moved gets up to {highest} instead of {limit}. Together {wrong} \
         requests are too many. With one store for all nodes it is {none}.\n\
         \n",
        sum = grouped(sum),
        all = grouped(u64::from(sticky::LIMIT_REQUESTS * sticky::CLIENTS)),
        highest = local.highest,
        limit = sticky::LIMIT_REQUESTS,
        wrong = grouped(local.wrongly_allowed),
        none = shared.wrongly_allowed,
    ));
}

fn push_chatty(page: &mut Page) {
    let chatty = report_to_all::rehearse();
    page.push(format_args!(
        "### Chatty servers\n\
         \n\
         Clients may go to any node if nodes report to each other what they allow. (Or they send \
         each other a request each time, which takes as many messages and makes the client wait.) \
         Each node has to know the addresses of all others, and to learn new ones. With n nodes \
         every request is n - 1 messages. Once there are many, twice the nodes with twice the \
         requests are nearly four times the messages.\n\
         \n"
    ));
    page.show(chatty.chart);
    let row = |row: &report_to_all::Row| {
        let [gossip, valkey, leases] = row.messages.map(grouped);
        [
            row.nodes.to_string(),
            grouped(row.requests),
            gossip,
            valkey,
            leases,
        ]
    };
    let rows: Vec<[String; 5]> = chatty.rows.iter().map(row).collect();
    page.table(
        [
            "nodes",
            "requests a second",
            "each reports to all",
            "one store",
            "leases",
        ],
        &rows,
    );
    page.push(format_args!(
        "The table has messages a second. Each node adds a client that sends {requests} requests a \
         minute of {limit} that are allowed, spread over all nodes. Nodes can collect their \
         reports and send them less often, and then they are later. Until a report arrives, nodes \
         allow the same requests twice. `store = \"gossip\"` reports each {interval}. Leases save \
         messages where a node sees many requests of a client. Where many nodes each see a request \
         a second of it, they need a message for nearly each one, like one store.\n\
         \n",
        requests = grouped(u64::from(report_to_all::REQUESTS)),
        interval = duration(INTERVAL.0 / 1_000),
        limit = grouped(u64::from(report_to_all::LIMIT_REQUESTS)),
    ));
}

fn push_queue(page: &mut Page) {
    let queue = queue::rehearse();
    page.push(format_args!(
        "### A queue of events (Kafka)\n\
         \n\
         So let nodes talk to one place. Each request is an event on a topic. A stream job counts \
         the events of the last minute for each client. It publishes the counts on another topic, \
         which all nodes read. Nodes need not know each other, but no node waits for the count \
         either. As long as all is well the counts are a moment old. When more events come than \
         the job can count, counts get later and later. Nodes then allow requests by counts of the \
         past.\n\
         \n\
         Clients send {requests} requests a minute where {limit} are allowed, for {minutes} \
         minutes. The job counts {events} events a second:\n\
         \n",
        requests = queue::REQUESTS,
        limit = queue::LIMIT_REQUESTS,
        minutes = queue::MINUTES,
        events = queue::EVENTS_PER_SECOND,
    ));
    let most_kafka = queue
        .rows
        .iter()
        .map(|row| row.highest_kafka)
        .max()
        .unwrap_or(0);
    page.show(queue.chart);
    let row = |row: &queue::Row| {
        [
            format!("{} %", row.load),
            duration(row.lag.0 / 1_000),
            row.highest.to_string(),
            format!("{} %", row.wrong_percent),
            row.highest_shared.to_string(),
            row.highest_kafka.to_string(),
        ]
    };
    let rows: Vec<[String; 6]> = queue.rows.iter().map(row).collect();
    page.table(
        [
            "load",
            "counts are late by",
            "fullest minute of a client",
            "wrongly allowed, of those allowed",
            "fullest minute with one store",
            "with `store = \"kafka\"`",
        ],
        &rows,
    );
    page.push(format_args!(
        "The model is kind: each event yields new counts at once, where a real job publishes them \
         now and then. The article concludes that these ways work well while all is well. But a \
         limit is there for the worst 1 % of the time, and not for the best 99 %.\n\
         \n\
         The last column is Anteroom's `kafka` store. Nodes count what they allow at once, and \
         report only that, each {interval}, so there is less to count. The job falls behind only \
         while clients use up their limits, and up to {most} requests pass then. Later totals \
         allow more, but each of the {nodes} nodes allows one whole limit at most.\n\
         \n",
        most = most_kafka,
        interval = duration(INTERVAL.0 / 1_000),
        nodes = queue::NODES,
    ));
}

fn push_contention(page: &mut Page) {
    let contention = contention::rehearse();
    let sixteen = contention.sixteen();
    page.push(format_args!(
        "### One place that swaps (Memcached)\n\
         \n\
         The last way is one place that all nodes request and wait for. Its operations decide \
         which algorithms it can keep. Memcached adds to counters in one step, which is enough for \
         all windows. For a bucket it has a swap. A writer reads the value with its version, \
         computes the new one, writes it if the version is unchanged, and otherwise tries again. \
         That works until many writers change the same value, which is what a client over its \
         limit causes.\n\
         \n"
    ));
    let hundredths = |hundredths: u64| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let row = |row: &contention::Row| {
        let contention::Row {
            writers,
            immediate,
            backoff,
        } = *row;
        [
            writers.to_string(),
            hundredths(immediate.writes_percent),
            format!("{} %", immediate.lost_percent),
            format!("{} %", immediate.given_up_percent),
            hundredths(backoff.writes_percent),
            format!("{} %", backoff.lost_percent),
            format!("{} %", backoff.given_up_percent),
        ]
    };
    let rows: Vec<[String; 7]> = contention.rows.iter().map(row).collect();
    page.show(contention.chart);
    page.table(
        [
            "writers at one moment",
            "again at once: writes per request",
            "of them failed",
            "requests given up",
            "with pauses: writes per request",
            "of them failed",
            "requests given up",
        ],
        &rows,
    );
    page.push(format_args!(
        "With {writers} writers who try again at once, {lost} % of all writes fail. Each try is \
         two round trips, and a writer gives up after {tries} tries. {given_up} % of requests end \
         that way. `store = \"memcached\"` waits before each further try, for a random time that \
         grows. Of writers who come once, {backoff} % give up then. Of {writers} nodes that send \
         the next request after each response, we measured 2.4 to 6.6 % \
         ([benchmarks](explanation/benchmarks-limits.md#limits-on-memcached)). In the model a \
         message takes from {least} to {most}, and the store takes no time.\n\
         \n",
        writers = sixteen.writers,
        lost = sixteen.immediate.lost_percent,
        given_up = sixteen.immediate.given_up_percent,
        backoff = sixteen.backoff.given_up_percent,
        tries = TRIES,
        least = as_ms(NEAR.0 / 2),
        most = as_ms(NEAR.0),
    ));
}

/// Formats milliseconds, with tenths if there are any.
fn as_ms(micros: u64) -> String {
    let tenths = micros / 100;
    match tenths % 10 {
        0 => format!("{} ms", tenths / 10),
        part => format!("{}.{part} ms", tenths / 10),
    }
}

/// Returns the results of a rush, for each way of sharing.
fn shared_rows(traffic: &Traffic) -> [[String; 6]; 8] {
    let of = |store, interval| Plan {
        interval,
        ..plan(strict(systems::RUSH_LIMIT), store, systems::RUSH_NODES)
    };
    let usual = |store| run(&of(store, INTERVAL), traffic);
    let at_once = of(StoreKind::Gossip, DurationUs::ZERO);
    let runs = [
        ("each node by itself", usual(StoreKind::Local)),
        (
            "chatty servers, each request reported",
            run(&at_once, traffic),
        ),
        ("`gossip`", usual(StoreKind::Gossip)),
        ("queue of events", run_events(&at_once, traffic)),
        ("`kafka`", usual(StoreKind::Kafka)),
        ("`memcached`", usual(StoreKind::Memcached)),
        ("`valkey`", usual(StoreKind::Valkey)),
        ("`leases`", usual(StoreKind::Leases)),
    ];
    runs.map(|(name, outcome)| {
        let stats = outcome.expect("all can keep it").stats;
        let of_requests = stats.messages * 100 / stats.requests.max(1);
        [
            name.to_owned(),
            grouped(stats.admitted),
            grouped(stats.wrongly_allowed),
            grouped(stats.highest),
            grouped(stats.stranded),
            format!("{}.{:02}", of_requests / 100, of_requests % 100),
        ]
    })
}

fn push_one_place(page: &mut Page) {
    let traffic = systems::rush();
    page.push(format_args!(
        "### One place that decides, or that leases\n\
         \n\
         Where there is a Redis, the article says, a store that runs the whole step is the perfect \
         solution. It is a script, one round trip for each request, and never wrong. `store = \
         \"valkey\"` does that.\n\
         \n\
         Anteroom has one more. `store = \"leases\"` leases requests to nodes ahead of demand, and \
         a node with a lease decides alone. Leased requests count as used, so the limit is never \
         exceeded, even if the node crashes. What a node does not use in time is stranded, so \
         slightly less than the limit passes.\n\
         \n\
         {nodes} nodes, {minutes} minutes of bursts of one client, {requests} requests where \
         {limit} a minute are allowed:\n\
         \n",
        nodes = systems::RUSH_NODES,
        minutes = systems::RUSH_MINUTES,
        requests = grouped(traffic.requests.len() as u64),
        limit = grouped(u64::from(systems::RUSH_LIMIT)),
    ));
    page.table(
        [
            "",
            "allowed",
            "wrongly allowed",
            "highest",
            "stranded",
            "messages per request",
        ],
        &shared_rows(&traffic),
    );
}
