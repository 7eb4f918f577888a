//! Stores in which `[[limit]]` is counted, and the tables that they need.

use anteroom_config::{Checks, Config, LimitStore, OnLimitStoreFailure};
use anteroom_room::time::DurationMs;

use crate::limits::{ROOM, parse};

#[test]
fn store_valkey_needs_a_valkey_store() {
    let store = "[store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1\"\n";
    let limit = "[[limit]]\nname = \"api\"\nlimit = \"9/s\"\nstore = \"valkey\"\n\
                 [[limit]]\nname = \"lent\"\nlimit = \"9/s\"\nstore = \"leases\"\n\
                 on_store_failure = \"local\"\nkeys_max = 64\n";
    let limits = parse(&format!("{store}{ROOM}{limit}")).config.limits;
    let found: Vec<_> = limits
        .iter()
        .map(|limit| (limit.store, limit.on_store_failure))
        .collect();
    let expected = [
        (LimitStore::Valkey, OnLimitStoreFailure::Bounded),
        (LimitStore::Leases, OnLimitStoreFailure::Local),
    ];
    assert_eq!(found, expected);
}

#[test]
fn store_memcached_needs_its_table() {
    let memcached =
        "[memcached]\nservers = [\"10.0.0.5\", \"[::1]:11212\", \"Cache.example.:1\"]\n";
    let limit = "[[limit]]\nname = \"api\"\nlimit = \"10000/m\"\nstore = \"memcached\"\n\
                 algorithm = \"sliding-log\"\non_store_failure = \"open\"\n";
    let config = parse(&format!("{memcached}{ROOM}{limit}")).config;
    assert_eq!(config.limits[0].store, LimitStore::Memcached);
    let memcached = config.limit_stores.memcached.unwrap();
    let servers = memcached.servers.iter().map(ToString::to_string);
    let servers: Vec<String> = servers.collect();
    let expected = ["10.0.0.5:11211", "[::1]:11212", "cache.example:1"];
    assert_eq!(servers, expected);
    assert_eq!(memcached.prefix, "anteroom");
    assert_eq!(parse(ROOM).config.limit_stores.memcached, None);
}

#[test]
fn store_kafka_needs_its_table_and_a_build_with_kafka() {
    let kafka = "[kafka]\nbrokers = [\"10.0.0.5\", \"[::1]:9093\"]\n\
                 properties = [\"sasl.password=a=b\", \"acks=\"]\n";
    let limit = "[[limit]]\nname = \"api\"\nlimit = \"10000/m\"\nstore = \"kafka\"\n";
    let text = format!("{kafka}{ROOM}{limit}");
    let config = parse(&text).config;
    assert_eq!(config.limits[0].store, LimitStore::Kafka);
    let kafka = config.limit_stores.kafka.unwrap();
    let brokers: Vec<String> = kafka.brokers.iter().map(ToString::to_string).collect();
    assert_eq!(brokers, ["10.0.0.5:9092", "[::1]:9093"]);
    assert_eq!(kafka.prefix, "anteroom");
    let properties = [("acks", ""), ("sasl.password", "a=b")];
    let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(kafka.properties, properties.into());
    assert!(!format!("{kafka:?}").contains("a=b"));
    let checks = Checks {
        lacks_kafka: true,
        ..Checks::default()
    };
    let problems = Config::parse_with("a.toml", &text, checks).unwrap_err();
    let expected = "a.toml:1: kafka: this program was built without Kafka, allowed: only in a \
                    program that was built with the cargo feature \"kafka\"";
    assert_eq!(problems.0[0].to_string(), expected);
    assert!(Config::parse_with("a.toml", ROOM, checks).is_ok());
}

#[test]
fn store_gossip_needs_its_table() {
    let gossip = "[gossip]\nlisten = \"0.0.0.0:7946\"\nadvertise = \"10.0.0.5:7946\"\n\
                  secret_file = \"s\"\n\
                  peers = [\"[::1]:7947\", \"Anteroom.example.:7946\"]\n";
    let limit = "[[limit]]\nname = \"api\"\nlimit = \"100/m\"\nstore = \"gossip\"\n";
    let config = parse(&format!("{gossip}{ROOM}{limit}")).config;
    assert_eq!(config.limits[0].store, LimitStore::Gossip);
    let gossip = config.limit_stores.gossip.unwrap();
    let peers = gossip.peers.iter().map(ToString::to_string);
    let peers: Vec<String> = peers.collect();
    assert_eq!(peers, ["[::1]:7947", "anteroom.example:7946"]);
    assert_eq!(gossip.interval, DurationMs(100));
    assert_eq!(parse(ROOM).config.limit_stores.gossip, None);
}
