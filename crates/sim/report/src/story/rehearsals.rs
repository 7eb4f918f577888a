//! Simulations of the argument: three scenarios, each under all four allocations.

use crate::chart::Chart;
use crate::chart::number::{duration, grouped, percent};
use anteroom_config::words;
use anteroom_room::rules::{AllocationKind, Limits, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_sim::outcome::Outcome;
use anteroom_sim::run::run;
use anteroom_sim::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, RatePoint, RoomPlan, Scenario,
};

use super::markdown::{push, push_chart};
use crate::charts::charts;
use crate::variant::Variant;

const KINDS: [AllocationKind; 4] = [
    AllocationKind::Even,
    AllocationKind::Curve,
    AllocationKind::Counters,
    AllocationKind::Leases,
];
/// Number of data centers: small enough for every test run, large enough that no node sees a tenth
/// of the visitors.
const DATA_CENTERS: u32 = 10;
const NODES: u32 = 3;
const LIMITS: Limits = Limits {
    total_active_users: 2_000,
    new_users_per_minute: 1_000,
};
const SESSION: DurationMs = DurationMs::from_secs(60);
const LENGTH: DurationMs = DurationMs::from_secs(420);
/// Time before which no visitor comes: gateways start before a sale.
const OPENS_AT: DurationMs = DurationMs::from_secs(20);
/// Time of the spike, in the middle of a minute, when nodes still believe that the room is empty.
const SPIKE_AT: DurationMs = DurationMs::from_secs(200);
/// Visitors per second: 60 % of the admissions.
const CALM: f64 = 10.0;
/// Visitors per second: slightly more than a tenth of the admissions.
const QUIET: f64 = 2.0;
/// Visitors per second: more than three times the admissions.
const RUSH: f64 = 60.0;
/// 2023-09-11T11:45:00Z.
const START: Timestamp = Timestamp(1_694_432_700_000);

/// Runs and their charts.
pub(super) struct Rehearsals {
    steady: Vec<Outcome>,
    spike: Vec<Outcome>,
    uniform: Vec<Outcome>,
    /// Charts of the text.
    pub(super) charts: Vec<Chart>,
}

/// Distribution of visitors over data centers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Spread {
    /// The second one has half of the first one's visitors, the third one a third, and so on.
    Uneven,
    /// All the same.
    Uniform,
}

/// Runs all scenarios.
pub(super) fn rehearse() -> Rehearsals {
    let at = |at: DurationMs, per_second: f64| RatePoint { at, per_second };
    let steady = vec![at(OPENS_AT, CALM), at(LENGTH, CALM)];
    let spike = vec![
        at(OPENS_AT, QUIET),
        at(SPIKE_AT, QUIET),
        at(SPIKE_AT, RUSH),
        at(LENGTH, RUSH),
    ];
    let steady = compare(&scenario("steady", Spread::Uneven, steady));
    let uniform = compare(&scenario("uniform", Spread::Uniform, spike.clone()));
    let spike = compare(&scenario("spike", Spread::Uneven, spike));
    let mut charts = drawn(&steady, "steady", &["waiting"]);
    charts.extend(drawn(&spike, "spike", &["inside", "admissions"]));
    charts.extend(drawn(&uniform, "uniform", &["inside", "admissions"]));
    Rehearsals {
        steady,
        spike,
        uniform,
        charts,
    }
}

fn compare(scenario: &Scenario) -> Vec<Outcome> {
    let outcome = |kind| run(scenario, 0, kind, &mut |_| {});
    scenario.compare.iter().map(|kind| outcome(*kind)).collect()
}

fn drawn(outcomes: &[Outcome], prefix: &str, slugs: &[&str]) -> Vec<Chart> {
    let variants = Variant::all(outcomes);
    let all = variants.iter().flat_map(|variant| charts(variant, prefix));
    all.filter(|chart| {
        let is_wanted = |slug: &&str| chart.file_name == format!("{prefix}-{slug}.svg");
        slugs.iter().any(is_wanted)
    })
    .collect()
}

fn scenario(name: &str, spread: Spread, points: Vec<RatePoint>) -> Scenario {
    let ms = |from, to| Delay {
        from: DurationMs(from),
        to: DurationMs(to),
    };
    let data_center = |at: u32| DataCenterPlan {
        name: format!("dc{at}"),
        nodes: NODES,
        share: match spread {
            Spread::Uneven => 1.0 / f64::from(at),
            Spread::Uniform => 1.0,
        },
        to_store: ms(1, 3),
        to_global: ms(20, 90),
    };
    Scenario {
        name: name.to_owned(),
        about: String::new(),
        seed: 1,
        starts_at: START,
        length: LENGTH,
        sample_every: DurationMs::from_secs(2),
        global_lease: anteroom_room::ledger::LeaseTerms::ROOT.ttl,
        durability: anteroom_room::store::Durability::Unknown,
        compare: KINDS.to_vec(),
        rooms: vec![RoomPlan {
            name: "shop".to_owned(),
            rules: Rules {
                limits: LIMITS,
                session_duration: SESSION,
                // Pacing spreads admissions over the minute, which is another subject.
                pacing: false,
                ..Rules::default()
            },
            events: Vec::new(),
            arrivals: vec![Arrivals {
                data_center: None,
                points,
            }],
            behaviour: behaviour(),
        }],
        data_centers: (1..=DATA_CENTERS).map(data_center).collect(),
        faults: vec![],
    }
}

/// Returns simple visitors, so that only the allocation matters.
fn behaviour() -> Behaviour {
    Behaviour {
        pages: 4.0,
        think_time: DurationMs::from_secs(20),
        parallel_requests: 0,
        second_tab: 0.0,
        patience: None,
        no_shows: 0.0,
        away: 0.0,
        throttled: 0.0,
        changes_node: 0.0,
        changes_data_center: 0.0,
        without_cookies: 0.0,
        log_out: 0.0,
        replays: 0.0,
    }
}

impl Rehearsals {
    /// Describes the runs and their results.
    pub(super) fn push(&self, text: &mut String) {
        push_frame(text);
        push(
            text,
            format_args!(
                "### An ordinary day\n\
                 \n\
                 {CALM} visitors a second are 60 % of the admissions, and somewhat more of the \
                 seats. No visitor should have to wait. The busiest data center has a third of all \
                 visitors, the next one half as many, and so on.\n\
                 \n"
            ),
        );
        push_table(text, &self.steady);
        push_chart(text, &self.charts, "steady-waiting");
        text.push_str(
            "`even` makes visitors wait all the time although there is room. Busy nodes use up \
             their part within a minute, while others keep theirs.\n\
             \n",
        );
        push(
            text,
            format_args!(
                "### A spike from a quiet moment\n\
                 \n\
                 {QUIET} visitors a second come, and then, suddenly and in the middle of a minute, \
                 {RUSH}. Now visitors have to wait. The questions are whether the limits hold, and \
                 whether the room is well filled meanwhile. An empty seat is a visitor who waits \
                 although there is room.\n\
                 \n"
            ),
        );
        push_table(text, &self.spike);
        push_chart(text, &self.charts, "spike-inside");
        push_chart(text, &self.charts, "spike-admissions");
        text.push_str(
            "`curve` admits too many within the minute of the spike, as in the example above. \
             `even` and `counters` leave seats empty. With `even` these are at nodes with fewer \
             visitors. With `counters` a seat that becomes free has to wait for the next minute. \
             `leases` uses both. `counters` can also exceed a limit, because its statistics are \
             old. They lack the last admissions when the slots of a minute are counted.\n\
             \n\
             ### The same spike, from everywhere at once\n\
             \n\
             All data centers get the same number of visitors. This is the best case for `even`, \
             and the worst one for an allocation that gives out more than there is.\n\
             \n",
        );
        push_table(text, &self.uniform);
        push_chart(text, &self.charts, "uniform-inside");
        push_chart(text, &self.charts, "uniform-admissions");
        push_cost(text);
    }
}

fn push_frame(text: &mut String) {
    push(
        text,
        format_args!(
            "## With simulated visitors\n\
             \n\
             Here is the same with simulated visitors, in {data_centers} data centers with {nodes} \
             nodes each. The limits are {seats} active visitors and {rate} admissions a minute. A \
             visitor looks at {pages} pages on average, one every {think} s, and is active for \
             {session} s after the last one. A message takes 1 to 3 ms to the store of the data \
             center, and 20 to 90 ms more to the global store. The nodes run the gateway's code. \
             Visitors, clocks and network are simulated. Each table compares the same visitors \
             under the four allocations.\n\
             \n\
             How to read the tables:\n\
             \n\
             - *Above* is the largest excess over a limit.\n\
             - *First in line though free* is the share of new visitors who were queued although \
             no earlier visitor waited and a slot was free. A slot is a seat and an admission at \
             some node or store.\n\
             - *Waited while a slot was free* is the share of all new visitors who waited while a \
             slot was free. Behind earlier visitors that is no fault: the slot is meant for them, \
             and they take it with their next request.\n\
             - *Filled* is how much of the limit that binds was used while visitors waited.\n\
             - *Added latency* is the time that a new visitor waits for the decision itself.\n\
             \n",
            data_centers = DATA_CENTERS,
            nodes = NODES,
            seats = grouped(LIMITS.total_active_users.into()),
            rate = grouped(LIMITS.new_users_per_minute.into()),
            pages = behaviour().pages,
            think = behaviour().think_time.secs_ceil(),
            session = SESSION.secs_ceil(),
        ),
    );
}

fn push_cost(text: &mut String) {
    text.push_str(
        "What does `leases` cost? A new visitor waits for nothing where its node has a slot. Where \
         it has none, the visitor waits for a round trip to the data center. If the data center \
         has none either, it waits for one to the root. On a calm day nodes return idle slots, so \
         that a node rarely has one when a visitor comes, and the short trip is usual. No visitor \
         waits longer than a second for a decision. When all stores fail, admissions stop as soon \
         as the leases expire, and active visitors stay.\n\
         \n\
         These are small simulations, made to fit into a test, with one set of visitors and one \
         seed. Look at the size of a difference, not at its last digit.\n\
         \n",
    );
}

fn push_table(text: &mut String, outcomes: &[Outcome]) {
    text.push_str(
        "| | above the seats | above the admissions | first in line though free | waited \
         while a slot was free | filled | \
         half waited less than | added latency: half, 99 % |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for outcome in outcomes {
        let stats = &outcome.stats;
        let limits = outcome.limits;
        push(
            text,
            format_args!(
                "| `{}` | {} | {} | {} | {} | {} | {} | {}, {} |\n",
                words::allocation(outcome.allocation),
                above(stats.above_seats, limits.total_active_users),
                above(stats.above_rate, limits.new_users_per_minute),
                percent(stats.queued_although_free_and_first),
                percent(stats.queued_although_free),
                stats
                    .fill_while_overloaded
                    .map_or_else(|| "-".to_owned(), percent),
                stats.wait_ms_p50.map_or_else(|| "-".to_owned(), duration),
                duration(stats.added_latency_ms_p50),
                duration(stats.added_latency_ms_p99),
            ),
        );
    }
    text.push('\n');
}

/// Formats an excess: `never`, or `**14 (7.0 %)**`.
fn above(by: u32, limit: u32) -> String {
    if by == 0 {
        return "never".to_owned();
    }
    let part = percent(f64::from(by) / f64::from(limit.max(1)));
    format!("**{} ({part})**", grouped(by.into()))
}
