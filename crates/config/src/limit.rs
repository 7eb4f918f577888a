//! `[[limit]]`: one rate limit, as far as it can be checked without the rest of the file.

use std::num::NonZeroU32;

use anteroom_limit::policy::Policy;
use anteroom_limit::registry::{AlgorithmKind, Early};
use anteroom_room::time::DurationMs;

use super::keys::time_key;
use super::kind::{Choice, Duration, InvalidValue, Switch, Text, Whole};
use super::limit_stores::LimitStore;
use super::model::{
    ClientKey, KeyPart, LegacyReset, LimitConfig, LimitHeaders, LimitName, LimitRoute, OnLimit,
};
use super::need::Need;
use super::notes::{Located, Location};
use super::problem::{Finding, Owner};
use super::reader::{Key, Table};

pub(crate) mod client_key;
mod keys;
mod live;
mod needs;
mod overrides;
mod policy;
mod routes;
mod store;

use client_key::KEY;
use keys::{LIMIT, whole};
pub use live::policy_values;
pub(crate) use needs::JWT;
pub(crate) use policy::Settings;
use store::STORE;

const NAME: Key<Text<LimitName>> = Key {
    name: "name",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _",
        read: |text| LimitName::new(text).ok_or(InvalidValue::PLAIN),
    },
    default: None,
};
const COST: Key<Whole<u32>> = whole("cost", 1, 1_000_000, Some("1"));

/// Action on a request that is over its limit, without its settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OnLimitKind {
    Reject,
    Delay,
    Wait,
}

impl OnLimitKind {
    /// Returns the word of the config file.
    const fn word(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Delay => "delay",
            Self::Wait => "wait",
        }
    }
}

const ON_LIMIT: Key<Choice<OnLimitKind>> = Key {
    name: "on_limit",
    kind: Choice(&[
        (OnLimitKind::Reject.word(), OnLimitKind::Reject),
        (OnLimitKind::Delay.word(), OnLimitKind::Delay),
        (OnLimitKind::Wait.word(), OnLimitKind::Wait),
    ]),
    default: Some("\"reject\""),
};
// Browsers and proxies give up after a minute, and a delayed request keeps its connection.
const DELAY_MAX: Key<Duration> = time_key("delay_max", 10, DurationMs::from_secs(60), "\"5s\"");
const SHADOW: Key<Switch> = switch("shadow");
const COUNT_POLLING: Key<Switch> = switch("count_polling");

const fn switch(name: &'static str) -> Key<Switch> {
    Key {
        name,
        kind: Switch,
        default: Some("false"),
    }
}

/// Headers of a response: those of the IETF, and the older `X-RateLimit-*`.
const HEADERS: Key<Choice<(bool, bool)>> = Key {
    name: "headers",
    kind: Choice(&[
        ("ietf", (true, false)),
        ("legacy", (false, true)),
        ("both", (true, true)),
        ("none", (false, false)),
    ]),
    default: Some("\"ietf\""),
};
const LEGACY_RESET: Key<Choice<LegacyReset>> = Key {
    name: "legacy_reset",
    kind: Choice(&[
        ("seconds", LegacyReset::Seconds),
        ("epoch", LegacyReset::Epoch),
    ]),
    default: Some("\"seconds\""),
};

/// A limit as far as it could be read. Parts without mistakes are there even if others have some,
/// so that clashes between limits are found in the same run.
pub(super) struct LimitRead {
    pub(super) name: Option<Located<LimitName>>,
    /// Routes that it covers; empty = every request.
    pub(super) routes: Vec<LimitRoute>,
    /// Keys that have no effect without a room, and the warnings about them.
    pub(super) of_rooms: Vec<(Location, &'static str)>,
    /// Location of the store's name, if a server counts for all nodes.
    pub(super) of_valkey: Option<Location>,
    /// Tables that it needs, and the locations of the keys that need them.
    pub(super) needs: Vec<(Need, Location)>,
    /// `None` after a mistake in a key that affects decisions.
    pub(super) config: Option<LimitConfig>,
}

/// Reads one `[[limit]]`.
pub(super) fn read(mut table: Table<'_>) -> LimitRead {
    let name = table.required(&NAME);
    if let Some(name) = &name {
        table.name_owner(Owner::Limit(name.to_string()));
    }
    let name = name.map(|value| Located {
        value,
        location: table.location(NAME.name),
    });
    let (settings, policy) = policy::read(&mut table);
    let routes = routes::read(&mut table);
    let key = client_key::read(&mut table);
    let cost = NonZeroU32::new(table.defaulted(&COST)).unwrap_or(NonZeroU32::MIN);
    let on_limit = read_on_limit(&mut table, &settings);
    let shadow = table.defaulted(&SHADOW);
    let headers = read_headers(&mut table);
    let count_polling = table.defaulted(&COUNT_POLLING);
    let (store, on_store_failure) = store::read(&mut table);
    let keys_max = store::read_keys_max(&mut table, store, on_store_failure);
    let overrides = overrides::read(&mut table, key.as_ref(), settings, store);
    if let Some(policy) = &policy {
        store::check(&mut table, store, policy);
        warn(&mut table, policy, cost, on_limit, shadow);
    }
    let of_rooms = of_rooms(&table, key.as_ref(), on_limit);
    let of_valkey = (store == LimitStore::Valkey).then(|| table.location(STORE.name));
    let needs = needs::of(&table, store, key.as_ref());
    table.finish();

    let config = match (&name, policy, key) {
        (Some(name), Some(policy), Some(key)) => Some(LimitConfig {
            name: name.value.clone(),
            policy,
            routes: routes.clone(),
            key,
            cost,
            on_limit,
            shadow,
            headers,
            count_polling,
            keys_max,
            store,
            on_store_failure,
            overrides,
            settings,
        }),
        _ => None,
    };
    LimitRead {
        name,
        routes,
        of_rooms,
        of_valkey,
        needs,
        config,
    }
}

fn read_on_limit(table: &mut Table<'_>, settings: &Settings) -> OnLimit {
    let mistakes = table.notes.count();
    let kind = table.defaulted(&ON_LIMIT);
    let is_right = table.notes.count() == mistakes;
    let max = table.defaulted(&DELAY_MAX);
    let waits = |algorithm: &AlgorithmKind| algorithm.row().early == Early::Waits;
    let waiting = settings.algorithm.filter(waits);
    let location = table.location(ON_LIMIT.name);
    if let Some(algorithm) = waiting.filter(|_| is_right && kind != OnLimitKind::Delay) {
        let name = algorithm.name();
        let (finding, hint) = if table.has(ON_LIMIT.name) {
            let found = format!("{:?} with algorithm {name:?}", kind.word());
            (Finding::Value(found), None)
        } else {
            (
                Finding::Missing,
                Some("add on_limit = \"delay\"".to_owned()),
            )
        };
        let allowed = format!("\"delay\" with algorithm {name:?}, which delays requests");
        table.notes.report(&location, finding, allowed, hint);
    } else if is_right && kind != OnLimitKind::Delay && table.has(DELAY_MAX.name) {
        let location = table.location(DELAY_MAX.name);
        let finding = Finding::Remark("has no effect: requests are not delayed".to_owned());
        let allowed = "only with on_limit \"delay\"";
        table.notes.report(&location, finding, allowed, None);
    }
    match kind {
        OnLimitKind::Reject => OnLimit::Reject,
        OnLimitKind::Delay => OnLimit::Delay { max },
        OnLimitKind::Wait => OnLimit::Wait,
    }
}

fn read_headers(table: &mut Table<'_>) -> LimitHeaders {
    let mistakes = table.notes.count();
    let (ietf, has_legacy) = table.defaulted(&HEADERS);
    let is_right = table.notes.count() == mistakes;
    let reset = table.defaulted(&LEGACY_RESET);
    if is_right && !has_legacy && table.has(LEGACY_RESET.name) {
        let location = table.location(LEGACY_RESET.name);
        let finding = Finding::Remark("has no effect without X-RateLimit-Reset".to_owned());
        let allowed = "only with headers \"legacy\" or \"both\"";
        table.notes.report(&location, finding, allowed, None);
    }
    LimitHeaders {
        ietf,
        legacy: has_legacy.then_some(reset),
    }
}

/// Warns about settings that are allowed but certainly not meant.
fn warn(table: &mut Table<'_>, policy: &Policy, cost: NonZeroU32, on_limit: OnLimit, shadow: bool) {
    if !shadow && policy::rejects_everything(policy, cost.get()) {
        let (key, remark) = if policy.rate().requests() == 0 {
            (
                LIMIT.name,
                "every request is rejected; set shadow = true to try it out",
            )
        } else {
            (
                COST.name,
                "every request is rejected: its cost is higher than the capacity",
            )
        };
        let location = table.location(key);
        table.notes.warn(&location, remark);
    }
    if let OnLimit::Delay { max } = on_limit {
        policy::warn_of_long_queue(table, policy, max);
    }
}

fn of_rooms(
    table: &Table<'_>,
    key: Option<&ClientKey>,
    on_limit: OnLimit,
) -> Vec<(Location, &'static str)> {
    let mut of_rooms = Vec::new();
    if key.is_some_and(|key| key.parts.contains(&KeyPart::Ticket)) {
        of_rooms.push((
            table.location(KEY.name),
            "no room covers a route of this limit, so no request has a ticket",
        ));
    }
    if on_limit == OnLimit::Wait {
        of_rooms.push((
            table.location(ON_LIMIT.name),
            "no room covers a route of this limit, so requests are rejected instead of queued",
        ));
    }
    of_rooms
}
