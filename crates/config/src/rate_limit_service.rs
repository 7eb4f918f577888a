//! `[rate_limit_service]`: Envoy's rate limit service, which runs if the table exists.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::keys::path_key;
use super::kind::{Address, Choice, Switch, Text, Whole};
use super::model::{
    OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore, ServerConfig,
};
use super::problem::Finding;
use super::reader::{Key, Table};
use super::server::share_a_port;
use super::shared_store::StoreConfig;

const GRPC: Key<Address> = address("grpc");
const HTTP: Key<Address> = address("http");
const CONFIG_DIR: Key<Text<PathBuf>> = path_key("config_dir", "the path of a directory", None);
const MERGE_DOMAINS: Key<Switch> = switch("merge_domains");
const STORE: Key<Choice<RateLimitStore>> = Key {
    name: "store",
    kind: Choice(&[
        ("local", RateLimitStore::Local),
        ("valkey", RateLimitStore::Valkey),
        ("redis", RateLimitStore::Valkey),
    ]),
    default: Some("\"local\""),
};
const ON_STORE_FAILURE: Key<Choice<OnStoreFailure>> = Key {
    name: "on_store_failure",
    kind: Choice(&[
        ("closed", OnStoreFailure::Closed),
        ("open", OnStoreFailure::Open),
    ]),
    default: Some("\"closed\""),
};
// Like that of [[limit]], for the same reasons; here all limits share them.
const KEYS_MAX: Key<Whole<usize>> = Key {
    name: "keys_max",
    kind: Whole {
        min: 64,
        max: 100_000_000,
        note: "",
    },
    default: Some("1000000"),
};
const SHADOW_MODE: Key<Switch> = switch("shadow_mode");
const CHARGE_REJECTED: Key<Switch> = switch("charge_rejected");
const HEADERS: Key<Choice<RateLimitHeaders>> = Key {
    name: "headers",
    kind: Choice(&[
        ("none", RateLimitHeaders::None),
        ("ratelimit", RateLimitHeaders::RateLimit),
        ("x-ratelimit", RateLimitHeaders::XRateLimit),
    ]),
    default: Some("\"none\""),
};
const DYNAMIC_METADATA: Key<Switch> = switch("dynamic_metadata");

const fn address(name: &'static str) -> Key<Address> {
    Key {
        name,
        kind: Address,
        default: None,
    }
}

const fn switch(name: &'static str) -> Key<Switch> {
    Key {
        name,
        kind: Switch,
        default: Some("false"),
    }
}

/// Reads the table; `None` after a mistake in a key that affects decisions, and if there is no
/// service (`is_there`). `around` is the rest of the file, as far as it could be read.
pub(super) fn read(
    mut table: Table<'_>,
    is_there: bool,
    (server, store): (&ServerConfig, Option<&StoreConfig>),
) -> Option<RateLimitServiceConfig> {
    let mistakes = table.notes.count();
    let grpc = table.optional(&GRPC);
    let http = table.optional(&HTTP);
    let config_dir = if is_there {
        table.required(&CONFIG_DIR)
    } else {
        table.optional(&CONFIG_DIR)
    };
    let merge_domains = table.defaulted(&MERGE_DOMAINS);
    let kept_in = table.defaulted(&STORE);
    let on_store_failure = table.defaulted(&ON_STORE_FAILURE);
    let keys_max = table.defaulted(&KEYS_MAX);
    let shadow_mode = table.defaulted(&SHADOW_MODE);
    let charge_rejected = table.defaulted(&CHARGE_REJECTED);
    let headers = table.defaulted(&HEADERS);
    let dynamic_metadata = table.defaulted(&DYNAMIC_METADATA);
    if is_there {
        check_addresses(&mut table, server, (grpc, http));
        check_store(&mut table, kept_in, store);
    }
    let is_right = table.notes.count() == mistakes;
    table.finish();
    let config_dir = config_dir.filter(|_| is_there && is_right)?;
    Some(RateLimitServiceConfig {
        grpc,
        http,
        config_dir,
        merge_domains,
        store: kept_in,
        on_store_failure,
        keys_max,
        shadow_mode,
        charge_rejected,
        headers,
        dynamic_metadata,
    })
}

fn check_addresses(
    table: &mut Table<'_>,
    server: &ServerConfig,
    (grpc, http): (Option<SocketAddr>, Option<SocketAddr>),
) {
    let names = [GRPC.name, HTTP.name];
    if !names.into_iter().any(|name| table.has(name)) {
        let location = table.location(GRPC.name);
        let allowed = "an address for grpc, or one for http, or both";
        table
            .notes
            .report(&location, Finding::Missing, allowed, None);
    }
    let mut taken = vec![
        ("server.listen", Some(server.listen)),
        ("server.admin", Some(server.admin)),
        ("server.redirect_from", server.redirect_from),
    ];
    for (name, address) in names.into_iter().zip([grpc, http]) {
        let is_taken = |other: SocketAddr| address.is_some_and(|one| share_a_port(one, other));
        let other = taken.iter().find(|(_, other)| other.is_some_and(is_taken));
        if let (Some((other, _)), Some(address)) = (other, address) {
            let location = table.location(name);
            let finding = Finding::Value(format!("{address}, a port that {other} already uses"));
            let allowed = "an address that no other listener uses";
            table.notes.report(&location, finding, allowed, None);
        }
        taken.push((name, address));
    }
}

fn check_store(table: &mut Table<'_>, kept_in: RateLimitStore, store: Option<&StoreConfig>) {
    if kept_in == RateLimitStore::Valkey && store == Some(&StoreConfig::Embedded) {
        let location = table.location(STORE.name);
        let finding = Finding::Value("\"valkey\" without such a server".to_owned());
        let hint = "add a [store] with kind = \"valkey\" and local = \"redis://...\"".to_owned();
        let allowed = "\"local\", or \"valkey\" beside a [store] of that kind";
        table.notes.report(&location, finding, allowed, Some(hint));
    }
}
