//! Reader of a limit's `store`, with the check that the store can count by its algorithm.

use anteroom_limit::ahead::{YEARS_EXACT, years_ahead};
use anteroom_limit::leases::widened::{LeasedLimit, NotLeasableError};
use anteroom_limit::policy::Policy;
use anteroom_limit::registry::{Early, Remembers};
use anteroom_limit::swapping::LOG_LONGEST;

use super::keys::{ALGORITHM, BURST, LIMIT, QUEUE};
use crate::kind::{Choice, Whole};
use crate::limit_stores::LimitStore;
use crate::model::OnLimitStoreFailure;
use crate::notes::Location;
use crate::problem::Finding;
use crate::reader::{Key, Table};

// Fewer than 64 are evicted before they reach a limit; a hundred million take some ten GB.
const KEYS_MAX: Key<Whole<usize>> = Key {
    name: "keys_max",
    kind: Whole {
        min: 64,
        max: 100_000_000,
        note: "",
    },
    default: Some("100000"),
};

pub(super) const STORE: Key<Choice<LimitStore>> = Key {
    name: "store",
    kind: Choice(LimitStore::CHOICES),
    default: Some("\"local\""),
};
const ON_STORE_FAILURE: Key<Choice<OnLimitStoreFailure>> = Key {
    name: "on_store_failure",
    kind: Choice(&[
        ("bounded", OnLimitStoreFailure::Bounded),
        ("open", OnLimitStoreFailure::Open),
        ("closed", OnLimitStoreFailure::Closed),
        ("local", OnLimitStoreFailure::Local),
    ]),
    default: Some("\"bounded\""),
};

/// Reads the store, and the behaviour while it is unavailable.
pub(super) fn read(table: &mut Table<'_>) -> (LimitStore, OnLimitStoreFailure) {
    let mistakes = table.notes.count();
    let store = table.defaulted(&STORE);
    let is_right = table.notes.count() == mistakes;
    let on_store_failure = table.defaulted(&ON_STORE_FAILURE);
    let is_here = matches!(store, LimitStore::Local | LimitStore::Gossip);
    if is_right && is_here && table.has(ON_STORE_FAILURE.name) {
        let location = table.location(ON_STORE_FAILURE.name);
        let word = store.word();
        let finding = format!("has no effect with store \"{word}\", which is always available");
        let finding = Finding::Remark(finding);
        let allowed = "only with store \"valkey\", \"leases\", \"memcached\" or \"kafka\"";
        table.notes.report(&location, finding, allowed, None);
    }
    (store, on_store_failure)
}

/// Reads the most clients that this process remembers. The key has no effect with stores that
/// remember clients themselves.
pub(super) fn read_keys_max(
    table: &mut Table<'_>,
    store: LimitStore,
    on_failure: OnLimitStoreFailure,
) -> usize {
    let keys_max = table.defaulted(&KEYS_MAX);
    let is_here = store == LimitStore::Local || on_failure == OnLimitStoreFailure::Local;
    if !is_here && table.has(KEYS_MAX.name) {
        let location = table.location(KEYS_MAX.name);
        let remark = match store {
            LimitStore::Leases => {
                "has no effect with store \"leases\", which holds leases for 100000 clients of \
                 all limits together"
            }
            LimitStore::Memcached => {
                "has no effect with store \"memcached\", whose servers remember as many as they \
                 have memory for"
            }
            LimitStore::Kafka => {
                "has no effect with store \"kafka\", where a node keeps 500000 sub-windows of \
                 all clients together"
            }
            LimitStore::Gossip => {
                "has no effect with store \"gossip\", which has room for 500000 counters of all \
                 limits together"
            }
            LimitStore::Local | LimitStore::Valkey => {
                "has no effect with store \"valkey\", whose server remembers as many as it has \
                 memory for"
            }
        };
        let finding = Finding::Remark(remark.to_owned());
        let allowed = "only with store \"local\", or on_store_failure \"local\"";
        table.notes.report(&location, finding, allowed, None);
    }
    keys_max
}

/// Reports a policy that its store cannot enforce. `table` is the one with the policy: that of the
/// limit, or of one client.
pub(super) fn check(table: &mut Table<'_>, store: LimitStore, policy: &Policy) {
    match store {
        LimitStore::Local => {}
        LimitStore::Valkey => check_valkey(table, policy),
        LimitStore::Leases => check_leases(table, policy),
        LimitStore::Memcached => check_memcached(table, policy),
        LimitStore::Kafka | LimitStore::Gossip => check_counters(table, store, policy),
    }
}

/// Checks the size of a log: it is one value, which every request reads and writes.
fn check_memcached(table: &mut Table<'_>, policy: &Policy) {
    let calls = policy.rate().requests();
    match policy.row().remembers {
        Remembers::Requests if calls > LOG_LONGEST => {}
        Remembers::Requests | Remembers::Counts | Remembers::Tokens | Remembers::Time => return,
    }
    let name = policy.kind().name();
    let found = format!("{calls} requests by {name:?} with store \"memcached\"");
    let allowed = format!("a log of at most {LOG_LONGEST} requests with this store");
    let hint = format!("{} = \"sub-windows-strict\" is as strict", ALGORITHM.name);
    let location = table.location(LIMIT.name);
    let found = Finding::Value(found);
    table.notes.report(&location, found, allowed, Some(hint));
}

/// Checks that the policy uses counters: nodes that exchange increments cannot decide together.
fn check_counters(table: &mut Table<'_>, store: LimitStore, policy: &Policy) {
    if policy.counters().is_some() {
        return;
    }
    let (name, store) = (policy.kind().name(), store.word());
    let found = format!("{store:?} with algorithm {name:?}");
    let allowed = format!("{store:?} only with algorithms that count windows");
    let hint = format!(
        "{} = \"sub-windows-strict\" is the nearest one",
        ALGORITHM.name
    );
    let key = [STORE.name, ALGORITHM.name];
    let key = key.into_iter().find(|key| table.has(key));
    let location = table.location(key.unwrap_or(LIMIT.name));
    let found = Finding::Value(found);
    table.notes.report(&location, found, allowed, Some(hint));
}

/// Checks that a double, which is what a server counts in, represents the policy exactly.
fn check_valkey(table: &mut Table<'_>, policy: &Policy) {
    let years = years_ahead(policy);
    if years <= YEARS_EXACT {
        return;
    }
    let (key, what, less) = match policy.row().early {
        Early::Waits => (QUEUE.name, "queue", "shorter"),
        Early::AtOnce => (BURST.name, "burst", "lower"),
    };
    let found = format!("a {what} that takes {years} years with store \"valkey\"");
    let allowed = format!("a {what} and a limit by which it takes at most {YEARS_EXACT} years");
    let hint = format!("a {less} {what} or a higher {}", LIMIT.name);
    // The default of a burst follows from the limit.
    let key = if table.has(key) { key } else { LIMIT.name };
    let location = table.location(key);
    let found = Finding::Value(found);
    table.notes.report(&location, found, allowed, Some(hint));
}

fn check_leases(table: &mut Table<'_>, policy: &Policy) {
    let (key, found, allowed, hint) = match LeasedLimit::new(*policy) {
        Ok(_) => return,
        Err(NotLeasableError::LeakyBucket) => (
            STORE.name,
            format!("\"leases\" with algorithm {:?}", policy.kind().name()),
            "\"local\", \"valkey\" or \"memcached\": a queue of requests has one order, which \
             cannot be leased",
            Some(format!("or another {}, such as \"gcra\"", ALGORITHM.name)),
        ),
        Err(NotLeasableError::BurstTooSmall {
            burst,
            during_lease,
            ttl,
        }) => (
            BURST.name,
            format!("{burst} with store \"leases\""),
            "a burst that is larger than what comes free while a lease runs",
            Some(format!(
                "at least {}; during a lease ({ttl}) {during_lease} may come free",
                during_lease.saturating_add(1)
            )),
        ),
        Err(other) => (
            STORE.name,
            "\"leases\"".to_owned(),
            "\"local\", \"valkey\" or \"memcached\" for this limit",
            Some(other.to_string()),
        ),
    };
    // The default of a burst follows from the limit; the store of a client is that of the
    // limit's table.
    let key = if table.has(key) { key } else { LIMIT.name };
    let location: Location = table.location(key);
    table
        .notes
        .report(&location, Finding::Value(found), allowed, hint);
}
