//! `[[fault]]`: faults and changes by the operator, with their times.

use anteroom_config::toml_file::{Choice, Duration, Key, Number, Switch, Table, Text, Whole};
use anteroom_config::words::NEW_USERS_WINDOWS;
use anteroom_config::{Finding, read_room_limits};
use anteroom_room::rules::NewUsersWindow;
use anteroom_room::time::DurationMs;

mod event;

use super::data_centers::{DATA_CENTER, find_data_center, place, refuse};
use super::kinds::Step;
use super::{Frame, LENGTH_MAX, did_you_mean};
use crate::scenario::model::{FaultKind, FaultPlan, LinkRef, NodeRef, StoreRef};

/// Most faults; a fault of several nodes counts once per node.
const FAULTS_MAX: usize = 10_000;

/// Kind of a fault; each has a function that reads its keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Word {
    Crash,
    Restart,
    Pause,
    Cut,
    BadNetwork,
    StoreDown,
    StoreWiped,
    StoreLosesWrites,
    StoreClockSteps,
    NodeClockIsOff,
    NodeWallClockSteps,
    Event,
    Limits,
    Pacing,
    NewUsersWindow,
    SessionDuration,
}

const KIND: Key<Choice<Word>> = Key {
    name: "kind",
    kind: Choice(&[
        ("crash", Word::Crash),
        ("restart", Word::Restart),
        ("pause", Word::Pause),
        ("cut", Word::Cut),
        ("bad_network", Word::BadNetwork),
        ("store_down", Word::StoreDown),
        ("store_wiped", Word::StoreWiped),
        ("store_loses_writes", Word::StoreLosesWrites),
        ("store_clock_steps", Word::StoreClockSteps),
        ("node_clock_is_off", Word::NodeClockIsOff),
        ("node_wall_clock_steps", Word::NodeWallClockSteps),
        ("event", Word::Event),
        ("limits", Word::Limits),
        ("pacing", Word::Pacing),
        ("new_users_window", Word::NewUsersWindow),
        ("session_duration", Word::SessionDuration),
    ]),
    default: None,
};

const fn time(name: &'static str, default: Option<&'static str>) -> Key<Duration> {
    Key {
        name,
        kind: Duration {
            min: DurationMs::ZERO,
            max: LENGTH_MAX,
            bare_unit: "s",
        },
        default,
    }
}

const AT: Key<Duration> = time("at", None);
const AFTER: Key<Duration> = time("after", None);
const LASTS: Key<Duration> = time("lasts", None);
const LAST: Key<Duration> = time("last", None);
const WITHIN: Key<Duration> = time("within", Some("\"0s\""));
const APART: Key<Duration> = time("apart", Some("\"0s\""));
const DELAYED: Key<Duration> = Key {
    name: "delayed",
    kind: Duration {
        min: DurationMs::ZERO,
        max: DurationMs::from_secs(60),
        bare_unit: "s",
    },
    default: Some("\"0s\""),
};
const SESSION_DURATION: Key<Duration> = Key {
    name: "session_duration",
    kind: Duration {
        min: DurationMs::from_secs(1),
        max: DurationMs::from_secs(86_400),
        bare_unit: "m",
    },
    default: None,
};

const PACING: Key<Switch> = Key {
    name: "pacing",
    kind: Switch,
    default: None,
};

const WINDOW: Key<Choice<NewUsersWindow>> = Key {
    name: "new_users_window",
    kind: Choice(NEW_USERS_WINDOWS),
    default: None,
};

const ANSWERS_ONLY: Key<Switch> = Key {
    name: "replies_only",
    kind: Switch,
    default: Some("false"),
};

const fn share(name: &'static str) -> Key<Number> {
    Key {
        name,
        kind: Number { min: 0.0, max: 1.0 },
        default: Some("0"),
    }
}

const LOST: Key<Number> = share("lost");
const DOUBLED: Key<Number> = share("doubled");
const BY: Key<Step> = Key {
    name: "by",
    kind: Step,
    default: None,
};

/// NTP slews a clock by at most this.
const DRIFTS_PPM: Key<Whole<i32>> = Key {
    name: "drifts_ppm",
    kind: Whole {
        min: -500,
        max: 500,
        note: " (parts per million)",
    },
    default: Some("0"),
};

const NODE: Key<Text<String>> = place(
    "node",
    "a data center and the number of a node in it, such as \"sjc/2\"; \"sjc/*\" for all of them, \
     \"*\" for all nodes",
);
const STORE: Key<Text<String>> = place("store", "the name of a data center, or \"global\"");

/// Reads all faults, in the order of time.
pub(super) fn read(root: &mut Table<'_>, frame: &Frame<'_>) -> Vec<FaultPlan> {
    let elements = root.elements("fault", "tables, each [[fault]]");
    let mut faults = Vec::new();
    for element in elements.iter().take(FAULTS_MAX) {
        let mut table = root.enter(element);
        // The kind decides which keys belong here.
        if let Some(word) = table.required(&KIND) {
            faults.extend(read_one(&mut table, word, frame));
            table.finish();
        }
        if faults.len() > FAULTS_MAX {
            break;
        }
    }
    if elements.len().max(faults.len()) > FAULTS_MAX {
        let location = root.location("fault");
        let found = Finding::Value(format!("more than {FAULTS_MAX}"));
        let allowed = format!("at most {FAULTS_MAX}, each node counted for itself");
        root.notes.report(&location, found, allowed, None);
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

fn read_one(table: &mut Table<'_>, word: Word, frame: &Frame<'_>) -> Vec<FaultPlan> {
    let at = table.required(&AT);
    let kinds = match word {
        Word::Crash
        | Word::Restart
        | Word::Pause
        | Word::NodeClockIsOff
        | Word::NodeWallClockSteps => {
            return read_of_nodes(table, word, at, frame);
        }
        Word::Cut => return read_cut(table, at, frame),
        Word::BadNetwork => read_bad_network(table),
        Word::StoreDown | Word::StoreWiped | Word::StoreLosesWrites | Word::StoreClockSteps => {
            read_of_store(table, word, frame)
        }
        Word::Event => event::read(table, frame),
        Word::Limits => {
            let (limits, within) = (read_room_limits(table), table.defaulted(&WITHIN));
            limits.map(|limits| FaultKind::Limits { limits, within })
        }
        Word::Pacing => {
            let (pacing, within) = (table.required(&PACING), table.defaulted(&WITHIN));
            pacing.map(|pacing| FaultKind::Pacing { pacing, within })
        }
        Word::NewUsersWindow => {
            let (window, within) = (table.required(&WINDOW), table.defaulted(&WITHIN));
            window.map(|window| FaultKind::NewUsersWindow { window, within })
        }
        Word::SessionDuration => {
            let session = table.required(&SESSION_DURATION);
            let within = table.defaulted(&WITHIN);
            session.map(|session| FaultKind::SessionDuration { session, within })
        }
    };
    match (at, kinds) {
        (Some(at), Some(kind)) => vec![FaultPlan { at, kind }],
        _ => Vec::new(),
    }
}

/// Reads a fault of one node, or of several, one after the other.
fn read_of_nodes(
    table: &mut Table<'_>,
    word: Word,
    at: Option<DurationMs>,
    frame: &Frame<'_>,
) -> Vec<FaultPlan> {
    let nodes = match table.required(&NODE) {
        Some(text) => find_nodes(table, &text, frame),
        None => Vec::new(),
    };
    let apart = table.defaulted(&APART);
    let kind = match word {
        Word::Crash => table.required(&AFTER).map(OfNode::Crash),
        Word::Restart => table.required(&AFTER).map(OfNode::Restart),
        Word::Pause => table.required(&LASTS).map(OfNode::Pause),
        Word::NodeWallClockSteps => table.required(&BY).map(OfNode::WallClock),
        _ => {
            let drifts_ppm = table.defaulted(&DRIFTS_PPM);
            let by = table.required(&BY);
            by.map(|by_ms| OfNode::Clock(by_ms, drifts_ppm))
        }
    };
    let (Some(at), Some(kind)) = (at, kind) else {
        return Vec::new();
    };
    let plans = (0..).zip(nodes).map(|(number, node)| FaultPlan {
        at: at + apart.times(number),
        kind: kind.happens_to(node),
    });
    plans.collect()
}

/// Fault of a node that is not yet known.
#[derive(Clone, Copy)]
enum OfNode {
    Crash(DurationMs),
    Restart(DurationMs),
    Pause(DurationMs),
    Clock(i64, i32),
    WallClock(i64),
}

impl OfNode {
    const fn happens_to(self, node: NodeRef) -> FaultKind {
        match self {
            Self::Crash(after) => FaultKind::Crash { node, after },
            Self::Restart(after) => FaultKind::Restart { node, after },
            Self::Pause(lasts) => FaultKind::Pause { node, lasts },
            Self::Clock(by_ms, drifts_ppm) => FaultKind::NodeClockIsOff {
                node,
                by_ms,
                drifts_ppm,
            },
            Self::WallClock(by_ms) => FaultKind::NodeWallClockSteps { node, by_ms },
        }
    }
}

fn read_cut(table: &mut Table<'_>, at: Option<DurationMs>, frame: &Frame<'_>) -> Vec<FaultPlan> {
    let node = table.optional(&NODE);
    let data_center = table.optional(&DATA_CENTER);
    let apart = table.defaulted(&APART);
    let replies_only = table.defaulted(&ANSWERS_ONLY);
    let lasts = table.required(&LASTS);
    let links: Vec<LinkRef> = match (node, data_center) {
        (Some(text), None) => {
            let nodes = find_nodes(table, &text, frame);
            nodes.into_iter().map(LinkRef::NodeToStore).collect()
        }
        (None, Some(name)) => {
            let found = find_data_center(table, &DATA_CENTER, &name, frame);
            found.map(LinkRef::ToGlobal).into_iter().collect()
        }
        _ => {
            let location = table.location("node");
            let finding = Finding::Remark("which link?".to_owned());
            let allowed = "node (to the store of its data center) or data_center (to the global \
                           store), \
                 one of them";
            table.notes.report(&location, finding, allowed, None);
            Vec::new()
        }
    };
    let (Some(at), Some(lasts)) = (at, lasts) else {
        return Vec::new();
    };
    let plans = (0..).zip(links).map(|(number, link)| FaultPlan {
        at: at + apart.times(number),
        kind: FaultKind::Cut {
            link,
            replies_only,
            lasts,
        },
    });
    plans.collect()
}

fn read_bad_network(table: &mut Table<'_>) -> Option<FaultKind> {
    let lost = table.defaulted(&LOST);
    let doubled = table.defaulted(&DOUBLED);
    let delayed = table.defaulted(&DELAYED);
    let lasts = table.required(&LASTS);
    Some(FaultKind::BadNetwork {
        lost,
        doubled,
        delayed,
        lasts: lasts?,
    })
}

fn read_of_store(table: &mut Table<'_>, word: Word, frame: &Frame<'_>) -> Option<FaultKind> {
    let store = table.required(&STORE).and_then(|name| {
        if name == "global" {
            return Some(StoreRef::Global);
        }
        find_data_center(table, &STORE, &name, frame).map(StoreRef::Local)
    });
    match word {
        Word::StoreDown => {
            let lasts = table.required(&LASTS);
            Some(FaultKind::StoreDown {
                store: store?,
                lasts: lasts?,
            })
        }
        Word::StoreLosesWrites => {
            let last = table.required(&LAST);
            Some(FaultKind::StoreLosesWrites {
                store: store?,
                last: last?,
            })
        }
        Word::StoreClockSteps => {
            let by_ms = table.required(&BY);
            Some(FaultKind::StoreClockSteps {
                store: store?,
                by_ms: by_ms?,
            })
        }
        _ => Some(FaultKind::StoreWiped { store: store? }),
    }
}

/// Returns the nodes that `sjc/2`, `sjc/*` or `*` name; nodes are counted from 1.
fn find_nodes(table: &mut Table<'_>, text: &str, frame: &Frame<'_>) -> Vec<NodeRef> {
    let Some(all) = frame.data_centers else {
        return Vec::new();
    };
    let nodes_of = |data_center: usize| {
        let count = usize::try_from(all[data_center].nodes).unwrap_or(0);
        (0..count).map(move |node| NodeRef { data_center, node })
    };
    if text == "*" {
        return (0..all.len()).flat_map(nodes_of).collect();
    }
    let Some((name, number)) = text.rsplit_once('/') else {
        let is_known = matches!(frame.find(text), Some(Ok(_)));
        let hint = is_known.then(|| did_you_mean(&format!("{text}/1")));
        refuse(table, &NODE, text, hint);
        return Vec::new();
    };
    let data_center = match frame.find(name) {
        Some(Ok(index)) => index,
        Some(Err(nearest)) => {
            let hint = nearest.map(|name| did_you_mean(&format!("{name}/{number}")));
            refuse(table, &NODE, text, hint);
            return Vec::new();
        }
        None => return Vec::new(),
    };
    let count = all[data_center].nodes;
    if number == "*" {
        return nodes_of(data_center).collect();
    }
    let number = number.parse::<u32>().ok();
    let number = number.filter(|number| (1..=count).contains(number));
    let Some(number) = number.and_then(|number| usize::try_from(number).ok()) else {
        let hint = format!("{name} has nodes 1 to {count}");
        refuse(table, &NODE, text, Some(hint));
        return Vec::new();
    };
    vec![NodeRef {
        data_center,
        node: number - 1,
    }]
}
