//! `anteroom simulate limits`: what is compared, and how it is shown.

use std::path::{Path, PathBuf};

use anteroom_chart::Chart;
use anteroom_config::{RateText, duration};
use anteroom_limits::algorithm::Algorithm as _;
use anteroom_limits::policy::Policy;
use anteroom_limits::rate::Rate;
use anteroom_limits::time::MicroSpan;
use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::algorithm::{Algorithm, Settings};
use crate::outcome::Outcome;
use crate::printing::{print, tell};
use crate::routing::Routing;
use crate::run::{NODES_MAX, Plan, StoreKind, run as run_one};
use crate::traffic::{self, Demand, Traffic};
use crate::{charts, json, story, table};

/// Most messages of a run: a gigabyte of them, if none has come when the last is sent.
const MESSAGES_MAX: u64 = 20_000_000;

/// Flags of `anteroom simulate limits`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LimitsOptions {
    /// An algorithm to compare; several times or with commas. Without it all that the stores can keep
    #[arg(long, value_name = "ALGORITHM", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::word)))]
    algorithm: Vec<String>,
    /// The limit, of each client
    #[arg(long, value_name = "CALLS/TIME", default_value = "100/min")]
    limit: RateText,
    /// Parts of the window of sub-windows; one counter more is read
    #[arg(long, value_name = "N", default_value_t = 4)]
    sub_windows: u32,
    /// How many calls at once, for token-bucket and gcra [default: as many as the limit]
    #[arg(long, value_name = "CALLS")]
    burst: Option<u32>,
    /// How many calls may wait, for leaky-bucket
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    queue: u32,
    /// What comes: random, bursty, adversary (knows where windows end), or a CSV file with a time in
    /// each line, then, if you like, a comma and a client
    #[arg(long, value_name = "KIND|FILE.csv", default_value = "random")]
    traffic: String,
    /// How much each client calls, for random and bursty [default: a tenth more than the limit]
    #[arg(long, value_name = "CALLS/TIME")]
    rate: Option<RateText>,
    /// For how long, for random and bursty [default: ten windows]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    length: Option<MicroSpan>,
    /// How many clients, for random and bursty
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// How many nodes calls are spread over
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    nodes: u32,
    /// The same node for the same client
    #[arg(long)]
    sticky: bool,
    /// How nodes share counts; several times or with commas
    #[arg(long, value_name = "STORE", value_delimiter = ',', default_value = "local",
        value_parser = PossibleValuesParser::new(StoreKind::ALL.map(StoreKind::word)))]
    store: Vec<String>,
    /// How long a message takes, one way; some take half as long
    #[arg(long, value_name = "DURATION", default_value = "2ms", value_parser = parse_duration)]
    delay: MicroSpan,
    /// For how long nodes gather what they tell each other, for gossip and kafka; 0ms tells each call at once
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = parse_duration)]
    interval: MicroSpan,
    /// How many events a second are counted, for kafka: one for each client, node and interval
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    events_per_second: u32,
    /// Another throw of the dice; the same seed gives the same figures
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Also draw what each algorithm counts and admits into this folder
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
    /// Print what limits of calls get wrong and why, with figures from this program's own code, and
    /// write that text and its charts into this folder; run nothing else
    #[arg(long, value_name = "DIR", exclusive = true)]
    story: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Which algorithm is right, and at what price?
  anteroom simulate limits
  anteroom simulate limits --traffic adversary --algorithm fixed-window,sub-windows-strict
  anteroom simulate limits --traffic bursty --charts charts
Many nodes: who counts, and how late do the others know?
  anteroom simulate limits --nodes 6 --store local,gossip,valkey,leases --rate 1000/min
  anteroom simulate limits --nodes 6 --store kafka --clients 100 --rate 200/min --events-per-second 80
Your own traffic, your own limit: a line for each call, such as 2022-02-24T07:10:23.5Z,client-7
  anteroom simulate limits --traffic calls.csv --limit 20/10s
The algorithms are those that run in the gateway. Stores and networks are models without failures;
clocks agree. A client is judged by its own calls alone.
Exit code: 0, or 1 if something cannot be read, run or written.";

/// One algorithm over one store.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) algorithm: Algorithm,
    pub(crate) store: StoreKind,
    pub(crate) policy: Policy,
    /// What is promised, if anything.
    pub(crate) most: Option<u64>,
    pub(crate) outcome: Outcome,
}

/// All that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) traffic: Traffic,
    pub(crate) rate: Rate,
    pub(crate) nodes: u32,
    pub(crate) seed: u64,
    pub(crate) runs: Vec<Run>,
}

/// Compares, and prints what came out.
///
/// # Errors
///
/// If a flag cannot be followed, a file not be read, or charts not be written.
pub fn run(options: &LimitsOptions) -> anyhow::Result<()> {
    if let Some(folder) = &options.story {
        return write_story(folder);
    }
    if let Some(folder) = &options.charts {
        check_folder("--charts", folder)?;
    }
    let comparison = compare(options)?;
    if options.json {
        print(&json::json(&comparison))?;
    } else {
        print(&table::table(&about(&comparison), &comparison.runs))?;
    }
    match &options.charts {
        Some(folder) => draw(folder, &comparison),
        None => Ok(()),
    }
}

fn about(comparison: &Comparison) -> String {
    format!(
        "limit {} for each client; traffic: {}; nodes: {}",
        RateText::of(comparison.rate),
        comparison.traffic.about,
        comparison.nodes
    )
}

fn compare(options: &LimitsOptions) -> anyhow::Result<Comparison> {
    let rate = options.limit.rate();
    let pairs = pairs(options)?;
    let policies: Vec<Policy> = pairs.iter().map(|(_, _, policy)| *policy).collect();
    let traffic = make_traffic(options, &policies)?;
    let mut runs = Vec::with_capacity(pairs.len());
    for (algorithm, store, policy) in pairs {
        check_messages(store, traffic.calls.len() as u64, options.nodes)?;
        let plan = Plan {
            policy,
            store,
            nodes: options.nodes,
            routing: if options.sticky {
                Routing::Sticky(Vec::new())
            } else {
                Routing::Spread
            },
            delay: options.delay,
            interval: options.interval,
            events_per_second: options.events_per_second,
            seed: options.seed,
        };
        let outcome = run_one(&plan, &traffic).with_context(|| unfit(algorithm, store))?;
        runs.push(Run {
            algorithm,
            store,
            policy,
            most: store.most_in_any_window(&policy, options.nodes),
            outcome,
        });
    }
    Ok(Comparison {
        traffic,
        rate,
        nodes: options.nodes,
        seed: options.seed,
        runs,
    })
}

/// What is compared: each algorithm over each store. What was named must fit; of what was not named,
/// what does.
fn pairs(options: &LimitsOptions) -> anyhow::Result<Vec<(Algorithm, StoreKind, Policy)>> {
    let settings = Settings {
        rate: options.limit.rate(),
        sub_windows: options.sub_windows,
        burst: options.burst,
        queue: options.queue,
    };
    let named: Vec<Algorithm> = options
        .algorithm
        .iter()
        .filter_map(|word| Algorithm::of_word(word))
        .collect();
    let wanted = if named.is_empty() {
        &Algorithm::ALL[..]
    } else {
        &named
    };
    let mut pairs = Vec::new();
    for word in &options.store {
        let store = StoreKind::of_word(word).context("the flag takes no other word")?;
        for algorithm in wanted {
            let policy = algorithm.policy(&settings);
            let policy = policy.with_context(|| format!("--algorithm {}", algorithm.word()));
            match policy.and_then(|policy| fit(*algorithm, store, policy)) {
                Ok(policy) => pairs.push((*algorithm, store, policy)),
                Err(error) if !named.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
    }
    anyhow::ensure!(
        !pairs.is_empty(),
        "no algorithm fits these stores and this limit"
    );
    Ok(pairs)
}

fn fit(algorithm: Algorithm, store: StoreKind, policy: Policy) -> anyhow::Result<Policy> {
    store
        .check(&policy)
        .with_context(|| unfit(algorithm, store))?;
    Ok(policy)
}

/// Those who tell all others what they let through fill the memory with it.
fn check_messages(store: StoreKind, calls: u64, nodes: u32) -> anyhow::Result<()> {
    let messages = calls.saturating_mul(u64::from(nodes));
    let tells_all = matches!(store, StoreKind::Gossip | StoreKind::Kafka);
    anyhow::ensure!(
        !tells_all || messages <= MESSAGES_MAX,
        "--store {} would send up to {messages} messages, and {MESSAGES_MAX} are the most that are run; take fewer \
         --nodes, or fewer calls",
        store.word()
    );
    Ok(())
}

fn unfit(algorithm: Algorithm, store: StoreKind) -> String {
    format!(
        "--store {} cannot keep {}; choose another of both",
        store.word(),
        algorithm.word()
    )
}

fn make_traffic(options: &LimitsOptions, policies: &[Policy]) -> anyhow::Result<Traffic> {
    let rate = options.limit.rate();
    let demand = Demand {
        rate: match options.rate {
            Some(rate) => rate.rate(),
            None => a_tenth_more(rate)?,
        },
        length: options.length.unwrap_or_else(|| rate.window().times(10)),
        clients: options.clients,
        seed: options.seed,
    };
    let most = policies.iter().map(|policy| policy.most_in_any_window(1));
    let made = match options.traffic.as_str() {
        "random" => traffic::random(&demand),
        "bursty" => traffic::bursty(&demand),
        "adversary" => {
            let way = longest_way(options);
            traffic::adversary(rate, most.max().unwrap_or(0), options.nodes, way)
        }
        file => return recorded(Path::new(file)),
    };
    made.context("take a lower --rate, fewer --clients, or a shorter --length")
}

/// How long it may take until a call is decided, over the slowest of the stores.
fn longest_way(options: &LimitsOptions) -> MicroSpan {
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
    let calls = rate.calls().saturating_add(rate.calls().div_ceil(10));
    Rate::new(calls, rate.window()).context("--limit")
}

fn parse_duration(text: &str) -> Result<MicroSpan, String> {
    let span = duration::parse(text);
    let span = span.ok_or("write whole numbers with units, such as 250ms, 90s or 1h30m")?;
    Ok(MicroSpan(span.0.saturating_mul(1_000)))
}

/// A chart of what each algorithm counts, which no store changes, and one of what each run admitted.
fn draw(folder: &Path, comparison: &Comparison) -> anyhow::Result<()> {
    let mut drawn: Vec<Chart> = Vec::new();
    for run in &comparison.runs {
        let word = run.algorithm.word();
        let slug = format!("counts-{word}");
        let is_new = drawn
            .iter()
            .all(|chart| chart.file_name != format!("{slug}.svg"));
        if is_new {
            drawn.extend(charts::counts(
                &slug,
                word,
                &run.policy,
                &comparison.traffic,
            ));
        }
        let slug = format!("admitted-{}-{word}", run.store.word());
        let traffic = &comparison.traffic;
        drawn.push(charts::admissions(
            &slug,
            word,
            comparison.rate,
            &run.outcome,
            traffic,
        ));
    }
    let files = drawn.iter();
    let files = files.map(|chart| (folder.join(&chart.file_name), chart.svg.as_str()));
    anteroom_chart::files::write_files(folder, files.collect(), &[])
        .context("cannot write the charts")?;
    tell(&format!(
        "\nThe charts are in {}{}",
        folder.display(),
        whose(&comparison.traffic)
    ));
    Ok(())
}

/// Charts show one client; which one is only of interest where there are several.
fn whose(traffic: &Traffic) -> String {
    if traffic.clients() < 2 {
        return String::new();
    }
    let client = traffic.busiest();
    match traffic.names.get(client as usize) {
        // A file's bytes are not for the terminal to obey.
        Some(name) => format!(
            "; they show the busiest client, \"{}\"",
            name.escape_debug()
        ),
        None => "; they show the busiest client".to_owned(),
    }
}

/// Told before the runs, which may take long.
fn check_folder(flag: &str, folder: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        folder.is_dir() || !folder.exists(),
        "{flag} {}: it is there already and is no folder",
        folder.display()
    );
    Ok(())
}

fn write_story(folder: &Path) -> anyhow::Result<()> {
    check_folder("--story", folder)?;
    let story = story::tell();
    print(&story.markdown)?;
    let text = story.write(folder).context("cannot write the story")?;
    tell(&format!("\nThe story is in {}", text.display()));
    Ok(())
}

#[cfg(test)]
mod tests;
