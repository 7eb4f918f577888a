//! `[[room]]`: one room, as far as it can be checked without the rest of the file.

use anteroom_room::rules::{AllocationKind, Limits, NewUsersWindow, QueueingMethod, Rules};

use super::checks::Checks;
use super::duration;
use super::model::{
    BypassRule, CookieSettings, Host, OriginCommands, RoomConfig, RoomEvent, RoomId, RoomName,
    RoomOrigins, Route, SameSite, Secure,
};
use super::notes::{Located, Location};
use super::origins;
use super::path;
use super::problem::{Finding, Owner};
use super::reader::Table;
use super::words;

mod accent;
mod event;
pub(super) mod keys;
mod page;
mod row;

pub use accent::Accent;
use keys::{
    BYPASS, COOKIE_SUFFIX, ENABLED_ORIGIN_COMMANDS, HOST, ID, NAME, PATH, SAME_SITE, SECURE,
};
use row::FileRow;

/// Most bypass rules of a room: each is evaluated for every request.
const BYPASS_RULES_MAX: usize = 64;
/// Most routes of a room besides its own.
const ADDITIONAL_ROUTES_MAX: usize = 100;

/// Key of the operator's own waiting page.
pub(super) const CUSTOM_PAGE: &str = keys::CUSTOM_PAGE_HTML.name;

/// A room as far as it could be read. Parts without mistakes are there even if others have some,
/// so that clashes between rooms are found in the same run.
pub(super) struct RoomRead {
    pub(super) name: Option<Located<RoomName>>,
    /// Id; that of the name if none was typed.
    pub(super) id: Option<Located<RoomId>>,
    pub(super) routes: Vec<Located<Route>>,
    pub(super) cookie: Located<CookieSettings>,
    /// Place for messages about the site of a room without origins of its own; `None` if it needs
    /// none.
    pub(super) needs_site: Option<Location>,
    /// `None` after a mistake in a required key.
    pub(super) config: Option<RoomConfig>,
}

/// Reads one `[[room]]`. In a file with sites, it may leave its origins out.
pub(super) fn read(mut table: Table<'_>, checks: Checks, has_sites: bool) -> RoomRead {
    let name = table.required(&NAME);
    if let Some(name) = &name {
        table.name_owner(Owner::Room(name.to_string()));
    }
    let name = name.map(|value| Located {
        value,
        location: table.location(NAME.name),
    });
    let id = read_id(&mut table, name.as_ref());
    let routes = read_routes(&mut table);
    let cookie = read_cookie(&mut table);
    let rules = read_room_rules(&mut table);
    if let Some(rules) = &rules {
        warn_about_copies(&mut table, rules);
    }
    let needs_site = has_sites && !origins::are_in(&table);
    let needs_site = needs_site.then(|| table.location(NAME.name));
    let origins = if needs_site.is_some() {
        origins::leave_out(&mut table);
        Some(RoomConfig::unread().origins)
    } else {
        origins::read(&mut table).map(RoomOrigins::Own)
    };
    let mut config = RoomConfig::unread();
    // All of them have defaults, so none is missing.
    let _ = read_rows(keys::ANSWERS, &mut table, &mut config);
    let _ = read_rows(keys::FIXED, &mut table, &mut config);
    config.page.template = page::read_template(&mut table, checks);
    page::read_look(&mut table, &mut config.page);
    config.origin_commands = read_origin_commands(&mut table);
    config.bypass = read_bypass(&mut table, checks);
    let events = event::read(&mut table, rules.as_ref(), checks);
    table.finish();

    let config = match (&name, &id, origins, rules) {
        (Some(name), Some(id), Some(origins), Some(rules)) => Some(RoomConfig {
            events: events.unwrap_or_default(),
            id: id.value.clone(),
            name: name.value.clone(),
            routes: routes.iter().map(|route| route.value.clone()).collect(),
            origins,
            rules,
            cookie: cookie.value.clone(),
            ..config
        }),
        _ => None,
    };
    RoomRead {
        name,
        id,
        routes,
        cookie,
        needs_site,
        config,
    }
}

/// Reads the id, by which a room keeps its visitors under another name.
fn read_id(table: &mut Table<'_>, name: Option<&Located<RoomName>>) -> Option<Located<RoomId>> {
    if let Some(value) = table.optional(&ID) {
        let location = table.location(ID.name);
        return Some(Located { value, location });
    }
    // An id that could not be read was reported, and is not missing.
    let name = name.filter(|_| !table.has(ID.name))?;
    Some(Located {
        value: RoomId::of_name(&name.value),
        location: name.location.clone(),
    })
}

fn read_routes(table: &mut Table<'_>) -> Vec<Located<Route>> {
    let mut routes = Vec::from_iter(read_route(table));
    let elements = table.elements(
        "additional_routes",
        "a list of tables, such as [{ host = \"www.example.com\", path = \"/shop\" }]",
    );
    if elements.len() > ADDITIONAL_ROUTES_MAX {
        let location = table.location("additional_routes");
        let found = Finding::Value(format!("{} routes", elements.len()));
        let allowed = format!("at most {ADDITIONAL_ROUTES_MAX}");
        table.notes.report(&location, found, allowed, None);
    }
    for element in elements.iter().take(ADDITIONAL_ROUTES_MAX) {
        let mut inner = table.enter(element);
        routes.extend(read_route(&mut inner));
        inner.finish();
    }
    routes
}

/// Reads a route; `None` if it has a mistake, so that a wrong host does not clash as "any host".
pub(super) fn read_route(table: &mut Table<'_>) -> Option<Located<Route>> {
    let mistakes = table.notes.problems.len();
    let value = Route {
        host: table.optional(&HOST).unwrap_or(Host::Any),
        path: table.defaulted(&PATH),
    };
    let path = table.typed(PATH.name).unwrap_or_default();
    if path::has_dot_segments(path) {
        let location = table.location(PATH.name);
        let taken = &value.path;
        let remark = format!("{path:?} has dot segments: it covers {taken:?}; write that instead");
        table.notes.warn(&location, remark);
    }
    let typed = [PATH.name, HOST.name]
        .into_iter()
        .find(|name| table.has(name));
    (table.notes.problems.len() == mistakes).then(|| Located {
        value,
        location: table.location(typed.unwrap_or(PATH.name)),
    })
}

/// Reads a room's two limits; `None` after a mistake in one.
pub fn read_room_limits(table: &mut Table<'_>) -> Option<Limits> {
    let mut config = RoomConfig::unread();
    read_rows(keys::LIMITS, table, &mut config)?;
    Some(config.rules.limits)
}

/// Reads the rules of admission and of the queue; `None` after a mistake in a limit.
pub fn read_room_rules(table: &mut Table<'_>) -> Option<Rules> {
    let mut config = RoomConfig::unread();
    let limits = read_rows(keys::LIMITS, table, &mut config);
    let others = read_rows(keys::RULES, table, &mut config);
    check_draw(table, &mut config.rules);
    check_window(table, &mut config.rules);
    limits.and(others).map(|()| config.rules)
}

/// Reads the events of a room with these rules, if they could be read; `None` after a mistake in
/// one.
pub fn read_room_events(table: &mut Table<'_>, rules: Option<&Rules>) -> Option<Vec<RoomEvent>> {
    event::read(table, rules, Checks::default())
}

/// Reads each key of a table of settings; `None` after a mistake in a required one.
fn read_rows<R: FileRow + ?Sized>(
    rows: &[&R],
    table: &mut Table<'_>,
    room: &mut RoomConfig,
) -> Option<()> {
    let mut whole = Some(());
    for row in rows {
        whole = row.read(table, room).and(whole);
    }
    whole
}

/// Reports a draw without an opening time, or without an order of arrival.
pub(super) fn check_draw(table: &mut Table<'_>, rules: &mut Rules) {
    // An opening time that could not be read was reported, and is not missing.
    let has_opening = rules.opens_at.is_some() || table.has(keys::OPENS_AT);
    if !rules.draw || (has_opening && rules.queueing_method == QueueingMethod::Fifo) {
        return;
    }
    let location = table.location(keys::DRAW);
    table.notes.report(
        &location,
        Finding::Value("true".to_owned()),
        "only together with opens_at and queueing_method \"fifo\"",
        None,
    );
    // Without an opening time, nothing could be drawn.
    rules.draw = false;
}

/// Reports a sliding window with an allocation that cannot hold it: nodes count alone there, or by
/// the calendar minute.
pub(super) fn check_window(table: &mut Table<'_>, rules: &mut Rules) {
    let is_sliding = rules.new_users_window == NewUsersWindow::Sliding;
    if !is_sliding || rules.allocation == AllocationKind::Leases {
        return;
    }
    let location = table.location(keys::NEW_USERS_WINDOW);
    let allocation = words::allocation(rules.allocation);
    table.notes.report(
        &location,
        Finding::Value(format!("\"sliding\" with allocation \"{allocation}\"")),
        "\"minute\", or \"sliding\" with allocation \"leases\"",
        None,
    );
    rules.new_users_window = NewUsersWindow::Minute;
}

/// Warns if a waiting ticket outlives a session. Nothing tells a copy of it from a visitor who
/// comes back late.
fn warn_about_copies(table: &mut Table<'_>, rules: &Rules) {
    let has_queue = matches!(
        rules.queueing_method,
        QueueingMethod::Fifo | QueueingMethod::Random
    );
    if !has_queue || rules.position_grace <= rules.session_duration {
        return;
    }
    let typed = [keys::POSITION_GRACE, keys::SESSION_DURATION]
        .into_iter()
        .find(|name| table.has(name));
    let location = table.location(typed.unwrap_or(keys::SESSION_DURATION));
    let grace = duration::text(rules.position_grace);
    let session = duration::text(rules.session_duration);
    let remark = format!(
        "a position is kept for {grace}, longer than a session of {session}: who copies the \
         waiting ticket may enter twice; to avoid that, set at most \"{session}\""
    );
    table.notes.warn(&location, remark);
}

fn read_cookie(table: &mut Table<'_>) -> Located<CookieSettings> {
    let suffix = table.optional(&COOKIE_SUFFIX);
    let location = table.location(COOKIE_SUFFIX.name);
    let mut attributes = table.table("cookie_attributes");
    let same_site = attributes.defaulted(&SAME_SITE);
    let secure = attributes.defaulted(&SECURE);
    if same_site == SameSite::None && secure == Secure::Never {
        let location = attributes.location(SECURE.name);
        attributes.notes.report(
            &location,
            Finding::Value("\"never\" together with samesite \"none\"".to_owned()),
            "\"auto\" or \"always\" with samesite \"none\"",
            Some("browsers drop such a cookie, so no visitor would be admitted".to_owned()),
        );
    }
    attributes.finish();
    let value = CookieSettings {
        suffix,
        same_site,
        secure,
    };
    Located { value, location }
}

fn read_origin_commands(table: &mut Table<'_>) -> OriginCommands {
    let Some(commands) = table.list(&ENABLED_ORIGIN_COMMANDS) else {
        return OriginCommands { revoke: true };
    };
    for Located { location, .. } in commands.iter().skip(1) {
        let finding = Finding::Remark("the same command a second time".to_owned());
        table.notes.report(location, finding, "", None);
    }
    OriginCommands {
        revoke: !commands.is_empty(),
    }
}

fn read_bypass(table: &mut Table<'_>, checks: Checks) -> Vec<BypassRule> {
    let rules = table.list(&BYPASS);
    if !table.has(BYPASS.name) {
        let location = table.location(BYPASS.name);
        let (set, none) = if table.notes.is_flags() {
            ("--bypass 'path.startsWith(\"/webhooks/\")'", "")
        } else {
            (
                "bypass = ['path.startsWith(\"/webhooks/\")']",
                "; write bypass = [] if there are none",
            )
        };
        table.notes.warn(
            &location,
            format!(
                "no rule: payment webhooks, health checks and monitoring carry no ticket and will \
                 be queued; let them pass with a rule such as {set}{none}"
            ),
        );
    }
    let rules = rules.unwrap_or_default();
    if let Some(first_too_many) = rules.get(BYPASS_RULES_MAX) {
        let found = Finding::Value(format!("{} rules", rules.len()));
        let allowed = format!("at most {BYPASS_RULES_MAX}");
        let location = first_too_many.location.clone();
        table.notes.report(&location, found, allowed, None);
    }
    let rules: Vec<_> = rules
        .into_iter()
        .map(|Located { value, location }| {
            let line = location.line;
            let rule = BypassRule {
                expression: value,
                line,
            };
            (rule, location)
        })
        .collect();
    // Rules beyond the maximum are reported anyway, and checking them may be slow.
    for (rule, location) in rules.iter().take(BYPASS_RULES_MAX) {
        for mistake in (checks.bypass)(rule) {
            let finding = Finding::Remark(mistake);
            table.notes.report(location, finding, "", None);
        }
        if let Some(remark) = (checks.bypass_warning)(rule) {
            table.notes.warn(location, remark);
        }
    }
    rules.into_iter().map(|(rule, _)| rule).collect()
}
