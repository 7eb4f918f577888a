//! `[[room]]`: one room, as far as it can be judged alone.

use anteroom_room::rules::{Limits, QueueingMethod, Rules};

use super::checks::Checks;
use super::model::{
    BypassRule, CookieSettings, Host, OriginCommands, RoomConfig, RoomName, Route, SameSite, Secure,
};
use super::notes::Placed;
use super::path;
use super::problem::{Finding, Owner};
use super::reader::Table;

pub(super) mod keys;
mod origins;
mod page;

use keys::{
    ALLOCATION, ASK_AGAIN, BYPASS, COOKIE_SUFFIX, CURVE_FACTOR, DISABLE_SESSION_RENEWAL, DRAW,
    ENABLED_ORIGIN_COMMANDS, HOST, JSON_RESPONSE_ENABLED, MAX_ADDRESSES_PER_TICKET, NAME,
    NEW_USERS_PER_MINUTE, NON_NAVIGATION_STATUS_CODE, OPENS_AT, PACING, PATH, PLACE_GRACE,
    QUEUE_ALL, QUEUEING_METHOD, QUEUEING_STATUS_CODE, SAME_SITE, SEAT, SECURE, SESSION_DURATION,
    STORE_FAILURE, SUSPENDED, TOTAL_ACTIVE_USERS,
};

/// Most bypass rules of a room: each is evaluated for every request.
const BYPASS_RULES_MAX: usize = 64;
/// Most routes of a room besides its own.
const ADDITIONAL_ROUTES_MAX: usize = 100;

/// A room as far as it could be read; the parts outlive mistakes elsewhere in the room, so that
/// clashes between rooms are found in the same run.
pub(super) struct RoomRead {
    pub(super) name: Option<Placed<RoomName>>,
    pub(super) routes: Vec<Placed<Route>>,
    pub(super) cookie: Placed<CookieSettings>,
    /// `None` after a mistake in a required key.
    pub(super) config: Option<RoomConfig>,
}

/// Reads one `[[room]]`.
pub(super) fn read(mut table: Table<'_>, checks: Checks) -> RoomRead {
    let name = table.required(&NAME);
    if let Some(name) = &name {
        table.name_owner(Owner::Room(name.to_string()));
    }
    let name = name.map(|value| Placed {
        value,
        spot: table.spot(NAME.name),
    });
    let routes = read_routes(&mut table);
    let cookie = read_cookie(&mut table);
    let rules = read_rules(&mut table);
    let origins = origins::read(&mut table);
    let suspended = table.defaulted(&SUSPENDED);
    let json_response_enabled = table.defaulted(&JSON_RESPONSE_ENABLED);
    let page = page::read(&mut table, checks);
    let queueing_status_code = table.defaulted(&QUEUEING_STATUS_CODE);
    let non_navigation_status_code = table.defaulted(&NON_NAVIGATION_STATUS_CODE);
    let max_addresses_per_ticket = table.optional(&MAX_ADDRESSES_PER_TICKET);
    let origin_commands = read_origin_commands(&mut table);
    let bypass = read_bypass(&mut table, checks);
    table.finish();

    let config = match (&name, origins, rules) {
        (Some(name), Some(origins), Some(rules)) => Some(RoomConfig {
            name: name.value.clone(),
            routes: routes.iter().map(|route| route.value.clone()).collect(),
            origins,
            rules,
            suspended,
            json_response_enabled,
            page,
            queueing_status_code,
            non_navigation_status_code,
            max_addresses_per_ticket,
            cookie: cookie.value.clone(),
            origin_commands,
            bypass,
        }),
        _ => None,
    };
    RoomRead {
        name,
        routes,
        cookie,
        config,
    }
}

fn read_routes(table: &mut Table<'_>) -> Vec<Placed<Route>> {
    let mut routes = Vec::from_iter(read_route(table));
    let elements = table.elements(
        "additional_routes",
        "a list of tables, such as [{ host = \"www.example.com\", path = \"/shop\" }]",
    );
    if elements.len() > ADDITIONAL_ROUTES_MAX {
        let spot = table.spot("additional_routes");
        let found = Finding::Value(format!("{} routes", elements.len()));
        let allowed = format!("at most {ADDITIONAL_ROUTES_MAX}");
        table.notes.refuse(&spot, found, allowed, None);
    }
    for element in elements.iter().take(ADDITIONAL_ROUTES_MAX) {
        let mut inner = table.enter(element);
        routes.extend(read_route(&mut inner));
        inner.finish();
    }
    routes
}

/// A route; `None` after a mistake in it, so that a wrong host does not clash as "any host".
pub(super) fn read_route(table: &mut Table<'_>) -> Option<Placed<Route>> {
    let mistakes = table.notes.problems.len();
    let value = Route {
        host: table.optional(&HOST).unwrap_or(Host::Any),
        path: table.defaulted(&PATH),
    };
    let path = table.typed(PATH.name).unwrap_or_default();
    if path::has_dot_segments(path) {
        let spot = table.spot(PATH.name);
        let taken = &value.path;
        let remark =
            format!("{path:?} has dot segments: it covers {taken:?}, which is better typed");
        table.notes.warn(&spot, remark);
    }
    let typed = [PATH.name, HOST.name]
        .into_iter()
        .find(|name| table.has(name));
    (table.notes.problems.len() == mistakes).then(|| Placed {
        value,
        spot: table.spot(typed.unwrap_or(PATH.name)),
    })
}

/// Reads a room's two ceilings; `None` after a mistake in one.
pub fn read_limits(table: &mut Table<'_>) -> Option<Limits> {
    let total_active_users = table.required(&TOTAL_ACTIVE_USERS);
    let new_users_per_minute = table.required(&NEW_USERS_PER_MINUTE);
    Some(Limits {
        total_active_users: total_active_users?,
        new_users_per_minute: new_users_per_minute?,
    })
}

/// Reads what decides who goes in and who waits; `None` after a mistake in a limit.
pub fn read_rules(table: &mut Table<'_>) -> Option<Rules> {
    let limits = read_limits(table);
    let session_duration = table.defaulted(&SESSION_DURATION);
    let session_renewal = !table.defaulted(&DISABLE_SESSION_RENEWAL);
    let queueing_method = table.defaulted(&QUEUEING_METHOD);
    let queue_all = table.defaulted(&QUEUE_ALL);
    let opens_at = table.optional(&OPENS_AT);
    let draw = table.defaulted(&DRAW);
    if !may_draw(draw, table.has(OPENS_AT.name), queueing_method) {
        refuse_draw(table);
    }
    let allocation = table.defaulted(&ALLOCATION);
    let curve_factor = table.defaulted(&CURVE_FACTOR);
    let pacing = table.defaulted(&PACING);
    let seat_needs_cookie = table.defaulted(&SEAT);
    let place_grace = table.defaulted(&PLACE_GRACE);
    let ask_again = table.optional(&ASK_AGAIN);
    let on_store_failure = table.defaulted(&STORE_FAILURE);
    Some(Rules {
        limits: limits?,
        session_duration,
        session_renewal,
        queueing_method,
        queue_all,
        opens_at,
        draw,
        allocation,
        curve_factor,
        pacing,
        seat_needs_cookie,
        place_grace,
        ask_again,
        on_store_failure,
    })
}

/// A draw is held at an opening, and for an order of arrival.
pub(super) fn may_draw(draw: bool, has_opening: bool, method: QueueingMethod) -> bool {
    !draw || (has_opening && method == QueueingMethod::Fifo)
}

pub(super) fn refuse_draw(table: &mut Table<'_>) {
    let spot = table.spot(DRAW.name);
    table.notes.refuse(
        &spot,
        Finding::Value("true".to_owned()),
        "only together with opens_at and queueing_method \"fifo\"",
        None,
    );
}

fn read_cookie(table: &mut Table<'_>) -> Placed<CookieSettings> {
    let suffix = table.optional(&COOKIE_SUFFIX);
    let spot = table.spot(COOKIE_SUFFIX.name);
    let mut attributes = table.table("cookie_attributes");
    let same_site = attributes.defaulted(&SAME_SITE);
    let secure = attributes.defaulted(&SECURE);
    if same_site == SameSite::None && secure == Secure::Never {
        let spot = attributes.spot(SECURE.name);
        attributes.notes.refuse(
            &spot,
            Finding::Value("\"never\" together with samesite \"none\"".to_owned()),
            "\"auto\" or \"always\" with samesite \"none\"",
            Some("browsers drop such a cookie, so nobody would ever get in".to_owned()),
        );
    }
    attributes.finish();
    let value = CookieSettings {
        suffix,
        same_site,
        secure,
    };
    Placed { value, spot }
}

fn read_origin_commands(table: &mut Table<'_>) -> OriginCommands {
    let Some(commands) = table.list(&ENABLED_ORIGIN_COMMANDS) else {
        return OriginCommands { revoke: true };
    };
    for Placed { spot, .. } in commands.iter().skip(1) {
        let finding = Finding::Remark("the same command again".to_owned());
        table.notes.refuse(spot, finding, "", None);
    }
    OriginCommands {
        revoke: !commands.is_empty(),
    }
}

fn read_bypass(table: &mut Table<'_>, checks: Checks) -> Vec<BypassRule> {
    let rules = table.list(&BYPASS);
    if !table.has(BYPASS.name) {
        let spot = table.spot(BYPASS.name);
        let (set, none) = if table.notes.is_flags() {
            ("--bypass 'path.startsWith(\"/webhooks/\")'", "")
        } else {
            (
                "bypass = ['path.startsWith(\"/webhooks/\")']",
                "; bypass = [] says that there are none",
            )
        };
        table.notes.warn(
            &spot,
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
        let spot = first_too_many.spot.clone();
        table.notes.refuse(&spot, found, allowed, None);
    }
    let rules: Vec<_> = rules
        .into_iter()
        .map(|Placed { value, spot }| {
            let line = spot.line;
            let rule = BypassRule {
                expression: value,
                line,
            };
            (rule, spot)
        })
        .collect();
    // Rules beyond the limit are refused anyway, and reading them may cost.
    for (rule, spot) in rules.iter().take(BYPASS_RULES_MAX) {
        for mistake in (checks.bypass)(rule) {
            let finding = Finding::Remark(mistake);
            table.notes.refuse(spot, finding, "", None);
        }
        if let Some(remark) = (checks.bypass_remark)(rule) {
            table.notes.warn(spot, remark);
        }
    }
    rules.into_iter().map(|(rule, _)| rule).collect()
}
