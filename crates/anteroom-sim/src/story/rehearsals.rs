//! The same argument with a crowd: three rehearsals, each under all four allocations.

use anteroom_core::rules::{AllocationKind, Limits, Rules};
use anteroom_core::time::{Millis, Span};
use anteroom_wire::words;

use super::tell::{push, push_chart};
use crate::outcome::Outcome;
use crate::report::chart::Chart;
use crate::report::charts::charts;
use crate::report::number::{duration, grouped, percent};
use crate::report::variant::Variant;
use crate::run::run;
use crate::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, RatePoint, RoomPlan, Scenario,
};

const KINDS: [AllocationKind; 4] = [
    AllocationKind::Even,
    AllocationKind::Curve,
    AllocationKind::Counters,
    AllocationKind::Leases,
];
/// Small enough to be run with every test, large enough that no node sees a tenth of the crowd.
const DATA_CENTERS: u32 = 20;
const NODES: u32 = 4;
const LIMITS: Limits = Limits {
    total_active_users: 1_200,
    new_users_per_minute: 600,
};
const SESSION: Span = Span::from_secs(60);
const LENGTH: Span = Span::from_secs(480);
/// In the middle of a minute, when everybody believes the room to be empty.
const SPIKE_AT: Span = Span::from_secs(200);
/// 2023-09-11T11:45:00Z.
const START: Millis = Millis(1_694_432_700_000);

/// What was run, and what came of it.
pub(super) struct Rehearsals {
    steady: Vec<Outcome>,
    spike: Vec<Outcome>,
    uniform: Vec<Outcome>,
    /// The charts of the text.
    pub(super) charts: Vec<Chart>,
}

/// How the crowd is spread over data centers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Spread {
    /// The second one has half of the first one's visitors, the third one a third, and so on.
    Uneven,
    /// All alike.
    Uniform,
}

/// Runs all of it.
pub(super) fn rehearse() -> Rehearsals {
    let at = |at: Span, per_second: f64| RatePoint { at, per_second };
    let steady = vec![at(Span::ZERO, 5.0), at(LENGTH, 5.0)];
    let spike = vec![
        at(Span::ZERO, 1.0),
        at(SPIKE_AT, 1.0),
        at(SPIKE_AT, 40.0),
        at(LENGTH, 40.0),
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
        from: Span(from),
        to: Span(to),
    };
    let data_center = |at: u32| DataCenterPlan {
        name: format!("dc{at}"),
        nodes: NODES,
        share: match spread {
            Spread::Uneven => 1.0 / f64::from(at),
            Spread::Uniform => 1.0,
        },
        to_store: ms(1, 3),
        to_world: ms(20, 90),
    };
    Scenario {
        name: name.to_owned(),
        about: String::new(),
        seed: 1,
        starts_at: START,
        length: LENGTH,
        sample_every: Span::from_secs(2),
        compare: KINDS.to_vec(),
        rooms: vec![RoomPlan {
            name: "shop".to_owned(),
            rules: Rules {
                limits: LIMITS,
                session_duration: SESSION,
                ..Rules::default()
            },
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

/// Visitors without whims: what is to be seen is the allocation.
fn behaviour() -> Behaviour {
    Behaviour {
        pages: 4.0,
        think_time: Span::from_secs(20),
        parallel_requests: 0,
        second_tab: 0.0,
        patience: None,
        no_shows: 0.0,
        changes_node: 0.0,
        changes_data_center: 0.0,
        without_cookies: 0.0,
        log_out: 0.0,
        replays: 0.0,
    }
}

impl Rehearsals {
    /// Tells what was run and what came of it.
    pub(super) fn push(&self, text: &mut String) {
        push(
            text,
            format_args!(
                "## With a crowd\n\
                 \n\
                 Worked examples are one thing. Here is the same with visitors: {data_centers} data centers with {nodes} nodes each, up to {seats} visitors inside and {rate}\n\
                 admissions a minute, a session of {session} s. A message takes 1 to 3 ms to the store of the data center and 20 to 90 ms more to the one of the world. The\n\
                 nodes run the gateway's code; crowd, clocks and network are simulated, and the same in all four columns.\n\
                 \n",
                data_centers = DATA_CENTERS,
                nodes = NODES,
                seats = grouped(LIMITS.total_active_users.into()),
                rate = LIMITS.new_users_per_minute,
                session = SESSION.secs_ceil(),
            ),
        );
        text.push_str(
            "**An ordinary day.** 5 visitors a second, half of the admissions and somewhat more than half of the seats. Nobody should have to\n\
             wait. The busiest data center has a good quarter of all visitors, as real ones do.\n\
             \n",
        );
        push_table(text, &self.steady);
        push_chart(text, &self.charts, "steady-waiting");
        text.push_str(
            "**A spike from a quiet moment.** 1 visitor a second, and then, within one moment in the middle of a minute, 40. People have to wait now; the\n\
             questions are whether the limits hold, and whether the room is well filled meanwhile.\n\
             \n",
        );
        push_table(text, &self.spike);
        push_chart(text, &self.charts, "spike-inside");
        push_chart(text, &self.charts, "spike-admissions");
        text.push_str(
            "**The same spike, from everywhere at once.** All data centers get the same number of visitors: the worst case for who hands out more than\n\
             there is.\n\
             \n",
        );
        push_table(text, &self.uniform);
        push_chart(text, &self.charts, "uniform-inside");
        push_chart(text, &self.charts, "uniform-admissions");
    }
}

fn push_table(text: &mut String, outcomes: &[Outcome]) {
    text.push_str(
        "| | most above seats | most above admissions | waited although a slot was free | filled while overloaded | half waited less than | added latency, 99 % |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for outcome in outcomes {
        let figures = &outcome.figures;
        let limits = outcome.limits;
        push(
            text,
            format_args!(
                "| `{}` | {} | {} | {} | {} | {} | {} |\n",
                words::allocation(outcome.allocation),
                above(figures.above_seats, limits.total_active_users),
                above(figures.above_rate, limits.new_users_per_minute),
                percent(figures.queued_although_free),
                figures
                    .fill_while_overloaded
                    .map_or_else(|| "-".to_owned(), percent),
                figures.wait_ms_p50.map_or_else(|| "-".to_owned(), duration),
                duration(figures.added_latency_ms_p99),
            ),
        );
    }
    text.push('\n');
}

/// `never`, or `**14 (7.0 %)**`.
fn above(by: u32, limit: u32) -> String {
    if by == 0 {
        return "never".to_owned();
    }
    let part = percent(f64::from(by) / f64::from(limit.max(1)));
    format!("**{} ({part})**", grouped(by.into()))
}
