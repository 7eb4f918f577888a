//! `anteroom simulate limits`: flags, comparison and output.

use std::io::Write;
use std::path::{Path, PathBuf};

use anteroom_config::{RateText, duration};
use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::time::DurationUs;
use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use self::adding::Added;
use self::pairs::{Pairs, pairs, unfit_message};
use crate::lab::algorithm::{Settings, all};
use crate::lab::comparison::{Comparison, Run};
use crate::lab::input::Input;
use crate::lab::printing::{check_folder, write_story};
use crate::lab::routing::Routing;
use crate::lab::run::{NODES_MAX, Plan, StoreKind, run as run_one};
use crate::lab::traffic::{self, Demand, Traffic};
use crate::lab::{story, table};

mod adding;
mod drawing;
mod pairs;

/// Default number of parts of a window, as in the article: 15 seconds of a minute.
const SUB_WINDOWS: u32 = 4;
/// Most messages of a run: a gigabyte of them, if all are under way at once.
const MESSAGES_MAX: u64 = 20_000_000;

/// Flags of `anteroom simulate limits`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LimitsOptions {
    /// Algorithm to compare; repeat it or separate several by commas. Without it, all that the
    /// stores support
    #[arg(long, value_name = "ALGORITHM", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(all().into_iter().map(AlgorithmKind::name)))]
    algorithm: Vec<String>,
    /// Limit of each client
    #[arg(long, value_name = "RATE", default_value = "100/min")]
    limit: RateText,
    /// Parts of the window, for sub-windows; the oldest, partial part is counted as well
    /// [default: 4]
    #[arg(long, value_name = "N")]
    sub_windows: Option<u32>,
    /// Requests at once, for token-bucket and gcra [default: as many as the limit]
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    /// Requests that may wait, for leaky-bucket
    #[arg(long, value_name = "N", default_value_t = 0)]
    queue: u32,
    /// Traffic: random, bursty, adversary (knows where windows end), or a CSV file with a time in
    /// each line, optionally with a comma and a client; its first line may be time,client
    #[arg(long, value_name = "KIND|FILE.csv", default_value = "random")]
    traffic: String,
    /// Requests of each client, for random and bursty [default: a tenth more than the limit]
    #[arg(long, value_name = "RATE")]
    rate: Option<RateText>,
    /// Length of the traffic, for random and bursty [default: ten windows]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    length: Option<DurationUs>,
    /// Number of clients, for random and bursty [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: Option<u32>,
    /// Number of nodes that requests are spread over
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    nodes: u32,
    /// Add this many nodes at this time after the start; repeat it or separate several by commas. A
    /// new node knows what the others have received
    #[arg(long, value_name = "N@DURATION", value_delimiter = ',', value_parser = Added::parse)]
    add_nodes: Vec<Added>,
    /// Send each client to one node, as long as the number of nodes does not change
    #[arg(long)]
    sticky: bool,
    /// Store through which nodes share counts; repeat it or separate several by commas
    #[arg(long, value_name = "STORE", value_delimiter = ',', default_value = "local",
        value_parser = PossibleValuesParser::new(StoreKind::ALL.map(StoreKind::word)))]
    store: Vec<String>,
    /// Time that a message takes, one way; some take half as long
    #[arg(long, value_name = "DURATION", default_value = "2ms", value_parser = parse_duration)]
    delay: DurationUs,
    /// Time for which nodes collect counts before they send them, for gossip and kafka; 0ms sends
    /// each request at once
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = parse_duration)]
    interval: DurationUs,
    /// Events per second that are counted, for kafka: one for each client, node and interval
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    events_per_second: u32,
    /// Seed of the random numbers; the same seed gives the same results
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Also draw charts of what each algorithm counts and allows for the busiest client, into this
    /// folder
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
    /// Print an article on what rate limits get wrong and why, with results of this program's own
    /// code, and write it and its charts into this folder; run nothing else
    #[arg(long, value_name = "DIR", exclusive = true)]
    story: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Which algorithm is right, and at what price?
  anteroom simulate limits
  anteroom simulate limits --traffic adversary --algorithm fixed-window,sub-windows-strict
  anteroom simulate limits --traffic bursty --charts charts
Many nodes: which store counts how exactly, and how late?
  anteroom simulate limits --nodes 6 --store local,gossip,valkey,leases --rate 1000/min
  anteroom simulate limits --nodes 6 --store kafka --clients 100 --rate 200/min \\
      --events-per-second 80
  anteroom simulate limits --nodes 2 --add-nodes 2@4m,4@7m --sticky --clients 50 --rate 200/min
Your own traffic, your own limit: one line for each request, such as 2022-02-24T07:10:23.5Z,client-7
  anteroom simulate limits --traffic requests.csv --limit 20/10s
The algorithms are those of the gateway. Stores and networks are models without failures, and clocks
agree. Clients do not affect each other.
Exit code: 0; 1 if something cannot be read, run or written; 2 if a flag is not valid.";

/// Compares the algorithms, and prints the results.
///
/// # Errors
///
/// Returns an error if a flag cannot be followed, a file cannot be read, or charts cannot be
/// written.
pub fn run(
    options: &LimitsOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<()> {
    if let Some(folder) = &options.story {
        return write_story(folder, story::tell, out, err);
    }
    if let Some(folder) = &options.charts {
        check_folder("--charts", folder)?;
    }
    let comparison = compare(options)?;
    if options.json {
        out.write_all(crate::lab::json::json(&comparison).as_bytes())?;
    } else {
        out.write_all(table::table(&comparison).as_bytes())?;
    }
    match &options.charts {
        Some(folder) => drawing::draw(folder, &comparison, err),
        None => Ok(()),
    }
}

fn compare(options: &LimitsOptions) -> anyhow::Result<Comparison> {
    let settings = Settings {
        rate: options.limit.rate(),
        sub_windows: options.sub_windows.unwrap_or(SUB_WINDOWS),
        burst: options.burst,
        queue: options.queue,
    };
    let Pairs { fit, left_out } = pairs(options, &settings)?;
    let nodes = adding::in_all(options.nodes, &options.add_nodes)?;
    check_traffic_flags(options)?;
    let policies: Vec<Policy> = fit.iter().map(|(_, _, policy)| *policy).collect();
    let traffic = make_traffic(options, &policies, nodes)?;
    let grown = adding::grown(options.nodes, &options.add_nodes, traffic.span)?;
    let routing = if options.sticky {
        Routing::Sticky(grown)
    } else {
        Routing::Spread(grown)
    };
    let mut runs = Vec::with_capacity(fit.len());
    for (algorithm, store, policy) in fit {
        check_messages(store, traffic.requests.len() as u64, nodes)?;
        let plan = Plan {
            policy,
            store,
            nodes,
            routing: routing.clone(),
            delay: options.delay,
            interval: options.interval,
            events_per_second: options.events_per_second,
            seed: options.seed,
        };
        let outcome = run_one(&plan, &traffic).with_context(|| unfit_message(algorithm, store))?;
        runs.push(Run {
            algorithm,
            store,
            policy,
            most: store.most_in_any_window(&policy, routing.nodes_of_one_client(nodes)),
            outcome,
        });
    }
    Ok(Comparison {
        input: input(options, &settings),
        traffic,
        runs,
        left_out,
    })
}
fn input(options: &LimitsOptions, settings: &Settings) -> Input {
    let added = options.add_nodes.iter().map(ToString::to_string);
    let named = vec![
        ("limit", json!(RateText::of(settings.rate).to_string())),
        ("sub_windows", json!(settings.sub_windows)),
        ("burst", json!(settings.burst_or_limit())),
        ("queue", json!(settings.queue)),
        ("nodes", json!(options.nodes)),
        ("add_nodes", added.collect()),
        ("sticky", json!(options.sticky)),
        ("delay_ms", json!(options.delay.0 / 1_000)),
        ("interval_ms", json!(options.interval.0 / 1_000)),
        ("events_per_second", json!(options.events_per_second)),
        ("seed", json!(options.seed)),
    ];
    Input::new(settings.rate, named)
}

/// Rejects runs whose nodes send so many messages that they fill the memory.
fn check_messages(store: StoreKind, requests: u64, nodes: u32) -> anyhow::Result<()> {
    let messages = requests.saturating_mul(u64::from(nodes));
    let tells_all = matches!(store, StoreKind::Gossip | StoreKind::Kafka);
    anyhow::ensure!(
        !tells_all || messages <= MESSAGES_MAX,
        "--store {} would send up to {messages} messages; at most {MESSAGES_MAX} are run; take \
         fewer --nodes, or fewer requests",
        store.word()
    );
    Ok(())
}

/// Rejects flags of generated traffic with other traffic.
fn check_traffic_flags(options: &LimitsOptions) -> anyhow::Result<()> {
    if matches!(options.traffic.as_str(), "random" | "bursty") {
        return Ok(());
    }
    for (flag, is_given) in [
        ("--rate", options.rate.is_some()),
        ("--length", options.length.is_some()),
        ("--clients", options.clients.is_some()),
    ] {
        anyhow::ensure!(
            !is_given,
            "{flag} is for random and bursty traffic, and --traffic {} is neither; leave it out",
            options.traffic
        );
    }
    Ok(())
}

fn make_traffic(
    options: &LimitsOptions,
    policies: &[Policy],
    nodes: u32,
) -> anyhow::Result<Traffic> {
    let rate = options.limit.rate();
    let demand = Demand {
        rate: match options.rate {
            Some(rate) => rate.rate(),
            None => a_tenth_more(rate)?,
        },
        length: options.length.unwrap_or_else(|| rate.window().times(10)),
        clients: options.clients.unwrap_or(1),
        seed: options.seed,
    };
    let most = policies.iter().map(|policy| policy.window_cost_max(1));
    let made = match options.traffic.as_str() {
        "random" => traffic::random(&demand),
        "bursty" => traffic::bursty(&demand),
        "adversary" => {
            let way = longest_way(options);
            let made = traffic::adversary(rate, most.max().unwrap_or(0), nodes, way);
            return made.context(
                "an adversary of this limit: take a lower --limit or --burst, or fewer nodes",
            );
        }
        file => return recorded(Path::new(file)),
    };
    let made = made.context("take a lower --rate, fewer --clients, or a shorter --length")?;
    anyhow::ensure!(
        !made.requests.is_empty(),
        "no requests come; take a higher --rate, or a longer --length"
    );
    Ok(made)
}

/// Returns the longest time until a decision, over the slowest of the stores.
fn longest_way(options: &LimitsOptions) -> DurationUs {
    let stores = options.store.iter();
    let stores = stores.filter_map(|word| StoreKind::of_word(word));
    options
        .delay
        .times(stores.map(StoreKind::ways).max().unwrap_or(0))
}

fn recorded(file: &Path) -> anyhow::Result<Traffic> {
    let is_csv = file.extension().is_some_and(|extension| extension == "csv");
    anyhow::ensure!(
        file.exists() || is_csv,
        "--traffic {}: no such traffic; write random, bursty, adversary, or the name of a CSV file",
        file.display()
    );
    Ok(traffic::read(file)?)
}

fn a_tenth_more(rate: Rate) -> anyhow::Result<Rate> {
    let requests = rate.requests().saturating_add(rate.requests().div_ceil(10));
    Rate::new(requests, rate.window()).context("--limit")
}

fn parse_duration(text: &str) -> Result<DurationUs, String> {
    let span = duration::parse(text);
    let span = span.ok_or("write whole numbers with units, such as 250ms, 90s or 1h30m")?;
    Ok(DurationUs(span.0.saturating_mul(1_000)))
}

#[cfg(test)]
mod tests;
