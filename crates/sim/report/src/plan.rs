//! Description of the scenario: the deployment, the rooms, and the planned faults.

use crate::chart::number::{counted, grouped, length, percent, since_start};
use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::rules::NewUsersWindow;
use anteroom_room::time::Timestamp;
use anteroom_sim::scenario::model::{
    EventChange, EventRef, FaultKind, FaultPlan, LinkRef, NodeRef, RoomPlan, Scenario, StoreRef,
};

/// Most faults that are listed; a rolling restart of a large deployment has thousands.
const FAULTS_MAX: usize = 20;

/// Describes time, length and size of the simulation.
pub(super) fn frame(scenario: &Scenario) -> String {
    let nodes: u64 = scenario
        .data_centers
        .iter()
        .map(|data_center| u64::from(data_center.nodes))
        .sum();
    let data_centers = u64::try_from(scenario.data_centers.len()).unwrap_or(u64::MAX);
    format!(
        "{} from {}, on {} in {}, seed {}.",
        capital(&length(scenario.length.0)),
        clock_time(scenario.starts_at),
        counted(nodes, "node", "nodes"),
        counted(data_centers, "data center", "data centers"),
        scenario.seed,
    )
}

/// Returns a moment as date and time of day.
fn clock_time(at: Timestamp) -> String {
    rfc3339_secs(at).replace('T', " ").replace('Z', " UTC")
}

/// Describes a room and its visitors.
pub(super) fn room(plan: &RoomPlan) -> String {
    let (limits, behaviour) = (plan.rules.limits, plan.behaviour);
    let patience = behaviour.patience.map_or_else(
        || "Waiting visitors never give up.".to_owned(),
        |patience| {
            let after = length(patience.0);
            format!("A waiting visitor gives up after {after} on average.")
        },
    );
    format!(
        "Room {}: at most {} active visitors and {} admissions a minute. A session lasts {} after \
         the last request. Visitors look at {:.1} pages on average, one every {}. {} On average {} \
         of waiting visitors leave before their turn.",
        plan.name,
        grouped(limits.total_active_users.into()),
        grouped(limits.new_users_per_minute.into()),
        length(plan.rules.session_duration.0),
        behaviour.pages,
        length(behaviour.think_time.0),
        patience,
        percent(behaviour.no_shows),
    )
}

/// Describes each fault in one sentence, by time; a long list ends with the number of further ones.
pub(super) fn faults(scenario: &Scenario) -> Vec<String> {
    let shown = scenario.faults.iter().take(FAULTS_MAX);
    let mut sentences: Vec<String> = shown.map(|plan| fault(scenario, plan)).collect();
    let more = scenario.faults.len().saturating_sub(FAULTS_MAX);
    if more > 0 {
        sentences.push(format!("and {more} more"));
    }
    sentences
}

fn fault(scenario: &Scenario, plan: &FaultPlan) -> String {
    let at = since_start(plan.at.0);
    format!("{at} into the run: {}", event(scenario, plan.kind))
}

/// Describes a fault. A registry with one sentence for each kind.
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
            "{} drains and stops, and starts again {} later",
            node_name(scenario, node),
            length(after.0)
        ),
        FaultKind::Pause { node, lasts } => format!(
            "{} pauses for {}",
            node_name(scenario, node),
            length(lasts.0)
        ),
        FaultKind::Cut {
            link,
            replies_only,
            lasts,
        } => format!(
            "{} {} for {}",
            link_name(scenario, link),
            if replies_only {
                "loses the replies to writes"
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
            "for {} the network loses {} of all messages, duplicates {}, and delays them by up \
             to {}",
            length(lasts.0),
            percent(lost),
            percent(doubled),
            length(delayed.0)
        ),
        FaultKind::StoreDown { store, lasts } => format!(
            "{} is unavailable for {}",
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
                "the clock of {} steps by {by_ms} ms",
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
        FaultKind::NodeWallClockSteps { node, by_ms } => {
            let name = node_name(scenario, node);
            format!("the wall clock of {name} steps by {by_ms} ms")
        }
        FaultKind::Event {
            event,
            change,
            within,
        } => format!(
            "the operator changes event {}: {}; the last node has it {} later",
            event_name(scenario, event),
            changes(change),
            length(within.0)
        ),
        FaultKind::Limits { limits, within } => format!(
            "the operator sets the limits to {} active visitors and {} admissions a minute; the \
             last node has them {} later",
            grouped(limits.total_active_users.into()),
            grouped(limits.new_users_per_minute.into()),
            length(within.0)
        ),
        FaultKind::Pacing { pacing, within } => format!(
            "the operator turns pacing {}; the last node has it {} later",
            if pacing { "on" } else { "off" },
            length(within.0)
        ),
        FaultKind::NewUsersWindow { window, within } => format!(
            "the operator sets new_users_window to {}; the last node has it {} later",
            match window {
                NewUsersWindow::Minute => "minute",
                NewUsersWindow::Sliding => "sliding",
            },
            length(within.0)
        ),
        FaultKind::SessionDuration { session, within } => format!(
            "the operator sets the session to {}; the last node has it {} later",
            length(session.0),
            length(within.0)
        ),
    }
}

fn event_name(scenario: &Scenario, event: EventRef) -> String {
    let room = scenario.rooms.get(event.room);
    let known = room.and_then(|room| room.events.get(event.event));
    known.map_or_else(
        || format!("{}", event.event),
        |known| known.name.to_string(),
    )
}

fn changes(change: EventChange) -> String {
    let limits = change.limits.map(|limits| {
        format!(
            "{} active visitors, {} admissions a minute",
            grouped(limits.total_active_users.into()),
            grouped(limits.new_users_per_minute.into())
        )
    });
    let end = change
        .ends_at
        .map(|at| format!("the end is at {}", clock_time(at)));
    let suspended = change.is_suspended.map(|is_suspended| {
        if is_suspended {
            "it is suspended"
        } else {
            "it is planned again"
        }
    });
    let all = [limits, end, suspended.map(str::to_owned)];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn data_center_name(scenario: &Scenario, data_center: usize) -> String {
    let known = scenario.data_centers.get(data_center);
    known.map_or_else(
        || format!("data center {data_center}"),
        |plan| plan.name.clone(),
    )
}

fn node_name(scenario: &Scenario, node: NodeRef) -> String {
    let data_center = data_center_name(scenario, node.data_center);
    format!("node {data_center}/{}", node.node)
}

fn store_name(scenario: &Scenario, store: StoreRef) -> String {
    match store {
        StoreRef::Local(data_center) => {
            format!("the store of {}", data_center_name(scenario, data_center))
        }
        StoreRef::Global => "the global store".to_owned(),
    }
}

fn link_name(scenario: &Scenario, link: LinkRef) -> String {
    match link {
        LinkRef::NodeToStore(node) => format!(
            "the link between {} and its store",
            node_name(scenario, node)
        ),
        LinkRef::ToGlobal(data_center) => format!(
            "the link between {} and the global store",
            data_center_name(scenario, data_center)
        ),
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}
