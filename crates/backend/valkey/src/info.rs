//! Decoding of a server's `INFO`.
//!
//! Decoding reads the required lines, skips the rest and never fails.

use std::time::Duration;

use anteroom_store::Identity;

/// Digits of a run id that form an identity.
const IDENTITY_DIGITS: usize = 16;
/// Oldest version that is supported: older ones lack commands and rights that are needed.
pub(crate) const OLDEST: Version = Version { major: 6, minor: 2 };

/// Server's `INFO`. Missing fields are `None`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Info {
    /// Product and version, such as `Redis 7.0.15` or `Valkey 8.1.0`.
    pub(crate) make: Option<String>,
    /// Identity of the process and of its last promotion; it changes with every restart. A master
    /// that became a replica for a while has the data of another server afterwards.
    pub(crate) identity: Option<Identity>,
    /// Version of Redis that the server is, or is compatible with.
    pub(crate) version: Option<Version>,
    pub(crate) mode: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) eviction: Option<String>,
    /// Memory limit in bytes; 0 = no limit.
    pub(crate) memory_max: Option<u64>,
    /// Whether the server logs every write (`appendonly yes`).
    pub(crate) has_log: bool,
    /// Whether it is still loading its data. Meanwhile it shows `aof_enabled:0`.
    pub(crate) is_loading: bool,
    /// Time since the process started.
    pub(crate) uptime: Option<Duration>,
    /// Whether it took over from another server since it started.
    pub(crate) was_promoted: bool,
}

/// Major and minor version.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
}

impl Info {
    pub(crate) fn read(text: &str) -> Self {
        let mut info = Self::default();
        let mut is_valkey = false;
        let (mut before, mut offset) = ("", "");
        for line in text.lines() {
            let Some((name, value)) = line.trim_end().split_once(':') else {
                continue;
            };
            match name {
                "redis_version" => {
                    info.version = Version::read(value);
                    if !is_valkey {
                        info.make = Some(format!("Redis {value}"));
                    }
                }
                "valkey_version" => {
                    is_valkey = true;
                    info.make = Some(format!("Valkey {value}"));
                }
                "redis_mode" | "server_mode" => info.mode = Some(value.to_owned()),
                "run_id" => info.identity = identity(value),
                "role" => info.role = Some(value.to_owned()),
                "maxmemory_policy" => info.eviction = Some(value.to_owned()),
                "loading" => info.is_loading = value == "1",
                "uptime_in_seconds" => {
                    info.uptime = value.parse().ok().map(Duration::from_secs);
                }
                "aof_enabled" => info.has_log = value == "1",
                "master_replid2" => {
                    before = value;
                    info.was_promoted = value.bytes().any(|digit| digit != b'0');
                }
                "second_repl_offset" => offset = value,
                "maxmemory" => info.memory_max = value.parse().ok(),
                _ => {}
            }
        }
        if info.was_promoted {
            let promotion = hash_of(&[before, offset]);
            let identity = info.identity.as_mut();
            identity.into_iter().for_each(|known| known.0 ^= promotion);
        }
        info
    }

    pub(crate) fn is_sentinel(&self) -> bool {
        self.mode.as_deref() == Some("sentinel")
    }

    pub(crate) fn is_replica(&self) -> bool {
        matches!(self.role.as_deref(), Some("slave" | "replica"))
    }

    /// Returns whether the version is too old. An unknown version is accepted: a missing command
    /// fails when it is used.
    pub(crate) fn is_too_old(&self) -> bool {
        self.version.is_some_and(|version| version < OLDEST)
    }
}

/// FNV-1a by Fowler, Noll and Vo: the same on all nodes.
fn hash_of(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the first half of a run id; two runs have the same one with probability 2^-64.
fn identity(run_id: &str) -> Option<Identity> {
    let digits = run_id.get(..IDENTITY_DIGITS)?;
    // `from_str_radix` would accept a sign, too.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, 16).ok();
    number.filter(|_| is_hex).map(Identity)
}

impl Version {
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split('.');
        Some(Self {
            major: numbers.next()?.parse().ok()?,
            minor: numbers.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promotion_makes_another_server_of_a_process() {
        let identity = |before: &str, offset: &str| {
            let text = format!(
                "run_id:00000000000000070000000000000000\r\nmaster_replid2:{before}\r\n\
                 second_repl_offset:{offset}\r\n"
            );
            Info::read(&text).identity.unwrap()
        };
        let never = identity(&"0".repeat(40), "-1");
        assert_eq!(never, Identity(7));
        let first = identity(&"a".repeat(40), "100");
        assert_eq!(first, identity(&"a".repeat(40), "100"));
        let others = [
            identity(&"b".repeat(40), "100"),
            identity(&"a".repeat(40), "200"),
        ];
        assert!(first != never && others.iter().all(|other| *other != first));
    }

    #[test]
    fn the_info_of_redis_is_decoded() {
        let info = Info::read(
            "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n# Memory\r\n\
             maxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n# Replication\r\nrole:slave\r\n\
             # Persistence\r\nloading:1\r\nuptime_in_seconds:7\r\n",
        );
        assert!(info.is_loading);
        assert_eq!(info.uptime, Some(Duration::from_secs(7)));
        assert_eq!(info.make.as_deref(), Some("Redis 7.0.15"));
        assert_eq!(info.version, Some(Version { major: 7, minor: 0 }));
        assert_eq!(info.eviction.as_deref(), Some("allkeys-lru"));
        assert_eq!(info.memory_max, Some(1_048_576));
        assert!(info.is_replica() && !info.is_sentinel() && !info.is_too_old());
    }

    #[test]
    fn valkey_is_recognized_in_either_order_of_lines() {
        for text in [
            "redis_version:7.2.4\nvalkey_version:8.1.0\n",
            "valkey_version:8.1.0\nredis_version:7.2.4\n",
        ] {
            let info = Info::read(text);
            assert_eq!(info.make.as_deref(), Some("Valkey 8.1.0"));
            assert_eq!(info.version, Some(Version { major: 7, minor: 2 }));
        }
    }

    #[test]
    fn only_versions_before_6_2_are_too_old() {
        let check = |version: &str, expected: bool| {
            let info = Info::read(&format!("redis_version:{version}"));
            assert_eq!(info.is_too_old(), expected, "{version}");
        };
        check("5.0.14", true);
        check("6.0.16", true);
        check("6.2.0", false);
        check("10.0.0", false);
        check("unstable", false);
    }

    #[test]
    fn an_identity_is_the_first_half_of_a_run_id() {
        let check = |run_id: &str, expected: Option<u64>| {
            let info = Info::read(&format!("run_id:{run_id}\r\n"));
            assert_eq!(info.identity, expected.map(Identity), "{run_id}");
        };
        check("00000000000000ff11111111111111112222222", Some(255));
        check("ffffffffffffffff", Some(u64::MAX));
        check("fffffffffffffff", None);
        check("+fffffffffffffff", None);
        check("no run id is like this", None);
        check("äöüäöüäöüäöü", None);
        check("", None);
    }

    #[test]
    fn invalid_info_has_no_fields() {
        assert_eq!(
            Info::read("HTTP/1.1 400\r\n:\r\n::\r\nmaxmemory:-1"),
            Info::default()
        );
    }
}
