//! `[room.NAME]`: limits in the gateway's keys, arrivals, and behaviour of visitors.

use anteroom_config::toml_file::{Duration, Key, Located, Number, Table, Whole, nearest};
use anteroom_config::{Finding, RoomName, read_room_events, read_room_rules};
use anteroom_room::time::DurationMs;

use super::{Frame, arrivals};
use crate::scenario::model::{Behaviour, RoomPlan};

/// Most rooms: they are simulated one by one.
const ROOMS_MAX: usize = 64;

const PAGES: Key<Number> = Key {
    name: "pages",
    kind: Number {
        min: 1.0,
        max: 1_000.0,
    },
    default: Some("4"),
};

const fn time(name: &'static str, min: DurationMs, default: Option<&'static str>) -> Key<Duration> {
    Key {
        name,
        kind: Duration {
            min,
            max: DurationMs::from_secs(86_400),
            bare_unit: "s",
        },
        default,
    }
}

const THINK_TIME: Key<Duration> = time("think_time", DurationMs(100), Some("\"30s\""));
const PATIENCE: Key<Duration> = time("patience", DurationMs::from_secs(1), None);
const PARALLEL_REQUESTS: Key<Whole<u32>> = Key {
    name: "parallel_requests",
    kind: Whole {
        min: 0,
        max: 100,
        note: "",
    },
    default: Some("0"),
};

const fn share(name: &'static str) -> Key<Number> {
    Key {
        name,
        kind: Number { min: 0.0, max: 1.0 },
        default: Some("0"),
    }
}

const SECOND_TAB: Key<Number> = share("second_tab");
const NO_SHOWS: Key<Number> = share("no_shows");
const AWAY: Key<Number> = share("away");
const THROTTLED: Key<Number> = share("throttled");
const CHANGES_NODE: Key<Number> = share("changes_node");
const CHANGES_DATA_CENTER: Key<Number> = share("changes_data_center");
const WITHOUT_COOKIES: Key<Number> = share("without_cookies");
const LOG_OUT: Key<Number> = share("log_out");
const REPLAYS: Key<Number> = share("replays");

/// Reads all rooms.
pub(super) fn read(root: &mut Table<'_>, frame: &Frame<'_>) -> Vec<RoomPlan> {
    let allowed = "at least one table [room.NAME], such as [room.shop]";
    let mistakes = root.notes.count();
    let mut tables = root.named_tables("room", allowed);
    if tables.is_empty() && root.notes.count() == mistakes {
        let location = root.location("room");
        root.notes
            .report(&location, Finding::Missing, allowed, None);
    }
    if tables.len() > ROOMS_MAX {
        let location = root.location("room");
        let found = Finding::Value(format!("{} rooms", tables.len()));
        let allowed = format!("at most {ROOMS_MAX}");
        root.notes.report(&location, found, allowed, None);
        tables.truncate(ROOMS_MAX);
    }
    let (added, typed): (Vec<_>, Vec<_>) = tables
        .into_iter()
        .partition(|(_, element)| root.is_added(element));
    for (Located { value, location }, _) in added {
        // A setting changes a room and cannot create one.
        let known = typed.iter().map(|(name, _)| name.value);
        let hint = nearest(value, known).map(|known| format!("did you mean room.{known}?"));
        let finding = Finding::Remark("there is no such room in the scenario".to_owned());
        root.notes.report(&location, finding, "", hint);
    }
    let mut rooms = Vec::new();
    for (Located { value, location }, element) in typed {
        let name = RoomName::new(value);
        if name.is_none() {
            let finding = Finding::Remark("not the name of a room".to_owned());
            let allowed = "1 to 64 of A-Z a-z 0-9 - _";
            root.notes.report(&location, finding, allowed, None);
        }
        let plan = read_one(root.enter(&element), value, frame);
        rooms.extend(plan.filter(|_| name.is_some()));
    }
    rooms
}

fn read_one(mut table: Table<'_>, name: &str, frame: &Frame<'_>) -> Option<RoomPlan> {
    let rules = read_room_rules(&mut table);
    let events = read_room_events(&mut table, rules.as_ref());
    let arrivals = arrivals::read(&mut table, frame);
    let behaviour = read_behaviour(table.table("visitors"));
    table.finish();
    Some(RoomPlan {
        name: name.to_owned(),
        rules: rules?,
        events: events?,
        arrivals,
        behaviour,
    })
}

fn read_behaviour(mut table: Table<'_>) -> Behaviour {
    let behaviour = Behaviour {
        pages: table.defaulted(&PAGES),
        think_time: table.defaulted(&THINK_TIME),
        parallel_requests: table.defaulted(&PARALLEL_REQUESTS),
        second_tab: table.defaulted(&SECOND_TAB),
        patience: table.optional(&PATIENCE),
        no_shows: table.defaulted(&NO_SHOWS),
        away: table.defaulted(&AWAY),
        throttled: table.defaulted(&THROTTLED),
        changes_node: table.defaulted(&CHANGES_NODE),
        changes_data_center: table.defaulted(&CHANGES_DATA_CENTER),
        without_cookies: table.defaulted(&WITHOUT_COOKIES),
        log_out: table.defaulted(&LOG_OUT),
        replays: table.defaulted(&REPLAYS),
    };
    table.finish();
    behaviour
}
