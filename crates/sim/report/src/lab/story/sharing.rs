//! Many nodes: what each way of sharing counts does where it is weakest.

use crate::chart::number::{duration, grouped, length};
use anteroom_limit::swapping::TRIES;
use anteroom_limit::time::DurationUs;

use super::Page;
use crate::lab::run::{INTERVAL, Plan, StoreKind, run, run_events};
use crate::lab::systems::{self, NEAR, chatty, contention, plan, queue, sticky, strict};
use crate::lab::traffic::Traffic;

pub(super) fn push(page: &mut Page) {
    page.push(format_args!(
        "## Many nodes\n\
         \n\
         One node can count as above. Several have to know of each other's calls. Runs below use \
         strict sub-windows of {width}, which are never exceeded\n\
         where one place counts: whatever is, is due to the way of sharing. Only where a state is \
         swapped it is a token bucket, which is never empty there.\n\
         \n\
         **The load balancer** stands before all nodes and sees every call, so it could count. \
         The article finds that it works well, and that it lacks what they\n\
         needed: limits that change while it runs, limits by what a token says. One thing to know \
         besides: HAProxy's stick tables tell each other their values and\n\
         overwrite them, they do not add them. Several balancers are several counts.\n\
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
         If a client always meets the same node, that node can count alone (`store = \"local\"`), \
         and nothing has to be shared. It holds as long as nobody\n\
         adds a node. On the busiest days of the year somebody does; and then either all clients \
         stay where they are, and the new nodes have nothing to do, or some move,\n\
         to nodes that do not know what they have called. So the limit gives way exactly when it \
         is needed.\n\
         \n\
         {clients} clients who call {calls} times a minute where {limit} are allowed; {first} \
         nodes, {second} after {second_at} s, {third} after {third_at} s. No more clients move \
         than must.\n\
         The two moments are chosen: all clients have just used up what they may, so they are the \
         worst that there are.\n\
         \n",
        clients = sticky::CLIENTS,
        calls = sticky::CALLS,
        limit = sticky::LIMIT_CALLS,
    ));
    let (local, shared) = (sticky.local, sticky.shared);
    let sum = sticky.highest_sum;
    page.show(sticky.chart);
    page.push(format_args!(
        "In the minute after, all clients together get up to {sum} calls through where {all} are \
         allowed, and a client that moved up to {highest} instead of {limit}: {wrong}\n\
         calls too many. With one store for all nodes it is {none}.\n\
         \n",
        sum = grouped(sum),
        all = grouped(u64::from(sticky::LIMIT_CALLS * sticky::CLIENTS)),
        highest = local.highest,
        limit = sticky::LIMIT_CALLS,
        wrong = grouped(local.wrongly_admitted),
        none = shared.wrongly_admitted,
    ));
}

fn push_chatty(page: &mut Page) {
    let chatty = chatty::rehearse();
    page.push(format_args!(
        "### Chatty servers\n\
         \n\
         Clients may go anywhere if nodes tell each other what they let through. (Or ask each \
         other at each call, which is as much talk and makes the call wait.)\n\
         Each has to know where all others are, and to learn it anew when one is added. And with \
         n nodes every call is n - 1 messages: once there are many,\n\
         twice the nodes with twice the calls are nearly four times the messages.\n\
         \n"
    ));
    page.show(chatty.chart);
    let row = |row: &chatty::Row| {
        let [gossip, valkey, leases] = row.messages.map(grouped);
        [
            row.nodes.to_string(),
            grouped(row.calls),
            gossip,
            valkey,
            leases,
        ]
    };
    let rows: Vec<[String; 5]> = chatty.rows.iter().map(row).collect();
    page.table(
        [
            "nodes",
            "calls a second",
            "each tells all others",
            "one store",
            "leases",
        ],
        &rows,
    );
    page.push(format_args!(
        "Messages a second; each node brings a client with it who makes {calls} calls a minute of \
         {limit} that are allowed, spread over all nodes. News can be gathered and sent less\n\
         often, and are later then: what has not been told yet is admitted twice. So does `store \
         = \"gossip\"`, each {interval}. Leases save messages where a node sees much of a client. \
         Many nodes that each see a\n\
         call a second of it ask for nearly each call, as they ask the one store.\n\
         \n",
        calls = grouped(u64::from(chatty::CALLS)),
        interval = duration(INTERVAL.0 / 1_000),
        limit = grouped(u64::from(chatty::LIMIT_CALLS)),
    ));
}

fn push_queue(page: &mut Page) {
    let queue = queue::rehearse();
    page.push(format_args!(
        "### A queue of events (Kafka)\n\
         \n\
         So let nodes talk to one place: each call is an event on a topic, a stream job counts \
         the events of the last minute for each client, and publishes the\n\
         counts on another topic, which all nodes read. Nobody has to know anybody. But nobody \
         waits for anybody either. As long as all is well the counts are a\n\
         moment old; when there is more to count than can be counted, they get later and later, \
         and calls pass by counts of the past.\n\
         \n\
         Clients who call {calls} times a minute where {limit} are allowed, for {minutes} \
         minutes; {events} events a second can be counted:\n\
         \n",
        calls = queue::CALLS,
        limit = queue::LIMIT_CALLS,
        minutes = queue::MINUTES,
        events = queue::EVENTS_PER_SECOND,
    ));
    let most_told = queue
        .rows
        .iter()
        .map(|row| row.highest_told)
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
            row.highest_told.to_string(),
        ]
    };
    let rows: Vec<[String; 6]> = queue.rows.iter().map(row).collect();
    page.table(
        [
            "load",
            "counts are late by",
            "fullest minute of a client",
            "wrongly admitted, of what was admitted",
            "fullest minute with one store",
            "with `store = \"kafka\"`",
        ],
        &rows,
    );
    page.push(format_args!(
        "The model is kind: each event yields new counts at once, where a real job hands them out \
         now and then. What the article concludes from this is the sentence to keep:\n\
         these ways work well while all is well, and a limit is not there for the best 99 % of \
         the time but for the worst 1 %.\n\
         \n\
         The last column is Anteroom's, in the same place: nodes count what they admit at once, \
         and tell only that, each {interval}, so there is less to count. More than can be counted \
         it\n\
         is only while clients use up what they may, and up to {most} calls pass then. The later \
         sums are the more pass, but each of the {nodes} nodes lets through a whole limit at \
         most.\n\
         \n",
        most = most_told,
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
         What is left is one place that all ask and wait for. What it can do decides which \
         algorithms it can keep. Memcached adds to counters in one\n\
         step, which is enough for all windows. For a bucket it has a swap: read the value with \
         its version, work out the new one, write it if the version is still\n\
         the same, and begin again if not. That works until many write the same value, which is \
         what a client over its limit makes them do.\n\
         \n"
    ));
    let hundredths = |hundredths: u64| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let row = |row: &contention::Row| {
        let contention::Row {
            writers,
            plain,
            patient,
        } = *row;
        [
            writers.to_string(),
            hundredths(plain.writes_percent),
            format!("{} %", plain.lost_percent),
            format!("{} %", plain.given_up_percent),
            hundredths(patient.writes_percent),
            format!("{} %", patient.lost_percent),
            format!("{} %", patient.given_up_percent),
        ]
    };
    let rows: Vec<[String; 7]> = contention.rows.iter().map(row).collect();
    page.show(contention.chart);
    page.table(
        [
            "writers at one moment",
            "again at once: writes for a call",
            "of them for nothing",
            "calls given up",
            "with pauses: writes for a call",
            "of them for nothing",
            "calls given up",
        ],
        &rows,
    );
    page.push(format_args!(
        "With {writers} writers who try again at once {lost} % of all writes come to nothing. \
         Each try is two round trips, and who has tried {tries} times gives up, {given_up} % of \
         the calls. `store = \"memcached\"`\n\
         waits before each further one, for a time that grows and that chance shortens: {patient} \
         % are given up of writers who come once. Of {writers} nodes\n\
         that call again as soon as they are answered 2.4 to 6.6 % were measured \
         ([benchmarks](explanation/benchmarks-limits.md#limits-on-memcached)). In the model \
         messages take from {least} to {most}, and the store needs no time to think.\n\
         \n",
        writers = sixteen.writers,
        lost = sixteen.plain.lost_percent,
        given_up = sixteen.plain.given_up_percent,
        patient = sixteen.patient.given_up_percent,
        tries = TRIES,
        least = as_ms(NEAR.0 / 2),
        most = as_ms(NEAR.0),
    ));
}

/// Milliseconds, with tenths if there are any.
fn as_ms(micros: u64) -> String {
    let tenths = micros / 100;
    match tenths % 10 {
        0 => format!("{} ms", tenths / 10),
        part => format!("{}.{part} ms", tenths / 10),
    }
}

/// What became of a rush, for each way of sharing.
fn shared_rows(traffic: &Traffic) -> [[String; 6]; 8] {
    let of = |store, interval| Plan {
        interval,
        ..plan(strict(systems::RUSH_LIMIT), store, systems::RUSH_NODES)
    };
    let usual = |store| run(&of(store, INTERVAL), traffic);
    let at_once = of(StoreKind::Gossip, DurationUs::ZERO);
    let runs = [
        ("each node by itself", usual(StoreKind::Local)),
        ("chatty servers, each call told", run(&at_once, traffic)),
        ("`gossip`", usual(StoreKind::Gossip)),
        ("queue of events", run_events(&at_once, traffic)),
        ("`kafka`", usual(StoreKind::Kafka)),
        ("`memcached`", usual(StoreKind::Memcached)),
        ("`valkey`", usual(StoreKind::Valkey)),
        ("`leases`", usual(StoreKind::Leases)),
    ];
    runs.map(|(name, outcome)| {
        let stats = outcome.expect("all can keep it").stats;
        let of_calls = stats.messages * 100 / stats.calls.max(1);
        [
            name.to_owned(),
            grouped(stats.admitted),
            grouped(stats.wrongly_admitted),
            grouped(stats.highest),
            grouped(stats.stranded),
            format!("{}.{:02}", of_calls / 100, of_calls % 100),
        ]
    })
}

fn push_one_place(page: &mut Page) {
    let traffic = systems::rush();
    page.push(format_args!(
        "### One place that decides, or that lends\n\
         \n\
         Where there is a Redis, the article says, a store that runs the whole step is the \
         perfect answer: a script, one round trip for each call, and never wrong. `store = \
         \"valkey\"` is that.\n\
         \n\
         Anteroom has one more. `store = \"leases\"` lends calls to nodes ahead of demand, and \
         anyone who holds some decides by itself. What is lent counts as\n\
         used, so nothing is exceeded, whatever becomes of the node; what a node does not use in \
         time is stranded, so a little less than the limit gets through.\n\
         \n\
         {nodes} nodes, {minutes} minutes of bursts of one client, {calls} calls where {limit} a \
         minute are allowed:\n\
         \n",
        nodes = systems::RUSH_NODES,
        minutes = systems::RUSH_MINUTES,
        calls = grouped(traffic.calls.len() as u64),
        limit = grouped(u64::from(systems::RUSH_LIMIT)),
    ));
    page.table(
        [
            "",
            "admitted",
            "wrongly admitted",
            "highest",
            "stranded",
            "messages for a call",
        ],
        &shared_rows(&traffic),
    );
}
