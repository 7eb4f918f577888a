//! `[[room.event]]`: scheduled changes of a room.

use anteroom_room::event::EventTimes;
use anteroom_room::rules::{Limits, QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};

use super::keys::{self, limit};
use super::page;
use crate::checks::Checks;
use crate::duration;
use crate::kind::{Choice, Duration, InvalidValue, Moment, OffSwitch, Switch, Text, Whole};
use crate::model::{EventName, EventStep, EventValues, RoomEvent};
use crate::notes::{Located, Location};
use crate::problem::Finding;
use crate::reader::{Element, Key, Table};
use crate::words::QUEUEING_METHODS;

/// Most events of a room.
const EVENTS_MAX: usize = 100;
/// Most steps of an event.
const STEPS_MAX: usize = 100;
/// Shortest time from start to end.
const LENGTH_MIN: DurationMs = DurationMs::from_secs(60);
/// Shortest time from prequeue to start: every waiting page asks again within it.
const PREQUEUE_MIN: DurationMs = DurationMs::from_secs(300);

const NAME: Key<Text<EventName>> = Key {
    name: "name",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _, other than opening",
        read: |text| EventName::new(text).ok_or(InvalidValue::PLAIN),
    },
    default: None,
};
const DESCRIPTION: Key<Text<String>> = Key {
    name: "description",
    kind: Text {
        allowed: keys::LONG,
        read: keys::long_text,
    },
    default: None,
};
const SUSPENDED: Key<Switch> = keys::switch("suspended", "false");
const PREQUEUE_AT: Key<Moment> = moment("prequeue_start_time");
const STARTS_AT: Key<Moment> = moment("event_start_time");
const ENDS_AT: Key<Moment> = moment("event_end_time");
const SHUFFLE: Key<Switch> = keys::switch("shuffle_at_event_start", "false");
const TOTAL_ACTIVE_USERS: Key<Whole<u32>> = limit("total_active_users");
const NEW_USERS_PER_MINUTE: Key<Whole<u32>> = limit("new_users_per_minute");
const QUEUEING_METHOD: Key<Choice<QueueingMethod>> = Key {
    name: "queueing_method",
    kind: Choice(QUEUEING_METHODS),
    default: None,
};
const SESSION_DURATION: Key<Duration> = Key {
    name: keys::SESSION_DURATION,
    kind: keys::A_SESSION,
    default: None,
};
const DISABLE_SESSION_RENEWAL: Key<OffSwitch> = Key {
    name: "disable_session_renewal",
    kind: OffSwitch,
    default: None,
};
const STEPS: &str = "steps";
const AFTER: Key<Duration> = Key {
    name: "after",
    kind: Duration {
        min: DurationMs::from_secs(1),
        max: DurationMs::from_secs(31 * 86_400),
        bare_unit: "m",
    },
    default: None,
};

const fn moment(name: &'static str) -> Key<Moment> {
    Key {
        name,
        kind: Moment,
        default: None,
    }
}

/// Reads all events of a room; `None` after a mistake in one. `rules` are those of the room.
pub(super) fn read(
    room: &mut Table<'_>,
    rules: Option<&Rules>,
    checks: Checks,
) -> Option<Vec<RoomEvent>> {
    let mistakes = room.notes.problems.len();
    let elements = room.elements("event", "tables, each as [[room.event]]");
    if elements.len() > EVENTS_MAX {
        let location = room.location("event");
        let found = Finding::Value(format!("{} events", elements.len()));
        let allowed = format!("at most {EVENTS_MAX}");
        room.notes.report(&location, found, allowed, None);
    }
    let elements = elements.iter().take(EVENTS_MAX);
    let events: Vec<_> = elements
        .filter_map(|element| read_event(room, element, rules, checks))
        .collect();
    for (number, event) in events.iter().enumerate() {
        check_against(room, event, &events[..number]);
    }
    let events = events.into_iter().map(|event| event.value).collect();
    (room.notes.problems.len() == mistakes).then_some(events)
}

fn read_event<'n>(
    room: &mut Table<'n>,
    element: &Element<'n>,
    rules: Option<&Rules>,
    checks: Checks,
) -> Option<Located<RoomEvent>> {
    let mut table = room.enter(element);
    let name = table.required(&NAME);
    let location = table.location(NAME.name);
    let description = table.optional(&DESCRIPTION).unwrap_or_default();
    let is_suspended = table.defaulted(&SUSPENDED);
    let opens_at = rules.and_then(|rules| rules.opens_at);
    let times = read_times(&mut table, opens_at);
    let is_shuffled = table.defaulted(&SHUFFLE);
    let queueing_method = table.optional(&QUEUEING_METHOD);
    let of_room = rules.map(|rules| rules.queueing_method);
    let has_order = !matches!(
        queueing_method.or(of_room),
        Some(QueueingMethod::Random | QueueingMethod::Reject)
    );
    if is_shuffled && !(table.has(PREQUEUE_AT.name) && has_order) {
        let location = table.location(SHUFFLE.name);
        let found = Finding::Value("true".to_owned());
        let allowed = "only together with prequeue_start_time, and queueing_method \"fifo\" or \
                       \"passthrough\"";
        table.notes.report(&location, found, allowed, None);
    }
    let values = EventValues {
        limits: read_limits(&mut table),
        queueing_method,
        session_duration: table.optional(&SESSION_DURATION),
        session_renewal: table.optional(&DISABLE_SESSION_RENEWAL),
        template: page::read_template(&mut table, checks),
    };
    let steps = read_steps(&mut table, times.as_ref());
    let is_limited = !matches!(
        queueing_method.or(of_room),
        Some(QueueingMethod::Passthrough | QueueingMethod::Reject)
    );
    if !is_limited && (values.limits.is_some() || !steps.is_empty()) {
        let remark = "its limits have no effect: the event only counts visitors, or rejects them; \
                      set queueing_method = \"fifo\" in it";
        let location = table.location(TOTAL_ACTIVE_USERS.name);
        table.notes.warn(&location, remark.to_owned());
    }
    table.finish();
    let value = RoomEvent {
        name: name?,
        description,
        is_suspended,
        times: times?,
        is_shuffled,
        values,
        steps,
    };
    Some(Located { value, location })
}

fn read_times(table: &mut Table<'_>, opens_at: Option<Timestamp>) -> Option<EventTimes> {
    let prequeue_at = table.optional(&PREQUEUE_AT);
    let starts_at = table.required(&STARTS_AT);
    let ends_at = table.optional(&ENDS_AT);
    // A time that could not be read was reported, and is not missing.
    let is_read = |key: &str, time: Option<Timestamp>| time.is_some() || !table.has(key);
    let are_read = is_read(PREQUEUE_AT.name, prequeue_at) && is_read(ENDS_AT.name, ends_at);
    let starts_at = starts_at.filter(|_| are_read)?;
    let mut report = |key: &str, found: String, allowed: &str| {
        let location = table.location(key);
        table
            .notes
            .report(&location, Finding::Value(found), allowed, None);
    };
    if let Some(ends_at) = ends_at.filter(|ends_at| *ends_at < starts_at + LENGTH_MIN) {
        let found = distance(ends_at, starts_at, STARTS_AT.name);
        report(ENDS_AT.name, found, "at least 1m after event_start_time");
    }
    if let Some(at) = prequeue_at.filter(|at| *at + PREQUEUE_MIN > starts_at) {
        let found = distance(at, starts_at, STARTS_AT.name);
        report(
            PREQUEUE_AT.name,
            found,
            "at least 5m before event_start_time",
        );
    }
    let prequeue_at = prequeue_at.unwrap_or(starts_at);
    if let Some(opens_at) = opens_at.filter(|opens_at| prequeue_at < *opens_at) {
        let found = distance(prequeue_at, opens_at, keys::OPENS_AT);
        let key = if prequeue_at < starts_at {
            PREQUEUE_AT.name
        } else {
            STARTS_AT.name
        };
        report(key, found, "an event after the room has opened (opens_at)");
    }
    Some(EventTimes {
        prequeue_at,
        starts_at,
        ends_at,
    })
}

/// Returns how far `at` is from `other`, for a message.
fn distance(at: Timestamp, other: Timestamp, name: &str) -> String {
    if at == other {
        format!("the same time as {name}")
    } else if at > other {
        format!("{} after {name}", duration::text(at.since(other)))
    } else {
        format!("{} before {name}", duration::text(other.since(at)))
    }
}

/// Reads both limits or none.
fn read_limits(table: &mut Table<'_>) -> Option<Limits> {
    let total_active_users = table.optional(&TOTAL_ACTIVE_USERS);
    let new_users_per_minute = table.optional(&NEW_USERS_PER_MINUTE);
    let names = [TOTAL_ACTIVE_USERS.name, NEW_USERS_PER_MINUTE.name];
    for (name, other) in [(names[0], names[1]), (names[1], names[0])] {
        if table.has(name) && !table.has(other) {
            let location = table.location(name);
            let finding = Finding::Remark(format!("found without {other}"));
            table
                .notes
                .report(&location, finding, "both or neither", None);
        }
    }
    Some(Limits {
        total_active_users: total_active_users?,
        new_users_per_minute: new_users_per_minute?,
    })
}

fn read_steps(table: &mut Table<'_>, times: Option<&EventTimes>) -> Vec<EventStep> {
    let elements = table.elements(
        STEPS,
        "a list of tables, such as [{ after = \"10m\", new_users_per_minute = 600 }]",
    );
    if elements.len() > STEPS_MAX {
        let location = table.location(STEPS);
        let found = Finding::Value(format!("{} steps", elements.len()));
        let allowed = format!("at most {STEPS_MAX}");
        table.notes.report(&location, found, allowed, None);
    }
    let mut steps: Vec<EventStep> = Vec::new();
    for element in elements.iter().take(STEPS_MAX) {
        let mut inner = table.enter(element);
        let after = inner.required(&AFTER);
        let total_active_users = inner.optional(&TOTAL_ACTIVE_USERS);
        let new_users_per_minute = inner.optional(&NEW_USERS_PER_MINUTE);
        let names = [TOTAL_ACTIVE_USERS.name, NEW_USERS_PER_MINUTE.name];
        let location = inner.location(AFTER.name);
        if !names.iter().any(|name| inner.has(name)) {
            let finding = Finding::Remark("a step without a limit".to_owned());
            let allowed = "new_users_per_minute, total_active_users or both";
            inner.notes.report(&location, finding, allowed, None);
        }
        inner.finish();
        let Some(after) = after else { continue };
        check_step(table, &location, after, (steps.last(), times));
        steps.push(EventStep {
            after,
            total_active_users,
            new_users_per_minute,
        });
    }
    steps
}

/// Reports a step that is not after the one before it, or not before the end.
fn check_step(
    table: &mut Table<'_>,
    location: &Location,
    after: DurationMs,
    (previous, times): (Option<&EventStep>, Option<&EventTimes>),
) {
    let found = || Finding::Value(duration::text(after));
    if let Some(previous) = previous.filter(|previous| after <= previous.after) {
        let allowed = format!(
            "more than the {} of the step before",
            duration::text(previous.after)
        );
        table.notes.report(location, found(), allowed, None);
    }
    let length = times.and_then(|times| Some(times.ends_at?.since(times.starts_at)));
    if let Some(length) = length.filter(|length| after >= *length) {
        let allowed = format!("less than the {} of the event", duration::text(length));
        table.notes.report(location, found(), allowed, None);
    }
}

/// Reports an event that has the name of an earlier one, or overlaps with it.
fn check_against(
    table: &mut Table<'_>,
    event: &Located<RoomEvent>,
    earlier: &[Located<RoomEvent>],
) {
    for other in earlier {
        let (one, two) = (&event.value, &other.value);
        let line = other.location.line;
        let finding = if one.name == two.name {
            format!("the name {} a second time, after line {line}", one.name)
        } else if !one.is_suspended && !two.is_suspended && one.times.overlaps(&two.times) {
            format!(
                "event {} overlaps with event {} of line {line}",
                one.name, two.name
            )
        } else {
            continue;
        };
        let allowed = if one.name == two.name {
            "each name once"
        } else {
            "one event at a time"
        };
        table
            .notes
            .report(&event.location, Finding::Remark(finding), allowed, None);
        return;
    }
}
