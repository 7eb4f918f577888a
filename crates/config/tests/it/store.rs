//! Meaning of a valid `[store]` and of its flags.

use std::path::PathBuf;

use anteroom_config::{
    Config, Flags, HostPort, Parsed, StoreConfig, Topology, ValkeyConfig, ValkeyTls,
};

const ROOM: &str = r#"
[[room]]
name = "shop"
origin = "http://127.0.0.1:3000"
total_active_users = 200
new_users_per_minute = 200
bypass = []
"#;

fn parse(store: &str) -> Parsed {
    let text = format!("server.data_center = \"fra1\"\n[store]\n{store}\n{ROOM}");
    Config::parse("anteroom.toml", &text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn valkey_of(config: Config) -> ValkeyConfig {
    match config.store {
        StoreConfig::Valkey(valkey) => *valkey,
        StoreConfig::Embedded => panic!("the store is embedded"),
    }
}

fn valkey(store: &str) -> ValkeyConfig {
    let Parsed { config, warnings } = parse(&format!("kind = \"valkey\"\n{store}"));
    assert_eq!(warnings, []);
    valkey_of(config)
}

#[test]
fn the_default_store_is_embedded() {
    let nothing = Config::parse("anteroom.toml", ROOM).unwrap();
    assert_eq!(nothing.config.store, StoreConfig::Embedded);
    assert_eq!(parse("").config.store, StoreConfig::Embedded);
    let stated = parse("kind = \"Embedded\"");
    assert_eq!(stated.config.store, StoreConfig::Embedded);
}

#[test]
fn every_key_of_the_store_is_read() {
    let store = valkey(
        r#"
local = "redis://10.0.0.5:6379"
global = "rediss+sentinel://watch@10.9.0.5,10.9.0.6:1/world/2"
username = "anteroom"
password = "q7TzN0mK"
ca_file = "/etc/anteroom/redis-ca.pem"
prefix = "shop:2030"
"#,
    );
    let server = |host: &str, port| HostPort {
        host: host.to_owned(),
        port,
    };
    assert_eq!(
        store.local.topology,
        Topology::Single(server("10.0.0.5", 6_379))
    );
    assert_eq!(store.local.username.as_deref(), Some("anteroom"));
    assert_eq!(store.local.password.as_deref(), Some("q7TzN0mK"));
    assert_eq!(store.local.tls, None);
    assert_eq!(
        store.global.topology,
        Topology::Sentinel {
            sentinels: vec![server("10.9.0.5", 26_379), server("10.9.0.6", 1)],
            service: "world".to_owned(),
        }
    );
    assert_eq!(store.global.database, 2);
    assert!(store.has_global);
    assert_eq!(store.global.username.as_deref(), Some("watch"));
    assert_eq!(store.global.password.as_deref(), Some("q7TzN0mK"));
    let ca_file = Some(PathBuf::from("/etc/anteroom/redis-ca.pem"));
    assert_eq!(store.global.tls, Some(ValkeyTls { ca_file }));
    assert_eq!(store.prefix, "shop:2030");
    assert_eq!(store.password_file, None);
}

#[test]
fn keys_that_are_left_out_have_the_documented_defaults() {
    for kind in ["valkey", "redis", "Redis"] {
        let store = format!("kind = \"{kind}\"\nlocal = \"rediss://10.0.0.5\"");
        let store = valkey_of(parse(&store).config);
        assert_eq!(store.global, store.local);
        assert!(!store.has_global);
        assert_eq!(store.prefix, "anteroom");
        assert_eq!(store.local.username, None);
        assert_eq!(store.local.password, None);
        assert_eq!(store.local.tls, Some(ValkeyTls::default()));
    }
}

#[test]
fn credentials_in_an_address_win_over_the_common_ones() {
    let store = valkey(
        r#"
local = "redis://me:mine@10.0.0.5"
global = "redis://:theirs@10.9.0.5"
username = "anteroom"
"#,
    );
    assert_eq!(store.local.username.as_deref(), Some("me"));
    assert_eq!(store.local.password.as_deref(), Some("mine"));
    assert_eq!(store.global.username.as_deref(), Some("anteroom"));
    assert_eq!(store.global.password.as_deref(), Some("theirs"));
}

#[test]
fn a_password_file_is_only_a_path_and_a_password_optional() {
    let store = valkey(
        "local = \"redis://me@10.0.0.5\"\nglobal = \"redis://me@10.0.0.5\"\npassword_file = \"key\"",
    );
    assert_eq!(store.password_file, Some(PathBuf::from("key")));
    assert_eq!(store.local.username.as_deref(), Some("me"));
    assert_eq!(store.local.password, None);
}

#[test]
fn no_password_is_in_the_debug_of_a_config() {
    let config = parse(
        r#"
kind = "valkey"
local = "redis://me:q7TzN0mK@10.0.0.5"
global = "redis://10.9.0.5"
password = "2xVbYw8r"
"#,
    );
    let debug = format!("{config:?}");
    assert!(debug.contains("redis://10.0.0.5:6379"), "{debug}");
    assert!(
        !debug.contains("q7Tz") && !debug.contains("2xVb"),
        "{debug}"
    );
}

#[test]
fn a_single_store_needs_no_data_center_name() {
    let same = "local = \"redis://10.0.0.5\"\nglobal = \"valkey://me@10.0.0.5:6379/0\"";
    let text = format!("[store]\nkind = \"valkey\"\n{same}\n{ROOM}");
    let parsed = Config::parse("anteroom.toml", &text).unwrap();
    assert_eq!(parsed.config.server.data_center, "local");
    assert_eq!(parsed.warnings, []);
}

fn flags() -> Flags {
    Flags::default()
        .text("room.origin", "http://127.0.0.1:3000")
        .number("room.total_active_users", 200)
        .number("room.new_users_per_minute", 200)
        .texts("room.bypass", &["false"])
}

#[test]
fn flags_mean_the_same_as_a_file() {
    let parsed = Config::single_room(&flags()).unwrap();
    assert_eq!(parsed.config.store, StoreConfig::Embedded);

    let flags = flags()
        .text("store.local", "redis://10.0.0.5")
        .text("store.global", "redis://10.9.0.5")
        .text("server.data_center", "fra1");
    let parsed = Config::single_room(&flags);
    let parsed = parsed.unwrap();
    assert_eq!(parsed.warnings, []);
    let file = "local = \"redis://10.0.0.5\"\nglobal = \"redis://10.9.0.5\"";
    assert_eq!(valkey_of(parsed.config), valkey(file));
}

#[test]
fn a_password_in_a_flag_draws_a_warning_that_hides_it() {
    let flags = flags().text("store.local", "redis://me:secret@10.0.0.5");
    let parsed = Config::single_room(&flags);
    let warnings = parsed.unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(
        warnings[0].to_string(),
        "--store: every user of this machine can read a password in a flag; use password_file in \
         a config file instead"
    );
}

#[test]
fn mistakes_in_flags_are_reported_with_the_flags_names() {
    let check = |flags: Flags, expected: &str| {
        let problems = Config::single_room(&flags).unwrap_err();
        assert_eq!(problems.to_string(), expected);
    };
    check(
        flags().text("store.global", "redis://10.9.0.5"),
        "--global: has no effect without --store, allowed: only together with --store",
    );
    check(
        flags()
            .text("store.local", "redis://10.0.0.5")
            .text("store.global", "redis://10.9.0.5"),
        "--data-center: found \"local\", the default, allowed: a name for each data center, if \
         global is not local; two data centers with one name would count as one",
    );
    let flags = flags().text("store.local", "redis://me:secret@");
    let problems = Config::single_room(&flags);
    let problems = problems.unwrap_err().to_string();
    assert!(problems.starts_with("--store: found a text"), "{problems}");
    assert!(!problems.contains("secret"), "{problems}");
}
