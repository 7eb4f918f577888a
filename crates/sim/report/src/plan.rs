//! What was rehearsed, in words: the deployment, the rooms, and what went wrong on purpose.

use crate::chart::number::{counted, grouped, length, percent, since_start};
use anteroom_config::time_text::rfc3339_secs;
use anteroom_sim::scenario::model::{
    FaultKind, FaultPlan, LinkPlace, NodePlace, RoomPlan, Scenario, StorePlace,
};

/// Faults that are told one by one; a rolling restart of a large deployment has thousands.
const FAULTS_MAX: usize = 20;

/// The frame of the rehearsal: when, how long, on what.
pub(super) fn frame(scenario: &Scenario) -> String {
    let nodes: u64 = scenario
        .data_centers
        .iter()
        .map(|data_center| u64::from(data_center.nodes))
        .sum();
    let places = u64::try_from(scenario.data_centers.len()).unwrap_or(u64::MAX);
    format!(
        "{} from {}, on {} in {}, seed {}.",
        capital(&length(scenario.length.0)),
        rfc3339_secs(scenario.starts_at)
            .replace('T', " ")
            .replace('Z', " UTC"),
        counted(nodes, "node", "nodes"),
        counted(places, "data center", "data centers"),
        scenario.seed,
    )
}

/// A room and its crowd.
pub(super) fn room(plan: &RoomPlan) -> String {
    let (limits, behaviour) = (plan.rules.limits, plan.behaviour);
    let patience = behaviour.patience.map_or_else(
        || "nobody gives up waiting".to_owned(),
        |patience| format!("who waits gives up after {} on average", length(patience.0)),
    );
    format!(
        "Room {}: at most {} inside and {} admitted a minute; a visitor stays inside for {} after \
         the last request. Visitors look at {:.1} pages on average, one every {}; {patience}, and \
         {} \
         of those who wait are away when their turn comes.",
        plan.name,
        grouped(limits.total_active_users.into()),
        grouped(limits.new_users_per_minute.into()),
        length(plan.rules.session_duration.0),
        behaviour.pages,
        length(behaviour.think_time.0),
        percent(behaviour.no_shows),
    )
}

/// What goes wrong, one sentence each, by time; many of them end with how many there are more.
pub(super) fn faults(scenario: &Scenario) -> Vec<String> {
    let told = scenario.faults.iter().take(FAULTS_MAX);
    let mut told: Vec<String> = told.map(|plan| fault(scenario, plan)).collect();
    let more = scenario.faults.len().saturating_sub(FAULTS_MAX);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    told
}

fn fault(scenario: &Scenario, plan: &FaultPlan) -> String {
    let at = since_start(plan.at.0);
    format!("{at} into the run: {}", event(scenario, plan.kind))
}

/// A registry: one sentence for each kind of fault.
#[expect(
    clippy::too_many_lines,
    reason = "one arm for each kind of fault, each a sentence"
)]
fn event(scenario: &Scenario, kind: FaultKind) -> String {
    match kind {
        FaultKind::Crash { node, after } => format!(
            "{} crashes, and starts again {} later",
            node_name(scenario, node),
            length(after.0)
        ),
        FaultKind::Restart { node, after } => format!(
            "{} is stopped in good order, and starts again {} later",
            node_name(scenario, node),
            length(after.0)
        ),
        FaultKind::Pause { node, lasts } => format!(
            "{} stands still for {}",
            node_name(scenario, node),
            length(lasts.0)
        ),
        FaultKind::Cut {
            link,
            answers_only,
            lasts,
        } => format!(
            "{} {} for {}",
            link_name(scenario, link),
            if answers_only {
                "loses the answers to what was written"
            } else {
                "is cut"
            },
            length(lasts.0)
        ),
        FaultKind::BadNetwork {
            lost,
            doubled,
            delayed,
            lasts,
        } => format!(
            "for {} the network loses {} of all messages, doubles {} and delays them by up to {}",
            length(lasts.0),
            percent(lost),
            percent(doubled),
            length(delayed.0)
        ),
        FaultKind::StoreDown { store, lasts } => format!(
            "{} does not answer for {}",
            store_name(scenario, store),
            length(lasts.0)
        ),
        FaultKind::StoreWiped { store } => {
            format!("{} comes back empty", store_name(scenario, store))
        }
        FaultKind::StoreLosesWrites { store, last } => format!(
            "{} loses the writes of the last {}",
            store_name(scenario, store),
            length(last.0)
        ),
        FaultKind::StoreClockSteps { store, by_ms } => {
            format!(
                "the clock of {} jumps by {by_ms} ms",
                store_name(scenario, store)
            )
        }
        FaultKind::NodeClockIsOff {
            node,
            by_ms,
            drifts_ppm,
        } => {
            let name = node_name(scenario, node);
            format!("the clock of {name} is off by {by_ms} ms, and drifts by {drifts_ppm} ppm")
        }
        FaultKind::Limits { limits, within } => format!(
            "the operator sets the limits to {} inside and {} admissions a minute; the last node \
             has \
             them {} later",
            grouped(limits.total_active_users.into()),
            grouped(limits.new_users_per_minute.into()),
            length(within.0)
        ),
        FaultKind::Pacing { pacing, within } => format!(
            "the operator turns pacing {}; the last node has it {} later",
            if pacing { "on" } else { "off" },
            length(within.0)
        ),
        FaultKind::SessionDuration { session, within } => format!(
            "the operator sets the session to {}; the last node has it {} later",
            length(session.0),
            length(within.0)
        ),
    }
}

fn place(scenario: &Scenario, data_center: usize) -> String {
    let known = scenario.data_centers.get(data_center);
    known.map_or_else(
        || format!("data center {data_center}"),
        |plan| plan.name.clone(),
    )
}

fn node_name(scenario: &Scenario, node: NodePlace) -> String {
    format!("node {}/{}", place(scenario, node.data_center), node.node)
}

fn store_name(scenario: &Scenario, store: StorePlace) -> String {
    match store {
        StorePlace::Local(data_center) => format!("the store of {}", place(scenario, data_center)),
        StorePlace::World => "the store of the world".to_owned(),
    }
}

fn link_name(scenario: &Scenario, link: LinkPlace) -> String {
    match link {
        LinkPlace::NodeToStore(node) => format!(
            "the link between {} and its store",
            node_name(scenario, node)
        ),
        LinkPlace::ToWorld(data_center) => format!(
            "the link between {} and the world",
            place(scenario, data_center)
        ),
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}
