//! `[store]`: the store that nodes share. Reads the keys, and checks what they mean together.
//!
//! Nothing here opens files or connects: files are paths, servers are names.

use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use super::keys::{A_FILE, path_key};
use super::kind::{Choice, Duration, InvalidValue, Password, StoreAddress, Text};
use super::notes::Location;
use super::problem::Finding;
use super::reader::{Key, Table};
use super::shared_store::{StoreConfig, ValkeyConfig};
use crate::address::store_address::is_username;
use crate::address::valkey::{Durable, StorePromise, ValkeyAddress};

/// Engine of the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Engine {
    Embedded,
    Valkey,
}

const KIND: Key<Choice<Engine>> = Key {
    name: "kind",
    kind: Choice(&[
        ("embedded", Engine::Embedded),
        ("valkey", Engine::Valkey),
        ("redis", Engine::Valkey),
    ]),
    default: Some("\"embedded\""),
};
const LOCAL: Key<StoreAddress> = Key {
    name: "local",
    kind: StoreAddress,
    default: None,
};
const GLOBAL: Key<StoreAddress> = Key {
    name: "global",
    kind: StoreAddress,
    default: None,
};
const USERNAME: Key<Text<String>> = Key {
    name: "username",
    kind: Text {
        allowed: "a name of 1 to 256 bytes without spaces",
        read: |text| {
            let name = Some(text).filter(|text| is_username(text));
            name.map(str::to_owned).ok_or(InvalidValue::PLAIN)
        },
    },
    default: None,
};
const PASSWORD: Key<Password> = Key {
    name: "password",
    kind: Password,
    default: None,
};

const PASSWORD_FILE: Key<Text<PathBuf>> = path_key("password_file", A_FILE, None);
const CA_FILE: Key<Text<PathBuf>> = path_key("ca_file", A_FILE, None);
pub(super) const PREFIX: Key<Text<String>> = Key {
    name: "prefix",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _ . :",
        read: prefix,
    },
    default: Some("\"anteroom\""),
};

const DURABLE: Key<Choice<Durable>> = Key {
    name: "durable",
    kind: Choice(&[
        ("no", Durable::No),
        ("restart", Durable::Restart),
        ("failover", Durable::Failover),
    ]),
    default: Some("\"no\""),
};
/// Longest loss. A node is granted nothing for so long after its start.
const LONGEST_LOSS: Key<Duration> = Key {
    name: "longest_loss",
    kind: Duration {
        min: DurationMs(1),
        max: DurationMs::from_secs(60),
        bare_unit: "s",
    },
    default: None,
};

/// Keys that have no effect without a server.
const OF_VALKEY: [&str; 9] = [
    LOCAL.name,
    GLOBAL.name,
    USERNAME.name,
    PASSWORD.name,
    PASSWORD_FILE.name,
    CA_FILE.name,
    PREFIX.name,
    DURABLE.name,
    LONGEST_LOSS.name,
];

/// Reads `[store]`, which is optional; `None` after a mistake. `unnamed` is the location for the
/// data center's name, if it has none of its own.
pub(super) fn read(mut table: Table<'_>, unnamed: Option<&Location>) -> Option<StoreConfig> {
    let engine = table.optional(&KIND);
    let is_left_out = !table.has(KIND.name);
    let engine = engine.or_else(|| is_left_out.then_some(Engine::Embedded));
    let local = if engine == Some(Engine::Valkey) {
        table.required(&LOCAL)
    } else {
        table.optional(&LOCAL)
    };
    let has_global = table.has(GLOBAL.name);
    let global = read_global(&mut table, local.as_ref());
    let login = Login::read(&mut table);
    let ca_file = table.optional(&CA_FILE);
    let prefix = table.defaulted(&PREFIX);
    let promise = read_promise(&mut table);
    let config = match engine? {
        Engine::Embedded => {
            refuse_keys_of_valkey(&mut table);
            Some(StoreConfig::Embedded)
        }
        Engine::Valkey => local.zip(global).map(|(local, global)| {
            let mut config = ValkeyConfig {
                local,
                global,
                has_global,
                prefix,
                password_file: None,
            };
            check_names(&mut table, &config, unnamed);
            warn_of_passwords_in_flags(&mut table, &config);
            login.give_to(&mut table, &mut config);
            give_ca_file(&mut table, &mut config, ca_file);
            config.local.promise = promise;
            config.global.promise = promise;
            StoreConfig::Valkey(Box::new(config))
        }),
    };
    table.finish();
    config
}

/// Reads `global`, which is `local` by default; `None` after a mistake.
fn read_global(table: &mut Table<'_>, local: Option<&ValkeyAddress>) -> Option<ValkeyAddress> {
    let global = table.optional(&GLOBAL);
    if table.has(GLOBAL.name) {
        return global;
    }
    local.cloned()
}

/// Reads what the operator promises about the writes of all stores.
fn read_promise(table: &mut Table<'_>) -> StorePromise {
    let promise = StorePromise {
        durable: table.defaulted(&DURABLE),
        longest_loss: table.optional(&LONGEST_LOSS),
    };
    if promise.durable == Durable::Failover && promise.longest_loss.is_some() {
        let location = table.location(LONGEST_LOSS.name);
        let remark = "has no effect: with durable \"failover\" no write is lost";
        table.notes.warn(&location, remark);
    }
    promise
}

fn refuse_keys_of_valkey(table: &mut Table<'_>) {
    let is_flags = table.notes.is_flags();
    let (without, with) = if is_flags {
        ("without --store", "only together with --store")
    } else {
        ("with kind \"embedded\"", "only with kind \"valkey\"")
    };
    let is_forgotten = !is_flags && !table.has(KIND.name);
    for name in OF_VALKEY {
        if table.has(name) {
            let location = table.location(name);
            let finding = Finding::Remark(format!("has no effect {without}"));
            let hint = is_forgotten.then(|| "add kind = \"valkey\"".to_owned());
            table.notes.report(&location, finding, with, hint);
        }
    }
}

/// Checks that data centers have names: a global store distinguishes them by name.
fn check_names(table: &mut Table<'_>, config: &ValkeyConfig, unnamed: Option<&Location>) {
    if is_same_store(&config.local, &config.global) {
        return;
    }
    if let Some(location) = unnamed {
        let finding = Finding::Value("\"local\", the default".to_owned());
        let allowed = "a name for each data center, if global is not local";
        let hint = "two data centers with one name would count as one".to_owned();
        table.notes.report(location, finding, allowed, Some(hint));
    }
}

/// Whether both are the same store, whatever the credentials and TLS.
fn is_same_store(one: &ValkeyAddress, other: &ValkeyAddress) -> bool {
    one.topology == other.topology && one.database == other.database
}

/// Credentials for both addresses.
struct Login {
    username: Option<String>,
    password: Option<String>,
    password_file: Option<PathBuf>,
}

impl Login {
    fn read(table: &mut Table<'_>) -> Self {
        let login = Self {
            username: table.optional(&USERNAME),
            password: table.optional(&PASSWORD),
            password_file: table.optional(&PASSWORD_FILE),
        };
        if table.has(PASSWORD.name) && table.has(PASSWORD_FILE.name) {
            let location = table.location(PASSWORD_FILE.name);
            let finding = Finding::Remark("found together with password".to_owned());
            let allowed = "either password or password_file";
            table.notes.report(&location, finding, allowed, None);
        }
        login
    }

    /// Applies the credentials to each address that has none of its own.
    fn give_to(self, table: &mut Table<'_>, config: &mut ValkeyConfig) {
        let addresses = [&config.local, &config.global];
        let has_no_use = |has: fn(&ValkeyAddress) -> bool| addresses.into_iter().all(has);
        let names = [
            (
                USERNAME.name,
                has_no_use(|address| address.username.is_some()),
            ),
            (
                PASSWORD.name,
                has_no_use(|address| address.password.is_some()),
            ),
            (
                PASSWORD_FILE.name,
                has_no_use(|address| address.password.is_some()),
            ),
        ];
        for (name, _) in names.iter().filter(|(_, has_no_use)| *has_no_use) {
            if table.has(name) {
                let location = table.location(name);
                let remark = "has no effect: every address has its own";
                table.notes.warn(&location, remark);
            }
        }
        for address in [&mut config.local, &mut config.global] {
            address.username = address.username.take().or_else(|| self.username.clone());
            address.password = address.password.take().or_else(|| self.password.clone());
        }
        config.password_file = self.password_file;
    }
}

/// Warns of passwords in flags: every user of a machine can read the arguments of a process.
fn warn_of_passwords_in_flags(table: &mut Table<'_>, config: &ValkeyConfig) {
    if !table.notes.is_flags() {
        return;
    }
    for (name, address) in [(LOCAL.name, &config.local), (GLOBAL.name, &config.global)] {
        if table.has(name) && address.password.is_some() {
            let location = table.location(name);
            let remark = "every user of this machine can read a password in a flag; use \
                          password_file in a config file instead";
            table.notes.warn(&location, remark);
        }
    }
}

fn give_ca_file(table: &mut Table<'_>, config: &mut ValkeyConfig, ca_file: Option<PathBuf>) {
    let Some(ca_file) = ca_file else { return };
    let mut is_used = false;
    for address in [&mut config.local, &mut config.global] {
        if let Some(tls) = &mut address.tls {
            tls.ca_file = Some(ca_file.clone());
            is_used = true;
        }
    }
    if !is_used {
        let location = table.location(CA_FILE.name);
        let remark = "has no effect: no address begins with rediss://";
        table.notes.warn(&location, remark);
    }
}

fn prefix(text: &str) -> Result<String, InvalidValue> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    if !(1..=64).contains(&text.len()) || !text.bytes().all(is_plain) {
        return Err(InvalidValue::PLAIN);
    }
    Ok(text.to_owned())
}
