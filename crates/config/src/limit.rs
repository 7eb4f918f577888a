//! `[[limit]]`: how many calls a client may make, as far as one limit can be judged alone.

use std::num::NonZeroU32;

use anteroom_limit::policy::Policy;

use super::limit_stores::LimitStore;
use super::model::{ClientKey, KeyPart, LimitConfig, LimitHeaders, LimitName, LimitRoute, OnLimit};
use super::need::Need;
use super::notes::{Placed, Spot};
use super::problem::{Finding, Owner};
use super::reader::Table;

pub(crate) mod client_key;
mod keys;
mod live;
mod needs;
mod overrides;
mod policy;
mod routes;
mod store;

use client_key::KEY;
use keys::{
    COST, COUNT_POLLING, DELAY_MAX, HEADERS, LEGACY_RESET, LIMIT, NAME, ON_LIMIT, OnLimitKind,
    SHADOW, STORE,
};
pub use live::policy_values;
pub(crate) use needs::JWT;
use policy::AlgorithmKind;
pub(crate) use policy::Settings;
pub use store::SWAPPED_LOG_LONGEST;

/// A limit as far as it could be read; the parts outlive mistakes elsewhere in the limit, so that
/// clashes between limits are found in the same run.
pub(super) struct LimitRead {
    pub(super) name: Option<Placed<LimitName>>,
    /// What it covers; none: every request.
    pub(super) routes: Vec<LimitRoute>,
    /// What means nothing without a room, and what then happens.
    pub(super) of_rooms: Vec<(Spot, &'static str)>,
    /// Where it says that a server of all nodes counts.
    pub(super) of_valkey: Option<Spot>,
    /// Tables that it needs, and where it says so.
    pub(super) needs: Vec<(Need, Spot)>,
    /// `None` after a mistake in a key that decides about calls.
    pub(super) config: Option<LimitConfig>,
}

/// Reads one `[[limit]]`.
pub(super) fn read(mut table: Table<'_>) -> LimitRead {
    let name = table.required(&NAME);
    if let Some(name) = &name {
        table.name_owner(Owner::Limit(name.to_string()));
    }
    let name = name.map(|value| Placed {
        value,
        spot: table.spot(NAME.name),
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
    let of_valkey = (store == LimitStore::Valkey).then(|| table.spot(STORE.name));
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
    let delays = settings.algorithm == Some(AlgorithmKind::LeakyBucket);
    let spot = table.spot(ON_LIMIT.name);
    if is_right && delays && kind != OnLimitKind::Delay {
        let (finding, hint) = if table.has(ON_LIMIT.name) {
            let found = format!("{:?} with algorithm \"leaky-bucket\"", kind.word());
            (Finding::Value(found), None)
        } else {
            (
                Finding::Missing,
                Some("add on_limit = \"delay\"".to_owned()),
            )
        };
        let allowed = "\"delay\" with algorithm \"leaky-bucket\", for it holds calls";
        table.notes.refuse(&spot, finding, allowed, hint);
    } else if is_right && kind != OnLimitKind::Delay && table.has(DELAY_MAX.name) {
        let spot = table.spot(DELAY_MAX.name);
        let finding = Finding::Remark("has no effect, for no call is held".to_owned());
        let allowed = "only with on_limit \"delay\"";
        table.notes.refuse(&spot, finding, allowed, None);
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
        let spot = table.spot(LEGACY_RESET.name);
        let finding = Finding::Remark("has no effect without X-RateLimit-Reset".to_owned());
        let allowed = "only with headers \"legacy\" or \"both\"";
        table.notes.refuse(&spot, finding, allowed, None);
    }
    LimitHeaders {
        ietf,
        legacy: has_legacy.then_some(reset),
    }
}

/// Says what is allowed and certainly not what anybody wants.
fn warn(table: &mut Table<'_>, policy: &Policy, cost: NonZeroU32, on_limit: OnLimit, shadow: bool) {
    if !shadow && policy::lets_nothing_through(policy, cost.get()) {
        let (key, remark) = if policy.rate().calls() == 0 {
            (
                LIMIT.name,
                "no call at all is let through; to try that out, shadow = true",
            )
        } else {
            (
                COST.name,
                "one call counts more than is ever free, so none is let through",
            )
        };
        let spot = table.spot(key);
        table.notes.warn(&spot, remark);
    }
    if let OnLimit::Delay { max } = on_limit {
        policy::warn_of_long_queue(table, policy, max);
    }
}

fn of_rooms(
    table: &Table<'_>,
    key: Option<&ClientKey>,
    on_limit: OnLimit,
) -> Vec<(Spot, &'static str)> {
    let mut of_rooms = Vec::new();
    if key.is_some_and(|key| key.parts.contains(&KeyPart::Ticket)) {
        of_rooms.push((
            table.spot(KEY.name),
            "no room covers anything of this limit, so there is never a ticket",
        ));
    }
    if on_limit == OnLimit::Wait {
        of_rooms.push((
            table.spot(ON_LIMIT.name),
            "no room covers anything of this limit, so nobody can wait and all are rejected",
        ));
    }
    of_rooms
}
